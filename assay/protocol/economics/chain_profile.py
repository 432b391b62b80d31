"""What a chain's delays, reorganizations and fees demand of a run: equal to contracts/libraries/ChainBounds.sol.

Every window and clock is at least F + replay + margin, a seed comes later than what it draws over can be undone, and
below the fee cap gas costs an honest party nothing. docs/economics.md says what exactly is promised.
"""

from __future__ import annotations

from typing import Final

from assay.protocol.errors import RejectedError
from assay.protocol.game.clock import LARGEST, most_moves
from assay.protocol.run.charter import ChainProfile, ClockTerms, Economics, Windows
from assay.protocol.types import Wei

MIN_WINDOW: Final = 600
"""Seconds beyond the chain's delay and a re-execution that every window leaves: a loaded machine is never late."""

REPLY_GAS: Final = 350_000
"""No reply of a defender needs more gas at any arity (tests/integration/contracts/test_game_gas.py)."""

CHALLENGER_MOVE_GAS: Final = 250_000
"""A challenger's whole game needs no more than this for every move that it can consist of (the same test)."""

PPM: Final = 1_000_000
MAX_WINDOW: Final = 180 * 86_400
"""Seconds; beyond any use. A payee waits for sums of windows."""

MAX_DELAY: Final = 30 * 86_400
"""Seconds, of the chain or of a clock: the least windows, which are sums of them, stay below MAX_WINDOW."""

MIN_TURN: Final = 60
"""Seconds of every turn without the budget: no party is convicted for a busy machine in a single turn."""

MAX_FEE_CAP: Final = 10**15
"""Wei per gas, a million gwei: with a higher cap no side could ever defer."""

MAX_AMOUNT: Final = (1 << 112) - 1
"""Wei. With it no product or sum of a run overflows: 328 duties' shares in 128 bits, all shares ever in the 208 bits of
votes, the escrow of a round in what a vault holds."""


def min_challenge_bond(profile: ChainProfile, arity: int) -> Wei:
    """C: every reply is refunded C / 2R, which must pay for its gas at the cap."""
    replies, _ = most_moves(LARGEST, arity)
    return Wei(2 * replies * REPLY_GAS * profile.gas_price)


def min_kept(profile: ChainProfile, arity: int) -> Wei:
    """What a first winner must keep of a lock after all advances, to be paid its gas at the cap."""
    replies, _ = most_moves(LARGEST, arity)
    return Wei((replies + 1) * CHALLENGER_MOVE_GAS * profile.gas_price)


def kept(e: Economics) -> Wei:
    """What it keeps at least: half of beta of the smallest lock, S of a commitment or W of an outer step."""
    return Wei(min(e.claim_lock, e.price) * e.bounty_ppm // (2 * PPM))


def check_chain(p: ChainProfile, w: Windows, c: ClockTerms, e: Economics) -> None:
    """Refuse terms under which an honest party could be late, be undone, or pay for gas below the cap.

    Raises RejectedError: ValueZero, AmountTooLarge, ScheduleTooLong, WindowTooShort, ChallengeBondTooSmall,
    BountyTooSmall.
    """
    if p.fee_cap == 0:
        raise refusal("ValueZero", "The fee cap must not be zero.", what="fee cap")
    if p.fee_cap > MAX_FEE_CAP:
        raise refusal("AmountTooLarge", f"A fee cap above {MAX_FEE_CAP} wei never lets anybody defer.", what="fee cap")
    clocks = {"budget": c.budget, "replay": c.replay, "move": c.move}
    for what, length in {"reorg depth": p.reorg_depth, **clocks}.items():
        if length > (MAX_DELAY + MIN_WINDOW if what == "budget" else MAX_DELAY):
            raise refusal("ScheduleTooLong", f"The {what} is too long.", what=what)
    # Who is challenged must be able to answer: with clocks of nothing a second of silence would convict, and with a
    # budget below F a chain that keeps its transactions out once.
    for (what, length), least in zip(clocks.items(), (p.inclusion_delay + MIN_WINDOW, MIN_TURN, MIN_TURN), strict=True):
        if length < least:
            raise refusal("WindowTooShort", f"The {what} must be at least {least} s.", what=what)
    for what, length, least in _windows(p, c, w):
        if length < least:
            raise refusal("WindowTooShort", f"The {what} window must be at least {least} s here.", what=what)
    if e.challenge_bond < (minimum := min_challenge_bond(p, c.arity)):
        raise refusal("ChallengeBondTooSmall", f"The challenge bond must be at least {minimum} wei.", minimum=minimum)
    if kept(e) < (minimum := min_kept(p, c.arity)):
        raise refusal("BountyTooSmall", f"Half a bounty of {kept(e)} wei does not pay for a game.", minimum=minimum)


def _windows(p: ChainProfile, c: ClockTerms, w: Windows) -> tuple[tuple[str, int, int], ...]:
    """Each window's name, length and shortest length that this chain admits, in seconds, in the contract's order."""
    once = p.inclusion_delay + MIN_WINDOW
    return (
        ("commit", w.commit, once),
        ("receipt", w.receipt, once),
        # A seed must not be known while what it draws over can still be undone.
        ("seed delay", w.seed_delay, p.reorg_depth + 1),
        ("attest", w.attest, once + c.replay),
        ("draw", w.draw, max(once, p.reorg_depth + 1)),
        ("whistle", w.whistle, once + c.replay),
        ("reveal", w.reveal, once),
        # A committed challenge takes two transactions, the second later than what can be undone.
        ("challenge", w.challenge, once + p.inclusion_delay + p.reorg_depth + c.replay),
        # A rescuer may have to compute the outer step first.
        ("rescue", w.rescue, once + c.replay),
    )


def refusal(code: str, message: str, **details: object) -> RejectedError:
    """A charter is refused, under the name that the contract gives."""
    remedy = "Change the charter; `assay economics table` shows what the bounds follow from."
    return RejectedError(message, code=code, remedy=remedy, **details)
