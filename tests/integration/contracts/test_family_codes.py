"""Contracts know families by their codes alone, also where codes before them have none."""

from __future__ import annotations

from assay.protocol.program.encoding import MalformedError, decode_node, encode_node
from assay.protocol.program.nodes import Family
from assay_ledger.deployment.places import by_code
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.contracts.leaf_cases import NO_LEAF
from tests.harness.programs import every_family


def test_codes_of_families_may_have_gaps(evm: Evm, leaves: dict[Family, EvmContract]) -> None:
    known = {f: leaf.address for f, leaf in leaves.items() if f not in (Family.DOT, Family.RANK)}
    arbiter = evm.deploy("Arbiter", by_code(known, NO_LEAF))
    for code in (*range(256), 256, 1 << 255):
        assert arbiter.call("leafOf", code) == known.get(code, NO_LEAF)


def test_each_code_is_decoded_as_its_family_and_codes_of_none_are_malformed(evm: Evm) -> None:
    """The body of every family under every code: the ranges in Descriptor.sol against `assay.protocol.program`."""
    bodies = {node.family: encode_node(node)[1:] for node in every_family().program.nodes}
    assert set(bodies) == set(Family)
    harness = evm.deploy("RulesHarness")
    for body in bodies.values():
        cases = [bytes((code,)) + body for code in range(256)]
        valid, heads = harness.call("descriptors", cases)
        assert [head[0] for head in heads] == list(range(256))
        assert list(valid) == [means_something(case) for case in cases]
        assert not any(valid[code] for code in set(range(256)) - set(Family))


def means_something(descriptor: bytes) -> bool:
    """Whether the model decodes it."""
    try:
        decode_node(descriptor)
    except MalformedError:
        return False
    return True
