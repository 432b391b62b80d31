"""The arbiter finds a family's contract by its code, also where codes before it have none."""

from __future__ import annotations

from assay.protocol.program.nodes import Family
from assay_ledger.deployment.places import by_code
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.contracts.leaf_cases import NO_LEAF


def test_codes_of_families_may_have_gaps(evm: Evm, leaves: dict[Family, EvmContract]) -> None:
    known = {f: leaf.address for f, leaf in leaves.items() if f not in (Family.DOT, Family.RANK)}
    arbiter = evm.deploy("Arbiter", by_code(known, NO_LEAF))
    for code in (*range(256), 256, 1 << 255):
        assert arbiter.call("leafOf", code) == known.get(code, NO_LEAF)
