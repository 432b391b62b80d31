"""Shared by tests of commands: a run with a dispute of every kind, for the modules that read evidence, which is played
once for all of them; and machines that are measured in less than a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.planning import measured
from tests.harness.demo.played_disputes import PlayedDisputes, play_disputes


@pytest.fixture(autouse=True)
def _measured_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps and merges of a tiny preset take milliseconds: fewer of them say as much."""
    monkeypatch.setattr(measured, "STEPS_S", 0.3)
    monkeypatch.setattr(measured, "OTHER_S", 0.1)


@pytest.fixture(scope="session")
def disputes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedDisputes]:
    """The run after its last game."""
    with play_disputes(tmp_path_factory.mktemp("disputes")) as found:
        yield found
