"""What a shell completes after options: keys, runs and sponsors by what lies on this machine; no node is asked.

Nothing is raised: a shell that completes nothing is better than one that prints an error between two words.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from assay.protocol.errors import AssayError
from assay.settings import Settings, resolve


def key_names(incomplete: str) -> list[str]:
    """Names of the keys in the folder in force."""
    found: list[str] = []
    with suppress(AssayError, OSError):
        folder = _settings().keys_dir
        found = [entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    return sorted(name for name in found if name.startswith(incomplete))


def run_addresses(incomplete: str) -> list[str]:
    """Runs whose cards lie in the store in force, where that is a folder, and the run in force."""
    found: set[str] = set()
    with suppress(AssayError, OSError, ValueError):
        settings = _settings()
        found |= {settings.run} if settings.run else set()
        store = settings.store or ""
        folder = Path(store.removeprefix("file://")).expanduser()
        if store and folder.is_dir():
            found |= set(_cards(folder / "names" / "runs"))
    return sorted(address for address in found if address.startswith(incomplete))


def _cards(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count > 1000:
                return  # strangers may write any number
            if len(entry.name) == 40 and all(c in "0123456789abcdef" for c in entry.name):
                yield "0x" + entry.name


def _settings() -> Settings:
    return resolve().settings
