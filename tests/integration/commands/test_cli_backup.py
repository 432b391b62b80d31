"""`assay key backup` and `assay key restore`, as a person uses them who has lost a machine."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.backups import ActorFolderMissing, ActorFoldersAlike, BackupExists, BackupUnreadable
from assay.cli.key import app
from assay.cli.noted_settings import FILE, note_settings, noted_settings
from assay.protocol.errors import AssayError
from assay.settings import resolve
from assay_ledger.agents.journal import Journal
from assay_ledger.keys.kdf import KeystoreCorrupt, WrongPassword
from assay_ledger.keys.keystore import KeyExists
from assay_ledger.keys.sealed import BackupCorrupt, KeyInBackup
from tests.harness.full_disks import writing_nothing

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


@pytest.mark.long
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


def test_a_backup_holds_what_actors_were_started_with(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By flags or a service's file: run, store and node are in no configuration file then."""
    (home.folder / "config.toml").write_text('store = "s3://another"\n')
    folder = home.actors / "solver-sol"
    flags = {"run": "0x" + "34" * 20, "rpc_url": "http://node:1/key", "tip_floor": 9}
    note_settings(folder, resolve(flags, environment={}).settings)
    note_settings(folder, resolve(flags, environment={}).settings)  # at each start
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600
    out = tmp_path / "sol.backup"
    home.run("backup", "sol", "--out", str(out))
    other = Home(tmp_path / "other", monkeypatch)
    back, place = other.run("restore", str(out)), other.actors / "solver-sol"
    noted = {**flags, "tip_floor": "9", "store": "s3://another"}
    assert back["started_with"] == {str(place): noted} and back["settings"] == noted
    for config in (other.folder / "config.toml", place / FILE):
        monkeypatch.setenv("ASSAY_CONFIG", str(config))
        settings = resolve(environment={}).settings
        assert (settings.run, settings.rpc_url, settings.tip_floor) == (flags["run"], flags["rpc_url"], 9)


@pytest.mark.long
def test_a_backup_mixes_no_settings(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor was started in one run; the configuration names another by now, with its code and its events."""
    started = {"run": "0x" + "34" * 20, "rpc_url": "http://node:1", "store": "s3://bucket/first"}
    (home.folder / "config.toml").unlink()
    note_settings(home.actors / "solver-sol", resolve(started, environment={}).settings)
    now = {"run": RUN, "index_url": "sqlite:///second", "allow_code": "0x" + "56" * 32}
    (home.folder / "config.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in now.items()))
    home.run("backup", "sol", "--out", str(tmp_path / "sol.backup"))
    other = Home(tmp_path / "other", monkeypatch)
    back = other.run("restore", str(tmp_path / "sol.backup"))
    assert back["settings"] == now
    assert back["started_with"] == {str(other.actors / "solver-sol"): started}


@pytest.mark.long
def test_of_actors_in_two_runs_each_folder_says_its_own(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {"solver-sol": "0x" + "34" * 20, "verifier-sol": "0x" + "56" * 20}
    Journal(home.actors / "verifier-sol").append("chain", number=7)
    (home.folder / "config.toml").write_text('store = "s3://bucket/run"\n')
    for name, run in runs.items():
        note_settings(home.actors / name, resolve({"run": run, "rpc_url": "http://node:1"}, environment={}).settings)
    home.run("backup", "sol", "--out", str(tmp_path / "sol.backup"))
    back = Home(tmp_path / "other", monkeypatch).run("restore", str(tmp_path / "sol.backup"))
    assert {Path(folder).name: noted["run"] for folder, noted in back["started_with"].items()} == runs
    assert back["settings"] == {"store": "s3://bucket/run"}


def test_what_is_said_of_an_actors_settings_has_no_keys_of_its_nodes(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETH_RPC_URL", "https://node.example/v3/0123456789abcdef,http://me:pass@127.0.0.2:8545")
    monkeypatch.setenv("ASSAY_RUN", RUN)
    note_settings(home.actors / "solver-sol", resolve().settings)
    file = tmp_path / "sol.backup"
    home.run("backup", "sol", "--out", str(file))
    other = Home(tmp_path / "other", monkeypatch)
    other.run("restore", str(file), "--name", "json")  # points the environment at the other home
    said = CliRunner().invoke(app, ["restore", str(file), "--actors-dir", str(tmp_path / "actors")]).output
    assert "https://node.example/...,http://127.0.0.2:8545" in said and RUN in said
    assert "0123456789abcdef" not in said and "pass@" not in said and "{" not in said


def test_a_backup_takes_no_folder_of_another_key(home: Home, tmp_path: Path) -> None:
    home.run("new", "other-sol", "--kdf", "pbkdf2")
    Journal(home.actors / "solver-other-sol").append("chain", number=8)
    made = home.run("backup", "sol", "--out", str(tmp_path / "sol.backup"))
    assert {place.split("/")[1] for place in made["files"] if place.startswith("actors/")} == {"solver-sol"}


def test_a_disk_that_takes_no_note_holds_no_actor_up(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    (home.actors / "solver-sol" / FILE).mkdir()
    note_settings(home.actors / "solver-sol", resolve({"run": RUN}, environment={}).settings)
    assert "cannot be written" in caplog.text and noted_settings(home.actors / "solver-sol") == {}


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


@pytest.mark.long
def test_a_backup_is_tested_as_an_exported_folder_is_and_is_no_key_to_import(home: Home, tmp_path: Path) -> None:
    """A good backup was said to be a damaged keystore, to be restored from its backup."""
    out, (key,) = tmp_path / "sol.backup", home.run("list")
    home.run("backup", "sol", "--out", str(out))
    tested = home.run("test-recovery", "sol", "--backup", str(out))
    assert tested == {"recovers": True, "name": out.name, "address": key["address"], "path": str(out)}
    home.run("new", "other", "--kdf", "pbkdf2")
    with pytest.raises(KeystoreCorrupt, match="is not the key 'other'"):
        home.run("test-recovery", "other", "--backup", str(out))
    with pytest.raises(KeyInBackup):
        home.run("import", "again", str(out))
    out.write_bytes(out.read_bytes()[:-1])
    with pytest.raises(BackupCorrupt, match="not whole"):
        home.run("test-recovery", "sol", "--backup", str(out))


@pytest.mark.long
def test_a_home_that_takes_no_settings_has_its_key_back_all_the_same(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error there, and the next try says that the key exists."""
    home.run("backup", "sol", "--out", str(tmp_path / "sol.backup"))
    other = Home(tmp_path / "other", monkeypatch)
    (tmp_path / "closed").touch()
    monkeypatch.setattr("assay.cli.backups.config_path", lambda: tmp_path / "closed" / "config.toml")
    back = other.run("restore", str(tmp_path / "sol.backup"))
    assert back["config"] is None and back["folders"] == [str(other.actors / "solver-sol")]


def test_folders_of_one_name_are_not_taken_for_one(home: Home, tmp_path: Path) -> None:
    Journal(tmp_path / "solver-sol").append("chain", number=8)
    folders = ("--data-dir", str(home.actors / "solver-sol"), "--data-dir", str(tmp_path / "solver-sol"))
    with pytest.raises(ActorFoldersAlike):
        home.run("backup", "sol", "--out", str(tmp_path / "b"), *folders)
    assert not (tmp_path / "b").exists()


@pytest.mark.long
def test_a_disk_that_takes_no_folder_is_said_and_keeps_no_half_of_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, other = tmp_path / "sol.backup", Home(tmp_path / "other", monkeypatch)
    home.run("backup", "sol", "--out", str(out))
    with writing_nothing(), pytest.raises(BackupUnreadable):
        other.run("restore", str(out))
    assert list(other.actors.iterdir()) == []
    with pytest.raises(BackupUnreadable):
        other.run("restore", str(out), "--actors-dir", str(other.password / "actors"))
    assert other.run("list") == []
