"""In which block a run began, looked for once and noted: its number with its hash, so that another chain of the same
number, or a reorganization, makes nobody search too little.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.protocol.errors import AssayError

if TYPE_CHECKING:
    from assay_ledger.rounds.run import Run

FILE: Final = "first-blocks.json"

_LOG = logging.getLogger(__name__)


def first_block(folder: Path, run: Run) -> int:
    """From which block on a run's events are searched for; 0 where that cannot be found, which is slower and no less.

    A chain that is one search long is searched from its beginning, and nothing is noted. `folder` keeps what is found.
    """
    from assay_ledger.rounds.first_block import MARGIN, found_first_block

    if run.chain.head().number < MARGIN:
        return 0
    noted, name = _noted(folder), f"{run.chain.chain_id} 0x{run.address.hex()}"
    block, hash_ = noted.get(name, (None, ""))
    try:
        if block is None or _hash_of(run, block) != hash_ or _was_there_before(run, block):
            block = found_first_block(run)
            if block is None:
                return 0
            _note(folder, noted | {name: (block, _hash_of(run, block))})
    except AssayError:
        return 0
    return max(0, block - MARGIN)


def _was_there_before(run: Run, block: int) -> bool:
    """Attack: a node that lies about old code once, and whose note outlives it. Who cannot tell is believed."""
    with suppress(AssayError):
        return bool(block and run.chain.code_at(run.address, block - 1))
    return False


def _hash_of(run: Run, block: int) -> str:
    return "0x" + run.chain.block_at(block)["hash"].hex()


def _noted(folder: Path) -> dict[str, tuple[int, str]]:
    try:
        found: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return {str(name): (int(block), str(hash_)) for name, (block, hash_) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _note(folder: Path, blocks: dict[str, tuple[int, str]]) -> None:
    """A disk that takes nothing holds nobody up: the next start looks again."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f".{FILE}"
        fresh.write_text(json.dumps(blocks), encoding="utf-8")
        fresh.replace(folder / FILE)
    except OSError as error:
        _LOG.warning("In which block the run began could not be noted (%s): it is looked for again.", error)
