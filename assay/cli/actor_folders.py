"""Where an actor keeps what it did in a run: a folder for each run, whatever else its commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import platformdirs

from assay.cli.noted_settings import noted_settings
from assay.protocol.types import Address

if TYPE_CHECKING:
    from assay.settings import Settings

ROLES: Final = ("solver", "verifier", "whistleblower")
"""As the usual folders are named, each with its key."""

_RUN_DIGITS: Final = 8


def actors_dir() -> Path:
    """Where actors have their folders, if they are given none."""
    return platformdirs.user_data_path("assay") / "actors"


def actor_folder(settings: Settings, role: str, name: str, run: Address) -> Path:
    """The folder of an actor of a run. Without --data-dir the usual one of its role and key, and where an earlier run
    has that, one whose name ends as this run's address begins.

    Raises FolderOfAnotherRun, before anything is at stake.
    """
    from assay_ledger.agents.journal import FolderOfAnotherRun

    if settings.data_dir is None:
        usual = actors_dir() / f"{role}-{name}"
        is_free = _said_run(usual) in ("", run.hex())
        return usual if is_free else usual.with_name(f"{usual.name}-{run.hex()[:_RUN_DIGITS]}")
    other = _said_run(settings.data_dir)
    if other not in ("", run.hex()):
        raise FolderOfAnotherRun(f"{settings.data_dir} is about the run 0x{other}, not 0x{run.hex()}.")
    return settings.data_dir


def usual_folders(name: str) -> list[Path]:
    """Those that actors with a key of this name may have made in the usual place, for whichever runs."""
    found: list[Path] = []
    for role in ROLES:
        usual = f"{role}-{name}"
        found += [actors_dir() / usual, *sorted(actors_dir().glob(usual + "-" + _RUN_DIGITS * "[0-9a-f]"))]
    return found


def _said_run(folder: Path) -> str:
    """Digits of the run that a folder is about: by its journal, else by what its actor was started with."""
    from assay_ledger.agents.journal import run_of

    found = run_of(folder)
    return noted_settings(folder).get("run", "")[2:].lower() if found is None else found.hex()
