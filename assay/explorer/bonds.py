"""Bonded gateways at one contract beside a run: their bonds, their pledges, and answers of theirs that were accused.

Nothing of the run names such a contract: whoever starts the explorer does, by the address that `assay gateway bond`
printed. It is asked in the background and now and then, so its pages lag by a minute; an answer that was accused in a
block that a reorganization took back is gone with the next look.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from assay.explorer.lookups import Lookups
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.gateways import AnswerAccused, AnswerRefuted
from assay_ledger.deployment.answers import AnswerGates

EVERY_S: Final = 60
"""Of chain time, between two looks."""


@dataclass(frozen=True, slots=True)
class BondedGateway:
    """A gateway that ever bonded. models: that it pledged itself to serve, and until when, in seconds of chain time.

    accused: answers that were presented on the chain; refuted: of these, what the contract found to be false. games:
    that are under way.
    """

    gateway: Address
    is_bonded: bool
    is_convicted: bool
    games: int
    models: dict[Digest, int]
    accused: int
    refuted: int


class GatewayBonds:
    """What was last seen at one contract."""

    def __init__(self, gates: AnswerGates) -> None:
        self.gates = gates
        self._seen: dict[Address, BondedGateway] | None = None

    def seen(self, node: Lookups, now: int) -> dict[Address, BondedGateway] | None:
        """By gateway, in the order of their addresses; None before the first look is back. now: chain time, seconds."""
        key = ("bonds", now // EVERY_S)
        found = node.find(key, self.look)
        if found is not None:
            node.forget(lambda other: isinstance(other, tuple) and other[:1] == key[:1] and other != key)
            self._seen = found
        return self._seen

    def look(self) -> dict[Address, BondedGateway]:
        """Asks the node. Raises UnavailableError."""
        from assay.inference.bonds import pledges, standings  # brings torch, which nothing else here needs

        gates = self.gates
        chain, at, first = gates.run.chain, gates.gateways.address, gates.run.first_block
        accused = Counter(log.event.gateway for log in chain.events(AnswerAccused.search(at), first))
        refuted = Counter(log.event.gateway for log in chain.events(AnswerRefuted.search(at), first))
        return {
            one.gateway: BondedGateway(
                one.gateway,
                one.is_bonded,
                one.is_convicted,
                one.disputes,
                pledges(gates, one.gateway),
                accused[one.gateway],
                refuted[one.gateway],
            )
            for one in standings(gates, None)
        }
