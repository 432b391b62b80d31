"""Every bound on a term of the charter, as two charters: the last that is admitted, the first that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from assay.protocol.digests import ZERO, program_digest
from assay.protocol.economics import formulas as rules
from assay.protocol.economics.chain_profile import (
    MAX_AMOUNT,
    MAX_DELAY,
    MAX_FEE_CAP,
    MAX_WINDOW,
    MIN_TURN,
    MIN_WINDOW,
    PPM,
    min_challenge_bond,
    min_kept,
)
from assay.protocol.run.charter import MAX_HEADER, Charter, ProgramRef
from assay.protocol.types import Wei
from tests.harness.contracts.world import ETHER, NOBODY, charter

NOW: Final = 1_700_000_000
"""Chain time at which charters are constructed here."""

F, D = 3600, 1800
DAY = 86_400


@dataclass(frozen=True)
class Limit:
    """`term` as the table writes it; `what` is the field that the error names, if it names one."""

    term: str
    code: str
    what: str | None
    inside: Charter
    beyond: Charter


def fitted(c: Charter) -> Charter:
    """The same with the shortest exit delay that its windows admit."""
    return replace(c, windows=replace(c.windows, exit=rules.min_exit(c.windows, c.chain.inclusion_delay) + 1))


def locked(c: Charter, **money: Any) -> Charter:
    """The same with S and B as small as they may be, and challenges for no more than B, unless they are named."""
    e = replace(c.economics, seat_fee=Wei(0), **money)
    if "claim_lock" not in money:
        e = replace(e, claim_lock=rules.min_claim_lock(e, c.training.intervals))
    if "verifier_bond" not in money:
        e = replace(e, verifier_bond=rules.min_bond(e))
    for field in {"challenge_bond", "challenge_deposit"} - set(money):
        e = replace(e, **{field: min(getattr(e, field), e.verifier_bond)})
    return replace(c, economics=e)


BASE: Final = fitted(charter(expiry=NOW + 1000))
FREE: Final = fitted(replace(BASE, chain=replace(BASE.chain, gas_price=Wei(0))))
"""Nothing is promised about gas, so no bond and no bounty has to pay for it."""

SLOW: Final = fitted(
    replace(
        BASE,
        chain=replace(BASE.chain, inclusion_delay=F, reorg_depth=D),
        clocks=replace(BASE.clocks, budget=F + MIN_WINDOW),
        windows=replace(
            BASE.windows,
            seed_delay=D + 1,
            challenge=20_000,
            **dict.fromkeys(("commit", "receipt", "attest", "draw", "whistle", "reveal", "rescue"), 10_000),
        ),
    )
)
"""A chain with an inclusion delay and reorganizations."""


def limits() -> Iterator[Limit]:
    """All of them, by term."""
    yield from _heads()
    yield from _training()
    yield from _windows()
    yield from _money()
    yield from _rates()
    yield from _clocks()
    yield from _programs()


def _heads() -> Iterator[Limit]:
    for term in ("sponsor", "token", "seed"):
        yield Limit(term, "ValueZero", term, BASE, replace(BASE, **{term: bytes(20)}))
    yield _pair("rounds", "ValueZero", "rounds", lambda v: replace(BASE, rounds=v), 1, 0)
    yield _pair("rounds", "ScheduleTooLong", "rounds", lambda v: replace(BASE, rounds=v), (1 << 24) - 1, 1 << 24)
    yield _pair("expiry", "WindowTooShort", "expiry", lambda v: replace(BASE, expiry=v), NOW + 1, NOW)
    most = rules.MAX_EXPIRY
    yield _pair("expiry", "ScheduleTooLong", "expiry", lambda v: replace(BASE, expiry=v), most, most + 1)
    tokens = (NOBODY,) * 5
    yield Limit(
        "revenueTokens",
        "TooManyRevenueTokens",
        None,
        replace(BASE, revenue_tokens=tokens[:4]),
        replace(BASE, revenue_tokens=tokens),
    )


def _training() -> Iterator[Limit]:
    def having(**changes: Any) -> Charter:
        return locked(replace(BASE, training=replace(BASE.training, **changes)))

    def pair(field: str, code: str, what: str | None, inside: Any, beyond: Any, **others: Any) -> Limit:
        return _pair(_term("training", field), code, what, lambda v: having(**{field: v}, **others), inside, beyond)

    yield Limit(
        "training.intervals", "ValueZero", "intervals", having(intervals=1), _raw(BASE, "training", intervals=0)
    )
    yield pair("intervals", "ScheduleTooLong", "intervals", 40, 41)
    yield pair("steps_per_interval", "ValueZero", "steps per interval", 1, 0)
    third = ((1 << 32) - 1) // 3
    yield pair("steps_per_interval", "ScheduleTooLong", "steps", third, third + 1)
    yield pair("shards", "ShardsFewerThanSeats", None, 8, 7)
    yield pair("shards", "ScheduleTooLong", "data", 2_147_483, 2_147_484)
    yield pair("shard_length", "ValueZero", "shard length", 1, 0)
    yield pair("shard_length", "ScheduleTooLong", "data", (1 << 31) // 9, (1 << 31) // 9 + 1)
    yield pair("learning_rate", "NotFinite", "learning rate", 0x7F7FFFFF, 0x7F800000)
    for field in ("parameters", "momentum", "zero_optimizer", "zero_update", "data"):
        root = getattr(BASE.training, field)
        yield pair(field, "ValueZero", field.replace("_", " "), root, ZERO)


def _windows() -> Iterator[Limit]:
    replay = SLOW.clocks.replay
    once = F + MIN_WINDOW
    least = {
        **dict.fromkeys(("commit", "receipt", "draw", "reveal"), once),
        **dict.fromkeys(("attest", "whistle", "rescue"), once + replay),
        "seed_delay": D + 1,
        "challenge": once + F + D + replay,
        "longest_dispute": MIN_WINDOW,
    }
    for field, shortest in least.items():
        what, term = field.replace("_", " "), _term("windows", field)

        def having(length: int, field: str = field) -> Charter:
            return fitted(_raw(SLOW, "windows", **{field: length}))

        yield _pair(term, "WindowTooShort", what, having, shortest, shortest - 1)
        yield _pair(term, "ScheduleTooLong", what, having, MAX_WINDOW, MAX_WINDOW + 1)
    needed = rules.min_exit(SLOW.windows, F)

    def leaving(delay: int) -> Charter:
        return _raw(SLOW, "windows", exit=delay)

    yield _pair("windows.exit", "ExitDelayTooShort", None, leaving, needed + 1, needed)
    yield _pair("windows.exit", "ExitDelayTooLong", None, leaving, needed + MAX_WINDOW, needed + MAX_WINDOW + 1)


def _money() -> Iterator[Limit]:
    most, half = MAX_AMOUNT, MAX_AMOUNT // 2

    def pair(field: str, code: str, what: str | None, inside: int, beyond: int, **others: Any) -> Limit:
        def having(value: int) -> Charter:
            return locked(FREE, **{field: Wei(value)}, **others)

        return _pair(_term("economics", field), code, what, having, inside, beyond)

    zero = _raw(FREE, "economics", unit_price=Wei(0)), _raw(FREE, "economics", units=0)
    one = locked(FREE, unit_price=Wei(1)), locked(FREE, units=1)
    for field, inside, beyond in zip(("unitPrice", "units"), one, zero, strict=True):
        yield Limit(f"economics.{field}", "ReferencePriceZero", None, inside, beyond)
    yield pair("unit_price", "AmountTooLarge", "price", half, half + 1, units=1, shares_per_unit=Wei(0))
    expensive = {"unit_price": Wei(1 << 63), "shares_per_unit": Wei(0)}
    yield pair("units", "AmountTooLarge", "price", (1 << 48) - 1, 1 << 48, **expensive)
    yield pair("shares_per_unit", "AmountTooLarge", "shares per commitment", most // 100, most // 100 + 1)
    yield pair("shares_per_duty", "AmountTooLarge", "shares per duty", most, most + 1)
    yield pair("claim_lock", "AmountTooLarge", "claim lock", most, most + 1, verifier_bond=Wei(most))
    least = rules.min_claim_lock(FREE.economics, 3)
    yield pair("claim_lock", "ClaimLockTooSmall", None, least, least - 1, verifier_bond=FREE.economics.verifier_bond)
    yield pair("verifier_bond", "AmountTooLarge", "verifier bond", most, most + 1)
    least = locked(FREE).economics.verifier_bond
    yield pair("verifier_bond", "BondTooSmall", None, least, least - 1)
    yield pair("wage", "AmountTooLarge", "wage", most, most + 1)
    yield pair("wage", "ValueZero", "wage", 1, 0)
    fee = FREE.economics.price
    paid = replace(FREE.economics, seat_fee=fee), replace(FREE.economics, seat_fee=Wei(fee + 1))
    yield Limit("economics.seatFee", "SeatFeeTooHigh", None, *(replace(FREE, economics=e) for e in paid))
    bond = FREE.economics.verifier_bond
    for what in ("challenge bond", "challenge deposit"):
        yield pair(what.replace(" ", "_"), "AmountTooLarge", what, bond, bond + 1, verifier_bond=bond)
    yield pair("challenge_bond", "ValueZero", "challenge bond", 1, 0)
    least = min_challenge_bond(BASE.chain, 64)
    bonds = (_raw(BASE, "economics", challenge_bond=Wei(v)) for v in (least, least - 1))
    yield Limit("economics.challengeBond", "ChallengeBondTooSmall", None, *bonds)
    yield pair("challenge_deposit", "ValueZero", "challenge deposit", 1, 0)


def _rates() -> Iterator[Limit]:
    def pair(field: str, code: str, what: str | None, inside: int, beyond: int) -> Limit:
        def having(value: int) -> Charter:
            if value == 0 and field == "audit_ppm":
                return _raw(FREE, "economics", audit_ppm=0)
            try:
                return locked(FREE, **{field: value})
            except ZeroDivisionError:  # nobody outside the cartel looks: no lock deters
                return _raw(FREE, "economics", **{field: value})

        return _pair(_term("economics", field), code, what, having, inside, beyond)

    yield pair("audit_ppm", "ValueZero", "audit rate", 2, 1)  # p (1 - v) of a third: 1 ppm, none
    yield pair("audit_ppm", "RateTooHigh", "audit", rules.MAX_RATE, rules.MAX_RATE + 1)
    yield pair("whistle_ppm", "ValueZero", "whistle rate", 1, 0)
    yield pair("whistle_ppm", "RateTooHigh", "whistle", rules.MAX_RATE, rules.MAX_RATE + 1)
    yield pair("trap_ppm", "RateTooHigh", "trap", 0, 1)
    yield pair("cartel_ppm", "RateTooHigh", "cartel", PPM - 1, PPM)
    yield pair("bounty_ppm", "RateTooHigh", "bounty", PPM // 2, PPM // 2 + 1)
    least = -(-min_kept(BASE.chain, 64) * 2 * PPM // (60 * ETHER))
    shares = (_raw(BASE, "economics", bounty_ppm=v) for v in (least, least - 1))
    yield Limit("economics.bountyPpm", "BountyTooSmall", None, *shares)


def _clocks() -> Iterator[Limit]:
    def pair(term: str, code: str, what: str | None, inside: int, beyond: int, **others: Any) -> Limit:
        part, field = term.split(".")

        def having(value: int) -> Charter:
            long = dict.fromkeys(("attest", "whistle", "rescue", "challenge", "seed_delay", "draw"), MAX_WINDOW)
            roomy = _raw(BASE, "windows", commit=MAX_WINDOW, receipt=MAX_WINDOW, reveal=MAX_WINDOW, **long)
            roomy = _raw(roomy, "clocks", budget=MAX_DELAY + MIN_WINDOW)
            return fitted(_raw(roomy, part, **{field: value}, **others))

        return _pair(_term(part, field), code, what, having, inside, beyond)

    for field, least in (("budget", MIN_WINDOW), ("replay", MIN_TURN), ("move", MIN_TURN)):
        yield pair(f"clocks.{field}", "WindowTooShort", field, least, least - 1)
        most = MAX_DELAY + MIN_WINDOW * (field == "budget")
        yield pair(f"clocks.{field}", "ScheduleTooLong", field, most, most + 1)
    for arity, code, other in ((2, "ValueZero", 1), (64, "ScheduleTooLong", 65)):
        inside, beyond = (_raw(FREE, "clocks", arity=v) for v in (arity, other))
        yield Limit("clocks.arity", code, "arity", inside, beyond)
    yield pair("chain.reorg_depth", "ScheduleTooLong", "reorg depth", MAX_DELAY, MAX_DELAY + 1)
    yield pair("chain.inclusion_delay", "ScheduleTooLong", "inclusion delay", MAX_DELAY, MAX_DELAY + 1)
    yield pair("chain.fee_cap", "ValueZero", "fee cap", 1, 0)
    yield pair("chain.fee_cap", "AmountTooLarge", "fee cap", MAX_FEE_CAP, MAX_FEE_CAP + 1)
    most_expensive = BASE.economics.challenge_bond // min_challenge_bond(replace(BASE.chain, gas_price=Wei(1)), 64)
    yield pair("chain.gas_price", "ChallengeBondTooSmall", None, most_expensive, most_expensive + 1)
    rich = _raw(BASE, "economics", challenge_bond=Wei(MAX_AMOUNT), verifier_bond=Wei(MAX_AMOUNT))
    kept = 15 * ETHER // min_kept(replace(BASE.chain, gas_price=Wei(1)), 64)
    prices = (_raw(rich, "chain", gas_price=Wei(v)) for v in (kept, kept + 1))
    yield Limit("chain.gasPrice", "BountyTooSmall", None, *prices)


def _programs() -> Iterator[Limit]:
    for field in ("step", "update", "outer"):

        def having(length: int, field: str = field) -> Charter:
            header, tree = bytes(length), BASE.step.tree
            return replace(BASE, **{field: ProgramRef(program_digest(header, tree), tree, header)})

        yield _pair(f"{field}.header", "ScheduleTooLong", "header", having, MAX_HEADER, MAX_HEADER + 1)
        ref = getattr(BASE, field)
        for part, other in (("root", ZERO), ("tree", ZERO), ("header", ref.header + b"\0")):
            wrong = replace(BASE, **{field: replace(ref, **{part: other})})
            yield Limit(f"{field}.{part}", "ProgramMismatch", None, BASE, wrong)


def _pair(term: str, code: str, what: str | None, having: Callable[[Any], Charter], inside: Any, beyond: Any) -> Limit:
    return Limit(_camel(term), code, what, having(inside), having(beyond))


def _raw(c: Charter, part: str, **changes: Any) -> Charter:
    return replace(c, **{part: replace(getattr(c, part), **changes)})


def _term(part: str, field: str) -> str:
    return _camel(f"{part}.{field}")


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
