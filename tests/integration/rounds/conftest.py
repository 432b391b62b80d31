"""The contracts of rounds beside their model, as new for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.samples import TERMS
from tests.harness.rounds.world import RoundWorld, played_on


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


@pytest.fixture
def world(chain: RoundChain) -> Iterator[RoundWorld]:
    with played_on(chain, RoundWorld) as made:
        yield made
