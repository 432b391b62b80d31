"""EIP-2335 documents: one BLS12-381 secret under a password, as JSON.

Reads and writes version 4 with scrypt or PBKDF2 (HMAC-SHA-256) and AES-128-CTR, using the `cryptography` package alone.
The documents may come from anywhere: every field is checked, and the work a document asks for is bounded before any of
it is done.

Source: EIP-2335 (https://eips.ethereum.org/EIPS/eip-2335), whose vectors the tests run.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
import uuid
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from assay.protocol.errors import ConfigError

T = TypeVar("T")

VERSION: Final = 4
MAX_SCRYPT_MEMORY: Final = 1 << 30
"""Bytes: four times what the default asks for."""
MAX_SCRYPT_WORK: Final = 1 << 25
"""n * r * p: sixteen times the default."""
MAX_PBKDF2_ROUNDS: Final = 1 << 25


class KeystoreCorrupt(ConfigError):
    """A keystore document is not what it claims to be."""

    remedy = "Restore the file from its backup, or import the key again."


class WrongPassword(ConfigError):
    """The checksum does not fit the password; a damaged ciphertext looks the same."""

    remedy = (
        "Use the password it was made with (ETH_PASSWORD names a file that holds it); if you are sure of it, the file "
        "is damaged: restore its backup."
    )


@dataclass(frozen=True, slots=True)
class Kdf:
    """How a password becomes a key: the function's name and its work (scrypt's n, or PBKDF2's rounds)."""

    function: str
    work: int


SCRYPT: Final = Kdf("scrypt", 1 << 18)
"""For people: 256 MiB and about 0.6 s per unlock."""
PBKDF2: Final = Kdf("pbkdf2", 1 << 18)
"""For machines that unlock many keys at once: no memory, about 50 ms."""


def encrypt_secret(
    secret: bytes, public_key: bytes, password: str, kdf: Kdf = SCRYPT, description: str = ""
) -> dict[str, Any]:
    """A fresh document for a 32-byte secret.

    `public_key` is the 48-byte compressed key that the document shows without a password.
    """
    salt, iv = secrets.token_bytes(32), secrets.token_bytes(16)
    params: dict[str, Any] = {"dklen": 32, "salt": salt.hex()}
    if kdf.function == "scrypt":
        params |= {"n": kdf.work, "r": 8, "p": 1}
    else:
        params |= {"c": kdf.work, "prf": "hmac-sha256"}
    key = _derive(kdf.function, params, password)
    message = _aes_ctr(key, iv, secret)
    return {
        "crypto": {
            "kdf": {"function": kdf.function, "params": params, "message": ""},
            "checksum": {"function": "sha256", "params": {}, "message": _checksum(key, message).hex()},
            "cipher": {"function": "aes-128-ctr", "params": {"iv": iv.hex()}, "message": message.hex()},
        },
        "description": description,
        "pubkey": public_key.hex(),
        "path": "",
        "uuid": str(uuid.uuid4()),
        "version": VERSION,
    }


def decrypt_secret(document: object, password: str) -> bytes:
    """The 32-byte secret of a document.

    Raises KeystoreCorrupt for a document that is malformed or asks for unreasonable work, WrongPassword
    when the checksum does not fit.
    """
    crypto = _field(document, "crypto", dict)
    if _field(document, "version", int) != VERSION:
        raise corrupt("it is not version 4")
    kdf, checksum, cipher = (_field(crypto, name, dict) for name in ("kdf", "checksum", "cipher"))
    if _field(checksum, "function", str) != "sha256" or _field(cipher, "function", str) != "aes-128-ctr":
        raise corrupt("it uses a checksum or cipher that is not sha256 or aes-128-ctr")
    message = _hex(cipher, "message", 32, 32)
    iv = _hex(_field(cipher, "params", dict), "iv", 16, 16)
    key = _derive(_field(kdf, "function", str), _field(kdf, "params", dict), password)
    if not hmac.compare_digest(_checksum(key, message), _hex(checksum, "message", 32, 32)):
        raise WrongPassword("The password does not open this keystore.")
    return _aes_ctr(key, iv, message)


def public_key_of(document: object) -> bytes:
    """The 48-byte compressed public key that a document shows; nothing proves it before the secret is decrypted."""
    return _hex(document, "pubkey", 48, 48)


def check_scrypt_work(n: int, r: int, p: int) -> None:
    """Refuse parameters that would take the machine's memory or minutes (KeystoreCorrupt)."""
    if n < 2 or n & (n - 1) or r < 1 or p < 1 or 128 * n * r > MAX_SCRYPT_MEMORY or n * r * p > MAX_SCRYPT_WORK:
        raise corrupt(f"its scrypt parameters (n={n}, r={r}, p={p}) are out of bounds")


def check_pbkdf2_work(rounds: int) -> None:
    """Refuse a number of rounds that would take minutes (KeystoreCorrupt)."""
    if not 1 <= rounds <= MAX_PBKDF2_ROUNDS:
        raise corrupt(f"its pbkdf2 rounds ({rounds}) are out of bounds")


def corrupt(reason: str) -> KeystoreCorrupt:
    """The error for a document, with the reason in a few words."""
    return KeystoreCorrupt(f"The keystore cannot be used: {reason}.")


def _derive(function: str, params: dict[str, Any], password: str) -> bytes:
    salt = _hex(params, "salt", 8, 64)
    if _field(params, "dklen", int) != 32:
        raise corrupt("its derived key does not have 32 bytes")
    encoded = _normalized(password)
    if function == "scrypt":
        n, r, p = (_field(params, name, int) for name in "nrp")
        check_scrypt_work(n, r, p)
        return Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(encoded)
    if function == "pbkdf2":
        rounds = _field(params, "c", int)
        check_pbkdf2_work(rounds)
        if _field(params, "prf", str) != "hmac-sha256":
            raise corrupt("its pbkdf2 uses another function than hmac-sha256")
        return PBKDF2HMAC(algorithm=SHA256(), length=32, salt=salt, iterations=rounds).derive(encoded)
    raise corrupt("its key derivation is neither scrypt nor pbkdf2")


def _normalized(password: str) -> bytes:
    """NFKD, without C0, C1 and Delete (EIP-2335, password requirements)."""
    text = unicodedata.normalize("NFKD", password)
    return "".join(c for c in text if not (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0)).encode()


def _checksum(key: bytes, message: bytes) -> bytes:
    return hashlib.sha256(key[16:32] + message).digest()


def _aes_ctr(key: bytes, iv: bytes, data: bytes) -> bytes:
    # The second half of the key is for the checksum. CTR encrypts and decrypts alike.
    stream = Cipher(algorithms.AES(key[:16]), modes.CTR(iv)).encryptor()
    return stream.update(data) + stream.finalize()


def _field(container: object, name: str, kind: type[T]) -> T:
    value = container.get(name) if isinstance(container, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise corrupt(f"field {name!r} is missing or of the wrong type")
    return value


def _hex(container: object, name: str, least: int, most: int) -> bytes:
    text = _field(container, name, str)
    try:
        value = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise corrupt(f"field {name!r} is not hexadecimal") from None
    if not least <= len(value) <= most:
        raise corrupt(f"field {name!r} has {len(value)} bytes")
    return value
