"""A run with a dispute of every kind, for the modules that read evidence: it is played once for all their tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.demo.played_disputes import PlayedDisputes, play_disputes


@pytest.fixture(scope="session")
def disputes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedDisputes]:
    """The run after its last game."""
    with play_disputes(tmp_path_factory.mktemp("disputes")) as found:
        yield found
