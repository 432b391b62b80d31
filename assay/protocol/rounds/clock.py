"""When a round's mask closes (RoundClock.sol)."""

from __future__ import annotations

from typing import Final

from assay.protocol.rounds.terms import RoundState, RoundTerms

NEARLY_ALL_FROM: Final = 20
"""Seats from which 95 % are nearly all; below, all but one."""


def commit_until(terms: RoundTerms, state: RoundState) -> int:
    """Last second to commit: T0 + C + F."""
    return state.t0 + terms.commit + terms.inclusion


def partial_until(terms: RoundTerms, state: RoundState) -> int:
    """Last second in which a group's partial sum can be opened."""
    return commit_until(terms, state) + terms.beacon_delay + terms.hold + terms.group_merge


def merge_until(terms: RoundTerms, state: RoundState) -> int:
    """Last second in which the round's generation can have its majority: T_m."""
    return partial_until(terms, state) + terms.merge


def close_mask(terms: RoundTerms, state: RoundState, now: int) -> None:
    """One more seat has committed: move the mask's close forward, never before `now`.

    It closes at once when all seats committed, g after nearly all did, and g after two thirds have and C is over.
    """
    state.committed += 1
    if now > state.mask_at:
        return
    two_thirds = -(-2 * state.seated // 3)
    nearly_all = state.seated - 1 if state.seated < NEARLY_ALL_FROM else -(-95 * state.seated // 100)
    if state.committed == state.seated:
        state.mask_at = now
    elif state.committed == max(nearly_all, two_thirds):
        state.mask_at = min(state.mask_at, now + terms.grace)
    if state.committed == two_thirds:
        state.mask_at = min(state.mask_at, max(now, state.t0 + terms.commit) + terms.grace)
