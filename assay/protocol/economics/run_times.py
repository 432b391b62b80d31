"""What a chain's delays, reorganizations and fees demand of a run: equal to RunTimes.sol.

Times are seconds of chain time.
"""

from __future__ import annotations

from typing import Final

from assay.protocol.economics import round_time
from assay.protocol.economics.limits import (
    CHALLENGER_MOVE_GAS,
    MAX_DELAY,
    MAX_FEE_CAP,
    MAX_WINDOW,
    MIN_TURN,
    MIN_WINDOW,
    PPM,
    REPLY_GAS,
    refusal,
)
from assay.protocol.economics.round_time import EPOCHS_TO_SETTLE
from assay.protocol.game.clock import LARGEST, most_moves
from assay.protocol.run.run_charter import RunChain, RunCharter, RunTiming
from assay.protocol.types import Wei

MIN_STALL: Final = 14 * 86_400

MIN_BEACON_DELAY: Final = 24
"""From a mask's close to the round of the beacon that draws its committees, above one level: a block of Ethereum is
built within twelve seconds after its own time, while four rounds of drand come out."""

MOVE_BYTES: Final = 4096
"""Of a move: 64 digests, or a leaf of 1 KiB and the way to it."""

REPEATS: Final = 3
"""How often an epoch can run."""


def last_verdict(t: RunTiming, inclusion_delay: int) -> int:
    """From an opening until nothing behind a generation can fall any more: window and dispute, a rescue, both again."""
    return 2 * (t.challenge + t.longest_dispute + inclusion_delay) + t.rescue


def slowest(t: RunTiming, inclusion_delay: int) -> int:
    """From one final generation to the next, and until all that follows from its round is settled, at the slowest.

    The next round may wait until what U rounds before it earned is due.
    """
    audits = EPOCHS_TO_SETTLE * (t.seed_delay + REPEATS * t.epoch)
    return audits + t.commit + inclusion_delay + until_final(t) + last_verdict(t, inclusion_delay)


def unsettled_rounds(t: RunTiming, inclusion_delay: int) -> int:
    """U: rounds of C from a commitment until its audits are over and its base is final, if nobody is late."""
    return round_time.unsettled_rounds(t.commit, t.epoch, t.seed_delay, until_final(t), inclusion_delay)


def until_final(t: RunTiming) -> int:
    """Seconds from a round's last commitment until its generation is final, if nobody is late and nothing disputed."""
    return t.beacon_delay + t.hold + t.group_merge + t.merge + t.challenge


def min_challenge_bond(c: RunChain, arity: int) -> Wei:
    """C: every reply is refunded C / 2R, which must pay for its gas and data at the cap."""
    replies, _ = most_moves(LARGEST, arity)
    return Wei(2 * replies * (REPLY_GAS * c.gas_price + MOVE_BYTES * c.data_price))


def min_kept(c: RunChain, arity: int) -> Wei:
    """What a first winner must keep of a lock after all advances, to be paid its gas and data at the cap."""
    replies, _ = most_moves(LARGEST, arity)
    return Wei((replies + 1) * (CHALLENGER_MOVE_GAS * c.gas_price + MOVE_BYTES * c.data_price))


def check_times(charter: RunCharter) -> None:
    """Refuse terms under which an honest party could be late, be undone, or pay for gas below the cap.

    Raises RejectedError: ValueZero, AmountTooLarge, WindowTooShort, ScheduleTooLong, ChallengeBondTooSmall,
    BountyTooSmall.
    """
    c, e = charter.chain, charter.economics
    if c.fee_cap == 0:
        raise refusal("ValueZero", "The fee cap must not be zero.", what="fee cap")
    if c.fee_cap > MAX_FEE_CAP:
        raise refusal("AmountTooLarge", f"A fee cap above {MAX_FEE_CAP} wei never lets anybody defer.", what="fee cap")
    for what, value, least, most in _ranges(charter):
        if value < least:
            raise refusal("WindowTooShort", f"{what} must be at least {least} s.", what=what, minimum=least)
        if value > most:
            raise refusal("ScheduleTooLong", f"{what} must be at most {most} s.", what=what, maximum=most)
    if e.challenge_bond < (minimum := min_challenge_bond(c, charter.clocks.arity)):
        raise refusal("ChallengeBondTooSmall", f"The challenge bond must be at least {minimum} wei.", minimum=minimum)
    kept = min(e.seat_lock, e.ticket_bond) * e.third_bounty_ppm // (2 * PPM)
    if kept < (minimum := min_kept(c, charter.clocks.arity)):
        raise refusal("BountyTooSmall", f"Half a bounty of {kept} wei does not pay for a game.", minimum=minimum)


def _ranges(charter: RunCharter) -> tuple[tuple[str, int, int, int], ...]:
    """Each length's name, value, least and most, in the contract's order."""
    t, c, k, f = charter.timing, charter.chain, charter.clocks, charter.chain.inclusion_delay
    wide = not charter.by_seats
    verdict = last_verdict(t, f)
    return (
        ("reorg depth", c.reorg_depth, 0, MAX_DELAY),
        ("inclusion delay", f, 0, MAX_DELAY),
        ("least budget", c.least_budget, 0, MAX_DELAY),
        ("budget", k.budget, max(c.least_budget, MIN_WINDOW), MAX_DELAY),
        ("replay", k.replay, MIN_TURN, MAX_DELAY),
        ("move", k.move, MIN_TURN, MAX_DELAY),
        ("commit", t.commit, MIN_WINDOW, MAX_WINDOW // 4),
        # Every stage may take one inclusion, a merge two.
        ("hold", t.hold, f + MIN_TURN, MAX_WINDOW),
        ("grace", t.grace, 0, min(f, t.hold)),
        ("group merge", t.group_merge, 2 * (f + MIN_TURN) if wide else 0, MAX_WINDOW if wide else 0),
        ("merge", t.merge, 2 * (f + MIN_TURN), MAX_WINDOW),
        ("beacon delay", t.beacon_delay, MIN_BEACON_DELAY if wide else 0, MAX_DELAY),
        # A committed challenge takes two transactions, the second later than what can be undone.
        ("challenge", t.challenge, 2 * f + c.reorg_depth + k.replay + MIN_WINDOW, MAX_WINDOW),
        ("rescue", t.rescue, f + k.replay + MIN_WINDOW, MAX_WINDOW),
        ("epoch", t.epoch, (charter.economics.capacity + 1) * t.commit + 2 * f, MAX_WINDOW),
        ("seed delay", t.seed_delay, c.reorg_depth + 1, MAX_WINDOW),
        ("seasoning", t.seasoning, 2 * (t.epoch + t.seed_delay), 4 * MAX_WINDOW),
        ("audits from", t.audits_from, 0, charter.launch.open_from),
        ("longest dispute", t.longest_dispute, MIN_WINDOW, MAX_WINDOW),
        ("vesting", t.vesting, verdict, 8 * MAX_WINDOW),
        ("stall", t.stall, max(MIN_STALL, slowest(t, f)), 24 * MAX_WINDOW),
        ("exit", t.exit, 0, MAX_WINDOW),
    )
