"""Encrypted keys: published vectors, other people's software, hostile files, and nothing lost or overwritten."""

from __future__ import annotations

import copy
import json
import os
import stat
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eth_keyfile
import pytest
from eth_account import Account

from assay_ledger.keys import keystore
from assay_ledger.keys.bls import BlsKey
from assay_ledger.keys.eip2335 import (
    PBKDF2,
    SCRYPT,
    Kdf,
    KeystoreCorrupt,
    WrongPassword,
    decrypt_secret,
    encrypt_secret,
)
from assay_ledger.keys.keystore import (
    KeyExists,
    KeyInfo,
    KeyMissing,
    KeyNameInvalid,
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

# EIP-2335, "Test Cases": one secret and one password, under both key derivations.
EIP_PASSWORD = "".join(chr(0x1D531 + ord(c) - ord("t")) for c in "testpassword") + "\U0001f511"
EIP_SECRET = bytes.fromhex("000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f")
EIP_PUBLIC_KEY = "9612d7a727c9d0a22e185a1c768478dfe919cada9266988cb32359c11f2b7b27f4ae4040902382ae2910c15e2b420d07"
EIP_SALT = "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3"


def eip_vector(function: str) -> dict[str, Any]:
    scrypt = function == "scrypt"
    params = {"n": 262144, "p": 1, "r": 8} if scrypt else {"c": 262144, "prf": "hmac-sha256"}
    checksum = (
        "d2217fe5f3e9a1e34581ef8a78f7c9928e436d36dacc5e846690a5581e8ea484"
        if scrypt
        else "8a9f5d9912ed7e75ea794bc5a89bca5f193721d30868ade6f73043c6ea6febf1"
    )
    message = (
        "06ae90d55fe0a6e9c5c3bc5b170827b2e5cce3929ed3f116c2811e6366dfe20f"
        if scrypt
        else "cee03fde2af33149775b7223e7845e4fb2c8ae1792e5f99fe9ecf474cc8c16ad"
    )
    return {
        "crypto": {
            "kdf": {"function": function, "params": {"dklen": 32, "salt": EIP_SALT, **params}, "message": ""},
            "checksum": {"function": "sha256", "params": {}, "message": checksum},
            "cipher": {
                "function": "aes-128-ctr",
                "params": {"iv": "264daa3f303d7259501c93d997d84fe6"},
                "message": message,
            },
        },
        "pubkey": EIP_PUBLIC_KEY,
        "path": "m/12381/60/3141592653/589793238",
        "uuid": "1d85ae20-35c5-4611-98e8-aa14a633906f",
        "version": 4,
    }


@pytest.fixture
def keys_dir(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def key(keys_dir: Path) -> KeyInfo:
    return create_key(keys_dir, "verifier", "pass word", kdf=FAST)


# --- documents


@pytest.mark.parametrize("function", ["scrypt", "pbkdf2"])
def test_the_published_vectors_of_eip_2335_decrypt(function: str, keys_dir: Path, tmp_path: Path) -> None:
    document = eip_vector(function)
    assert decrypt_secret(document, EIP_PASSWORD) == EIP_SECRET
    # NFKD turns the mathematical letters into plain ones; control characters are dropped.
    assert decrypt_secret(document, "testp\x7fassword\U0001f511\n") == EIP_SECRET
    with pytest.raises(WrongPassword):
        decrypt_secret(document, "testpassword")
    create_key(keys_dir, "imported", "x", with_bls=False, kdf=FAST)
    source = tmp_path / "vector.json"
    source.write_text(json.dumps(document))
    assert import_key(keys_dir, "imported", source, EIP_PASSWORD).bls_public_key == EIP_PUBLIC_KEY


@pytest.mark.parametrize("kdf", [FAST, FAST_SCRYPT])
def test_documents_are_read_by_other_software_and_read_from_it(kdf: Kdf) -> None:
    key = BlsKey.generate()
    secret = key.secret.to_bytes(32, "big")
    ours = encrypt_secret(secret, bytes(48), "pässword", kdf)
    # That reader normalizes when it writes only, so it is given the normal form.
    normal = unicodedata.normalize("NFKD", "pässword").encode()
    assert bytes(eth_keyfile.decode_keyfile_json(ours, normal)) == secret
    function: Any = kdf.function
    theirs = eth_keyfile.create_keyfile_json(secret, "pässword".encode(), 4, function, kdf.work)
    assert decrypt_secret(theirs, "pässword") == secret
    assert ours["crypto"]["kdf"]["params"]["salt"] != theirs["crypto"]["kdf"]["params"]["salt"]


def mutations() -> dict[str, Callable[[dict[str, Any]], object]]:
    def put(value: object, *path: str) -> Callable[[dict[str, Any]], object]:
        def change(document: dict[str, Any]) -> object:
            inner = document
            for name in path[:-1]:
                inner = inner[name]
            inner[path[-1]] = value
            return document

        return change

    kdf = ("crypto", "kdf", "params")
    return {
        "not an object": lambda _: ["keystore"],
        "no crypto": lambda document: {"version": 4, "pubkey": document["pubkey"]},
        "version 5": put(5, "version"),
        "version true": put(True, "version"),
        "crypto is a list": put([], "crypto"),
        "unknown kdf": put("argon2", "crypto", "kdf", "function"),
        "endless rounds": put(1 << 40, *kdf, "c"),
        "no rounds": put(0, *kdf, "c"),
        "rounds as text": put("1000", *kdf, "c"),
        "other prf": put("hmac-sha1", *kdf, "prf"),
        "salt not hex": put("zz" * 32, *kdf, "salt"),
        "no salt": put("", *kdf, "salt"),
        "huge salt": put("00" * 65, *kdf, "salt"),
        "short key": put(16, *kdf, "dklen"),
        "other cipher": put("aes-256-gcm", "crypto", "cipher", "function"),
        "short iv": put("00", "crypto", "cipher", "params", "iv"),
        "long message": put("00" * 33, "crypto", "cipher", "message"),
        "no checksum": put(None, "crypto", "checksum"),
        "scrypt bomb": put(
            {"function": "scrypt", "params": {"dklen": 32, "n": 1 << 30, "r": 8, "p": 1, "salt": EIP_SALT}},
            "crypto",
            "kdf",
        ),
        "scrypt odd n": put(
            {"function": "scrypt", "params": {"dklen": 32, "n": 1000, "r": 8, "p": 1, "salt": EIP_SALT}},
            "crypto",
            "kdf",
        ),
    }


@pytest.mark.parametrize("name", sorted(mutations()))
def test_malformed_or_greedy_documents_are_refused_before_any_work(name: str) -> None:
    document = encrypt_secret(bytes(32), bytes(48), "p", FAST)
    assert decrypt_secret(document, "p") == bytes(32)
    with pytest.raises(KeystoreCorrupt) as refused:
        decrypt_secret(mutations()[name](copy.deepcopy(document)), "p")
    assert refused.value.remedy


def test_any_changed_nibble_of_the_ciphertext_or_checksum_reads_as_a_wrong_password() -> None:
    document = encrypt_secret(bytes(range(32)), bytes(48), "p", FAST)
    for module in ("cipher", "checksum"):
        for i in range(0, 64, 7):
            damaged = copy.deepcopy(document)
            text = damaged["crypto"][module]["message"]
            damaged["crypto"][module]["message"] = text[:i] + f"{int(text[i], 16) ^ 1:x}" + text[i + 1 :]
            with pytest.raises(WrongPassword):
                decrypt_secret(damaged, "p")


# --- folders


def test_a_new_key_unlocks_to_the_account_and_the_drawing_key_it_shows(keys_dir: Path, key: KeyInfo) -> None:
    unlocked = load_keys(find_key(keys_dir, "verifier"), "pass word")
    assert unlocked.account.address == key.address
    assert "0x" + unlocked.address.hex() == key.address.lower()
    assert unlocked.bls is not None
    assert key.bls_public_key is not None
    x = unlocked.bls.public_key[16:64]
    # The compressed form is x with three flag bits.
    assert bytes([bytes.fromhex(key.bls_public_key)[0] & 0x1F]) + bytes.fromhex(key.bls_public_key)[1:] == x
    assert describe_key(keys_dir / "verifier") == key
    assert str(unlocked.bls.secret) not in repr(unlocked)
    assert unlocked.account.key.hex() not in repr(unlocked)


def test_key_files_are_private_and_in_the_formats_others_read(keys_dir: Path, key: KeyInfo) -> None:
    for file in ("evm.json", "bls.json"):
        assert stat.S_IMODE((key.path / file).stat().st_mode) == 0o600
    assert stat.S_IMODE(key.path.stat().st_mode) == 0o700
    assert sorted(entry.name for entry in key.path.iterdir()) == ["bls.json", "evm.json"]
    assert sorted(entry.name for entry in keys_dir.iterdir()) == ["verifier"]
    secret = Account.decrypt((key.path / "evm.json").read_text(), "pass word")
    assert Account.from_key(secret).address == key.address


def test_both_derivations_are_the_ones_named() -> None:
    assert Kdf("scrypt", 262144) == SCRYPT
    assert Kdf("pbkdf2", 262144) == PBKDF2


@pytest.mark.parametrize("kdf", [FAST, FAST_SCRYPT])
def test_the_chosen_derivation_is_written_to_both_files(keys_dir: Path, kdf: Kdf) -> None:
    info = create_key(keys_dir, "a", "p", kdf=kdf)
    evm = json.loads((info.path / "evm.json").read_text())["crypto"]
    bls = json.loads((info.path / "bls.json").read_text())["crypto"]["kdf"]
    assert (evm["kdf"], bls["function"]) == (kdf.function, kdf.function)
    work = "n" if kdf.function == "scrypt" else "c"
    assert evm["kdfparams"][work] == bls["params"][work] == kdf.work
    assert load_keys(info.path, "p").account.address == info.address


def test_a_wrong_password_says_so_and_what_to_do(key: KeyInfo) -> None:
    with pytest.raises(WrongPassword) as refused:
        load_keys(key.path, "pass  word")
    assert "ETH_PASSWORD" in refused.value.remedy
    assert refused.value.exit_code == 3


@pytest.mark.parametrize("file", ["evm.json", "bls.json"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b"[" * 60000, b" " * 70000, b'{"version":3,"crypto":{}}'],
    ids=["empty", "cut", "list", "null", "binary", "object", "deep", "large", "hollow"],
)
def test_a_damaged_file_is_named_as_damaged(key: KeyInfo, file: str, content: bytes) -> None:
    (key.path / file).write_bytes(content)
    with pytest.raises(KeystoreCorrupt):
        load_keys(key.path, "pass word")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kdf", "argon2"),
        ("kdfparams", {"dklen": 32, "n": 1 << 30, "r": 8, "p": 1, "salt": "00" * 16}),
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


def test_a_file_that_shows_anothers_address_or_public_key_is_refused(keys_dir: Path, key: KeyInfo) -> None:
    other = create_key(keys_dir, "other", "pass word", kdf=FAST)
    for file, field in (("evm.json", "address"), ("bls.json", "pubkey")):
        ours, theirs = (json.loads((info.path / file).read_text()) for info in (key, other))
        (key.path / file).write_text(json.dumps({**ours, field: theirs[field]}))
        with pytest.raises(KeystoreCorrupt, match="another"):
            load_keys(key.path, "pass word")
        (key.path / file).write_text(json.dumps(ours))
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

    with monkeypatch.context() as patch, pytest.raises(OSError, match="space"):
        patch.setattr(os, "fsync", full_disk)
        create_key(keys_dir, "a", "p", kdf=FAST)
    assert list(keys_dir.iterdir()) == []
    create_key(keys_dir, "a", "p", kdf=FAST)


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
    first = create_key(keys_dir, "a-solver", "p", with_bls=False, kdf=FAST)
    (keys_dir / "notes").mkdir()
    (keys_dir / "file.txt").write_text("x")
    assert list_keys(keys_dir) == (first, key)
    assert first.bls_public_key is None
    assert load_keys(first.path, "p").bls is None
    assert list_keys(keys_dir / "nowhere") == ()


def test_a_backup_restores_under_another_name(keys_dir: Path, key: KeyInfo, tmp_path: Path) -> None:
    backup = tmp_path / "usb" / "stick"
    written = export_key(key.path, backup)
    assert [stat.S_IMODE(path.stat().st_mode) for path in written] == [0o600, 0o600]
    restored = import_key(keys_dir, "restored", backup / "evm.json", "pass word")
    restored = import_key(keys_dir, "restored", backup / "bls.json", "pass word")
    assert (restored.address, restored.bls_public_key) == (key.address, key.bls_public_key)
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
    export_key(key.path, tmp_path / "half")
    (tmp_path / "half" / "bls.json").unlink()
    with pytest.raises(KeystoreCorrupt):
        check_recovery(tmp_path / "half", "pass word", expected=key)


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


def test_a_bls_file_needs_an_account_to_join(keys_dir: Path, key: KeyInfo) -> None:
    with pytest.raises(KeyMissing):
        import_key(keys_dir, "alone", key.path / "bls.json", "pass word")
    with pytest.raises(KeyMissing):
        find_key(keys_dir, "alone")


def test_importing_the_module_stays_light() -> None:
    import subprocess
    import sys

    heavy = "web3 torch numpy eth_account py_ecc"
    code = f"import sys, {keystore.__name__}; print([m for m in {heavy.split()!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
