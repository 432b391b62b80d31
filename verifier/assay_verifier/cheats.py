"""A dishonest verifier, for demonstrations and tests: an honest one that computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Digest
from assay_ledger.agents.actions import Action, Challenge, Receipt
from assay_ledger.index.archive import Computation
from assay_ledger.index.view import Duty, RunView
from assay_verifier.agent import VerifierAgent


class LazyVerifier(VerifierAgent):
    """Signs for what it never fetched, attests what is claimed, and accuses no other of a duty that it did not do."""

    def candidates(self, view: RunView) -> Iterator[Action]:
        """See Agent. Outer steps it computes like every participant: what is wrong with them it says."""
        return without_accusations(super().candidates(view))

    def do_receipt(self, action: Receipt, view: RunView) -> None:
        """Signs for a commitment unseen."""
        self.send(self.target.rounds.receipt(action.round, action.seat, action.digest))

    def replay(self, duty: Duty, view: RunView) -> Digest:
        """Copies what is claimed."""
        return duty.y

    def own_trace(self, duty: Duty, job: Computation, view: RunView) -> Trace:
        """What it must stand by: an honest run that jumps to the claimed end at its last step."""
        claimed = self.archive.claimed_end(view, duty)

        def jump(t: int, number: int, index: int, data: bytes) -> bytes:
            return claimed[number][index] if t == job.steps and number < len(claimed) else data

        return self.compute.trace(job.program, job.lists, job.steps, tamper_slot=jump)


def without_accusations(actions: Iterable[Action]) -> Iterator[Action]:
    """Actions without challenges of anything but outer steps."""
    for action in actions:
        if not isinstance(action, Challenge) or action.ref.kind is ClaimKind.OUTER:
            yield action
