"""What the terms of a run must be: the checks of RunBounds.sol and RunPrices.sol in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.economics import stake_bounds
from assay.protocol.economics.audit_prices import MAX_UNSETTLED, AuditTerms
from assay.protocol.economics.governance_bounds import check_governance
from assay.protocol.economics.limits import MAX_AMOUNT, PPM, refusal
from assay.protocol.economics.run_times import check_times, unsettled_rounds
from assay.protocol.economics.stake_bounds import OPEN_EPOCHS, min_lock, min_stake
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter

MAX_REVENUE_TOKENS: Final = 4
MAX_HEADER: Final = 2048
"""Bytes of a program's header: two lists of 255 sizes and what stands around them."""

MOST_SEATS: Final = 1024
MOST_OF_GROUP: Final = 64
"""Seats whose updates one sum adds."""
MOST_POSITIONS: Final = 63
MAX_CAPACITY: Final = 16
MAX_ARITY: Final = 64
MAX_EXPIRY: Final = (1 << 40) - 1
LEAST_TICKETS: Final = 5
"""After two bribes of three auditors nobody is left who looks, and of four one."""

NO_ADDRESS: Final = bytes(20)


def audit_terms(charter: RunCharter) -> AuditTerms:
    """What the prices of audits follow from: m is three epochs' capacity, U follows from the times."""
    e = charter.economics
    return AuditTerms(
        price=charter.price,
        wage=e.wage,
        audit_ppm=e.audit_ppm,
        reaudit_ppm=e.reaudit_ppm,
        cartel_ppm=e.cartel_ppm,
        drawn_bounty_ppm=e.drawn_bounty_ppm,
        third_bounty_ppm=e.third_bounty_ppm,
        open_duties=OPEN_EPOCHS * e.capacity,
        unsettled=unsettled_rounds(charter.timing, charter.chain.inclusion_delay),
        merge_pay=e.merge_pay,
    )


def most_unsettled(charter: RunCharter) -> int:
    """U, as many rounds of pay as B outweighs: a round opens once what so many before it earned is due."""
    e = charter.economics
    return stake_bounds.most_unsettled(audit_terms(charter), e.seat_lock, e.ticket_bond)


def check_run(charter: RunCharter, now: int) -> None:
    """Refuse terms that RunCharter.sol refuses, under the same name. Raises RejectedError."""
    for what in ("sponsor", "token", "beacon"):
        _nonzero(what, getattr(charter, what) != NO_ADDRESS)
    _check_training(charter)
    for program in (charter.step, charter.update, charter.merge, charter.witness):
        _check_program(program)
    if not charter.by_seats:
        _check_program(charter.partial_sum)
    elif charter.partial_sum.root != ZERO:
        raise refusal("ProgramMismatch", "A run with one level has no program of partial sums.")
    if charter.clocks.arity < 2:
        raise refusal("ValueZero", "A list has two digests at least.", what="arity")
    _at_most([("arity", charter.clocks.arity, MAX_ARITY)])
    if charter.expiry <= now:
        raise refusal("WindowTooShort", "The run expires before it begins.", what="expiry")
    _at_most([("expiry", charter.expiry, MAX_EXPIRY)])
    _check_launch(charter)
    _check_money(charter)
    check_times(charter)
    if len(charter.revenue_tokens) > MAX_REVENUE_TOKENS:
        raise refusal("TooManyRevenueTokens", f"A run has at most {MAX_REVENUE_TOKENS} revenue tokens.")
    check_governance(charter)


def _check_training(charter: RunCharter) -> None:
    t = charter.training
    _nonzero("seats", t.seats)
    _at_most([("seats", t.seats, MOST_SEATS)])
    if not charter.by_seats:
        _nonzero("group size", t.group_size)
        _at_most([("group size", t.group_size, MOST_OF_GROUP)])
        _nonzero("positions", t.positions)
        _nonzero("top positions", t.top_positions)
    _at_most([("positions", t.positions, MOST_POSITIONS), ("top positions", t.top_positions, MOST_POSITIONS)])
    _nonzero("least units", t.min_units)
    _at_most([("least units", t.min_units, t.max_units)])
    _nonzero("steps per unit", t.steps_per_unit)
    _nonzero("shard length", t.shard_length)
    _nonzero("rounds", charter.rounds)
    _at_most([("rounds", charter.rounds, (1 << 24) - 1), ("steps", t.steps_per_round, (1 << 32) - 1)])
    if t.shards < t.seats:
        raise refusal("ShardsFewerThanSeats", "Two seats would train on the same data.")
    _at_most([("data", t.shards * t.shard_length, (1 << 31) - 1)])
    if t.learning_rate & 0x7F800000 == 0x7F800000:
        raise refusal("NotFinite", "The learning rate must be finite.", what="learning rate")
    for what in ("parameters", "momentum", "zero_optimizer", "zero_update", "data"):
        _nonzero(what.replace("_", " "), getattr(t, what) != ZERO)


def _check_launch(charter: RunCharter) -> None:
    launch = charter.launch
    if launch.tickets < LEAST_TICKETS:
        raise refusal("TooFewTickets", f"Rounds need {LEAST_TICKETS} tickets at least.")
    _nonzero("least seats", launch.seats)
    _at_most([("least seats", launch.seats, charter.training.seats), ("open from", launch.open_from, charter.expiry)])


def _check_money(charter: RunCharter) -> None:
    e, price = charter.economics, charter.price
    _amounts([("shares per commitment", e.shares_per_unit * charter.training.max_units, MAX_AMOUNT)])
    _nonzero("commit", charter.timing.commit)
    t = audit_terms(charter)
    if price == 0:
        raise refusal("ReferencePriceZero", "Without a reference price every lock, fee and wage is zero.")
    rates = (
        ("audit", e.audit_ppm, PPM),
        ("re-audit", e.reaudit_ppm, PPM - 1),
        ("cartel", e.cartel_ppm, PPM - 1),
        ("drawn bounty", e.drawn_bounty_ppm, PPM),
        ("third-party bounty", e.third_bounty_ppm, PPM // 2),
    )
    for what, ppm, most in rates:
        if ppm > most:
            raise refusal("RateTooHigh", f"The {what} rate of {ppm} ppm is above {most}.", what=what, maximum=most)
    _at_most([("capacity", e.capacity, MAX_CAPACITY), ("unsettled rounds", t.unsettled, MAX_UNSETTLED)])
    _nonzero("wage", e.wage)
    _nonzero("audit rate", e.audit_ppm)
    _nonzero("re-audit rate", e.reaudit_ppm)
    for what in ("capacity", "shifts", "challenge_bond", "challenge_deposit"):
        _nonzero(what.replace("_", " "), getattr(e, what))
    _amounts(
        [
            ("price", price, MAX_AMOUNT),
            ("wage", e.wage, MAX_AMOUNT),
            ("merge pay", e.merge_pay, price),
            ("claim lock", e.seat_lock, MAX_AMOUNT),
            ("ticket stake", e.ticket_bond, MAX_AMOUNT),
            ("shares per duty", e.shares_per_duty, MAX_AMOUNT),
            ("challenge bond", e.challenge_bond, e.ticket_bond),
            ("challenge deposit", e.challenge_deposit, e.ticket_bond),
        ]
    )
    if e.seat_fee > price:
        raise refusal("SeatFeeTooHigh", "No more than a round's pay may be lost by staying away.", maximum=price)
    if e.seat_lock < (minimum := min_lock(t)):
        raise refusal("ClaimLockTooSmall", f"S must be at least {minimum} wei.", minimum=minimum)
    if e.ticket_bond < (minimum := min_stake(t, e.seat_lock)):
        raise refusal("BondTooSmall", f"B must be at least {minimum} wei.", minimum=minimum)


def _check_program(program: ProgramRef) -> None:
    _at_most([("header", len(program.header), MAX_HEADER)])
    if not program.is_consistent:
        raise refusal("ProgramMismatch", "Header and tree do not hash to the program's root.")


def _nonzero(what: str, value: int | bool) -> None:
    if not value:
        raise refusal("ValueZero", f"The {what} must not be zero.", what=what)


def _at_most(rows: Iterable[tuple[str, int, int]]) -> None:
    for what, value, most in rows:
        if value > most:
            raise refusal("ScheduleTooLong", f"{what} = {value} is above {most}.", what=what, maximum=most)


def _amounts(rows: Iterable[tuple[str, int, int]]) -> None:
    for what, amount, most in rows:
        if amount > most:
            raise refusal("AmountTooLarge", f"The {what} of {amount} wei is above {most}.", what=what, maximum=most)
