"""How commands see a run: at its newest block, as somebody who takes no part, and saying so while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.cli.actor_folders import actors_dir
from assay.cli.progress import progress
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.explorer.reader import RunReader
    from assay_ledger.rounds.index import ReadsEvents
    from assay_ledger.rounds.run import Run
    from assay_ledger.rounds.view import RunView

READING_RUN: Final = "reading the run from the chain"

EVENTS_FILE: Final = "events.sqlite"
"""In an actor's folder: the events of its run, as they were read."""


def sight(run: Run, settings: Settings | None = None) -> RunView:
    """The run at its newest block, as somebody sees it who takes no part; what this machine's actors keep of its events
    is read there, where the settings are given."""
    from assay.protocol.run.claims import NO_ADDRESS
    from assay_ledger.rounds.index import RunIndex
    from assay_ledger.rounds.view import RunView

    index = RunIndex(run, keeps=None if settings is None else events_kept(settings))
    try:
        with progress(READING_RUN):
            return RunView(run.charter, run.facts, NO_ADDRESS, index.sync())
    finally:
        index.close()


def read_run(run: Run) -> RunReader:
    """A reader of the run that has come to its newest block."""
    from assay.explorer.reader import RunReader

    reader = RunReader(run)
    with progress(READING_RUN), reader.reading():
        return reader


def events_kept(settings: Settings) -> ReadsEvents:
    """Where this machine's actors keep events: the database that the settings name, else those in actors' folders."""
    from assay_ledger.rounds.index import ReadsEvents

    if settings.index_url is not None:
        return ReadsEvents((settings.index_url,))
    folders = [] if settings.data_dir is None else [settings.data_dir]
    folders += sorted(actors_dir().glob("*"))
    files = [folder / EVENTS_FILE for folder in folders]
    return ReadsEvents(tuple(f"sqlite:///{file.absolute()}" for file in files if file.is_file()))
