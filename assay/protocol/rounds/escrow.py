"""What a run pays from, when it opens, and what becomes of the rest (contracts/money/Escrow.sol).

Anybody funds. A round opens only against a reserve of all that it can cost. Money is spent in the order in which it
came: first what was there at the launch, which is one pool, then each later payment. What is left at the end goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.economics.limits import PPM
from assay.protocol.economics.run_bounds import most_unsettled
from assay.protocol.economics.run_times import until_final
from assay.protocol.errors import refuse
from assay.protocol.rounds.escrow_peers import CountedTickets, EscrowedAudits, GovernedRounds, LaunchedRounds
from assay.protocol.rounds.vault import Vault
from assay.protocol.run.run_charter import RunCharter, RunEconomics
from assay.protocol.types import Address, Digest, Round, Wei

ESCROW_LOCK = Digest(b"assay.escrow".ljust(32, b"\0"))


class RunPhase(IntEnum):
    """How far a run is; equal to `RunPhase` in IEscrow.sol."""

    FUNDING = 0
    RUNNING = 1
    CANCELLED = 2
    WOUND_DOWN = 3
    OVER = 4

    @property
    def words(self) -> str:
        """As people read it."""
        return self.name.lower().replace("_", " ")

    @property
    def has_ended(self) -> bool:
        """Whether nothing is begun or paid in any more."""
        return self > RunPhase.RUNNING


@dataclass(slots=True)
class Pool:
    """Money that came at one point of the order, in wei."""

    total: int = 0
    open: int = 0
    """Of it what has not been paid back, or been called for."""
    back: int = 0
    """What was paid back."""


@dataclass(slots=True)
class Reserve:
    """What is set aside for a round, in wei."""

    pay: int
    """Of work and openings."""
    wages: int

    @property
    def total(self) -> int:
        """Both."""
        return self.pay + self.wages

    def take(self, amount: int, *, is_wage: bool) -> int:
        """Pay so much; what of it was set aside for this."""
        taken = min(amount, self.wages if is_wage else self.pay)
        if is_wage:
            self.wages -= taken
        else:
            self.pay -= taken
        return taken


class Escrow:
    """The books of the escrow; `now` is chain time in seconds. Methods raise before they change anything."""

    def __init__(
        self, charter: RunCharter, place: Address, vault: Vault, tickets: CountedTickets, audits: EscrowedAudits
    ) -> None:
        self.charter, self.place, self.vault = charter, place, vault
        self.tickets, self.audits = tickets, audits
        self.rounds: LaunchedRounds | None = None
        """Set when the books of rounds are there, whose gate this is."""
        self.governor: GovernedRounds | None = None
        """Set where the charter names governance."""
        self.most_unsettled = most_unsettled(charter)
        """U, as many rounds of pay as B outweighs: a round opens once what so many before it earned is due."""
        self.prices: dict[Round, int] = {}
        """What rounds of a governed run pay, in parts per million of the charter's price of a unit."""
        self.phase = RunPhase.FUNDING
        self.launched_at = 0
        self.stop = 0
        """When the run was cancelled or wound down, in seconds of chain time; 0: it was not."""
        self.load = (0, 0)
        """The newest epoch when the last round opened, and seats of rounds opened while it was."""
        self.live_rounds = 0
        self.reserved: dict[Round, Reserve] = {}
        self.paid_in = 0
        self.paid_back = 0
        self.pools: dict[int, Pool] = {}
        """By what came before them."""
        self.parts: dict[Address, list[tuple[int, int]]] = {}
        """By funder: what came before, and the amount."""

    # --- funders and sponsor

    def fund(self, who: Address, amount: int) -> None:
        """Raises WrongPhase, AmountZero, InsufficientFree."""
        if self.phase > RunPhase.RUNNING:
            raise refuse("WrongPhase", phase=self.phase)
        name = keccak(abi.encode(["string", "address"], ["assay.fund", who]))
        self.vault.lock(name, who, Wei(amount))
        self.vault.seize(name, self.place, Wei(amount))
        self.vault.lock(ESCROW_LOCK, self.place, Wei(amount))
        # Attack: fund one's own seats' pay, and share what a later funder saves the run with.
        before = 0 if self.phase is RunPhase.FUNDING else self.paid_in
        pool, parts = self.pools.setdefault(before, Pool()), self.parts.setdefault(who, [])
        pool.total, pool.open = pool.total + amount, pool.open + amount
        more = parts.pop()[1] if parts and parts[-1][0] == before else 0
        parts.append((before, more + amount))
        self.paid_in += amount

    def launch(self, who: Address, now: int) -> None:
        """Raises WrongPhase, LaunchTooEarly, TooFewToLaunch, StakesBelowEscrow, Paused."""
        self._check_phase(RunPhase.FUNDING)
        # Attack: a sponsor whose run trains before anybody audits it, stands still, and is wound down unpaid.
        if now < self.charter.timing.audits_from:
            raise refuse("LaunchTooEarly", now=now, not_before=self.charter.timing.audits_from)
        if who != self.charter.sponsor:
            self._check_worth(now)
        assert self.rounds is not None
        self.phase = RunPhase.RUNNING
        try:
            self.rounds.begin(now)
        except Exception:
            self.phase = RunPhase.FUNDING
            raise
        self.launched_at = now

    def cancel(self, who: Address, now: int) -> None:
        """By the sponsor; once no round can open any more by anybody. Raises WrongPhase, NotTheSponsor."""
        self._check_phase(RunPhase.FUNDING)
        assert self.rounds is not None
        if who != self.charter.sponsor and not self.rounds.is_over(now):
            raise refuse("NotTheSponsor", caller=who)
        self.phase, self.stop = RunPhase.CANCELLED, now

    def wind_down(self, now: int) -> None:
        """Raises WrongPhase, RunMoves."""
        if self.phase not in (RunPhase.RUNNING, RunPhase.OVER):
            raise refuse("WrongPhase", phase=self.phase)
        not_before = max(self._moved_at(now), self.launched_at) + self.charter.timing.stall + 1
        if now < not_before:
            raise refuse("RunMoves", now=now, not_before=not_before)
        self.phase, self.stop = RunPhase.WOUND_DOWN, now

    def finish(self, now: int) -> None:
        """Raises WrongPhase, RunNotOver."""
        self._check_phase(RunPhase.RUNNING)
        unpaid = self.audits.unpaid_findings()
        # Attack: end a run with wages unpaid, or with duties to come, and have the wages back as its funder.
        if not self._are_duties_over() or self.live_rounds or unpaid:
            raise refuse("RunNotOver", live_rounds=self.live_rounds, findings=unpaid)
        self.phase = RunPhase.OVER

    def refund(self, funder: Address) -> int:
        """What is left of a funder's newest payment; the last of a pool gets the rest.

        Raises WrongPhase, NothingToRefund.
        """
        if self.phase < RunPhase.CANCELLED:
            raise refuse("WrongPhase", phase=self.phase)
        if not (parts := self.parts.get(funder)):
            raise refuse("NothingToRefund", funder=funder)
        before, part = parts.pop()
        pool = self.pools[before]
        spent = self.paid_in - self.paid_back - self.balance
        left = min(pool.total, max(before + pool.total - spent, 0)) - pool.back
        amount = left * part // pool.open
        pool.open -= part
        pool.back += amount
        self.paid_back += amount
        if amount:
            self.vault.seize(ESCROW_LOCK, funder, Wei(amount))
        return amount

    # --- the gate of rounds

    def is_stopped(self) -> bool:
        """See GateState."""
        return self.stop != 0

    def stopped_at(self) -> int:
        """See GateState."""
        return self.stop

    def may_open(self, seated: int, now: int) -> bool:
        """Whether a round can be audited and paid."""
        if self.governor is not None and self.governor.is_paused(now):
            return False
        count = self.tickets.count_at(now, now)
        if self.phase is not RunPhase.RUNNING or count < self.charter.launch.tickets:
            return False
        if not self._can_audit(count, self._load_with(seated)):
            return False
        if not self._may_be_unsettled(now):
            return False
        return self.balance >= self.reserved_total + self.cost_of(seated)

    def carries(self, seated: int, now: int) -> bool:
        """See Rights: any seats before the launch, none once the run has ended."""
        if self.phase is not RunPhase.RUNNING:
            return self.phase is RunPhase.FUNDING
        is_paid = self.balance >= self.reserved_total + self.cost_of(seated)
        return is_paid and self._can_audit(self.tickets.count_at(now, now), seated)

    def reserve(self, round_: Round, seated: int, now: int) -> None:
        """Set aside what a round that may open can cost."""
        self.load = (self.audits.newest()[0], self._load_with(seated))
        cost = self.cost_of(seated)
        wages = wages_of(self.charter.economics, seated)
        self.reserved[round_] = Reserve(cost - wages, wages)
        if self.governor is not None:
            # Attack: a price that changes for work which is done.
            self.prices[round_] = self.governor.price_ppm
        self.live_rounds += 1

    # --- payments

    def pay(self, round_: Round, to: Address, amount: int, *, is_wage: bool = False) -> int:
        """Pay from what a round has reserved for it, beyond that from what is not reserved; what was paid.

        Once no round is left to settle, and no duty can be drawn, it pays what is there: it is all that there will be,
        and one wage more would keep the run from its end. Raises WrongPhase, EscrowShort.
        """
        self._check_phase(RunPhase.RUNNING)
        held = self.reserved.get(round_, Reserve(0, 0))
        # Attack: more findings than a round has set wages aside for, paid from its work's pay, so that nobody settles
        # the work until the run is wound down, and the rest goes back to its funders.
        needed = self.reserved_total - replace(held).take(amount, is_wage=is_wage) + amount
        if self.balance < needed and (self.live_rounds or not self._are_duties_over()):
            raise refuse("EscrowShort", escrow=self.balance, needed=needed)
        held.take(amount, is_wage=is_wage)
        if paid := min(amount, self.balance):
            self.vault.seize(ESCROW_LOCK, to, Wei(paid))
        return paid

    def free(self, round_: Round) -> None:
        """A round is settled. Raises WrongPhase."""
        self._check_phase(RunPhase.RUNNING)
        self.reserved.pop(round_)
        self.live_rounds -= 1

    # --- views

    def work_pay_of(self, round_: Round, amount: int) -> int:
        """What a round pays for work that is worth an amount at the charter's price, in wei, rounded down."""
        return amount * self.prices.get(round_, PPM) // PPM

    def cost_of(self, seated: int) -> int:
        """What a round of so many seats sets aside if it opens now, in wei."""
        return cost_of(self.charter, seated, PPM if self.governor is None else self.governor.price_ppm)

    def funded_of(self, funder: Address) -> int:
        """What an account paid in and has not called back, in wei."""
        return sum(amount for _, amount in self.parts.get(funder, ()))

    @property
    def balance(self) -> int:
        """What the escrow holds, in wei."""
        return self.vault.lock_amount(ESCROW_LOCK)

    @property
    def reserved_total(self) -> int:
        """What is set aside for all rounds, in wei."""
        return sum(held.total for held in self.reserved.values())

    # --- inside

    def _can_audit(self, count: int, load: int) -> bool:
        """Whether the tickets of a shift answer for twice the duties expected of so many commitments."""
        e = self.charter.economics
        return e.capacity * (count // e.shifts) * (PPM - e.reaudit_ppm) >= 2 * load * e.audit_ppm

    def _may_be_unsettled(self, now: int) -> bool:
        """Whether the next round leaves no more pay unsettled than B makes an auditor's silence dearer than."""
        assert self.rounds is not None
        before = self.rounds.opened() - self.most_unsettled
        if before < 0:
            return True
        last = self.rounds.commit_until(Round(before))
        return now > last + until_final(self.charter.timing) and self.audits.over_after(last) != 0

    def _are_duties_over(self) -> bool:
        return 0 < self.audits.last_epoch < self.audits.newest()[0]

    def _moved_at(self, now: int) -> int:
        """When the run moved last. While rounds may open both generations and epochs have to, and a round that opened
        after both has once more as long."""
        assert self.rounds is not None
        _, closed_at = self.audits.newest()
        if self.phase is RunPhase.RUNNING and not (self.rounds.is_over(now) and self.rounds.is_decided()):
            moved = max(min(self.rounds.final_at(), closed_at), self.launched_at)
            # Attack: pay for a round in the last hour before a run may be wound down, and have its work for nothing.
            return max(moved, min(self.rounds.opened_at(), moved + self.charter.timing.stall))
        # Attack: void the last rounds' pay since no generation is left to become final, while their disputes go on.
        last = self.audits.last_epoch
        undrawn_since = self.audits.over_since(last + 1) if last else 0
        # Attack: close epochs for ever, so that what cannot be settled is held for ever.
        return min(closed_at, undrawn_since + self.charter.timing.longest_dispute) if undrawn_since else closed_at

    def _load_with(self, seated: int) -> int:
        epoch, seats = self.load
        return (seats if epoch == self.audits.newest()[0] else 0) + seated

    def _check_phase(self, wanted: RunPhase) -> None:
        if self.phase is not wanted:
            raise refuse("WrongPhase", phase=self.phase)

    def _check_worth(self, now: int) -> None:
        assert self.rounds is not None
        launch, e = self.charter.launch, self.charter.economics
        if now < launch.open_from:
            raise refuse("LaunchTooEarly", now=now, not_before=launch.open_from)
        tickets, seats = self.tickets.count_at(now, now), self.rounds.seated_at(Round(0))
        if tickets < launch.tickets or seats < launch.seats:
            raise refuse("TooFewToLaunch", tickets=tickets, seats=seats)
        # Attack: buy the least numbers with stakes that come back, agree with oneself, and be paid the escrow.
        staked = tickets * e.ticket_bond + seats * e.seat_lock
        if staked < self.balance:
            raise refuse("StakesBelowEscrow", staked=staked, escrow=self.balance)


def cost_of(charter: RunCharter, seated: int, price_ppm: int = PPM) -> int:
    """What a round of so many seats sets aside: pay, its openings' pay, twice the wages expected. In wei.

    price_ppm: part of the charter's price of a unit that it pays, in parts per million.
    """
    e, t = charter.economics, charter.training
    openings = seated
    if not charter.by_seats:
        openings = -(-t.seats // t.group_size) * t.positions + t.top_positions
    return cost_of_terms(e, t.max_units, seated, openings, price_ppm)


def cost_of_terms(e: RunEconomics, units: int, seated: int, openings: int, price_ppm: int = PPM) -> int:
    """The same for commitments of so many units, and so many openings that are paid."""
    work = -(-e.unit_price * units * price_ppm // PPM) if e.pays else 0
    return seated * work + openings * e.merge_pay + wages_of(e, seated)


def wages_of(e: RunEconomics, seated: int) -> int:
    """What of it is for findings alone: twice those that p / (1 - q) findings a commitment lead to. In wei."""
    return -(-2 * seated * e.audit_ppm * e.wage // (PPM - e.reaudit_ppm))
