"""`assay key backup` and `assay key restore`, as a person uses them who has lost a machine."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.backups import ActorFolderMissing, BackupExists
from assay.cli.key import app
from assay.protocol.errors import AssayError
from assay.settings import resolve
from assay_ledger.agents.journal import Journal
from assay_ledger.keys.kdf import WrongPassword
from assay_ledger.keys.keystore import KeyExists
from assay_ledger.keys.sealed import BackupCorrupt

RUN = "0x" + "12" * 20


class Home:
    """A person's home: keys, folders of actors and a configuration file, all in one place."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, monkeypatch
        folder.mkdir()
        self.password = folder / "password"
        self.password.write_text("correct horse\n")
        self.actors = folder / "assay" / "actors"

    def run(self, *arguments: str) -> Any:
        """What a command prints. Raises what it ends with."""
        self._patch.setenv("XDG_DATA_HOME", str(self.folder))
        self._patch.setenv("ASSAY_CONFIG", str(self.folder / "config.toml"))
        self._patch.setenv("ETH_PASSWORD", str(self.password))
        result = CliRunner().invoke(app, [*arguments, "--json"])
        if isinstance(result.exception, AssayError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("ASSAY_KEYS_DIR", raising=False)
    found = Home(tmp_path / "home", monkeypatch)
    found.run("new", "sol", "--kdf", "pbkdf2")
    journal = Journal(found.actors / "solver-sol")
    journal.append("chain", number=7)
    (found.actors / "solver-sol" / "cache").mkdir()
    (found.folder / "config.toml").write_text(f'run = "{RUN}"\nstore = "s3://bucket/run"\ntip_floor = 5\n')
    return found


def test_a_backup_of_a_running_actor_is_restored_into_an_empty_home(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "sol.backup"
    made = home.run("backup", "sol", "--out", str(out))
    assert made["files"] == ["actors/solver-sol/form", "actors/solver-sol/journal.jsonl", "key/evm.json"]
    assert out.stat().st_mode & 0o777 == 0o600
    (key,) = home.run("list")
    other = Home(tmp_path / "other", monkeypatch)
    back = other.run("restore", str(out))
    assert back["address"] == key["address"] and back["folders"] == [str(other.actors / "solver-sol")]
    assert [entry["number"] for entry in Journal(other.actors / "solver-sol").entries("chain")] == [7]
    settings = resolve(environment={}).settings
    assert (settings.run, settings.store, settings.tip_floor) == (RUN, "s3://bucket/run", 5)
    # Nothing is overwritten, neither a key nor a folder nor a backup.
    with pytest.raises(KeyExists):
        other.run("restore", str(out))
    with pytest.raises(BackupExists):
        other.run("restore", str(out), "--name", "another")
    assert [found["name"] for found in other.run("list")] == ["sol"]
    with pytest.raises(BackupExists):
        home.run("backup", "sol", "--out", str(out))


def test_a_stick_without_links_takes_key_and_backup(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    stick = tmp_path / "stick"
    home.run("export", "sol", str(stick))
    out = stick / "sol.backup"
    home.run("backup", "sol", "--out", str(out))
    assert sorted(entry.name for entry in stick.iterdir()) == ["evm.json", "sol.backup"]
    (key,) = home.run("list")
    assert Home(tmp_path / "other", monkeypatch).run("restore", str(out))["address"] == key["address"]


def test_a_backup_is_made_and_opened_with_the_keys_password_alone(home: Home, tmp_path: Path) -> None:
    home.password.write_text("wrong horse\n")
    with pytest.raises(WrongPassword):
        home.run("backup", "sol", "--out", str(tmp_path / "sol.backup"))
    assert not (tmp_path / "sol.backup").exists()


def test_a_folder_without_a_journal_and_a_file_that_is_no_backup_are_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(ActorFolderMissing):
        home.run("backup", "sol", "--out", str(tmp_path / "b"), "--data-dir", str(tmp_path))
    with pytest.raises(BackupCorrupt):
        home.run("restore", str(home.password))
