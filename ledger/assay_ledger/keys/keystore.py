"""Keys on disk: one folder per actor, encrypted files, nothing half-written.

    <keys folder>/<name>/evm.json        secp256k1 key, Web3 Secret Storage version 3 (geth, foundry, ... read it)
    <keys folder>/<name>/account.json    where the account's key is elsewhere: its address, and its grant to this key

Files have mode 0600 and appear whole or not at all; nothing here overwrites a key. Files may come from elsewhere, so
they are bounded and checked before any key derivation runs. `ActorKeys` is what a process holds once unlocked.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from assay.protocol.errors import ConfigError, InvariantError, UsageError
from assay.protocol.types import Address
from assay_ledger.chain.transaction_signer import TransactionSigner
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.keys.kdf import SCRYPT, Kdf, KeystoreCorrupt, corrupt
from assay_ledger.keys.keystore_v3 import account_of, decrypt_account, encrypt_account, shown_address
from assay_ledger.keys.sealed import KeyInBackup, is_sealed
from assay_ledger.keys.signing import GrantedSpeaker, grant_text
from assay_ledger.new_file import sync_folder, write_new

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

EVM_FILE: Final = "evm.json"
ACCOUNT_FILE: Final = "account.json"
"""Beside a local key: the account whose own key is elsewhere, and its grant."""
MAX_FILE_BYTES: Final = 1 << 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RAW_SECRET = re.compile(rb"(0x)?[0-9a-fA-F]{64}")


class KeyMissing(ConfigError):
    """No key of that name or at that path."""

    remedy = "`assay key list` shows the keys there are; `assay key new NAME` makes one."


class KeyExists(ConfigError):
    """A key would be overwritten."""

    remedy = "Choose another name, or move the old key away yourself after testing its backup."


class KeyUnwritable(ConfigError):
    """A key cannot be written to a folder."""

    remedy = "Check the path, its permissions and the room on its disk."


class KeyNamedTwice(UsageError):
    """Two keys of one name."""

    remedy = "Give each key a name of its own."


class KeyNameInvalid(UsageError):
    """A name that cannot be a folder's."""

    remedy = "Use letters, digits, dots, dashes and underscores, 64 at most, starting with a letter or digit."


class SignerMissing(ConfigError):
    """An account's key is elsewhere, and nothing says where."""

    remedy = "Give --signer URL, or set ASSAY_SIGNER."


class PasswordEmpty(ConfigError):
    """An empty password protects nothing."""

    remedy = "Choose a password; ETH_PASSWORD may name a file that holds it."


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What a key shows without its password: `address` with checksum."""

    name: str
    path: Path
    address: str

    def to_json(self) -> dict[str, object]:
        """The entry that `--json` prints."""
        return {"name": self.name, "address": self.address, "path": str(self.path)}


@dataclass(frozen=True, slots=True)
class ActorKeys:
    """Unlocked keys of one actor; its text form shows no secret."""

    name: str
    account: TransactionSigner = field(repr=False)
    """Signs transactions; its key may be elsewhere."""
    beside: LocalAccount | None = field(repr=False, default=None)
    """Where it is: the key that was made beside it, on this machine."""
    grant: bytes = b""
    """And the account's signature that this key speaks for it."""

    @property
    def local(self) -> LocalAccount:
        """What seeds and salts follow from, and what signs heartbeats."""
        return cast("LocalAccount", self.account) if self.beside is None else self.beside

    @property
    def speaker(self) -> LocalAccount | GrantedSpeaker:
        """Who signs heartbeats."""
        if self.beside is None:
            return self.local
        return GrantedSpeaker(self.account.address, self.beside, self.grant)

    @property
    def address(self) -> Address:
        """The account's 20 bytes."""
        return Address(bytes.fromhex(self.account.address[2:]))


def create_key(keys_dir: Path, name: str, password: str, *, kdf: Kdf = SCRYPT) -> KeyInfo:
    """Make a fresh key under a new name.

    Raises KeyNameInvalid, PasswordEmpty, KeyExists or KeyUnwritable; then nothing was written.
    """
    _check_name(name)
    _check_password(password)
    if (keys_dir / name).exists():
        raise KeyExists(f"A key named {name!r} exists already in {keys_dir}.")
    _write_folder(keys_dir, name, {EVM_FILE: encrypt_account(secrets.token_bytes(32), password, kdf)})
    return describe_key(keys_dir / name)


def create_remote(
    keys_dir: Path,
    name: str,
    account: str,
    password: str,
    sign_text: Callable[[str], bytes],
    *,
    kdf: Kdf = SCRYPT,
) -> KeyInfo:
    """Make the local key of an account whose own key is elsewhere; `sign_text` is that account's.

    Raises KeyNameInvalid, PasswordEmpty, KeyExists, and what `sign_text` raises; then nothing was written.
    """
    _check_password(password)
    check_new(keys_dir, [name])
    secret = secrets.token_bytes(32)
    grant = sign_text(grant_text(account, account_of(secret).address))
    remote = {"address": account, "grant": grant.hex()}
    _write_folder(keys_dir, name, {EVM_FILE: encrypt_account(secret, password, kdf), ACCOUNT_FILE: remote})
    return describe_key(keys_dir / name)


def remote_account(path: Path) -> tuple[str, bytes] | None:
    """The address, with checksum, and the grant of an account whose key is elsewhere; None where it is here.

    Raises KeystoreCorrupt.
    """
    if not (path / ACCOUNT_FILE).is_file():
        return None
    document = _read_document(path / ACCOUNT_FILE)
    try:
        return shown_address(document), bytes.fromhex(document["grant"])
    except (KeyError, TypeError, ValueError):
        raise corrupt(f"{path / ACCOUNT_FILE} is damaged") from None


def check_new(keys_dir: Path, names: Sequence[str]) -> None:
    """Whether keys of all these names can be made. Raises KeyNameInvalid, KeyExists, KeyNamedTwice."""
    for place, name in enumerate(names):
        _check_name(name)
        if name in names[:place]:
            raise KeyNamedTwice(f"The name {name!r} was given twice.")
        if (keys_dir / name).exists():
            raise KeyExists(f"A key named {name!r} exists already in {keys_dir}.")


def list_keys(keys_dir: Path) -> tuple[KeyInfo, ...]:
    """All keys of a folder by name; folders that hold no key are passed over. KeystoreCorrupt names a broken file."""
    if not keys_dir.is_dir():
        return ()
    folders = sorted(entry for entry in keys_dir.iterdir() if (entry / EVM_FILE).is_file())
    return tuple(describe_key(folder) for folder in folders if _NAME.fullmatch(folder.name))


def find_key(keys_dir: Path, name_or_path: str) -> Path:
    """The key's folder, or a lone version 3 file, by name in the keys folder or by path. Raises KeyMissing."""
    for candidate in (keys_dir / name_or_path, Path(name_or_path).expanduser()):
        if (candidate / EVM_FILE).is_file() or candidate.is_file():
            return candidate
    raise KeyMissing(f"There is no key {name_or_path!r}, neither in {keys_dir} nor as a path.")


def describe_key(path: Path) -> KeyInfo:
    """What a key shows without its password. Raises KeyMissing or KeystoreCorrupt."""
    document = _read_document(_file(path))
    try:
        remote = remote_account(path)
        address = shown_address(document) if remote is None else remote[0]
    except KeystoreCorrupt as error:
        raise KeystoreCorrupt(f"{path}: {error.message}") from None
    return KeyInfo(path.stem if path.is_file() else path.name, path, address)


def load_keys(path: Path, password: str, remote_signer: Callable[[str], TransactionSigner] | None = None) -> ActorKeys:
    """Unlock a key's folder, or a lone version 3 file. `remote_signer` makes the signer of an address elsewhere.

    Raises KeyMissing, KeystoreCorrupt, WrongPassword, SignerMissing.
    """
    remote = remote_account(path)
    if remote is not None and remote_signer is None:
        raise SignerMissing(f"The key of {remote[0]} is elsewhere, and no signer is named.")
    local = decrypt_account(_read_document(_file(path)), password)
    name = path.stem if path.is_file() else path.name
    if remote is None or remote_signer is None:
        return ActorKeys(name, local)
    return ActorKeys(name, remote_signer(remote[0]), local, remote[1])


def import_key(keys_dir: Path, name: str, source: Path, password: str, *, kdf: Kdf = SCRYPT) -> KeyInfo:
    """Take in a keystore file made elsewhere, a file with 64 hex digits of a secp256k1 secret, or an exported folder.

    The file must open with `password`; a keystore is kept as it is, a bare secret is encrypted.

    Raises KeyMissing, KeyExists, KeyInBackup, KeystoreCorrupt or WrongPassword.
    """
    _check_name(name)
    _check_password(password)
    if source.is_dir():
        return restore_key(keys_dir, name, read_files(source), password)
    data = _read_bytes(source)
    if _RAW_SECRET.fullmatch(data.strip()):
        secret = bytes.fromhex(data.strip()[-64:].decode())
        _write_folder(keys_dir, name, {EVM_FILE: encrypt_account(secret, password, kdf)})
        return describe_key(keys_dir / name)
    if is_sealed(data):
        raise KeyInBackup(f"{source} is what `assay key backup` wrote.")
    document = _parse(source, data)
    address = decrypt_account(document, password).address
    _write_folder(keys_dir, name, {EVM_FILE: {**document, "address": address[2:]}})
    return describe_key(keys_dir / name)


def read_files(path: Path) -> dict[str, bytes]:
    """The encrypted files of a key by name, for a backup. Raises KeyMissing, KeystoreCorrupt."""
    file = _file(path)
    _read_document(file)
    found = {EVM_FILE: _read_bytes(file)}
    if remote_account(path) is not None:
        found[ACCOUNT_FILE] = _read_bytes(path / ACCOUNT_FILE)
    return found


def restore_key(keys_dir: Path, name: str, files: Mapping[str, bytes], password: str) -> KeyInfo:
    """A key from the files of a backup, once they open.

    Raises KeyNameInvalid, KeyExists, KeystoreCorrupt, WrongPassword; then nothing was written.
    """
    check_new(keys_dir, [name])
    documents = {file: _parse(Path(file), data) for file, data in files.items()}
    if not {EVM_FILE} <= set(documents) <= {EVM_FILE, ACCOUNT_FILE}:
        raise corrupt(f"the backup holds {', '.join(sorted(documents)) or 'nothing'} in place of {EVM_FILE}")
    decrypt_account(documents[EVM_FILE], password)
    _write_folder(keys_dir, name, documents)
    return describe_key(keys_dir / name)


def export_key(path: Path, target: Path) -> tuple[Path, ...]:
    """Copy a key's encrypted file into a folder (made if need be), and what makes it another account's: a backup.

    Raises KeyMissing, KeyExists, KeyUnwritable; then nothing was written.
    """
    source = _file(path)
    documents = {source.name: _read_document(source)}
    if remote_account(path) is not None:
        documents[ACCOUNT_FILE] = _read_document(path / ACCOUNT_FILE)
    copies = [target / name for name in documents]
    if there := next((copy for copy in copies if copy.exists()), None):
        raise KeyExists(f"{there} exists already.")
    written: list[Path] = []
    with _written_to(target):
        try:
            target.mkdir(parents=True, exist_ok=True, mode=0o700)
            for copy, document in zip(copies, documents.values(), strict=True):
                write_new(copy, _encoded(document))
                written.append(copy)
        except OSError as error:
            for copy in written:
                copy.unlink()
            if isinstance(error, FileExistsError):
                raise KeyExists(f"{error.filename2 or error.filename} exists already.") from None
            raise
    return tuple(written)


def check_recovery(backup: Path, password: str, expected: KeyInfo | None = None) -> KeyInfo:
    """Prove that a backup can be restored: unlock it, use its key once, and compare it with the key it stands for.

    Raises KeyMissing, KeystoreCorrupt or WrongPassword; KeystoreCorrupt too when it is another key's backup.
    """
    _use_once(ActorKeys(backup.name, decrypt_account(_read_document(_file(backup)), password)))
    info = describe_key(backup)
    if expected and info.address != expected.address:
        raise corrupt(f"{backup} holds {info.address}, which is not the key {expected.name!r} ({expected.address})")
    return info


def _use_once(keys: ActorKeys) -> None:
    from eth_account import Account
    from eth_account.messages import encode_defunct

    message = encode_defunct(b"assay: recovery test")
    if Account.recover_message(message, signature=keys.local.sign_message(message).signature) != keys.local.address:
        raise InvariantError("A secp256k1 key does not verify its own signature.")


# --- files


def _file(path: Path) -> Path:
    if path.is_file():
        return path
    if not (path / EVM_FILE).is_file():
        raise KeyMissing(f"There is no key in {path}.")
    return path / EVM_FILE


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KeyMissing(f"{path} cannot be read ({error.strerror}).") from None


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    try:
        document = parse_json(data, max_bytes=MAX_FILE_BYTES)
    except JsonRefused as refused:
        raise corrupt(f"{path}: {refused}") from None
    if not isinstance(document, dict):
        raise corrupt(f"{path} is not a JSON object")
    return document


def _read_document(path: Path) -> dict[str, Any]:
    return _parse(path, _read_bytes(path))


def _write_folder(keys_dir: Path, name: str, documents: Mapping[str, dict[str, Any]]) -> None:
    """The folder of a new key with its files, or none: it is written beside and renamed."""
    with _written_to(keys_dir):
        keys_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        staging = Path(tempfile.mkdtemp(prefix=".new-", dir=keys_dir))
        try:
            for file, document in sorted(documents.items()):
                write_new(staging / file, _encoded(document))
            try:
                staging.rename(keys_dir / name)
            except OSError:
                raise KeyExists(f"A key named {name!r} exists already in {keys_dir}.") from None
            sync_folder(keys_dir)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    """What the disk says is said of the folder."""
    try:
        yield
    except OSError as error:
        raise KeyUnwritable(f"{folder} cannot be written to ({error.strerror}).") from None


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise KeyNameInvalid(f"{name!r} cannot name a key.")


def _check_password(password: str) -> None:
    if not password:
        raise PasswordEmpty("The password is empty.")
