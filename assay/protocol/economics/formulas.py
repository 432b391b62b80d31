"""What a run must promise so that cheating does not pay: formulas, and the bounds that its constructor checks.

Symbols, as docs/economics.md explains them: W full pay of one commitment, n intervals per commitment, p expected
replays per duty, v share of verifier stake that a cartel may hold, p_h = p (1 - v), beta share of a slash that a
colluding party can get back, q2 whistleblower rate, phi trap rate, w wage, S lock of a claim, B bond of a verifier.
The bounds are exact integers, rounded up, and equal to contracts/libraries/Economics.sol. Tables are floats.
"""

from __future__ import annotations

from typing import Final

from assay.protocol.economics.chain_profile import (
    MAX_AMOUNT,
    MAX_DELAY,
    MAX_WINDOW,
    MIN_WINDOW,
    PPM,
    check_chain,
    refusal,
)
from assay.protocol.run.charter import (
    MAX_HEADER,
    MAX_INTERVALS,
    MAX_REVENUE_TOKENS,
    Charter,
    Economics,
    Training,
    Windows,
)
from assay.protocol.types import SEATS, Wei

VESTING_ROUNDS: Final = 20
REPLAY_COST: Final = 1.3
"""Cost of a replay over the pay of its interval, before bytes."""

MAX_RATE: Final = 100 * PPM
"""Replays of a duty, in ppm; wages for two hundred are set aside."""

MAX_ARITY: Final = 64
MAX_EXPIRY: Final = (1 << 40) - 1
"""Chain time in seconds, so that no time of a run overflows 64 bits."""

INTERVALS_OF_TABLE: Final = (1, 4, 8, 20, 64)
RATES_OF_TABLE: Final = (0.02, 0.05, 0.10, 0.20)


# --- formulas


def detection(m: int, p_h: float) -> float:
    """P_m: the chance that at least one of m false intervals is replayed by an honest party, for p_h well below 1."""
    return 1.0 - (1.0 - p_h) ** m


def claim_lock_multiple(n: int, p: float, *, beta: float = 0.5, v: float = 1 / 3, p_0: float = 0.0) -> float:
    """S over W: the largest of ((m / n) / P_m - 1) / (1 - beta) over m = 1..n false intervals; may be negative.

    Gain is bounded by pay, not by cost: it is kept whatever the token's price does.
    """
    p_h = p * (1 - v) + p_0
    return max(((m / n) / detection(m, p_h) - 1) / (1 - beta) for m in range(1, n + 1))


def claim_lock_table() -> dict[int, tuple[float, ...]]:
    """S in units of W by n (rows) and p (columns, RATES_OF_TABLE), never below zero."""
    return {n: tuple(max(claim_lock_multiple(n, p), 0.0) for p in RATES_OF_TABLE) for n in INTERVALS_OF_TABLE}


def overhead(p: float, *, q2: float = 0.1, phi: float = 0.01) -> float:
    """Cost of a run over the cost of its training, before bytes and gas: 1 + 1.3 p (1 + q2) + phi."""
    return 1 + REPLAY_COST * p * (1 + q2) + phi


def update_price(e: Economics) -> Wei:
    """The expected cost of one undetected arbitrary update: p_h (S + W), p_h at most 1; rounded down.

    Replay deters laziness; what it costs to poison one interval is this and no more.
    """
    return Wei(min(honest_ppm(e), PPM) * (e.claim_lock + e.price) // PPM)


def duty_wage(price: Wei, n: int, bytes_cost: int = 0) -> Wei:
    """w = 1.3 W / n + bytes, rounded up."""
    return Wei(-(-13 * price // (10 * n)) + bytes_cost)


# --- bounds of the constructor


def honest_ppm(e: Economics) -> int:
    """p_h in ppm, rounded down."""
    return e.audit_ppm * (PPM - e.cartel_ppm) // PPM


def min_claim_lock(e: Economics, intervals: int) -> Wei:
    """S >= W / (n p_h (1 - beta)): the bound that holds at any rate."""
    return Wei(_ceil(e.price * PPM * PPM, intervals * honest_ppm(e) * (PPM - e.bounty_ppm)))


def min_bond(e: Economics) -> Wei:
    """B >= max(w / tau, (S (1 - beta) + W) / (q2 + p_h), 2 W), tau = phi + q2 + p."""
    tau = e.trap_ppm + e.whistle_ppm + e.audit_ppm
    kept = e.claim_lock * (PPM - e.bounty_ppm) + e.price * PPM
    return Wei(max(_ceil(e.wage * PPM, tau), _ceil(kept, e.whistle_ppm + honest_ppm(e)), 2 * e.price))


def wage_cap(ppm: int) -> int:
    """Wages per duty that a round sets aside for a role drawn at this rate."""
    return 2 * _ceil(ppm, PPM) + 2


def last_verdict(w: Windows, inclusion_delay: int) -> int:
    """Seconds from T7 until nothing behind a round can fall any more, whatever anybody plays.

    An outer root is posted within F; its poster's window and dispute follow; then a rescue, the rescuer's window and
    dispute. The end of a dispute may wait F to be mined. Source: docs/adr/0014-rescue.md.
    """
    trial = w.challenge + w.longest_dispute + inclusion_delay
    return inclusion_delay + trial + w.rescue + trial


def min_exit(w: Windows, inclusion_delay: int) -> int:
    """The exit delay must exceed this many seconds."""
    return w.round_length + last_verdict(w, inclusion_delay) + MIN_WINDOW


def vesting_delay(w: Windows, inclusion_delay: int) -> int:
    """Seconds from T7 until shares vest: max(20 scheduled rounds, last verdict)."""
    return max(VESTING_ROUNDS * w.round_length, last_verdict(w, inclusion_delay))


def round_reserve(e: Economics, training: Training, seats: int, verifiers: int, whistleblowers: int) -> Wei:
    """What the escrow sets aside when a round opens with so many seats and registered members."""
    wages = min(verifiers, wage_cap(e.audit_ppm)) + min(whistleblowers, wage_cap(e.whistle_ppm))
    return Wei(seats * ((e.price if e.pays else 0) + training.duties * wages * e.wage))


# --- checks, with the names and the order of the contracts


def check_charter(charter: Charter, now: int) -> None:
    """Refuse what the constructor of the charter refuses at chain time `now`, by the same name.

    Raises RejectedError: ValueZero, NotFinite, ShardsFewerThanSeats, ScheduleTooLong, ReferencePriceZero,
    AmountTooLarge, RateTooHigh, SeatFeeTooHigh, ClaimLockTooSmall, BondTooSmall, WindowTooShort, ExitDelayTooShort,
    ExitDelayTooLong, ProgramMismatch, ChallengeBondTooSmall, BountyTooSmall, TooManyRevenueTokens.
    """
    _check_training(charter.training, charter.rounds)
    check_economics(charter.economics, charter.training, charter.windows, charter.chain.inclusion_delay)
    for program in charter.programs.values():
        _check_most("header", len(program.header), MAX_HEADER)
        if not program.is_consistent:
            raise refusal("ProgramMismatch", "Header and tree do not hash to the program's root.", root=program.root)
    for what, address in {"sponsor": charter.sponsor, "token": charter.token, "seed": charter.seed}.items():
        _check_nonzero(what, int.from_bytes(address, "big"))
    if charter.clocks.arity < 2:
        raise refusal("ValueZero", "The arity must be at least 2.", what="arity")
    _check_most("arity", charter.clocks.arity, MAX_ARITY)
    check_chain(charter.chain, charter.windows, charter.clocks, charter.economics)
    if charter.expiry <= now:
        raise refusal("WindowTooShort", "The run expires before it begins.", what="expiry")
    _check_most("expiry", charter.expiry, MAX_EXPIRY)
    if len(charter.revenue_tokens) > MAX_REVENUE_TOKENS:
        raise refusal("TooManyRevenueTokens", f"At most {MAX_REVENUE_TOKENS} revenue tokens.")


def check_economics(e: Economics, t: Training, w: Windows, inclusion_delay: int = 0) -> None:
    """Refuse prices, locks, rates and windows under which somebody gains by cheating; see `check_charter`."""
    if e.unit_price == 0 or e.units == 0:
        raise refusal("ReferencePriceZero", "Without a reference price every lock, fee and wage is zero.")
    amounts = {
        "price": 2 * e.price,  # B is at least 2 W, and no amount is above the maximum
        "shares per commitment": e.shares_per_unit * e.units,
        "shares per duty": e.shares_per_duty,
        "claim lock": e.claim_lock,
        "verifier bond": e.verifier_bond,
        "wage": e.wage,
    }
    for what, amount in amounts.items():
        if amount > MAX_AMOUNT:
            raise refusal("AmountTooLarge", f"The {what} is too large: sums of it could overflow.", what=what)
    # A party that can stake as a verifier can afford to challenge: an expensive challenge would shield cheats.
    for what, amount in {"challenge bond": e.challenge_bond, "challenge deposit": e.challenge_deposit}.items():
        if amount > e.verifier_bond:
            raise refusal("AmountTooLarge", f"The {what} is above the bond of a verifier.", what=what)
    _check_rate("audit", e.audit_ppm, MAX_RATE)
    _check_rate("whistle", e.whistle_ppm, MAX_RATE)
    _check_rate("cartel", e.cartel_ppm, PPM - 1)
    _check_rate("bounty", e.bounty_ppm, PPM // 2)
    _check_rate("trap", e.trap_ppm, 0)
    _check_nonzero("audit rate", honest_ppm(e))
    _check_nonzero("whistle rate", e.whistle_ppm)
    _check_nonzero("wage", e.wage)
    _check_nonzero("challenge bond", e.challenge_bond)
    _check_nonzero("challenge deposit", e.challenge_deposit)
    if e.seat_fee > e.price:
        raise refusal("SeatFeeTooHigh", f"A seat fee of {e.seat_fee} is above the pay of a round.", maximum=e.price)
    if e.claim_lock < (minimum := min_claim_lock(e, t.intervals)):
        raise refusal("ClaimLockTooSmall", f"S must be at least {minimum} wei.", minimum=minimum)
    if e.verifier_bond < (minimum := min_bond(e)):
        raise refusal("BondTooSmall", f"B must be at least {minimum} wei.", minimum=minimum)
    for what, length in _windows(w).items():
        if length < MIN_WINDOW:
            raise refusal("WindowTooShort", f"The {what} window must be at least {MIN_WINDOW} s.", what=what)
        if length > MAX_WINDOW:
            raise refusal("ScheduleTooLong", f"The {what} window is too long.", what=what)
    if inclusion_delay > MAX_DELAY:
        raise refusal("ScheduleTooLong", "The inclusion delay is too long.", what="inclusion delay")
    if w.exit <= (least := min_exit(w, inclusion_delay)):
        raise refusal("ExitDelayTooShort", f"The exit delay must exceed {least} s.", minimum=least + 1)
    # A longer one would only keep deposits, or never let them out.
    if w.exit > (most := least + MAX_WINDOW):
        raise refusal("ExitDelayTooLong", f"An exit delay above {most} s only keeps deposits.", maximum=most)


def _windows(w: Windows) -> dict[str, int]:
    """The windows that have a shortest and a longest length, in seconds, in the contract's order."""
    return {
        "commit": w.commit,
        "receipt": w.receipt,
        "seed delay": w.seed_delay,
        "attest": w.attest,
        "draw": w.draw,
        "whistle": w.whistle,
        "reveal": w.reveal,
        "challenge": w.challenge,
        "rescue": w.rescue,
        "longest dispute": w.longest_dispute,
    }


def _check_training(t: Training, rounds: int) -> None:
    _check_nonzero("intervals", t.intervals)
    _check_nonzero("steps per interval", t.steps_per_interval)
    _check_nonzero("shard length", t.shard_length)
    _check_nonzero("rounds", rounds)
    if t.learning_rate & 0x7F800000 == 0x7F800000:
        raise refusal(
            "NotFinite", "The learning rate must be a finite binary32.", what="learning rate", bits=t.learning_rate
        )
    if t.shards < SEATS:
        raise refusal("ShardsFewerThanSeats", f"{t.shards} shards for {SEATS} seats.", shards=t.shards)
    _check_most("intervals", t.intervals, MAX_INTERVALS)
    _check_most("rounds", rounds, (1 << 24) - 1)
    _check_most("steps", t.steps_per_round, (1 << 32) - 1)
    _check_most("data", t.shards * t.shard_length, (1 << 31) - 1)
    for what, root in t.roots.items():
        _check_nonzero(what, int.from_bytes(root, "big"))


def _check_nonzero(what: str, value: int) -> None:
    if value == 0:
        raise refusal("ValueZero", f"The {what} must not be zero.", what=what)


def _check_rate(what: str, ppm: int, maximum: int) -> None:
    if ppm > maximum:
        raise refusal("RateTooHigh", f"The {what} rate of {ppm} ppm is above {maximum}.", what=what, maximum=maximum)


def _check_most(what: str, value: int, maximum: int) -> None:
    if value > maximum:
        raise refusal("ScheduleTooLong", f"{what} = {value} is above {maximum}.", what=what, maximum=maximum)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
