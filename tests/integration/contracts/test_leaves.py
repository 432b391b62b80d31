"""Every leaf contract against `protocol.program.leaf`, function by function, on random nodes and words of its
family.
"""

from __future__ import annotations

from random import Random

import pytest

from assay.protocol.program.nodes import Family
from tests.harness.contracts.harness import EvmContract
from tests.harness.contracts.leaf_cases import CONTRACTS, check, draw

CASES = 200


@pytest.mark.parametrize("family", CONTRACTS, ids=lambda f: f.name.lower())
@pytest.mark.gate_takes(4)
def test_a_leaf_computes_what_the_reference_computes(family: Family, leaves: dict[Family, EvmContract]) -> None:
    values, terms = set(), set()
    for number in range(CASES):
        case = draw(family, Random(f"{family.name} {number}"))
        try:
            value, count = check(leaves[family], case)
        except AssertionError as error:
            raise AssertionError(f"case {number}: element {case.element} of {case.node}") from error
        values.add(value)
        terms.add(count)
    # A generator that only finds one value, or never a reduction, proves nothing.
    assert len(values) > 5
    assert family in (Family.MAP, Family.RANDOM) or len(terms) > 1


def test_what_a_view_reads_is_not_kept_for_ever(leaves: dict[Family, EvmContract]) -> None:
    """Bad luck: a long run of views, each noted to be taken back, held 14.7 GB."""
    case = draw(Family.MAP, Random("MAP 0"))
    evm = leaves[Family.MAP].chain.evm
    kept = evm.journal_len
    for _ in range(3):
        check(leaves[Family.MAP], case)
    assert evm.journal_len == kept
