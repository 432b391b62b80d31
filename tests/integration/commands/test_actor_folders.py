"""Which folder an actor gets of whom nobody said where it lies, and which it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli.actor_folders import actor_folder, actors_dir
from assay.cli.backups import folders_of
from assay.cli.noted_settings import note_settings
from assay.protocol.types import Address
from assay.settings import Settings
from assay_ledger.agents.journal import FolderOfAnotherRun, Journal, run_of

FIRST, SECOND = Address(b"\xab" * 20), Address(b"\xcd" * 20)
SETTINGS = Settings.model_validate({})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def work(folder: Path, run: Address) -> None:
    """What an actor leaves there."""
    journal = Journal(folder)
    journal.keep_to(run)
    journal.close()


def test_a_key_that_is_in_two_runs_has_a_folder_in_each() -> None:
    usual = actor_folder(SETTINGS, "solver", "sol", FIRST)
    assert usual == actors_dir() / "solver-sol"
    work(usual, FIRST)
    other = actor_folder(SETTINGS, "solver", "sol", SECOND)
    assert other == actors_dir() / "solver-sol-cdcdcdcd"
    work(other, SECOND)
    for run, folder in ((FIRST, usual), (SECOND, other)):
        assert actor_folder(SETTINGS, "solver", "sol", run) == folder and run_of(folder) == run
    work(actors_dir() / "solver-sol-x", FIRST)  # of another key
    assert folders_of("sol") == [usual, other]


def test_a_folder_of_another_run_is_refused_before_anything_is_staked(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path / "mine"})
    work(tmp_path / "mine", FIRST)
    assert actor_folder(settings, "solver", "sol", FIRST) == tmp_path / "mine"
    with pytest.raises(FolderOfAnotherRun, match="cd" * 20):
        actor_folder(settings, "solver", "sol", SECOND)


def test_an_older_folder_is_of_the_run_that_its_actor_was_started_with() -> None:
    usual = actors_dir() / "solver-sol"
    Journal(usual).append("chain", number=7)
    assert actor_folder(SETTINGS, "solver", "sol", SECOND) == usual
    note_settings(usual, Settings.model_validate({"run": "0x" + FIRST.hex().upper()}))
    assert actor_folder(SETTINGS, "solver", "sol", FIRST) == usual
    assert actor_folder(SETTINGS, "solver", "sol", SECOND) != usual
