"""`assay key backup` and `assay key restore`: everything of an actor that cannot be made again, in one file.

Source: docs/adr/0058-keys.md.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from assay.cli.actor_folders import usual_folders
from assay.cli.noted_settings import FILE, as_file, noted_settings, of_one_run, said_in
from assay.protocol.errors import ConfigError
from assay.settings import config_path, resolve
from assay_ledger.keys import keystore
from assay_ledger.keys.kdf import SCRYPT, Kdf
from assay_ledger.keys.keystore import KeyInfo
from assay_ledger.keys.sealed import MAX_BYTES, BackupCorrupt, SealedBackup, is_sealed, seal, unseal
from assay_ledger.new_file import sync_folder, write_new

KEPT: Final = ("journal.jsonl", "outbox.jsonl", "form", FILE)
"""Of an actor's folder: what no chain, store or computation gives back, which form it has, and what its actor was
started with."""


class BackupExists(ConfigError):
    """A file or folder would be overwritten."""

    remedy = "Name another place, or move away yourself what is there."


class BackupUnreadable(ConfigError):
    """A file or folder cannot be read or written."""

    remedy = "Check the path, its permissions and the room on its disk."


class ActorFolderMissing(ConfigError):
    """A folder that was named holds no actor's journal."""

    remedy = "Name the folder that the actor was started with (--data-dir)."


class ActorFoldersAlike(ConfigError):
    """Two folders of one name would be one in a backup."""

    remedy = "Rename one of them, and name it so where its actor is started."


def folders_of(name: str) -> list[Path]:
    """The folders that actors with a key of this name have made in the usual place."""
    return [folder for folder in usual_folders(name) if (folder / KEPT[0]).is_file()]


def write_backup(
    key: Path, folders: Sequence[Path], password: str, target: Path, *, kdf: Kdf = SCRYPT, now: float | None = None
) -> SealedBackup:
    """Writes what a key and its actors' folders hold into a new file, which was opened again before it is there.

    Actors may be running: a journal only grows, and what a line misses is made again.
    Raises BackupExists, BackupUnreadable, ActorFolderMissing, ActorFoldersAlike, BackupCorrupt (too large),
    WrongPassword.
    """
    if target.exists():
        raise BackupExists(f"{target} exists already.")
    name = keystore.check_recovery(key, password).name
    files = {f"key/{file}": data for file, data in keystore.read_files(key).items()}
    for folder in folders:
        if not (folder / KEPT[0]).is_file():
            raise ActorFolderMissing(f"{folder} holds no {KEPT[0]}.")
        place = f"actors/{folder.resolve().name}"
        if f"{place}/{KEPT[0]}" in files:
            raise ActorFoldersAlike(f"Two folders are called {folder.resolve().name}.")
        for file in KEPT:
            if (folder / file).is_file():
                files[f"{place}/{file}"] = _read(folder / file)
    settings = of_one_run(said_in(resolve().settings), [noted_settings(folder) for folder in folders])
    backup = SealedBackup(name, int(time.time() if now is None else now), settings, files)
    data = seal(backup, password, kdf)
    assert unseal(data, password) == backup
    _write_new(target, data)
    return backup


def open_backup(source: Path, password: str) -> SealedBackup:
    """What is in a backup. Raises BackupUnreadable, BackupCorrupt, WrongPassword."""
    return unseal(_read(source), password)


def check_recovery(copy: Path, password: str, expected: KeyInfo | None = None) -> KeyInfo:
    """Proves that a copy of either kind, an exported folder or a backup, gives its key back.

    Raises BackupUnreadable, BackupCorrupt, and what `keystore.check_recovery` raises.
    """
    if not copy.is_file() or not is_sealed(_read(copy)):
        return keystore.check_recovery(copy, password, expected)
    files = {p.removeprefix("key/"): data for p, data in open_backup(copy, password).files.items() if p[:4] == "key/"}
    with tempfile.TemporaryDirectory() as folder:
        key = keystore.restore_key(Path(folder), "key", files, password)
        found = keystore.check_recovery(key.path, password, expected)
    return replace(found, name=copy.name, path=copy)


def restore(
    backup: SealedBackup, password: str, keys_dir: Path, actors: Path, name: str | None = None
) -> tuple[KeyInfo, list[Path]]:
    """Writes a backup's key and folders where nothing is yet; the key comes last, so that it stands for the rest.

    Raises BackupExists, KeyExists, KeyNameInvalid, KeystoreCorrupt, BackupCorrupt; then nothing was written.
    """
    name = name or backup.name
    keystore.check_new(keys_dir, [name])
    key, folders = dict[str, bytes](), dict[str, dict[str, bytes]]()
    for place, data in backup.files.items():
        match place.split("/"):
            case ["key", file]:
                key[file] = data
            case ["actors", folder, file] if file in KEPT:
                folders.setdefault(folder, {})[file] = data
            case _:
                raise BackupCorrupt(f"This backup holds {place}, which this release does not know.")
    taken = [actors / folder for folder in sorted(folders) if (actors / folder).exists()]
    if taken:
        raise BackupExists(f"{taken[0]} exists already.")
    made = [_write_folder(actors / folder, files) for folder, files in sorted(folders.items())]
    try:
        return keystore.restore_key(keys_dir, name, key, password), made
    except BaseException:
        for written in made:
            shutil.rmtree(written)
        raise


def restore_settings(settings: Mapping[str, str]) -> Path | None:
    """Writes a backup's settings where there are none yet; None where there are, or it has none."""
    path = config_path()
    if not settings or path.exists():
        return None
    with _written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    _write_new(path, as_file(settings))
    return path


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BackupUnreadable(f"{path} cannot be read ({error.strerror}).") from None
    if len(data) > MAX_BYTES:
        raise BackupCorrupt(f"{path} has more than {MAX_BYTES} bytes.")
    return data


def _write_folder(target: Path, files: Mapping[str, bytes]) -> Path:
    with _written(target):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        staging = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
        try:
            for name, data in files.items():
                write_new(staging / name, data)
            staging.rename(target)
            sync_folder(target.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return target


def _write_new(path: Path, data: bytes) -> None:
    """A file that is there whole or not at all, readable by its owner alone."""
    with _written(path):
        write_new(path, data)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise BackupExists(f"{path} exists already.") from None
    except OSError as error:
        raise BackupUnreadable(f"{path} cannot be written ({error.strerror}).") from None
