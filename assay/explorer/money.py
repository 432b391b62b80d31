"""Who has, earned, lost and owns what in a run: folded from its events. Amounts are wei.

What the vault moves is told once, by the vault; other contracts say what it was for. So for everybody, at every block,
free + locked + leaving = deposited - withdrawn - funded + refunded + pay + wages + merges + won - lost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from assay.protocol.rounds.escrow import ESCROW_LOCK
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest
from assay_ledger.bindings import escrow, payments, revenue, shares, tickets, vault
from assay_ledger.contract import Event
from assay_ledger.rounds.run import Run


@dataclass(slots=True)
class Account:
    """The figures of one address. `won`: of others' locks, by verdicts, bounties and fines; `lost`: of its own."""

    free: int = 0
    locked: int = 0
    leaving: int = 0
    deposited: int = 0
    withdrawn: int = 0
    funded: int = 0
    refunded: int = 0
    pay: int = 0
    wages: int = 0
    merges: int = 0
    won: int = 0
    lost: int = 0
    shares: int = 0
    claimed: int = 0

    @property
    def earned(self) -> int:
        """For work, findings and merges."""
        return self.pay + self.wages + self.merges


class Money:
    """Books of the run. `on_event` is told every event in order."""

    def __init__(self, run: Run) -> None:
        self.accounts: dict[Address, Account] = {}
        self.burned = 0
        self.revenue = 0
        """In the run's own token; a sum of several tokens would be an amount of nothing."""
        self.other_revenue: Counter[Address] = Counter()
        """By token."""
        self.work_pay: dict[tuple[int, int], int] = {}
        """By round and seat."""
        self.work_shares: dict[tuple[int, int], int] = {}
        """What was credited beside the pay, in wei of shares; the same of findings."""
        self.finding_pay: dict[Digest, int] = {}
        self.finding_shares: dict[Digest, int] = {}
        self.opening_pay: dict[tuple[int, Digest], int] = {}
        self.ticket_owners: dict[TicketId, Address] = {}
        """Of every ticket that was ever registered."""
        self.fines: Counter[TicketId] = Counter()
        """What fines took of each ticket."""
        self.leaving_after: dict[Address, int] = {}
        """The chain time, in seconds, after which an account may withdraw what it asked out."""
        self.payees: dict[Address, Address] = {}
        """Who was named to be paid when an account takes out; whoever named nobody is paid itself."""
        self._locks: dict[bytes, tuple[Address, int]] = {}
        self._paying: payments.WorkPaid | payments.OpeningPaid | None = None
        """What the escrow's next payment is for: the vault moves it after the event that says so."""
        self._taker: Account | None = None
        """Who was paid by the escrow last: a finding says what was left for it, after its wage has moved."""
        self.people: list[Address] = []
        """Addresses that are no contracts of the run, in the order in which they came."""
        self._token = run.charter.token
        self._modules = {contract.address for contract in run.all_contracts().values()}

    def of(self, who: Address) -> Account:
        """The figures of an address; zeros for a stranger."""
        return self.accounts.get(who, Account())

    def payee_of(self, who: Address) -> Address:
        """Who is paid when an account takes out."""
        return self.payees.get(who, who)

    def locks_of(self, who: Address) -> dict[Digest, int]:
        """The locks of an account that hold anything, in the order in which they were made."""
        return {Digest(name): amount for name, (owner, amount) in self._locks.items() if owner == who and amount}

    def on_event(self, event: Event) -> None:
        """Books one event."""
        match event:
            case vault.Deposited() | vault.ExitRequested() | vault.Withdrawn():
                self._moved(event)
            case vault.PayeeSet():
                self.payees[event.owner] = event.payee
            case vault.Locked():
                account = self._at(event.owner)
                account.free -= event.amount
                account.locked += event.amount
                self._locks[event.id] = event.owner, self._locks.get(event.id, (event.owner, 0))[1] + event.amount
            case vault.Released():
                account = self._at(event.owner)
                account.free += event.amount
                account.locked -= event.amount
                self._locks.pop(event.id, None)
            case vault.Seized():
                self._seized(event)
            case vault.Burned():
                self._take(event.id, event.amount).lost += event.amount
                self.burned += event.amount
            case escrow.Funded():
                account = self._at(event.funder)
                account.funded += event.amount
                account.lost -= event.amount
            case tickets.TicketRegistered():
                self.ticket_owners[event.ticket] = event.owner
            case tickets.TicketFined():
                self.fines[event.ticket] += event.amount
            case payments.WorkPaid() | payments.FindingPaid() | payments.OpeningPaid():
                self._settled(event)
            case shares.Transfer():
                self._transferred(event)
            case revenue.Deposited() if event.token != self._token:
                self.other_revenue[event.token] += event.amount
            case revenue.Deposited():
                self.revenue += event.amount
            case revenue.Claimed() if event.token == self._token:
                self._at(event.owner).claimed += event.amount

    def _at(self, who: Address) -> Account:
        found = self.accounts.get(who)
        if found is None:
            found = self.accounts[who] = Account()
            if who not in self._modules:
                self.people.append(who)
        return found

    def _moved(self, event: vault.Deposited | vault.ExitRequested | vault.Withdrawn) -> None:
        account = self._at(event.owner)
        match event:
            case vault.Deposited():
                account.free += event.amount
                account.deposited += event.amount
            case vault.ExitRequested():
                account.free -= event.amount
                account.leaving += event.amount
                self.leaving_after[event.owner] = event.not_before
            case vault.Withdrawn():
                account.leaving -= event.amount
                account.withdrawn += event.amount

    def _seized(self, event: vault.Seized) -> None:
        self._take(event.id, event.amount).lost += event.amount
        to = self._at(event.to)
        to.free += event.amount
        match self._paying if event.id == ESCROW_LOCK else event:
            case vault.Seized():
                to.won += event.amount
            case payments.WorkPaid():
                to.pay += event.amount
            case payments.OpeningPaid():
                to.merges += event.amount
            case None:
                # A refund, or a wage: the event that says so follows.
                to.refunded += event.amount
                self._taker = to
        self._paying = None

    def _settled(self, event: payments.WorkPaid | payments.FindingPaid | payments.OpeningPaid) -> None:
        if not isinstance(event, payments.FindingPaid):
            self._paying = event if event.pay else self._paying
        elif event.pay:
            assert self._taker is not None
            self._taker.refunded -= event.pay
            self._taker.wages += event.pay
        match event:
            case payments.WorkPaid():
                self.work_pay[event.round, event.seat] = event.pay
                self.work_shares[event.round, event.seat] = event.shares
            case payments.FindingPaid():
                self.finding_pay[event.attestation] = event.pay
                self.finding_shares[event.attestation] = event.shares
            case payments.OpeningPaid():
                self.opening_pay[event.node, event.party] = event.pay

    def _take(self, lock_id: bytes, amount: int) -> Account:
        owner, held = self._locks[lock_id]
        self._locks[lock_id] = owner, held - amount
        account = self._at(owner)
        account.locked -= amount
        return account

    def _transferred(self, event: shares.Transfer) -> None:
        # Minting comes from the zero address, which owns nothing.
        if any(event.from_):
            self._at(event.from_).shares -= event.value
        if any(event.to):
            self._at(event.to).shares += event.value
