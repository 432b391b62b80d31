"""Named profiles of chains: how long a transaction can be kept out, what can be undone, what gas and data cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.run.run_charter import RunChain
from assay.protocol.types import Wei

HOUR: Final = 3600
DAY: Final = 86_400
GWEI: Final = 10**9


@dataclass(frozen=True, slots=True)
class ChainKind:
    """Times in seconds; `fee_cap` in wei of the coin per gas."""

    reorg_depth: int
    inclusion_delay: int
    """F."""
    least_budget: int
    """Censorship that a side survives in a game: a day where many build blocks, three where one sequencer does."""
    fee_cap: int
    data_gas: int
    """Gas, of the chain that keeps the data, for a byte of it."""

    def chain(self, gas_price: Wei, data_gas_price: Wei) -> RunChain:
        """A run's profile: what gas of this chain, and of the one that keeps its data, is worth in its token."""
        return RunChain(
            reorg_depth=self.reorg_depth,
            inclusion_delay=self.inclusion_delay,
            least_budget=self.least_budget,
            fee_cap=self.fee_cap,
            gas_price=gas_price,
            data_price=Wei(self.data_gas * data_gas_price),
        )


CHAINS: Final = {
    # Two epochs of 32 slots, and one slot; EIP-7623 floors calldata at 40 gas a byte that is not zero.
    "l1": ChainKind(65 * 12, 600, DAY, 300 * GWEI, 40),
    # The sequencing window: after 12 hours a deposit on L1 is in the chain whatever the sequencer does.
    "op": ChainKind(65 * 12, 12 * HOUR, 3 * DAY, 10 * GWEI, 40),
    # The delayed inbox can be forced after 24 hours.
    "arbitrum": ChainKind(65 * 12, 24 * HOUR, 3 * DAY, 10 * GWEI, 40),
    # Nothing is kept out; a minute is what processes on one busy machine may be late.
    "local": ChainKind(0, 60, 660, 1000 * GWEI, 0),
}
"""By name; what L2s keep out and undo follows from L1."""

MILDEST: Final = "l1"
"""The public chain that keeps out, undoes and censors for the shortest time: no other may be said to be milder."""
