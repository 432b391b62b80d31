"""A dispute about a GPT of ten million parameters: a real claim of 25 AdamW steps, a real lie, a real game."""

from __future__ import annotations

import pytest

from assay.bench.arena import play
from assay.bench.dispute import CHALLENGE, GPT_10M, measured_row, moves_of, parameters_of
from assay.engine.runtime.trace import MAX_NODE_BYTES, MAX_PREFIX_BYTES, MAX_STATE_BYTES
from assay.protocol.program.nodes import Family
from assay.training.data import pydoc_text
from assay.training.long_trace import PARTS
from tests.harness.bench.verdicts import check_verdict


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_lie_in_ten_million_parameters_is_convicted_by_one_term_of_a_product() -> None:
    dispute = play(GPT_10M, pydoc_text(), Family.DOT)
    program, verdict = dispute.program, dispute.verdict
    assert parameters_of(program) >= 10_000_000
    assert dispute.steps == 25 and 1 <= dispute.step <= 25
    check_verdict(dispute, Family.DOT)
    row = measured_row(GPT_10M.name, parameters_of(program), dispute)
    sent = [s.function for s in dispute.transactions]
    assert sent[0] == CHALLENGE and sent[-1] == "proveTerm" and "postParts" in sent
    most = moves_of(program.nodes[verdict.node], program.specs[verdict.node].leaf_count, 25, len(program.nodes))
    assert row.transactions <= min(1 + most.total(), 32)
    assert row.gas_max_move <= 1_000_000
    # Of the 25 steps states are kept, each part's first and last and what has room between, and hardly any node.
    state = sum(len(data) for part in dispute.job.lists for data in part)
    assert 0 < row.bytes_kept <= PARTS * (2 * state + MAX_STATE_BYTES + MAX_PREFIX_BYTES + MAX_NODE_BYTES)
    assert 0 < dispute.retrace_peak < sum(spec.nbytes for spec in program.specs)
