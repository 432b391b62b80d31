"""A played run for the modules that read one: it takes a quarter of a minute, so it is shared by all their tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.demo.played import Played, play
from tests.harness.demo.played_disputes import PlayedDisputes, play_disputes


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with play(tmp_path_factory.mktemp("played")) as found:
        yield found


@pytest.fixture(scope="session")
def disputes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedDisputes]:
    with play_disputes(tmp_path_factory.mktemp("disputes")) as found:
        yield found
