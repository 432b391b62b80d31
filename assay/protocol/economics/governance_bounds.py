"""What a charter that names governance must promise: equal to GovernanceBounds.sol.

A charter whose terms of governance are all zero names none: nobody can ever pause its run. Times are seconds, shares
wei of shares. Reasons: docs/adr/0066-governance.md.
"""

from __future__ import annotations

from typing import Final

from assay.protocol.economics.limits import MAX_WINDOW, MIN_WINDOW, PPM, refusal
from assay.protocol.economics.run_times import slowest
from assay.protocol.run.run_charter import NO_GOVERNANCE, RunChain, RunCharter
from assay.protocol.types import Wei

LEAST_QUORUM_PPM: Final = 100_000
MOST_GUARDIAN_PAUSES: Final = 16
LEAST_PERIOD: Final = 86_400
"""People vote, not machines."""

PROPOSERS: Final = 100
"""Who has a hundredth of the least shares that govern may propose."""


def check_governance(charter: RunCharter) -> None:
    """Refuse terms by which a vote could surprise, stop for good, or be bought for a moment. Raises RejectedError."""
    g = charter.governance
    if not g.is_named:
        # Attack: terms that read as if somebody governed, or nobody.
        if g != NO_GOVERNANCE:
            raise refusal("ValueZero", "Terms of governance without a voting period.", what="voting period")
        return
    for what, value, least, most in _ranges(charter):
        if value < least:
            raise refusal("WindowTooShort", f"{what} must be at least {least}.", what=what, minimum=least)
        if value > most:
            raise refusal("ScheduleTooLong", f"{what} must be at most {most}.", what=what, maximum=most)
    if g.quorum_ppm < LEAST_QUORUM_PPM:
        raise refusal("QuorumTooLow", f"The quorum must be {LEAST_QUORUM_PPM} ppm at least.", minimum=LEAST_QUORUM_PPM)
    if g.quorum_ppm > PPM:
        raise refusal("RateTooHigh", "The quorum is more than all shares.", what="quorum", maximum=PPM)
    if g.least_price_ppm == 0:
        raise refusal("ValueZero", "Work that could be paid nothing is promised nothing.", what="least price")
    if g.least_price_ppm > PPM:
        raise refusal("RateTooHigh", "The least price is above the price.", what="least price", maximum=PPM)
    if not 1 <= g.least_rounds <= charter.rounds:
        code = "WindowTooShort" if g.least_rounds < 1 else "ScheduleTooLong"
        raise refusal(code, "Votes begin after a round of the run.", what="least rounds", maximum=charter.rounds)
    if charter.economics.shares_per_unit == 0:
        raise refusal("ValueZero", "Without shares for work nobody could ever vote.", what="shares per unit")


def rest_of(chain: RunChain) -> int:
    """Seconds in which somebody has a round opened between two pauses, whatever the chain delays or undoes."""
    return chain.inclusion_delay + chain.reorg_depth + MIN_WINDOW


def least_vested(charter: RunCharter) -> Wei:
    """Shares that the least seats of the launch earn by the least work in the least rounds, in wei of shares."""
    commitments = charter.governance.least_rounds * charter.launch.seats
    return Wei(commitments * charter.training.min_units * charter.economics.shares_per_unit)


def _ranges(charter: RunCharter) -> tuple[tuple[str, int, int, int], ...]:
    """Each length's or number's name, value, least and most, in the contract's order."""
    g, t, c = charter.governance, charter.timing, charter.chain
    seen, guarded = c.inclusion_delay + c.reorg_depth, g.guardian != NO_GOVERNANCE.guardian
    room = t.stall - slowest(t, c.inclusion_delay)
    return (
        # Attack: shares that are borrowed for as long as nobody can tell.
        ("voting delay", g.voting_delay, seen + MIN_WINDOW, MAX_WINDOW),
        ("voting period", g.voting_period, seen + LEAST_PERIOD, MAX_WINDOW),
        # Attack: a decision that is in force before a seat that leaves because of it is out of its last round.
        ("timelock", g.timelock, t.commit + c.inclusion_delay + seen + MIN_WINDOW, MAX_WINDOW),
        ("longest pause", g.longest_pause, 1, MAX_WINDOW),
        ("guardian pause", g.guardian_pause, *((1, MAX_WINDOW) if guarded else (0, 0))),
        ("guardian pauses", g.guardian_pauses, *((1, MOST_GUARDIAN_PAUSES) if guarded else (0, 0))),
        # Attack: a pause after which anybody can wind the run down, with what is not settled.
        ("pauses", g.longest_pause + g.guardian_pause, 0, room),
    )
