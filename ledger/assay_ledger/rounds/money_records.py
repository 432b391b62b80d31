"""What the events of a run's money say: its phase, what is settled, pots of convictions, shares that vest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.protocol.rounds.escrow import Reserve, RunPhase
from assay.protocol.rounds.ids import generation_of
from assay.protocol.types import Address, Digest, Round, Wei
from assay_ledger.bindings import bounties, escrow, grants, payments, tenures, tickets
from assay_ledger.contract import Event


@dataclass(slots=True)
class PotRecord:
    """What a conviction left for the accusers that were right, by the lock that was taken; amounts in wei."""

    filled_at: int
    amount: Wei
    epoch: int = 0
    """The lowest of an accusation that entered."""
    entered: int = 0
    """Accusations of that epoch."""
    closed: bool = False


Earner = tuple[int, int]
"""The tenure, or the ticket, by whose work or finding shares are earned; the other is 0."""


@dataclass(frozen=True, slots=True)
class GrantRecord:
    """Shares credited that vest at a chain time, in seconds."""

    owner: Address
    amount: Wei
    vests_at: int
    earner: Earner = (0, 0)


@dataclass(slots=True)
class MoneyRecords:
    """The escrow's phase and what was paid."""

    phase: RunPhase = RunPhase.FUNDING
    launched_at: int = 0
    stopped_at: int = 0
    """Chain time at which the run was cancelled or wound down, in seconds; 0: it was not."""
    funded: dict[Address, int] = field(default_factory=dict)
    balance: int = 0
    """What the escrow holds, in wei."""
    reserves: dict[Round, Reserve] = field(default_factory=dict)
    """What is set aside for rounds that are not settled."""
    freed_at: int = 0
    """Chain time at which the last round was settled."""
    work_settled: Counter[Round] = field(default_factory=Counter)
    """Commitments of a round that were settled."""
    openings_paid: set[tuple[int, Digest]] = field(default_factory=set)
    findings_paid: set[Digest] = field(default_factory=set)
    pots: dict[Digest, PotRecord] = field(default_factory=dict)
    entered: set[Digest] = field(default_factory=set)
    """Accusations that entered a pot."""
    parts_taken: set[Digest] = field(default_factory=set)
    vesting: dict[Digest, GrantRecord] = field(default_factory=dict)
    """Shares that will be somebody's. What a conviction cancelled is gone from here with it, though the contract counts
    it as pending until somebody strikes it out."""
    pending: Counter[Address] = field(default_factory=Counter)
    """The sum of these, in wei of shares, by owner."""
    earned: Counter[Address] = field(default_factory=Counter)
    """Wei of bounties' parts, by who got them."""
    convicted: set[Earner] = field(default_factory=set)
    _paid: Earner = (0, 0)
    """Whom the newest payment was for: shares are credited right after it."""

    @property
    def reserved_total(self) -> int:
        """What is set aside for all rounds, in wei."""
        return sum(held.total for held in self.reserves.values())

    @property
    def is_ended(self) -> bool:
        """Whether the run was cancelled, wound down or finished: nothing more can be earned."""
        return self.phase >= RunPhase.CANCELLED

    @property
    def is_stopped(self) -> bool:
        """Whether nothing is audited or paid any more, and only open games hold a lock."""
        return self.stopped_at != 0

    def fold(self, event: Event, now: int, round_of: Callable[[Digest], Round]) -> None:
        """Applies an event of a block at chain time `now`, in seconds; `round_of` an attestation is its work's."""
        match event:
            case escrow.Funded():
                self.funded[event.funder] = self.funded.get(event.funder, 0) + event.amount
                self.balance += event.amount
            case escrow.Refunded():
                self.funded[event.funder] -= event.funded
                self.balance -= event.amount
            case escrow.PhaseChanged():
                self.phase = event.phase
                self.launched_at = now if event.phase is RunPhase.RUNNING else self.launched_at
                stops = event.phase in (RunPhase.CANCELLED, RunPhase.WOUND_DOWN)
                self.stopped_at = now if stops else self.stopped_at
            case escrow.Reserved():
                self.reserves[event.round] = Reserve(event.amount - event.wages, event.wages)
            case escrow.Freed():
                self.reserves.pop(event.round, None)
                self.freed_at = now
            case payments.WorkPaid():
                self._paid = event.tenure, 0
                self.work_settled[event.round] += 1
                self._pay(event.round, event.pay)
            case payments.FindingPaid():
                self._paid = 0, event.ticket
                self.findings_paid.add(event.attestation)
                self._pay(round_of(event.attestation), event.pay, is_wage=True)
            case payments.OpeningPaid():
                self.openings_paid.add((event.node, event.party))
                self._pay(Round(generation_of(event.node) - 1), event.pay)
            case grants.Credited() if self._paid not in self.convicted:
                self.vesting[event.id] = GrantRecord(event.owner, event.amount, event.vests_at, self._paid)
                self.pending[event.owner] += event.amount
            case grants.Vested() | grants.Cancelled():
                self._ended(event.id)
            case tenures.TenureEnded(convicted=True):
                self._convict((event.tenure, 0), now)
            case tickets.TicketConvictedNow():
                self._convict((0, event.ticket), now)
            case bounties.PotFilled():
                self.pots[event.lock_id] = PotRecord(now, event.amount)
            case bounties.Entered():
                self._entered(event)
            case bounties.Closed():
                self.pots[event.lock_id].closed = True
            case bounties.PartPaid():
                self.parts_taken.add(event.accusation)
                self.earned[event.to] += event.amount

    def _convict(self, earner: Earner, now: int) -> None:
        """Takes what has not vested (`_isCancelled` in Grants.sol), and what is credited from now on."""
        self.convicted.add(earner)
        for name in [name for name, grant in self.vesting.items() if grant.earner == earner and grant.vests_at > now]:
            self._ended(name)

    def _ended(self, grant: Digest) -> None:
        if (ended := self.vesting.pop(grant, None)) is not None:
            self.pending[ended.owner] -= ended.amount

    def _pay(self, round_: Round, amount: int, *, is_wage: bool = False) -> None:
        if round_ in self.reserves:
            self.reserves[round_].take(amount, is_wage=is_wage)
        self.balance -= amount

    def _entered(self, event: bounties.Entered) -> None:
        pot = self.pots[event.lock_id]
        if not pot.entered or event.epoch < pot.epoch:
            pot.epoch, pot.entered = event.epoch, 0
        pot.entered += 1
        self.entered.add(event.accusation)
