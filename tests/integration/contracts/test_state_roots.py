"""What contracts compute themselves equals what everybody else computes: starts, inputs of merges, trees."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.rounds.ids import weighed_input
from assay.protocol.trees import merkle
from assay.protocol.trees.state import RoundScalars, list_root
from assay.protocol.types import Digest, Round, Seat
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.rounds.samples import mark

words = st.binary(min_size=32, max_size=32).map(Digest)
sums = st.lists(st.tuples(words, st.integers(0, 2**16 - 1)), min_size=1, max_size=64)


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("StateRootsHarness")


@settings(max_examples=60, deadline=None)
@given(
    run=words,
    round_=st.integers(0, 2**24 - 1),
    seat=st.integers(0, 1023),
    steps=st.integers(1, 2**32 - 1),
    lr=st.one_of(st.integers(0, 0x7F7FFFFF), st.integers(0x80000000, 0xFF7FFFFF)),
    shards=st.integers(8, 2**12),
    length=st.integers(1, 2**18),
)
def test_the_scalars_of_a_start(
    harness: EvmContract, run: Digest, round_: int, seat: int, steps: int, lr: int, shards: int, length: int
) -> None:
    data = mark("data")
    expected = RoundScalars(run, Seat(seat), Round(round_), steps, shards, length, lr, data)
    shown = (run, round_, seat, steps, lr, shards, length, data)
    assert harness.call("scalars", shown) == list_root(expected.roots())


@settings(max_examples=60, deadline=None)
@given(p=words, m=words, sums=sums)
def test_the_input_of_a_merge(harness: EvmContract, p: Digest, m: Digest, sums: list[tuple[Digest, int]]) -> None:
    """Updates weigh 0 or 1, partial sums as many updates as count in them."""
    lists, weights = [root for root, _ in sums], [weight for _, weight in sums]
    assert harness.call("weighed", p, m, lists, weights) == weighed_input(p, m, lists, weights)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 63, 64, 65, 130, 328])
def test_trees_over_leaves_of_any_number(harness: EvmContract, count: int) -> None:
    digests = [mark(f"leaf {k}") for k in range(count)]
    assert harness.call("tree", digests) == merkle.root(digests)
