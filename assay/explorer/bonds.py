"""Bonded gateways at one contract beside a run: their bonds, their pledges, and answers of theirs that were accused.

Nothing of the run names such a contract: whoever starts the explorer does, by the address that `assay gateway bond`
printed. It is asked in the background, when a page wants it and the last look is older than a minute of chain time:
what is shown says of when it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from assay.explorer.lookups import Lookups
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.gateways import AnswerAccused, AnswerRefuted, GatewayBonded, ModelPledged
from assay_ledger.contract import Event, Logged
from assay_ledger.deployment.answers import AnswerGates

EVERY_S: Final = 60
"""Of chain time, between two looks."""

BLOCKS_A_SECOND: Final = 4
"""At the most: on chains that are slower more of them are read again than need be."""

KEY: Final = "bonds"


@dataclass(frozen=True, slots=True)
class BondedGateway:
    """A gateway that ever bonded. models: that it pledged itself to serve, and until when, in seconds of chain time.

    accused: answers that were presented on the chain. lost: games about them that it lost, the first alone is counted
    by the contract. games: that are under way.
    """

    gateway: Address
    is_bonded: bool
    is_convicted: bool
    games: int
    models: dict[Digest, int]
    accused: int
    lost: int


@dataclass(frozen=True, slots=True)
class SeenBonds:
    """One look: gateways by their addresses, at a chain time in seconds. accusing_s: what an accusation takes; a pledge
    that ends sooner covers nothing that is signed now.
    """

    at: int
    accusing_s: int
    gateways: dict[Address, BondedGateway]


class GatewayBonds:
    """What was last seen at one contract."""

    def __init__(self, gates: AnswerGates) -> None:
        self.gates = gates
        self._seen: SeenBonds | None = None
        self._kept: list[Logged[Event]] = []
        self._from = gates.run.first_block

    def seen(self, node: Lookups, now: int) -> SeenBonds | None:
        """The last look, and another one begun where that is old; None before the first is back. now: chain time."""
        if self._seen is None or now - self._seen.at >= EVERY_S:
            # One at a time: the answer has one name, and goes once it is read.
            found = node.find(KEY, self.look)
            if found is not None:
                self._seen = found
                node.forget(lambda key: key == KEY)
        return self._seen

    def look(self) -> SeenBonds:
        """Asks the node: for what is new since blocks that no reorganization takes back. Raises UnavailableError."""
        from assay.inference.cover import accusing_time  # brings torch, which nothing else here needs

        gates, chain = self.gates, self.gates.run.chain
        head, at = chain.head(), gates.gateways.address
        final = max(head.number - BLOCKS_A_SECOND * gates.run.charter.chain.reorg_depth, self._from - 1)
        kinds: tuple[type[Event], ...] = (GatewayBonded, ModelPledged, AnswerAccused, AnswerRefuted)
        searches = [kind.search(at) for kind in kinds]
        logs = [*self._kept, *(log for search in searches for log in chain.events(search, self._from, head.number))]
        self._kept, self._from = [log for log in logs if log.block <= final], final + 1
        accused, lost, bonded = Counter[Address](), Counter[Address](), set[Address]()
        models: dict[Address, dict[Digest, int]] = {}
        for log in sorted(logs, key=lambda log: (log.block, log.log_index)):
            match log.event:
                case GatewayBonded(gateway=gateway):
                    bonded.add(gateway)
                case ModelPledged(gateway=gateway, model=model, until=until):
                    models.setdefault(gateway, {})[model] = until
                case AnswerAccused(gateway=gateway):
                    accused[gateway] += 1
                case AnswerRefuted(gateway=gateway):
                    lost[gateway] += 1
        found: dict[Address, BondedGateway] = {}
        for gateway in sorted(bonded):
            told = chain.ask(gates.gateways.bond_of(gateway))
            more = models.get(gateway, {}), accused[gateway], lost[gateway]
            found[gateway] = BondedGateway(gateway, told.is_bonded, told.is_convicted, told.disputes, *more)
        return SeenBonds(head.timestamp, accusing_time(gates), found)
