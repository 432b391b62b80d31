"""What a card needs of a run's events beyond books and records: in which blocks, who was paid, who holds shares."""

from __future__ import annotations

from collections import Counter

from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.types import Address, Digest
from assay_ledger.bindings import payments, shares, tickets
from assay_ledger.bindings.generations import RootBacked, RootOpened
from assay_ledger.bindings.grouped_generations import NodeOpened
from assay_ledger.contract import Event, Logged
from assay_ledger.deployment.vouchers import VOUCHERS_NAME, followed_contracts
from assay_ledger.rounds.index import ReadsEvents, RunIndex
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView


class HistoryBooks:
    """Grows with the events. Share amounts are in the shares' smallest unit."""

    def __init__(self, run: Run) -> None:
        self._modules = frozenset(contract.address for contract in run.all_contracts().values())
        self.clear()

    def clear(self) -> None:
        """Forgets everything: the first event comes next."""
        self.last_block = 0
        """Of the newest event: two readers between whom nothing happened say the same."""
        self.opened_in: dict[bytes, int] = {}
        """Blocks of the transactions that opened roots."""
        self.rounds_paid: Counter[int] = Counter()
        """Final commitments that were settled, by tenure."""
        self.findings_paid: Counter[int] = Counter()
        """By ticket."""
        self.ticket_owners: dict[int, Address] = {}
        self._vested: Counter[Address] = Counter()

    def on_event(self, contract: str, found: Logged[Event]) -> None:
        """Books one event. See Listener."""
        if contract == VOUCHERS_NAME:
            return  # it stands beside the run: a card says nothing of who pays for answers
        self.last_block = max(self.last_block, found.block)
        match found.event:
            case RootOpened() | NodeOpened() | RootBacked():
                self.opened_in[found.transaction] = found.block
            case payments.WorkPaid(status=WorkStatus.FINAL, tenure=tenure):
                self.rounds_paid[tenure] += 1
            case payments.FindingPaid(ticket=ticket):
                self.findings_paid[ticket] += 1
            case tickets.TicketRegistered(ticket=ticket, owner=owner):
                self.ticket_owners[ticket] = owner
            case shares.Transfer(from_=source, to=target, value=value):
                self._vested[source] -= value
                self._vested[target] += value

    def shares(self, vesting: Counter[Address]) -> dict[Address, int]:
        """What everybody holds, vested or not; nobody's address and the run's contracts hold nothing."""
        found = self._vested + vesting  # of counters this leaves out what is not positive
        return {who: held for who, held in found.items() if any(who) and who not in self._modules}


def history_of(run: Run, keeps: ReadsEvents | None = None) -> tuple[RunView, HistoryBooks]:
    """A run at its newest block as somebody sees it who takes no part, and its books.

    keeps: where an explorer of this machine may have kept all of its events. Raises UnavailableError.
    """
    from assay.protocol.run.claims import NO_ADDRESS

    books = HistoryBooks(run)
    # Rows that an explorer keeps are of these.
    index = RunIndex(run, [books.on_event], followed_contracts(run), books.clear, keeps)
    try:
        return RunView(run.charter, run.facts, NO_ADDRESS, index.sync()), books
    finally:
        index.close()


def transactions_of(view: RunView, generation: int) -> tuple[Digest | None, bytes | None]:
    """The root that leads a generation, and the transaction that first opened it."""
    root = view.votes(generation).root
    first = next((o.tx_hash for o in view.openings(generation) if o.root == root), None)
    return root, first
