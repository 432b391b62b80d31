"""Limits of what a charter may say, and how it is refused beyond them: equal to RunBounds.sol and RunTimes.sol."""

from __future__ import annotations

from typing import Final

from assay.protocol.errors import RejectedError

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


def refusal(code: str, message: str, **details: object) -> RejectedError:
    """A charter is refused, under the name that the contract gives."""
    remedy = "Change the charter; `assay economics table` shows what the bounds follow from."
    return RejectedError(message, code=code, remedy=remedy, **details)
