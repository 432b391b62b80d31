"""Every bound on a term of the charter, as two charters: the last admitted, the first that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Final

from assay.protocol.digests import ZERO, program_digest
from assay.protocol.economics import run_times as times
from assay.protocol.economics import stake_bounds as stakes
from assay.protocol.economics.audit_prices import stake_if_insured
from assay.protocol.economics.limits import (
    MAX_AMOUNT,
    MAX_DELAY,
    MAX_FEE_CAP,
    MAX_WINDOW,
    MIN_TURN,
    MIN_WINDOW,
    PPM,
)
from assay.protocol.economics.run_bounds import MAX_EXPIRY, MAX_HEADER, audit_terms
from assay.protocol.errors import RejectedError
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter, RunGovernance
from assay.protocol.types import Address, Wei
from tests.harness.rounds.charters import BEACON, GOVERNED, RUN, WIDE, changed
from tests.harness.rounds.samples import START


@dataclass(frozen=True)
class RunLimit:
    """`what` is the term that the error names, if it names one."""

    term: str
    code: str
    what: str | None
    inside: RunCharter
    beyond: RunCharter


FREE: Final = changed(RUN, "chain", gas_price=Wei(0), data_price=Wei(0))
"""Nothing is promised about gas, so no bond and no bounty has to pay for it."""

SLOW: Final = changed(
    changed(RUN, "timing", vesting=8 * MAX_WINDOW, stall=24 * MAX_WINDOW, seasoning=4 * MAX_WINDOW), "clocks", replay=60
)
"""What follows from other times is as long as it may be."""


def staked(c: RunCharter, **money: Any) -> RunCharter:
    """The same with S and B as small as they may be, and challenges for no more than B, unless they are named."""
    c = changed(c, "economics", **({"seat_fee": Wei(0), "merge_pay": Wei(0)} | money))
    if "seat_lock" not in money:
        c = changed(c, "economics", seat_lock=stakes.min_lock(audit_terms(c)))
    if "ticket_bond" not in money:
        try:
            least = stakes.min_stake(audit_terms(c), c.economics.seat_lock)
        except RejectedError:  # no stake suffices
            return c
        c = changed(c, "economics", ticket_bond=least)
    for field in {"challenge_bond", "challenge_deposit"} - set(money):
        c = changed(c, "economics", **{field: Wei(min(getattr(c.economics, field), c.economics.ticket_bond))})
    return c


def run_limits() -> Iterator[RunLimit]:
    """All of them, by term."""
    yield from _heads()
    yield from _training()
    yield from _times()
    yield from _money()
    yield from _rates()
    yield from _chain()
    yield from _programs()
    yield from _governance()


def _heads() -> Iterator[RunLimit]:
    for term in ("sponsor", "token", "beacon"):
        yield RunLimit(term, "ValueZero", term, RUN, replace(RUN, **{term: bytes(20)}))
    yield _pair("rounds", "ValueZero", "rounds", lambda v: replace(RUN, rounds=v), 1, 0)
    yield _pair("rounds", "ScheduleTooLong", "rounds", lambda v: replace(RUN, rounds=v), (1 << 24) - 1, 1 << 24)
    soon = changed(changed(RUN, "launch", open_from=START), "timing", audits_from=START)
    yield _pair("expiry", "WindowTooShort", "expiry", lambda v: replace(soon, expiry=v), START + 1, START)
    yield _pair("expiry", "ScheduleTooLong", "expiry", lambda v: replace(RUN, expiry=v), MAX_EXPIRY, MAX_EXPIRY + 1)
    for count, beyond in ((4, 5),):
        yield RunLimit(
            "revenue_tokens",
            "TooManyRevenueTokens",
            None,
            replace(RUN, revenue_tokens=(BEACON,) * count),
            replace(RUN, revenue_tokens=(BEACON,) * beyond),
        )
    yield _of("launch", "tickets", "TooFewTickets", None, 5, 4)
    yield _of("launch", "seats", "ValueZero", "least seats", 1, 0)
    yield _of("launch", "seats", "ScheduleTooLong", "least seats", 8, 9)
    yield _of("launch", "open_from", "ScheduleTooLong", "open from", RUN.expiry, RUN.expiry + 1)


def _training() -> Iterator[RunLimit]:
    def of(field: str, code: str, what: str | None, inside: Any, beyond: Any, base: RunCharter = RUN) -> RunLimit:
        return _of("training", field, code, what, inside, beyond, base=base)

    one = changed(RUN, "launch", seats=1)
    yield of("seats", "ValueZero", "seats", 1, 0, base=one)
    yield of("seats", "ScheduleTooLong", "seats", 1024, 1025, base=changed(WIDE, "training", shards=2048))
    yield of("group_size", "ValueZero", "group size", 1, 0, base=WIDE)
    yield of("group_size", "ScheduleTooLong", "group size", 64, 65, base=WIDE)
    for field in ("positions", "top_positions"):
        what = field.replace("_", " ")
        yield of(field, "ValueZero", what, 1, 0, base=WIDE)
        yield of(field, "ScheduleTooLong", what, 63, 64, base=WIDE)
    yield of("min_units", "ValueZero", "least units", 1, 0)
    yield of("min_units", "ScheduleTooLong", "least units", 60, 61)
    few, free = RUN.training.min_units, changed(RUN, "economics", seat_fee=Wei(0), merge_pay=Wei(0))
    yield of("max_units", "ScheduleTooLong", "least units", few, few - 1, base=free)
    yield of("max_units", "ScheduleTooLong", "steps", 60, 61, base=changed(RUN, "training", steps_per_unit=71_582_788))
    yield of("steps_per_unit", "ValueZero", "steps per unit", 1, 0)
    most = ((1 << 32) - 1) // 60
    yield of("steps_per_unit", "ScheduleTooLong", "steps", most, most + 1)
    yield of("shards", "ShardsFewerThanSeats", None, 8, 7)
    yield of("shards", "ScheduleTooLong", "data", 2_147_483, 2_147_484)
    yield of("shard_length", "ValueZero", "shard length", 1, 0)
    most = ((1 << 31) - 1) // RUN.training.shards
    yield of("shard_length", "ScheduleTooLong", "data", most, most + 1)
    yield of("learning_rate", "NotFinite", "learning rate", 0x7F7FFFFF, 0x7F800000)
    for field in ("parameters", "momentum", "zero_optimizer", "zero_update", "data"):
        yield of(field, "ValueZero", field.replace("_", " "), getattr(RUN.training, field), ZERO)


def _times() -> Iterator[RunLimit]:
    t, f, reorg, day = SLOW.timing, SLOW.chain.inclusion_delay, SLOW.chain.reorg_depth, 86_400
    replay = SLOW.clocks.replay

    def of(field: str, least: int, most: int, base: RunCharter = SLOW, part: str = "timing") -> Iterator[RunLimit]:
        what = field.replace("_", " ")
        if least:
            yield _of(part, field, "WindowTooShort", what, least, least - 1, base=base)
        yield _of(part, field, "ScheduleTooLong", what, most, most + 1, base=base)

    least, most = MIN_WINDOW, MAX_WINDOW // 4
    yield _of("timing", "commit", "WindowTooShort", "commit", least, least - 1, base=_fast())
    yield _of(
        "timing",
        "commit",
        "ScheduleTooLong",
        "commit",
        most,
        most + 1,
        base=changed(_fast(), "timing", epoch=MAX_WINDOW),
    )
    yield from of("hold", f + MIN_TURN, MAX_WINDOW, base=_waiting())
    yield from of("grace", 0, min(f, t.hold))
    yield from of("group_merge", 0, 0)
    wide = changed(WIDE, "timing", stall=24 * MAX_WINDOW)
    yield _of(
        "timing", "group_merge", "WindowTooShort", "group merge", 2 * (f + MIN_TURN), 2 * (f + MIN_TURN) - 1, base=wide
    )
    yield from of("merge", 2 * (f + MIN_TURN), MAX_WINDOW, base=_waiting())
    yield from of("beacon_delay", 0, MAX_DELAY, base=_waiting())
    yield _of("timing", "beacon_delay", "WindowTooShort", "beacon delay", 24, 23, base=wide)
    yield from of("challenge", 2 * f + reorg + replay + MIN_WINDOW, MAX_WINDOW, base=_waiting())
    yield from of("rescue", f + replay + MIN_WINDOW, MAX_WINDOW)
    least = (SLOW.economics.capacity + 1) * t.commit + 2 * f
    yield _of("timing", "epoch", "WindowTooShort", "epoch", least, least - 1, base=SLOW)
    rich = changed(SLOW, "economics", ticket_bond=Wei(10**24))
    # Four epochs with their seeds' delays, and F, in the 63 rounds after a commitment's own.
    longest = (63 * t.commit - f) // 4 - t.seed_delay
    yield _of("timing", "epoch", "ScheduleTooLong", "unsettled rounds", longest, longest + 1, base=rich)
    yield _of(
        "economics",
        "capacity",
        "WindowTooShort",
        "epoch",
        rich.economics.capacity,
        1 + rich.economics.capacity,
        base=rich,
    )
    yield _of("timing", "commit", "ValueZero", "commit", t.commit, 0, base=SLOW)
    yield from of("seed_delay", reorg + 1, MAX_WINDOW, base=changed(_waiting(), "economics", ticket_bond=Wei(10**24)))
    yield from of("seasoning", 2 * (t.epoch + t.seed_delay), 4 * MAX_WINDOW)
    yield from of("audits_from", 0, SLOW.launch.open_from)
    yield from of("longest_dispute", MIN_WINDOW, MAX_WINDOW)
    verdict = times.last_verdict(RUN.timing, f)
    yield from of("vesting", verdict, 8 * MAX_WINDOW, base=RUN)
    slow = verdict + 4 * (t.seed_delay + 3 * t.epoch)
    slow += t.commit + f + t.beacon_delay + t.hold + t.merge + t.challenge
    yield from of("stall", slow, 24 * MAX_WINDOW, base=RUN)
    short = changed(SLOW, "timing", challenge=4 * 3600, longest_dispute=day)
    yield _of("timing", "stall", "WindowTooShort", "stall", 14 * day, 14 * day - 1, base=short)
    yield from of("exit", 0, MAX_WINDOW)


def _fast() -> RunCharter:
    """Rounds of any length, with long epochs, and stakes for any number of unsettled rounds."""
    c = changed(SLOW, "economics", capacity=1, ticket_bond=Wei(10**24))
    return changed(c, "timing", epoch=2 * MIN_WINDOW + 1200, seed_delay=781, challenge=2 * 600 + 780 + 60 + MIN_WINDOW)


def _waiting() -> RunCharter:
    """Rounds so long that nothing else is."""
    return staked(changed(SLOW, "timing", commit=30 * 86_400, epoch=150 * 86_400 + 1200, seasoning=4 * MAX_WINDOW))


def _money() -> Iterator[RunLimit]:
    def of(field: str, code: str, what: str | None, inside: int, beyond: int, **others: Any) -> RunLimit:
        return _pair(
            f"economics.{field}", code, what, lambda v: staked(FREE, **{field: Wei(v)}, **others), inside, beyond
        )

    yield RunLimit(
        "economics.unit_price",
        "ReferencePriceZero",
        None,
        staked(FREE, unit_price=Wei(1), seat_fee=Wei(0)),
        changed(FREE, "economics", unit_price=Wei(0)),
    )
    lots = {"seat_lock": Wei(MAX_AMOUNT), "ticket_bond": Wei(MAX_AMOUNT), "shares_per_unit": Wei(0)}
    most = MAX_AMOUNT // 60
    huge = changed(FREE, "economics", unit_price=Wei(most + 1), **lots)
    yield RunLimit("economics.unit_price", "AmountTooLarge", "price", FREE, huge)
    yield of("shares_per_unit", "AmountTooLarge", "shares per commitment", most, most + 1)
    yield of("shares_per_duty", "AmountTooLarge", "shares per duty", MAX_AMOUNT, MAX_AMOUNT + 1)
    everything = {"ticket_bond": Wei(MAX_AMOUNT), "drawn_bounty_ppm": PPM}
    yield of("seat_lock", "AmountTooLarge", "claim lock", MAX_AMOUNT, MAX_AMOUNT + 1, **everything)
    least = stakes.min_lock(audit_terms(FREE))
    yield of("seat_lock", "ClaimLockTooSmall", None, least, least - 1, ticket_bond=FREE.economics.ticket_bond)
    yield of("ticket_bond", "AmountTooLarge", "ticket stake", MAX_AMOUNT, MAX_AMOUNT + 1)
    least = staked(FREE).economics.ticket_bond
    yield of("ticket_bond", "BondTooSmall", None, least, least - 1)
    # Where little is audited and few duties are open, B is what deters insurance.
    rare = staked(changed(FREE, "economics", audit_ppm=1000, capacity=1))
    least = rare.economics.ticket_bond
    assert least - 1 < stake_if_insured(audit_terms(rare)) * (1 + Fraction(1, 10**9)) < least + least // 10**8
    yield _pair(
        "economics.ticket_bond against insurance",
        "BondTooSmall",
        None,
        lambda v: changed(rare, "economics", ticket_bond=Wei(v)),
        least,
        least - 1,
    )
    yield of("wage", "ValueZero", "wage", 1, 0)
    yield of("wage", "AmountTooLarge", "wage", FREE.economics.wage, MAX_AMOUNT + 1, ticket_bond=Wei(MAX_AMOUNT))
    price = FREE.price
    yield of("merge_pay", "AmountTooLarge", "merge pay", price, price + 1)
    yield of("seat_fee", "SeatFeeTooHigh", None, price, price + 1)
    bond = FREE.economics.ticket_bond
    for what in ("challenge bond", "challenge deposit"):
        field = what.replace(" ", "_")
        yield of(field, "ValueZero", what, 1, 0)
        yield of(field, "AmountTooLarge", what, bond, bond + 1, ticket_bond=bond)
    least = times.min_challenge_bond(RUN.chain, 64)
    yield _of("economics", "challenge_bond", "ChallengeBondTooSmall", None, least, least - 1)


def _rates() -> Iterator[RunLimit]:
    def of(field: str, code: str, what: str | None, inside: int, beyond: int) -> RunLimit:
        def having(value: int) -> RunCharter:
            try:
                return staked(FREE, **{field: value})
            except ZeroDivisionError:  # nobody outside the cartel looks: no lock deters
                return changed(FREE, "economics", **{field: value})

        return _pair(f"economics.{field}", code, what, having, inside, beyond)

    yield of("audit_ppm", "ValueZero", "audit rate", 1, 0)
    yield of("audit_ppm", "RateTooHigh", "audit", PPM, PPM + 1)
    yield of("reaudit_ppm", "ValueZero", "re-audit rate", _least_reaudit(), 0)
    yield of("reaudit_ppm", "RateTooHigh", "re-audit", PPM - 1, PPM)
    yield of("cartel_ppm", "RateTooHigh", "cartel", 0, PPM)
    yield of("drawn_bounty_ppm", "RateTooHigh", "drawn bounty", PPM, PPM + 1)
    yield of("third_bounty_ppm", "RateTooHigh", "third-party bounty", PPM // 2, PPM // 2 + 1)
    yield of("reaudit_ppm", "NoStakeSuffices", None, _least_reaudit(), _least_reaudit() - 1)
    yield of("capacity", "ValueZero", "capacity", 1, 0)
    yield of("shifts", "ValueZero", "shifts", 1, 0)
    least = -(-times.min_kept(RUN.chain, 64) * 2 * PPM // RUN.economics.seat_lock)
    yield _of("economics", "third_bounty_ppm", "BountyTooSmall", None, least, least - 1)


def _least_reaudit() -> int:
    """The least q, in ppm, at which a stake suffices."""
    low, high = 1, PPM - 1
    while low < high:
        middle = (low + high) // 2
        c = changed(FREE, "economics", reaudit_ppm=middle)
        try:
            stakes.min_stake(audit_terms(c), c.economics.seat_lock)
            high = middle
        except RejectedError:
            low = middle + 1
    return low


def _chain() -> Iterator[RunLimit]:
    for field, least in (("budget", RUN.chain.least_budget), ("replay", MIN_TURN), ("move", MIN_TURN)):
        yield _of("clocks", field, "WindowTooShort", field, least, least - 1, base=_waiting())
        yield _of("clocks", field, "ScheduleTooLong", field, MAX_DELAY, MAX_DELAY + 1, base=_patient())
    quick = changed(RUN, "chain", least_budget=0)
    yield _of("clocks", "budget", "WindowTooShort", "budget", MIN_WINDOW, MIN_WINDOW - 1, base=quick)
    for arity, code, other in ((2, "ValueZero", 1), (64, "ScheduleTooLong", 65)):
        yield _of("clocks", "arity", code, "arity", arity, other, base=FREE)
    for field in ("reorg_depth", "inclusion_delay", "least_budget"):
        yield _of("chain", field, "ScheduleTooLong", field.replace("_", " "), MAX_DELAY, MAX_DELAY + 1, base=_patient())
    yield _of("chain", "fee_cap", "ValueZero", "fee cap", 1, 0)
    yield _of("chain", "fee_cap", "AmountTooLarge", "fee cap", MAX_FEE_CAP, MAX_FEE_CAP + 1)
    for field in ("gas_price", "data_price"):
        none = changed(RUN, "chain", gas_price=Wei(0), data_price=Wei(0))
        unit = changed(none, "chain", **{field: Wei(1)})
        most = RUN.economics.challenge_bond // times.min_challenge_bond(unit.chain, 64)
        yield _of("chain", field, "ChallengeBondTooSmall", None, most, most + 1, base=none)
        rich = changed(none, "economics", challenge_bond=none.economics.ticket_bond)
        kept = RUN.economics.seat_lock * RUN.economics.third_bounty_ppm // (2 * PPM)
        most = kept // times.min_kept(unit.chain, 64)
        yield _of("chain", field, "BountyTooSmall", None, most, most + 1, base=rich)


def _patient() -> RunCharter:
    """Every stage long enough for the slowest chain."""
    c = changed(
        _waiting(), "timing", hold=100 * 86_400, merge=100 * 86_400, challenge=130 * 86_400, rescue=100 * 86_400,
        seed_delay=MAX_DELAY + 1, epoch=MAX_WINDOW, commit=20 * 86_400, seasoning=4 * MAX_WINDOW,
    )  # fmt: skip
    c = changed(c, "economics", capacity=1, ticket_bond=Wei(10**24))
    return changed(c, "clocks", budget=MAX_DELAY)


def _programs() -> Iterator[RunLimit]:
    for field in ("step", "update", "merge", "witness", "partial_sum"):
        base = WIDE

        def having(length: int, field: str = field) -> RunCharter:
            header, tree = bytes(length), WIDE.step.tree
            return replace(WIDE, **{field: ProgramRef(program_digest(header, tree), tree, header)})

        yield _pair(f"{field}.header", "ScheduleTooLong", "header", having, MAX_HEADER, MAX_HEADER + 1)
        ref = getattr(base, field)
        for part, other in (("root", ZERO), ("tree", ZERO), ("header", ref.header + b"\0")):
            wrong = replace(base, **{field: replace(ref, **{part: other})})
            yield RunLimit(f"{field}.{part}", "ProgramMismatch", None, base, wrong)
    yield RunLimit("partial_sum", "ProgramMismatch", None, RUN, replace(RUN, partial_sum=WIDE.partial_sum))


def _governance() -> Iterator[RunLimit]:
    g, c, day = GOVERNED.governance, GOVERNED.chain, 86_400
    seen = c.inclusion_delay + c.reorg_depth

    def of(
        field: str, least: int, most: int, base: RunCharter = GOVERNED, what: str | None = None
    ) -> Iterator[RunLimit]:
        what = what or field.replace("_", " ")
        yield _of("governance", field, "WindowTooShort", what, least, least - 1, base=base)
        yield _of("governance", field, "ScheduleTooLong", what, most, most + 1, base=base)

    yield from of("voting_delay", seen + MIN_WINDOW, MAX_WINDOW)
    yield from of("voting_period", seen + day, MAX_WINDOW)
    yield from of("timelock", GOVERNED.timing.commit + c.inclusion_delay + seen + MIN_WINDOW, MAX_WINDOW)
    long = changed(GOVERNED, "timing", stall=24 * MAX_WINDOW)
    yield from of("longest_pause", 1, MAX_WINDOW, base=long)
    yield from of("guardian_pause", 1, MAX_WINDOW, base=long)
    yield from of("guardian_pauses", 1, 16)
    room = GOVERNED.timing.stall - times.slowest(GOVERNED.timing, c.inclusion_delay)
    for field, other in (("longest_pause", "guardian_pause"), ("guardian_pause", "longest_pause")):
        most = room - getattr(g, other)
        yield _of("governance", field, "ScheduleTooLong", "pauses", most, most + 1, base=GOVERNED)
    yield from of("least_rounds", 1, GOVERNED.rounds)
    yield _of("governance", "quorum_ppm", "QuorumTooLow", None, 100_000, 99_999, base=GOVERNED)
    yield _of("governance", "quorum_ppm", "RateTooHigh", "quorum", PPM, PPM + 1, base=GOVERNED)
    yield _of("governance", "least_price_ppm", "ValueZero", "least price", 1, 0, base=GOVERNED)
    yield _of("governance", "least_price_ppm", "RateTooHigh", "least price", PPM, PPM + 1, base=GOVERNED)
    unpaid = changed(GOVERNED, "economics", shares_per_unit=Wei(0))
    yield RunLimit("economics.shares_per_unit", "ValueZero", "shares per unit", GOVERNED, unpaid)
    # Nobody guards: no pauses of a guardian. Nobody governs: nothing of governance is said.
    none = changed(GOVERNED, "governance", guardian=Address(bytes(20)), guardian_pause=0, guardian_pauses=0)
    for field in ("guardian_pause", "guardian_pauses"):
        yield _of("governance", field, "ScheduleTooLong", field.replace("_", " "), 0, 1, base=none)
    for said in fields(RunGovernance):
        value: Any = g.guardian if said.name == "guardian" else 1
        if said.name != "voting_period":
            wrong = changed(RUN, "governance", **{said.name: value})
            yield RunLimit(f"governance.{said.name}", "ValueZero", "voting period", RUN, wrong)


def _of(
    part: str, field: str, code: str, what: str | None, inside: Any, beyond: Any, base: RunCharter = RUN
) -> RunLimit:
    return _pair(f"{part}.{field}", code, what, lambda v: changed(base, part, **{field: v}), inside, beyond)


def _pair(
    term: str, code: str, what: str | None, having: Callable[[Any], RunCharter], inside: Any, beyond: Any
) -> RunLimit:
    return RunLimit(term, code, what, having(inside), having(beyond))
