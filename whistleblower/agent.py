"""The whistleblower: audits the verifiers' attestations again, and accuses verifiers and solvers alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.ledger.actions import Action
from assay.ledger.agent import RunStore
from assay.ledger.archive import Compute
from assay.ledger.attester import AttesterAgent
from assay.ledger.keystore import ActorKeys
from assay.ledger.records import RoundRecord
from assay.ledger.run import Run
from assay.ledger.view import Duty, View
from assay.protocol.draws import Purpose
from assay.protocol.types import Role
from assay.training.rounds import TorchCompute
from assay.whistleblower import strategy


class WhistleblowerAgent(AttesterAgent):
    """A whistleblower of one run."""

    role = "whistleblower"
    attester_role = Role.WHISTLEBLOWER
    purpose = Purpose.WHISTLE

    def __init__(
        self,
        run: Run,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        *,
        compute: Compute | None = None,
        **options: Any,
    ) -> None:
        super().__init__(run, keys, store, data_dir, compute or TorchCompute(), **options)

    def candidates(self, view: View) -> Iterator[Action]:
        """See Agent."""
        return strategy.candidates(view, strategy.WhistleblowerPlan(self.stake, self.leaving))

    def times(self, view: View) -> Iterator[int]:
        """See Agent."""
        return strategy.times(view)

    def choose(self, view: View, record: RoundRecord, drawn: tuple[Duty, ...]) -> tuple[Duty, ...]:
        """See AttesterAgent."""
        return strategy.attested(view, record, drawn)
