"""A dishonest auditor, whole: what it said it also stands by, in games about its own attestations."""

from __future__ import annotations

from assay.protocol.program.trace import Tamper, Trace
from assay.protocol.rounds.ids import Node, is_group
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.types import Digest
from assay_ledger.chain.client import address_of
from assay_ledger.index.computing import Computation
from assay_ledger.index.games import Game
from assay_ledger.rounds.nodes import tickets_at
from assay_ledger.rounds.told_generations import node_of
from assay_ledger.rounds.view import RunView
from assay_verifier.cheats import AuditCheat, CheatingReplays, first_bit_wrong
from assay_verifier.replaying import CommitmentReplay, witness_lists_of, witnessed_by
from assay_whistleblower.agent import AuditorAgent, attestation_of


class CheatingAuditor(CheatingReplays, AuditorAgent):
    """An auditor that cheats, and defends what it said as long as it can."""

    def run_behind(self, replay: CommitmentReplay, key: Digest | None, game: Game) -> Trace:
        """An honest run that jumps to the claimed accumulator at its last step; the honest one as a challenger."""
        if key is None or game.state.defender != address_of(self.account):
            return super().run_behind(replay, key, game)
        made = attestation_of(self.see(), game.ref.outer_root).finding
        claimed = made.accumulators[made.keys.index(key)]
        steps, place = replay.work.steps, len(TrainingList) + 1

        def jump(t: int, number: int, index: int, data: bytes) -> bytes:
            return claimed if (t, number) == (steps, place) else data

        lists = (*replay.work.lists, *witness_lists_of((key,)))
        return self.compute.trace(witnessed_by(replay.work.plain, 1), lists, steps, tamper_slot=jump)

    # --- merges, above 64 seats

    _lied_at: Node | None = None

    def run_node(self, node: Node, job: Computation) -> ListBytes:
        """See MergingAgent."""
        mine = sum(map(len, tickets_at(self.see(), node).values()))
        is_few = 0 < 3 * mine <= self.target.facts.rounds.positions
        if self.cheat is AuditCheat.FALSE_SUM and self._lied_at is None and is_group(node) and is_few:
            self._lied_at = node
        return self.compute.run(job.program, job.lists, job.steps, self._sum_lie(node, job))

    def confirm_node(self, view: RunView, node: Node) -> None:
        """See MergingAgent; who lies looks away."""
        if node != self._lied_at:
            super().confirm_node(view, node)

    def node_trace(self, game: Game, view: RunView) -> Trace:
        """See MergingAgent."""
        node = node_of(game.ref)
        job = self.merges.job(view, node)
        return self.compute.trace(job.program, job.lists, job.steps, self._sum_lie(node, job))

    def _sum_lie(self, node: Node, job: Computation) -> Tamper | None:
        return first_bit_wrong(job) if node == self._lied_at else None

    def update_behind(self, job: Computation) -> Trace:
        """See AuditorAgent; wrong by one bit where it says so."""
        return self.compute.trace(job.program, job.lists, 1, self.update_lie(job))
