"""The block in which a run's charter was created: before it no search finds anything of the run.

Chains have hundreds of millions of blocks, and many nodes search ten or a thousand of them at once.
"""

from __future__ import annotations

from contextlib import suppress

from assay.protocol.errors import AssayError, RejectedError, UnavailableError
from assay_ledger.index.games import BLOCKS_PER_QUERY
from assay_ledger.rounds.run import Run

MARGIN = BLOCKS_PER_QUERY
"""Blocks before it that are searched too: a reorganization may bring the run into an earlier block."""


def found_first_block(run: Run) -> int | None:
    """The block of a run's charter, found by some thirty requests for the code of old blocks.

    None where the node does not have their state, or has it from a block on in which the run had begun already.
    """
    chain, low, high = run.chain, 0, run.chain.head().number
    try:
        if chain.code_at(run.address, low):
            return 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if chain.code_at(run.address, middle) else (middle, high)
        # Attack: a node that has removed old state and says, without a word, that nothing was there.
        with suppress(RejectedError, UnavailableError):  # the vault is created after the charter
            totals = chain.ask(run.vault.totals(), at=high)
            return None if sum(totals) else high
    except AssayError:
        return None
    return high
