"""Encrypted keys: published vectors, other people's software, hostile files, and nothing lost or overwritten."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from eth_account import Account

from assay_ledger.keys import keystore
from assay_ledger.keys.kdf import PBKDF2, SCRYPT, Kdf, KeystoreCorrupt, WrongPassword
from assay_ledger.keys.keystore import (
    KeyExists,
    KeyInfo,
    KeyMissing,
    KeyNameInvalid,
    KeyUnwritable,
    PasswordEmpty,
    check_recovery,
    create_key,
    describe_key,
    export_key,
    find_key,
    import_key,
    list_keys,
    load_keys,
)

FAST = Kdf("pbkdf2", 1000)
FAST_SCRYPT = Kdf("scrypt", 1 << 10)


@pytest.fixture
def keys_dir(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def key(keys_dir: Path) -> KeyInfo:
    return create_key(keys_dir, "verifier", "pass word", kdf=FAST)


def test_a_new_key_unlocks_to_the_account_that_it_shows(keys_dir: Path, key: KeyInfo) -> None:
    unlocked = load_keys(find_key(keys_dir, "verifier"), "pass word")
    assert unlocked.account.address == key.address
    assert "0x" + unlocked.address.hex() == key.address.lower()
    assert describe_key(keys_dir / "verifier") == key
    assert unlocked.account.key.hex() not in repr(unlocked)


def test_key_files_are_private_and_in_the_formats_others_read(keys_dir: Path, key: KeyInfo) -> None:
    assert stat.S_IMODE((key.path / "evm.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(key.path.stat().st_mode) == 0o700
    assert [entry.name for entry in key.path.iterdir()] == ["evm.json"]
    assert sorted(entry.name for entry in keys_dir.iterdir()) == ["verifier"]
    secret = Account.decrypt((key.path / "evm.json").read_text(), "pass word")
    assert Account.from_key(secret).address == key.address


def test_both_derivations_are_the_ones_named() -> None:
    assert Kdf("scrypt", 262144) == SCRYPT
    assert Kdf("pbkdf2", 262144) == PBKDF2


@pytest.mark.parametrize("kdf", [FAST, FAST_SCRYPT])
def test_the_chosen_derivation_is_written_to_the_file(keys_dir: Path, kdf: Kdf) -> None:
    info = create_key(keys_dir, "a", "p", kdf=kdf)
    evm = json.loads((info.path / "evm.json").read_text())["crypto"]
    assert evm["kdf"] == kdf.function
    work = "n" if kdf.function == "scrypt" else "c"
    assert evm["kdfparams"][work] == kdf.work
    assert load_keys(info.path, "p").account.address == info.address


def test_a_wrong_password_says_so_and_what_to_do(key: KeyInfo) -> None:
    with pytest.raises(WrongPassword) as refused:
        load_keys(key.path, "pass  word")
    assert "ETH_PASSWORD" in refused.value.remedy
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b"[" * 60000, b" " * 70000, b'{"version":3,"crypto":{}}'],
    ids=["empty", "cut", "list", "null", "binary", "object", "deep", "large", "hollow"],
)
def test_a_damaged_file_is_named_as_damaged(key: KeyInfo, content: bytes) -> None:
    (key.path / "evm.json").write_bytes(content)
    with pytest.raises(KeystoreCorrupt):
        load_keys(key.path, "pass word")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kdf", "argon2"),
        ("kdfparams", {"dklen": 32, "n": 1 << 30, "r": 8, "p": 1, "salt": "00" * 16}),
        ("kdfparams", {"dklen": 32, "n": 1000, "r": 8, "p": 1, "salt": "00" * 16}),
        ("kdfparams", {"dklen": 32, "c": 1 << 40, "prf": "hmac-sha256", "salt": "00" * 16}),
        ("kdfparams", {"dklen": 16, "c": 1000, "prf": "hmac-sha256", "salt": "00" * 16}),
        ("kdfparams", {"dklen": 32, "c": "1000", "prf": "hmac-sha256", "salt": "00" * 16}),
        ("kdfparams", {"dklen": 32, "c": 1000, "prf": "hmac-sha256"}),
        ("kdfparams", {"dklen": 32, "c": 1000, "prf": "hmac-sha256", "salt": 5}),
        ("ciphertext", "zz"),
        ("mac", None),
        ("cipherparams", 7),
    ],
)
def test_a_malformed_account_file_is_refused(key: KeyInfo, field: str, value: object) -> None:
    document = json.loads((key.path / "evm.json").read_text())
    document["crypto"][field] = value
    if field == "kdfparams" and isinstance(value, dict) and "n" in value:
        document["crypto"]["kdf"] = "scrypt"
    (key.path / "evm.json").write_text(json.dumps(document))
    with pytest.raises((KeystoreCorrupt, WrongPassword)) as refused:
        load_keys(key.path, "pass word")
    assert isinstance(refused.value, KeystoreCorrupt) or field in ("ciphertext", "mac", "cipherparams")


def test_a_file_that_shows_anothers_address_is_refused(keys_dir: Path, key: KeyInfo) -> None:
    other = create_key(keys_dir, "other", "pass word", kdf=FAST)
    ours, theirs = (json.loads((info.path / "evm.json").read_text()) for info in (key, other))
    (key.path / "evm.json").write_text(json.dumps({**ours, "address": theirs["address"]}))
    with pytest.raises(KeystoreCorrupt, match="another"):
        load_keys(key.path, "pass word")
    (key.path / "evm.json").write_text(json.dumps(ours))
    load_keys(key.path, "pass word")


def test_nothing_overwrites_a_key(keys_dir: Path, key: KeyInfo, tmp_path: Path) -> None:
    before = {entry.name: entry.read_bytes() for entry in key.path.iterdir()}
    with pytest.raises(KeyExists):
        create_key(keys_dir, "verifier", "other", kdf=FAST)
    source = tmp_path / "raw"
    source.write_text("0x" + "11" * 32 + "\n")
    with pytest.raises(KeyExists):
        import_key(keys_dir, "verifier", source, "other", kdf=FAST)
    export_key(key.path, tmp_path / "backup")
    with pytest.raises(KeyExists):
        export_key(key.path, tmp_path / "backup")
    assert {entry.name: entry.read_bytes() for entry in key.path.iterdir()} == before


def test_a_write_that_fails_leaves_no_key_and_no_rubbish(keys_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(KeyUnwritable, match="space"):
        patch.setattr(os, "fsync", full_disk)
        create_key(keys_dir, "a", "p", kdf=FAST)
    assert list(keys_dir.iterdir()) == []
    create_key(keys_dir, "a", "p", kdf=FAST)


@pytest.fixture
def stick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a file system without links, as FAT and exFAT are."""
    folder = tmp_path / "stick"
    folder.mkdir()

    def refuse(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", source, None, target)

    monkeypatch.setattr(os, "link", refuse)
    return folder


def test_a_stick_without_links_takes_a_key_and_replaces_nothing(key: KeyInfo, stick: Path) -> None:
    (written,) = export_key(key.path, stick)
    assert check_recovery(stick, "pass word", expected=key).address == key.address
    assert [entry.name for entry in stick.iterdir()] == ["evm.json"] and stat.S_IMODE(written.stat().st_mode) == 0o600
    written.unlink()
    written.symlink_to(stick / "elsewhere")  # what nobody sees until it is written to
    with pytest.raises(KeyExists):
        export_key(key.path, stick)
    assert not (stick / "elsewhere").exists() and written.is_symlink()


def test_a_stick_that_is_full_or_read_only_keeps_no_half_of_a_key(
    key: KeyInfo, stick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def full_at_the_second(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full_at_the_second)
    with pytest.raises(KeyUnwritable, match="No space left") as refused:
        export_key(key.path, stick)
    assert refused.value.remedy and list(stick.iterdir()) == []
    (stick / "file").touch()
    with pytest.raises(KeyUnwritable):
        export_key(key.path, stick / "file" / "folder")


def test_what_is_said_to_be_written_is_there_after_a_power_cut(
    keys_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: stake is sent to a key, or a disk is given away after its backup, whose name was in memory alone."""
    real, found = os.fsync, set[Path]()

    def sync(descriptor: int) -> None:
        real(descriptor)
        what = Path(f"/proc/self/fd/{descriptor}").readlink()
        found.update(what.iterdir() if what.is_dir() else ())

    monkeypatch.setattr(os, "fsync", sync)
    made = create_key(keys_dir, "solver", "p", kdf=FAST)
    copies = export_key(made.path, tmp_path / "stick")
    assert found >= {made.path, *copies}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "-a", ".hidden", "a" * 65, "ä", "a b", "a\n"])
def test_names_that_could_leave_the_folder_are_refused(keys_dir: Path, name: str) -> None:
    with pytest.raises(KeyNameInvalid):
        create_key(keys_dir, name, "p", kdf=FAST)
    assert not keys_dir.exists()


def test_an_empty_password_is_refused(keys_dir: Path) -> None:
    with pytest.raises(PasswordEmpty):
        create_key(keys_dir, "a", "", kdf=FAST)
    assert not keys_dir.exists()


def test_the_list_is_sorted_and_passes_over_what_is_no_key(keys_dir: Path, key: KeyInfo) -> None:
    first = create_key(keys_dir, "a-solver", "p", kdf=FAST)
    (keys_dir / "notes").mkdir()
    (keys_dir / "file.txt").write_text("x")
    assert list_keys(keys_dir) == (first, key)
    assert list_keys(keys_dir / "nowhere") == ()


def test_a_backup_restores_under_another_name(keys_dir: Path, key: KeyInfo, tmp_path: Path) -> None:
    backup = tmp_path / "usb" / "stick"
    (written,) = export_key(key.path, backup)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    restored = import_key(keys_dir, "restored", backup / "evm.json", "pass word")
    assert restored.address == key.address
    assert check_recovery(backup, "pass word", expected=key).address == key.address


def test_a_recovery_test_finds_the_wrong_password_the_wrong_key_and_the_missing_file(
    keys_dir: Path, key: KeyInfo, tmp_path: Path
) -> None:
    other = create_key(keys_dir, "other", "pass word", kdf=FAST)
    with pytest.raises(WrongPassword):
        check_recovery(key.path, "wrong")
    with pytest.raises(KeystoreCorrupt, match="is not the key 'verifier'"):
        check_recovery(other.path, "pass word", expected=key)
    (tmp_path / "empty").mkdir()
    with pytest.raises(KeyMissing):
        check_recovery(tmp_path / "empty", "pass word")


def test_a_bare_secret_and_a_file_without_address_are_taken_in(keys_dir: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text("0x" + "11" * 32 + "\n")
    info = import_key(keys_dir, "bare", bare, "p", kdf=FAST)
    assert info.address == Account.from_key("0x" + "11" * 32).address
    document = json.loads((info.path / "evm.json").read_text())
    del document["address"]
    lone = tmp_path / "foundry-key"
    lone.write_text(json.dumps(document))
    assert load_keys(find_key(keys_dir, str(lone)), "p").account.address == info.address
    assert import_key(keys_dir, "foundry", lone, "p").address == info.address
    with pytest.raises(WrongPassword):
        import_key(keys_dir, "third", lone, "q")
    assert not (keys_dir / "third").exists()


def test_importing_the_module_stays_light() -> None:
    import subprocess
    import sys

    heavy = "web3 torch numpy eth_account py_ecc"
    code = f"import sys, {keystore.__name__}; print([m for m in {heavy.split()!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
