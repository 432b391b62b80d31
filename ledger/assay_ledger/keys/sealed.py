"""A backup as one file: what it holds, encrypted and authenticated under a password.

    {"format": "assay backup", "version": 1, "n": ..., "r": 8, "p": 1, "salt": ..., "nonce": ..., "size": ...}\\n
    AES-256-GCM over zlib over: one JSON line of what is in it, then the files one behind the other

The key is scrypt's; `size` is how many bytes follow the first line (earlier releases do not say it), which is
authenticated with the rest. Files may come from anywhere: they are bounded, and the work that they ask for too, before
any of it is done. Source: docs/adr/0058-keys.md.
"""

from __future__ import annotations

import json
import re
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from assay.protocol.errors import ConfigError, UsageError
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.keys.kdf import SCRYPT, Kdf, KeystoreCorrupt, WrongPassword, check_scrypt_work

FORMAT: Final = "assay backup"
VERSION: Final = 1
MAX_BYTES: Final = 1 << 30
"""Of all files together, and of the backup."""
_MAX_HEADER: Final = 1 << 10
_MAX_INDEX: Final = 1 << 16
_R, _P = 8, 1
_TAG: Final = 16
"""Bytes that GCM adds."""
_PLACE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}(/[A-Za-z0-9][A-Za-z0-9._-]{0,127}){0,2}")


class BackupCorrupt(ConfigError):
    """A file is no backup, or a damaged one."""

    remedy = "Use another copy of the backup."


class KeyInBackup(UsageError):
    """A backup of a key and its actors is no file of a key."""

    remedy = "`assay key restore FILE` puts back all that is in it."


@dataclass(frozen=True, slots=True)
class SealedBackup:
    """What a backup holds: the key's name, when it was made (Unix seconds), settings by name, files by place."""

    name: str
    made_at: int
    settings: Mapping[str, str]
    files: Mapping[str, bytes]


def is_sealed(data: bytes) -> bool:
    """Whether a file begins as a backup does, whatever follows."""
    return data.startswith(json.dumps({"format": FORMAT}).encode()[:-1])


def seal(backup: SealedBackup, password: str, kdf: Kdf = SCRYPT) -> bytes:
    """The file's bytes. Raises BackupCorrupt for more than MAX_BYTES; `kdf` is a scrypt."""
    entries = sorted(backup.files.items())
    index = {
        "name": backup.name,
        "made_at": backup.made_at,
        "settings": dict(backup.settings),
        "files": [[place, len(data)] for place, data in entries],
    }
    plain = json.dumps(index).encode() + b"\n" + b"".join(data for _, data in entries)
    if len(plain) > MAX_BYTES:
        raise BackupCorrupt(f"The files have {len(plain)} bytes together; a backup holds {MAX_BYTES}.")
    salt, nonce = secrets.token_bytes(32), secrets.token_bytes(12)
    work, packed = {"n": kdf.work, "r": _R, "p": _P, "salt": salt.hex(), "nonce": nonce.hex()}, zlib.compress(plain)
    begins: dict[str, object] = {"format": FORMAT, "version": VERSION, **work, "size": len(packed) + _TAG}
    header = json.dumps(begins).encode() + b"\n"
    return header + AESGCM(_key(password, salt, kdf.work, _R, _P)).encrypt(nonce, packed, header)


def unseal(data: bytes, password: str) -> SealedBackup:
    """What is in a file. Raises BackupCorrupt, WrongPassword (so does a file that is whole and damaged)."""
    end = data.find(b"\n", 0, _MAX_HEADER) + 1
    header = _document(data[:end], "first line")
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise BackupCorrupt("This file is no backup of version 1.")
    try:
        n, r, p = (header[name] for name in ("n", "r", "p"))
        salt, nonce = bytes.fromhex(header["salt"]), bytes.fromhex(header["nonce"])
        if not all(type(work) is int for work in (n, r, p)) or len(salt) != 32 or len(nonce) != 12:
            raise ValueError
        check_scrypt_work(n, r, p)
    except (KeyError, TypeError, ValueError):
        raise BackupCorrupt("The first line of this backup is damaged.") from None
    except KeystoreCorrupt as error:
        raise BackupCorrupt(error.message) from None
    size, there = header.get("size", len(data) - end), len(data) - end
    if size != there:
        # Else a copy that was cut short would be taken for a password that nobody knows any more.
        raise BackupCorrupt(f"This backup is not whole: {there} bytes follow its first line, which says {size}.")
    try:
        packed = AESGCM(_key(password, salt, n, r, p)).decrypt(nonce, data[end:], data[:end])
    except InvalidTag:
        raise WrongPassword("The password does not open this backup, or the file is damaged.") from None
    return _parsed(_unpacked(packed))


def _key(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(password.encode())


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(packed, MAX_BYTES + 1)
    except zlib.error:
        raise BackupCorrupt("What this backup holds cannot be unpacked.") from None
    if len(plain) > MAX_BYTES or not unpacker.eof:
        raise BackupCorrupt("What this backup holds is too large.")
    return plain


def _parsed(plain: bytes) -> SealedBackup:
    at = plain.find(b"\n", 0, _MAX_INDEX) + 1
    index = _document(plain[:at], "list of files")
    try:
        name, made_at, settings = str(index["name"]), int(index["made_at"]), dict(index["settings"])
        files = {}
        for place, size in index["files"]:
            if not _PLACE.fullmatch(place) or type(size) is not int or not 0 <= size <= len(plain) - at:
                raise ValueError
            files[place] = plain[at : at + size]
            at += size
    except (KeyError, TypeError, ValueError):
        raise BackupCorrupt("The list of files of this backup is damaged.") from None
    return SealedBackup(name, made_at, {str(k): str(v) for k, v in settings.items()}, files)


def _document(line: bytes, what: str) -> dict[str, Any]:
    try:
        document = parse_json(line, max_bytes=_MAX_INDEX)
    except JsonRefused as refused:
        raise BackupCorrupt(f"The {what} of this backup cannot be read: {refused}") from None
    if not isinstance(document, dict):
        raise BackupCorrupt(f"The {what} of this backup is damaged.")
    return document
