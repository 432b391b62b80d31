"""The verifier: fetches, replays what it is drawn for, attests, accuses what is false."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.protocol.run.draws import Purpose
from assay.protocol.types import Role
from assay.training.rounds import TorchCompute
from assay_ledger.agents.actions import Action, Receipt
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.loop import RunStore
from assay_ledger.index.archive import Compute
from assay_ledger.index.run import Run
from assay_ledger.index.view import RunView
from assay_ledger.keys.keystore import ActorKeys
from assay_verifier import strategy
from assay_verifier.attester import AttesterAgent


class VerifierAgent(AttesterAgent):
    """A verifier of one run."""

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
        compute: Compute | None = None,
        first_seats: int = 1,
        first_verifiers: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(run, keys, store, data_dir, compute or TorchCompute(), **options)
        self._first = first_seats, first_verifiers

    def candidates(self, view: RunView) -> Iterator[Action]:
        """See Agent."""
        plan = strategy.VerifierPlan(self.stake, self.leaving, *self._first, free=self.free_stake(view))
        return strategy.candidates(view, plan)

    def times(self, view: RunView) -> Iterator[int]:
        """See Agent."""
        return strategy.times(view)

    def handlers(self) -> Handlers[RunView]:
        """See Agent."""
        return super().handlers().add(Receipt, self.do_receipt)

    def do_receipt(self, action: Receipt, view: RunView) -> None:
        """Signs for a commitment once every object of it was fetched and hashed."""
        record = view.state.rounds[action.round]
        self.archive.check_commitment(view, record, record.commitments[action.seat])
        self.send(self.target.rounds.receipt(action.round, action.seat, action.digest))
