"""Several ranks of one actor, as torchrun starts them: `torchrun --nproc-per-node 2 --no-python -- assay solver start`.

Every rank is the same command; rank 0 is the actor, the others compute with it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.cli.common import talk
from assay.protocol.errors import AssayError, UserError

if TYPE_CHECKING:
    from assay.training.ranked_compute import RankedCompute
    from assay_ledger.index.computing import Compute


@dataclass(frozen=True, slots=True)
class RankPlace:
    """A process among those that torchrun started together; `local` of them are on this machine."""

    rank: int
    size: int
    local: int = 1


def place() -> RankPlace | None:
    """This process among torchrun's; None where it is alone.

    Raises:
        UserError: BadRanks, the environment names no rank among others.
    """
    try:
        size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    except ValueError:
        size, rank, local = 0, 0, 1
    if not 0 <= rank < size:
        raise UserError(
            f"RANK is {os.environ.get('RANK')} and WORLD_SIZE {os.environ.get('WORLD_SIZE')}: no rank among others.",
            code="BadRanks",
            remedy="Leave both to torchrun, or unset them.",
        )
    return RankPlace(rank, size, local) if size > 1 else None


def follow(mine: RankPlace) -> None:
    """Computes what rank 0 says until it ends. Raises RanksLost."""
    import torch

    from assay.training.ranked_compute import RankThreads, ignore_signals, join, serve

    ignore_signals()
    torch.set_num_threads(RankThreads.usual(mine.local).beside_others)
    talk.print(f"rank {mine.rank} of {mine.size}: computes with rank 0, which acts")
    with _naming(mine):
        count = serve(join())
    talk.print(f"rank {mine.rank} of {mine.size}: rank 0 has ended; computed {count} times with it")


@contextmanager
def leading(mine: RankPlace | None) -> Iterator[Compute | None]:
    """What computes with all ranks while rank 0 acts; None for a process that is alone, or whose others stay away."""
    if mine is None:
        yield None
        return
    with _naming(mine):
        compute = _joined(mine)
        try:
            yield compute
        finally:
            if compute is not None:
                compute.end()


def _joined(mine: RankPlace) -> RankedCompute | None:
    """What shares with the other ranks; None where they cannot be reached: one that stood by may have a game on."""
    import torch

    from assay.training.ranked_compute import RankedCompute, RanksLost, RankThreads, join

    def tell(why: str) -> None:
        talk.print(
            f"rank 0 of {mine.size}: the others are lost ({why}); it goes on alone, which takes longer. Stop it and "
            "start all ranks again with the same command to share the work.",
            markup=False,  # messages of Gloo's begin with the brackets of a file
            soft_wrap=True,
        )

    threads = RankThreads.usual(mine.local)
    try:
        compute = RankedCompute(join(), threads, tell)
    except RanksLost as lost:
        tell(lost.message)
        torch.set_num_threads(threads.alone)
        return None
    talk.print(f"rank 0 of {mine.size}: programs in micro-batches are shared, all else is computed here")
    return compute


@contextmanager
def _naming(mine: RankPlace) -> Iterator[None]:
    """Errors say which rank they ended, and on which machine: all ranks write to the same terminal."""
    try:
        yield
    except AssayError as error:
        error.message = f"Rank {mine.rank} of {mine.size}, on {platform.node()}: {error.message}"
        raise
