"""What a transaction offers for gas: pure, from the base fee, what others tip, and what was offered before.

A transaction that offers too little is not mined, and everything after it waits; one that offers more pays the
base fee and its tip all the same. So the most that is offered leaves room for a rising base fee, and what is stuck is
offered again for more. All amounts are wei of the chain's coin per gas. Source: EIP-1559; docs/adr/0026.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

TIP_FLOOR: Final = 1_000_000
"""0.001 gwei: below it common block builders take no transaction."""

TIP_PERCENTILE: Final = 60.0
"""Of the tips in a block, by gas used."""

TIP_BLOCKS: Final = 10
GROWTH: Final = 2
"""The base fee rises by at most an eighth per block: doubled in six full blocks."""

STUCK_TIPS: Final = 8
"""Times the base fee: what is not mined for such a tip waits for something else."""

STUCK_PART: Final = 100
"""Or for a hundredth of the balance in tips alone: chains may ask for tips far above their base fee."""

RAISE_NUMERATOR: Final = 9
RAISE_DENOMINATOR: Final = 8
"""12.5 %: pools take a replacement only if it offers 10 % more, some 12.5 %, in tip and in total."""


@dataclass(frozen=True, slots=True)
class Market:
    """What the chain asks for: the base fee of the next block as far as known, and the tip that others pay."""

    base: int
    tip: int

    @property
    def price(self) -> int:
        """What a unit of gas costs in the next block; what an offer leaves room for beyond it is not paid."""
        return self.base + self.tip


@dataclass(frozen=True, slots=True)
class Offer:
    """The most that a transaction pays per gas, and the tip within it."""

    most: int
    tip: int

    def is_enough(self, market: Market) -> bool:
        """Can it be mined at this base fee with its whole tip?"""
        return self.most >= market.base + self.tip


def tip_of(rewards: Sequence[Sequence[int]], base: int, floor: int = TIP_FLOOR) -> int:
    """The tip to pay by the tips in the latest blocks (one list per block); empty blocks say nothing.

    A node that reports fancy tips must not spend its user's money: no tip is above the base fee, unless that is below
    the floor.
    """
    paid = sorted(block[0] for block in rewards if block and block[0] > 0)
    return min(max(median_low(paid) if paid else 0, floor), max(base, floor))


def first_offer(market: Market, limit: int | None) -> Offer | None:
    """What is offered at first; None while the base fee is above the `limit` (of the base fee that one would pay)."""
    if limit is not None and market.base > limit:
        return None
    room = GROWTH * market.base
    return Offer((room if limit is None else min(room, limit)) + market.tip, market.tip)


def raised(old: Offer, market: Market, limit: int | None) -> Offer | None:
    """What replaces an offer; None where the limit leaves no room for one that a pool accepts."""
    tip = max(_raise(old.tip), market.tip)
    least = max(_raise(old.most), market.base + tip)
    wanted = max(least, GROWTH * market.base + tip)
    if limit is None:
        return Offer(wanted, tip)
    return Offer(min(wanted, limit + tip), tip) if least <= limit + tip else None


def may_raise(old: Offer, market: Market, gas: int, balance: int) -> bool:
    """Is it worth a higher tip to have mined what pays the base fee and is not mined all the same?

    Without a bound a sequencer that keeps a transaction out, or a node that passes nothing on, would let its tip
    grow to all that the account has, and somebody would be paid it.
    """
    return old.tip < STUCK_TIPS * max(market.base, market.tip) or _raise(old.tip) * gas <= balance // STUCK_PART


def affordable(offer: Offer, market: Market, gas: int, balance: int, least: Offer | None) -> Offer | None:
    """The same offer cut to what a balance pays for; None if that cannot be mined, or replaces nothing (`least`)."""
    most = min(offer.most, balance // gas)
    floor = market.base + 1 if least is None else max(market.base + 1, _raise(least.most))
    if most < floor:
        return None
    tip = min(offer.tip, most - market.base)
    if least is not None and tip < _raise(least.tip):
        return None
    return Offer(most, tip)


def _raise(value: int) -> int:
    return -(-value * RAISE_NUMERATOR // RAISE_DENOMINATOR)
