"""No bytes make a leaf revert or cost more than a move may: malformed nodes are 0, hostile words are reduced."""

from __future__ import annotations

from random import Random

import pytest

from assay.protocol.program.encoding import MalformedError, decode_node
from assay.protocol.program.nodes import Family
from tests.harness.contracts.harness import MAX_MOVE_GAS, EvmContract
from tests.harness.contracts.leaf_cases import CONTRACTS, draw

TRIES = 150
EDGES = (0, 1, 129, (1 << 256) - 1, 1 << 255, 1 << 63, 0x7F800001, (1 << 32) - 1, 0x80000000)


def _hostile(family: Family, rng: Random) -> bytes:
    """Bytes that are a node, nearly one, or noise behind the family's code."""
    good = bytearray(draw(family, rng).descriptor)
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randbytes(rng.choice((0, 1, 2, 3, 50, 2000)))
    if kind == 1:
        return bytes([family, rng.randrange(7)]) + rng.randbytes(rng.choice((0, 1, 30, 9000)))
    if kind == 2:
        return bytes(good[: rng.randrange(len(good))])
    if kind == 3:
        return bytes(good) + rng.randbytes(rng.choice((1, 40, 9000)))
    if kind == 4:
        head = bytes([family, rng.randrange(256), rng.choice((0, 1, 8, 9, 255))])
        return head + b"\xff" * rng.choice((0, 8, 64, 4000))
    for _ in range(rng.randint(1, 6)):
        good[rng.randrange(len(good))] = rng.choice((0, 1, 8, 0x7F, 0x80, 0xFF, rng.getrandbits(8)))
    return bytes(good)


def _call_all(leaf: EvmContract, node: bytes, rng: Random) -> list[object]:
    """Every function once, with hostile arguments; the gas of each is below a move's."""

    def run(function: str, *args: object) -> object:
        result = leaf.call(function, node, *args)
        assert leaf.gas < MAX_MOVE_GAS, function
        return result

    def some() -> list[int]:
        return [rng.choice(EDGES) for _ in range(rng.choice((0, 1, 2, 8)))]

    element, k = (rng.choice((0, 1, 7, (1 << 40) - 1, (1 << 64) - 1)) for _ in range(2))
    parts = [word - (1 << 256) if word >> 255 else word for word in some() * rng.choice((1, 8))]
    return [
        run("headReads", element),
        run("start", element, some()),
        run("termReads", element, k, some()),
        run("term", element, k, some(), some()),
        run("fold", some(), parts),
        run("combine", parts),
    ]


@pytest.mark.parametrize("family", CONTRACTS, ids=lambda f: f.name.lower())
def test_a_leaf_is_total_and_cheap_on_any_bytes(family: Family, leaves: dict[Family, EvmContract]) -> None:
    malformed = 0
    for number in range(TRIES):
        rng = Random(f"{family.name} {number}")
        node = _hostile(family, rng)
        results = _call_all(leaves[family], node, rng)
        try:
            known = decode_node(node).family is family
        except MalformedError:
            known = False
        if not known:
            malformed += 1
            assert results == [(), (True, 0, 0), (), 0, 0, 0]
    assert 0 < malformed < TRIES


def test_a_node_of_another_family_is_malformed_to_a_leaf(leaves: dict[Family, EvmContract]) -> None:
    for family, leaf in leaves.items():
        for other in CONTRACTS:
            if other is not family:
                node = draw(other, Random(other)).descriptor
                assert leaf.call("start", node, 0, [1] * 8) == (True, 0, 0)
                assert leaf.call("headReads", node, 0) == ()
