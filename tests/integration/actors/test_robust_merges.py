"""Lies inside merges that sort: convicted at one element, also in a run's last round."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Tamper
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import TINY
from assay.training.robust import MergeKind
from assay_ledger.index.computing import Computation
from assay_solver.cheats import FalseRoot
from assay_solver.lies import Lie
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))


class FalseOrder(FalseRoot):
    """Another order of the updates within the merge, and everything after it computed from that."""

    def merge_lie(self, job: Computation) -> Tamper | None:
        """See SolverCheat: the elements of the largest node of ranks move up by one."""
        nodes = job.program.nodes
        ranks = (k for k, node in enumerate(nodes) if node.family is Family.RANK)
        at = max(ranks, key=lambda k: nodes[k].spec.numel)
        size = nodes[at].spec.dtype.size
        return Lie({(1, at): lambda data: data[size:] + data[:size]})


@pytest.mark.long
@pytest.mark.parametrize("kind", [MergeKind.MEDIAN, MergeKind.CENTERED_CLIP], ids=["median", "centered-clip"])
def test_a_lie_inside_a_robust_merge_is_convicted_by_its_one_element(
    stage: SharedChain, tmp_path: Path, kind: MergeKind
) -> None:
    # The only round is the last one: whoever had left its seat could challenge no root of it.
    made = new_whole_run(stage, tmp_path, rounds=1, prepared=prepare_rounds(TINY, TEXT, 4, kind=kind))
    for name in ("ada", "bob", "cleo"):
        made.solver(name)
    made.solver("mallory", FalseOrder(Round(0)))
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    made.fund()
    made.launch()
    view = made.settle(lambda view: any(game.convicted for game in view.games.values()))
    ended, mallory = [game for game in view.games.values() if game.is_over], made.address("mallory")
    # Who lies about a root may accuse the true ones too, and loses those games as well.
    assert {(game.ref.kind, game.outcome) for game in ended} == {(ClaimKind.OUTER, Outcome.LEAF)}
    assert {game.defender for game in ended if game.convicted} == {mallory}
    assert {game.challenger for game in ended if not game.convicted} <= {mallory}
