"""The chains of secrets of one owner's tickets, from one seed.

A chain is hashed from its last secret backwards, so who holds the seed holds all of them, and nobody else any that is
not shown. Chains are numbered over all tickets of an owner in a run: a number is used up before its anchor is sent, so
that no two tickets ever share a chain, however often the process dies in between.
Source: docs/adr/0033-second-round.md, trailing path 2.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from math import isqrt
from typing import Final

from assay.protocol.errors import InvariantError
from assay.protocol.rounds.ticket_types import next_link
from assay.protocol.types import Digest

LINKS: Final = 1 << 14
"""Calls that a chain lasts for: more than five years of an epoch every three hours."""

RESERVE: Final = 64
"""Calls that a chain still has when the next one is announced: a change counts from the second seed after it only."""

GAP: Final = 32
"""Numbers in a row without an anchor on chain, after which no further one is looked for."""

_CHAIN_TAG: Final = b"assay ticket chain v2"


class SecretChain:
    """Secrets 1 to `links` of a chain, and its anchor as link 0; keeps about two square roots of them.

    Building it hashes every link once, reading one hashes a square root of them at most.
    """

    def __init__(self, last: Digest, links: int = LINKS) -> None:
        self.links = links
        self._stride = max(1, isqrt(links))
        self._kept = {links: last}
        link = last
        for number in range(links - 1, -1, -1):
            link = next_link(link)
            if number % self._stride == 0:
                self._kept[number] = link
        self.anchor = link
        self._block: tuple[int, list[Digest]] = (0, [])

    def secret(self, number: int) -> Digest:
        """Link `number`, 1 being the first to be shown. Raises InvariantError (NoSuchLink)."""
        if not 1 <= number <= self.links:
            raise InvariantError(f"A chain of {self.links} links has no link {number}.", code="NoSuchLink")
        top = min(-(-number // self._stride) * self._stride, self.links)
        if self._block[0] != top:
            block = [self._kept[top]]
            while len(block) < min(self._stride, top):
                block.append(next_link(block[-1]))
            self._block = top, block
        return self._block[1][top - number]


@dataclass(frozen=True, slots=True)
class ChainInUse:
    """A chain as a ticket uses it: `base` calls of its shift came before the chain's first."""

    number: int
    base: int

    def link_of(self, call: int) -> int:
        """The link that belongs to a call of the shift."""
        return call - self.base


class TicketChains:
    """All chains that follow from one owner's seed in one run."""

    def __init__(
        self, seed: bytes, run: Digest, links: int = LINKS, reserve: int = RESERVE, *, sent: Iterable[int] = ()
    ) -> None:
        """`run`: its identity among those of all chains.

        `sent`: numbers that the journal knows, up to which anchors are looked for however wide the gaps are.
        """
        self._seed = seed
        self._run = run
        self._links, self._reserve = links, reserve
        self._chains: dict[int, SecretChain] = {}
        self._numbers: dict[Digest, int] = {}
        self._searched = 0
        self._used = max((number + 1 for number in sent), default=0)

    def chain(self, number: int) -> SecretChain:
        """A chain, built once."""
        if number not in self._chains:
            last = hmac.new(self._seed, _CHAIN_TAG + self._run + number.to_bytes(8, "big"), sha256).digest()
            self._chains[number] = SecretChain(Digest(last), self._links)
        return self._chains[number]

    def anchor(self, number: int) -> Digest:
        """The anchor that a ticket registers for a chain."""
        return self.chain(number).anchor

    def number_of(self, anchor: Digest) -> int | None:
        """The chain with this anchor; None where it is none of this seed's.

        Whoever has lost its journal finds its chains again by their anchors, GAP numbers beyond the last one found.
        """
        while anchor not in self._numbers and self._searched < self._used + GAP:
            self._numbers[self.anchor(self._searched)] = self._searched
            self._searched += 1
        number = self._numbers.get(anchor)
        if number is not None:
            self._used = max(self._used, number + 1)
        return number

    def next_number(self, sent: Iterable[int], anchors: Iterable[Digest]) -> int:
        """The lowest number above all that were ever sent, as the journal and the chain's events know them."""
        self._used = max([self._used, *(number + 1 for number in sent)])
        for anchor in anchors:
            self.number_of(anchor)
        return self._used

    def secret(self, used: ChainInUse, call: int) -> Digest:
        """The secret of a call. Raises InvariantError (NoSuchLink)."""
        return self.chain(used.number).secret(used.link_of(call))

    def runs_low(self, used: ChainInUse, calls: int) -> bool:
        """Whether a chain should be replaced, after so many calls of its shift."""
        return used.link_of(calls) > self._links - self._reserve
