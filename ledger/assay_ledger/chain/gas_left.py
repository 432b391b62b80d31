"""For how many more transactions an account's coins last: pure, from what its latest ones cost.

Who runs out of coins in a game loses it, so it is said while there is time to send some.
"""

from __future__ import annotations

from collections import deque
from typing import Final

LASTS: Final = 100
"""Transactions below which it is said: a game takes about 35 turns, and a player may be in several."""

COUNTED: Final = 32
"""Latest transactions whose cost counts; the dearest of them, since a fee that has risen may stay."""


class GasLeft:
    """What an account's transactions cost, and when its owner was told last."""

    def __init__(self) -> None:
        self._costs: deque[int] = deque(maxlen=COUNTED)
        self._told: int | None = None

    def paid(self, wei: int) -> None:
        """Notes what a transaction cost, in wei of the chain's coin."""
        self._costs.append(wei)

    def lasts(self, balance: int) -> int | None:
        """For how many transactions a balance in wei lasts; None before the first was paid."""
        return balance // max(max(self._costs), 1) if self._costs else None

    def alarm(self, balance: int) -> int | None:
        """The same where it is to be said: below LASTS, again at each half of what was said, anew after a refill."""
        left = self.lasts(balance)
        if left is None or left >= LASTS:
            self._told = None
            return None
        if self._told is not None and left > self._told // 2:
            return None
        self._told = left
        return left
