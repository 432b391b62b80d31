"""What an actor was started with, noted in its folder as a configuration file: flags, an environment and the file of a
service leave no other trace of its run, store and node, and a backup holds them.

URLs of nodes and databases may have keys in them: its owner alone reads the file.
"""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from assay.settings import Settings
from assay_ledger.chain.node_urls import redacted, urls_in
from assay_ledger.new_file import write_new

FILE: Final = "settings.toml"

NOTED: Final = ("rpc_url", "store", "run", "index_url", "sponsor", "allow_code", "drand_relays", "tip_floor")
"""Those by which a process of the actor finds its run and acts in it; where things lie here is this machine's."""

URLS: Final = frozenset({"rpc_url", "index_url"})
"""Those in which keys and passwords stand."""

_LOG = logging.getLogger(__name__)


def note_settings(folder: Path, settings: Settings) -> None:
    """Notes what was said, in whatever way. A disk that takes nothing holds no actor up: the next start notes it."""
    fresh = folder / f".{FILE}"
    try:
        fresh.unlink(missing_ok=True)
        write_new(fresh, as_file(said_in(settings)))
        fresh.replace(folder / FILE)
    except OSError as error:
        _LOG.warning("%s cannot be written (%s): a backup lacks what this actor was started with.", fresh, error)


def noted_settings(folder: Path) -> Mapping[str, str]:
    """What was noted; nothing where nothing was that can be read."""
    try:
        found = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: str(found[name]) for name in NOTED if name in found}


def said_in(settings: Settings) -> Mapping[str, str]:
    """The settings to note that are no defaults."""
    said = {name: getattr(settings, name) for name in NOTED if name in settings.model_fields_set}
    return {name: str(value) for name, value in said.items() if value is not None}


def of_one_run(said: Mapping[str, str], notes: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """What is configured or, where that names no run, what an actor was started with, if no other was in another run.

    Each whole: what two of them say together may have the code of one run and the store of another.
    """
    started = [note for note in notes if "run" in note]
    return started[0] if "run" not in said and len({note["run"] for note in started}) == 1 else said


def as_shown(settings: Mapping[str, str]) -> str:
    """Settings in a line for a terminal, which may be recorded or looked at: without what may be keys in their URLs."""
    return ", ".join(f"{name} {_shown(value) if name in URLS else value}" for name, value in settings.items())


def _shown(urls: str) -> str:
    return ",".join(redacted(url) for url in urls_in(urls))


def as_file(settings: Mapping[str, str]) -> bytes:
    """Settings as a configuration file."""
    lines = [f"{name} = {value if name == 'tip_floor' else json.dumps(value)}\n" for name, value in settings.items()]
    return "".join(lines).encode()
