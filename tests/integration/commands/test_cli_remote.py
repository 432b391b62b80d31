"""`assay key remote`: the local key of an account that a signer keeps, its backup, and what is needed to use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.key import AccountNotNamed, app, unlock
from assay.protocol.errors import AssayError
from assay_ledger.keys.kdf import Kdf
from assay_ledger.keys.keystore import SignerMissing, create_key
from tests.harness.signers import SignerProcess


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[SignerProcess]:
    key = create_key(tmp_path / "vault", "far", "pass", kdf=Kdf("pbkdf2", 1000))
    (tmp_path / "password").write_text("pass")
    with SignerProcess(key.path / "evm.json", tmp_path / "password") as made:
        yield made


def ask(folder: Path, *words: str) -> Any:
    """What a command prints, with keys in a folder. Raises what it ends with."""
    at = ("--keys-dir", str(folder / "keys"), "--password-file", str(folder.parent / "password"), "--json")
    result = CliRunner().invoke(app, [*words, *at], env={"ASSAY_CONFIG": str(folder / "none")})
    if isinstance(result.exception, AssayError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.long
def test_an_account_elsewhere_is_named_used_and_backed_up(signer: SignerProcess, tmp_path: Path) -> None:
    home, other, out = tmp_path / "home", tmp_path / "other", str(tmp_path / "sol.backup")
    with pytest.raises(AccountNotNamed):
        ask(home, "remote", "sol", "--signer", signer.url, "--address", "0x" + "12" * 20)
    made = ask(home, "remote", "sol", "--signer", signer.url, "--kdf", "pbkdf2")
    assert ask(home, "backup", "sol", "--out", out)["files"] == ["key/account.json", "key/evm.json"]
    assert ask(other, "restore", out, "--actors-dir", str(other / "actors"))["address"] == made["address"]
    with pytest.raises(SignerMissing):
        unlock("sol", other / "keys", tmp_path / "password")
    first, again = (unlock("sol", at / "keys", tmp_path / "password", signer.url) for at in (home, other))
    assert first.account.address == again.account.address == made["address"]
    assert first.local.key == again.local.key and first.grant == again.grant
