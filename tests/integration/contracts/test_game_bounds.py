"""What a game is built on, contract against model: header, trees, the longest game, and room in the code."""

from __future__ import annotations

import random
from functools import cache

import pytest
from eth_hash.auto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.game.clock import LARGEST, Clocks, Shape, longest_game, most_moves
from assay.protocol.trees import merkle, prefix
from assay.protocol.types import Digest
from tests.harness.contracts.game_chain import ChainGames
from tests.harness.contracts.harness import MAX_DEPLOYED, Evm, EvmContract, Reverted, artifact
from tests.harness.games import config
from tests.harness.programs import counting, every_family


def test_the_deployed_contracts_leave_ten_percent_room() -> None:
    for name in ("Game", "Arbiter"):
        assert len(artifact(name).deployed) <= MAX_DEPLOYED, name


@pytest.mark.parametrize(
    ("clocks", "arity", "error"),
    (
        (Clocks(600, 100, 100), 48, "WrongArity"),
        (Clocks(600, 10**6, 100), 64, "DisputeTooLong"),
        (Clocks(5 * 10**5, 60, 60), 64, "DisputeTooLong"),
    ),
)
def test_a_charter_whose_games_could_not_be_bounded_is_refused(clocks: Clocks, arity: int, error: str) -> None:
    settings_ = config(4)
    object.__setattr__(settings_, "arity", arity)
    object.__setattr__(settings_, "clocks", clocks)
    with pytest.raises(RuntimeError) as caught:
        ChainGames(counting().program, settings_)
    signature = {"WrongArity": "WrongArity(uint256)", "DisputeTooLong": "DisputeTooLong(uint256,uint256)"}[error]
    assert f"output: 0x{keccak(signature.encode())[:4].hex()}" in str(caught.value)


def test_a_charter_with_a_malformed_header_is_refused() -> None:
    program = counting().program
    harness = Evm().deploy("GameHarness")
    header = program.header
    assert harness.call("parseHeader", header)[1:] == (3, (1,), (1,))
    broken = (header[:-1], header + b"\0", b"\0\2" + header[2:], header[:2] + bytes(4) + header[6:], b"", header[:6])
    too_many = header[:2] + (2).to_bytes(4, "big") + header[6:7] + (2).to_bytes(4, "big") + header[11:]
    for bad in (*broken, too_many, header[:2] + (1 << 21).to_bytes(4, "big") + header[6:]):
        assert harness.call("parseHeader", bad)[1] == 0, bad.hex()


def test_slots_of_y_are_the_last_nodes_in_list_order() -> None:
    program = every_family().program
    harness = Evm().deploy("GameHarness")
    for number, nodes in enumerate(program.output_nodes):
        for index, node in enumerate(nodes):
            assert harness.call("outputNode", program.header, number, index) == node


@given(st.integers(0, 200), st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_trees_and_openings_are_the_models(count: int, levels: int) -> None:
    harness = merkle_harness()
    digests = [Digest(keccak(bytes([i]))) for i in range(count)]
    tree = merkle.Tree(digests)
    assert harness.call("emptyPrefix") == prefix.EMPTY
    if count <= 64:
        assert harness.call("root", digests) == tree.root
    for index in {0, count // 2, count - 1} if count else ():
        path = tree.path(index)
        assert harness.call("rootFromPath", digests[index], index, count, path) == tree.root
        for wrong in (path[:-1] if path else (tree.root,), (*path, tree.root)):
            with pytest.raises(Reverted, match="WrongCount"):
                harness.call("rootFromPath", digests[index], index, count, wrong)
    for level in range(merkle.height(count) + 1):
        for index in {0, merkle.level_count(count, level) - 1} if count else {0}:
            below, first, end = merkle.opening_range(count, level, index, levels)
            assert harness.call("opening", count, level, index, levels) == (below, first, end - first)


@cache
def merkle_harness() -> EvmContract:
    """The library under test."""
    return Evm().deploy("GameHarness")


def test_bounds_of_moves_and_seconds_are_the_models() -> None:
    harness = Evm().deploy("GameHarness")
    rng = random.Random(5)
    for arity in (2, 4, 8, 16, 32, 64):
        assert harness.call("mostReplies", arity, arity.bit_length() - 1) == most_moves(LARGEST, arity)[0]
        for _ in range(40):
            sizes = [1 << rng.randrange(b) for b in (32, 21, 58, 65, 33)]
            shape = Shape(*(max(1, s - rng.randrange(2)) for s in sizes))
            clocks = Clocks(*(rng.randrange(10**6) for _ in range(3)))
            args = (tuple(getattr(shape, n) for n in ("steps", "nodes", "leaves", "terms", "slots")), arity)
            got = harness.call(
                "longestGame", *args, arity.bit_length() - 1, (clocks.budget, clocks.replay, clocks.move)
            )
            assert got == longest_game(shape, arity, clocks)
