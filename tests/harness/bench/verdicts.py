"""What the verdict of a played dispute has to say, by a cross-check: other kernel variants and the reference."""

from __future__ import annotations

from assay.bench.arena import Dispute
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.trace import TorchTrace
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.nodes import Family
from assay.sponsor.charters import ARITY
from tests.harness.actors.families import NodeLie, predict


def check_verdict(dispute: Dispute, family: Family) -> None:
    """The defender lost by an element of this family, whose words the contract computed and read rightly.

    Every value comes from the claim's X again: steps by stock torch by other variants than the agents', the element and
    its parts by the reference.
    """
    verdict = dispute.verdict
    assert (verdict.side, verdict.outcome, verdict.family) == (Side.DEFENDER, Outcome.LEAF, family)
    truth = TorchTrace(Executor(dispute.program, cross_check=True), dispute.job.lists, dispute.steps)
    honest = truth.node_bytes(dispute.step, verdict.node)
    assert dispute.defended != honest
    assert dispute.program.nodes[verdict.node].family is family
    lie = NodeLie(dispute.step, verdict.node, dispute.defended)
    words = predict(truth, lie, dispute.defended, honest, ARITY)
    assert (verdict.element, verdict.term, verdict.expected, verdict.claimed) == words
    assert verdict.expected != verdict.claimed
