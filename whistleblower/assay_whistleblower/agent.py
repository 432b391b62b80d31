"""The whistleblower: audits the verifiers' attestations again, and accuses verifiers and solvers alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.protocol.run.draws import Purpose
from assay.protocol.types import Role
from assay.training.rounds import TorchCompute
from assay_ledger.agents.actions import Action
from assay_ledger.agents.loop import RunStore
from assay_ledger.index.archive import Compute
from assay_ledger.index.records import RoundRecord
from assay_ledger.index.run import Run
from assay_ledger.index.view import Duty, RunView
from assay_ledger.keys.keystore import ActorKeys
from assay_verifier.attester import AttesterAgent
from assay_whistleblower import strategy


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

    def candidates(self, view: RunView) -> Iterator[Action]:
        """See Agent."""
        return strategy.candidates(view, strategy.WhistleblowerPlan(self.stake, self.leaving))

    def times(self, view: RunView) -> Iterator[int]:
        """See Agent."""
        return strategy.times(view)

    def choose(self, view: RunView, record: RoundRecord, drawn: tuple[Duty, ...]) -> tuple[Duty, ...]:
        """See AttesterAgent."""
        return strategy.attested(view, record, drawn)
