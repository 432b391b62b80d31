"""The verifier: fetches, replays what it is drawn for, attests, accuses what is false."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.protocol.program.trace import SlotTamper
from assay.protocol.run.draws import Purpose
from assay.protocol.types import Digest, Role
from assay.training.rounds import TorchCompute
from assay_ledger.agents.actions import Action, Receipt
from assay_ledger.agents.agent import RunStore
from assay_ledger.index.archive import Compute, Job
from assay_ledger.index.run import Run
from assay_ledger.index.view import Duty, View
from assay_ledger.keys.keystore import ActorKeys
from assay_verifier import strategy
from assay_verifier.attester import AttesterAgent


class VerifierAgent(AttesterAgent):
    """A verifier of one run. A `lazy` one signs for what it never fetched and attests what is claimed."""

    role = "verifier"
    attester_role = Role.VERIFIER
    purpose = Purpose.AUDIT

    def __init__(
        self,
        run: Run,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        *,
        lazy: bool = False,
        compute: Compute | None = None,
        first_seats: int = 1,
        first_verifiers: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(run, keys, store, data_dir, compute or TorchCompute(), **options)
        self.lazy = lazy
        self._first = first_seats, first_verifiers

    def candidates(self, view: View) -> Iterator[Action]:
        """See Agent."""
        plan = strategy.VerifierPlan(self.stake, self.leaving, self.lazy, *self._first, free=self.free_stake(view))
        return strategy.candidates(view, plan)

    def times(self, view: View) -> Iterator[int]:
        """See Agent."""
        return strategy.times(view)

    def do_receipt(self, action: Receipt, view: View) -> None:
        """Signs for a commitment once every object of it was fetched and hashed."""
        record = view.state.rounds[action.round]
        if not self.lazy:
            self.archive.check_commitment(view, record, record.commitments[action.seat])
        self.send(self.target.rounds.functions.receipt(action.round, action.seat, action.digest))

    def replay(self, duty: Duty, view: View) -> Digest:
        """See AttesterAgent; the lazy one copies."""
        return duty.y if self.lazy else super().replay(duty, view)

    def slot_tamper(self, duty: Duty, job: Job) -> SlotTamper | None:
        """What a lazy verifier must stand by: an honest run that jumps to the claimed end at its last step."""
        if not self.lazy:
            return None
        claimed = self.archive.claimed_end(self._seen, duty)

        def jump(t: int, number: int, index: int, data: bytes) -> bytes:
            return claimed[number][index] if t == job.steps and number < len(claimed) else data

        return jump
