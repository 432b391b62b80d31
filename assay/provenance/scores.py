"""How much each seat's update of a round does for the model: on the text that it was to train on, and on any other.

An alarm, and no verdict: who trains truly on its own shard gains more there than elsewhere as a rule, and who sends
another's work, or none, does not; but rounds are short and windows few, so one round proves nothing. By itself a score
rewards copies, which is why nothing is paid by it. What is proven is proven by replay (`assay model replay`).
Own against random data after Gauntlet (Templar, arXiv 2505.21684); skill over rounds by Plackett and Luce (openskill).

Shapes: N windows of T tokens of context and one more, W = T + 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor
from torch.func import functional_call

from assay.engine.runtime.values.state_io import tensor_from_bytes
from assay.protocol.errors import RejectedError
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Address, Round, Seat
from assay.training.model import CharacterGPT, next_token_loss
from assay_ledger.index.computing import Compute
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.records import WorkRecord
from assay_ledger.rounds.view import RunView

if TYPE_CHECKING:
    from openskill.models import PlackettLuceRating

WINDOWS: Final = 64
"""Of the seat's own shard, and of the whole text."""

SURE: Final = 2.0
"""Standard errors beyond which a difference is named."""

HARMFUL: Final = "harmful"
"""The loss on text of all shards rises by it."""
ELSEWHERE: Final = "better elsewhere"
"""It gains less on the text that the seat was to train on than on text of all shards."""


@dataclass(frozen=True)
class ScoredText:
    """What losses are read by: the run's module, and the tokens that it trains on, u8 or u16 [L]."""

    model: CharacterGPT
    tokens: Tensor


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much the loss falls, nats a token: the mean of windows, and its standard error."""

    mean: float
    error: float


@dataclass(frozen=True, slots=True)
class SeatScore:
    """What one update does to the base of its round. own: on its seat's shard; other: on text of all shards."""

    round: Round
    seat: Seat
    solver: Address
    own: Gain
    other: Gain

    @property
    def alarms(self) -> list[str]:
        """What is surer than two standard errors."""
        found = [HARMFUL] if self.other.mean < -SURE * self.other.error else []
        apart = self.own.mean - self.other.mean
        return found + ([ELSEWHERE] if apart < -SURE * math.hypot(self.own.error, self.other.error) else [])


def drawn_windows(tokens: Tensor, start: int, length: int, context: int, seed: bytes) -> Tensor:
    """WINDOWS windows of a part of a text, i64 [N, W]: the same for everybody who names the same seed."""
    generator = torch.Generator().manual_seed(int.from_bytes(sha256(seed).digest()[:8], "big") >> 1)
    starts_N = torch.randint(start, start + length - context, (WINDOWS,), generator=generator)
    return tokens.to(torch.int64)[starts_N[:, None] + torch.arange(context + 1)]


@torch.no_grad()
def losses(model: CharacterGPT, parameters: Sequence[Tensor], windows_NW: Tensor) -> list[float]:
    """Nats a token of each window, in stock PyTorch."""
    named = {name: p for (name, _), p in zip(model.named_parameters(), parameters, strict=True)}
    logits_NTV = functional_call(model, named, (windows_NW[:, :-1],))
    return [float(next_token_loss(a[None], b[None])) for a, b in zip(logits_NTV, windows_NW[:, 1:], strict=True)]


def gain_of(before: Sequence[float], after: Sequence[float]) -> Gain:
    """Of the same windows, before an update and after it."""
    falls = [a - b for a, b in zip(before, after, strict=True)]
    return Gain(fmean(falls), stdev(falls) / math.sqrt(len(falls)))


def by_its_share(base: Sequence[Tensor], alone: Sequence[Tensor], seats: int) -> list[Tensor]:
    """Where an update moves the base as one of so many seats, from where it moves it alone.

    Alone, at a merge's whole rate, half of the honest updates of a small model raise the loss: a mean is better than
    what it is made of.
    """
    return [p + (q - p) / seats for p, q in zip(base, alone, strict=True)]


def score(
    model: CharacterGPT,
    base: Sequence[Tensor],
    after: Mapping[Seat, Callable[[], Sequence[Tensor]]],
    own: Mapping[Seat, Tensor],
    everywhere_NW: Tensor,
    round_: Round,
    solvers: Mapping[Seat, Address],
) -> list[SeatScore]:
    """Scores of a round, by seat. after: the base as each seat's update alone would move it; own: windows [N, W]."""
    at_base = losses(model, base, everywhere_NW)
    found = []
    for seat in sorted(after):
        moved = after[seat]()
        elsewhere = gain_of(at_base, losses(model, moved, everywhere_NW))
        at_home = gain_of(losses(model, base, own[seat]), losses(model, moved, own[seat]))
        found.append(SeatScore(round_, seat, solvers[seat], at_home, elsewhere))
    return found


def scores_of(view: RunView, archive: Archive, compute: Compute, reading: ScoredText, round_: Round) -> list[SeatScore]:
    """Scores of the updates that counted in a round of one level: each as the merge takes it, by its share of a mean.

    Raises RejectedError (NothingCounted), UnavailableError where base or updates are gone.
    """
    counted, _ = view.counted(round_)
    works = {work.seat: work for work in view.works(round_) if work.seat in counted}
    if not works:
        raise RejectedError(
            f"No update of round {round_} counts yet.", code="NothingCounted", remedy="Name an earlier round."
        )
    parameters, momentum = archive.base(view, view.round_of(round_).parent, compute, publish=False)
    still = tuple(bytes(len(part)) for part in momentum)  # no outer momentum: what others did before moves nothing
    specs = archive.specs(TrainingList.PARAMETERS)

    def tensors(lists: Sequence[bytes]) -> list[Tensor]:
        return [tensor_from_bytes(spec, data) for spec, data in zip(specs, lists, strict=True)]

    base = tensors(parameters)

    def moved(work: WorkRecord) -> list[Tensor]:
        job = archive.lone_merge_job(work, (parameters, still))
        alone = tensors(compute.run(job.program, job.lists, job.steps)[0])
        return by_its_share(base, alone, len(works))

    tokens, context = reading.tokens, reading.model.context
    own = {}
    for seat in works:
        start = archive.facts.round_scalars(round_, seat)
        seed = b"own" + bytes(start.run) + seat.to_bytes(4, "big") + round_.to_bytes(8, "big")
        place = start.shard * start.shard_length
        own[seat] = drawn_windows(tokens, place, start.shard_length, context, seed)
    seed = b"all" + bytes(archive.facts.rounds.run) + round_.to_bytes(8, "big")
    everywhere = drawn_windows(tokens, 0, tokens.numel(), context, seed)
    after = {seat: partial(moved, work) for seat, work in works.items()}
    solvers = {seat: view.books.tenures.existing(work.tenure).holder for seat, work in works.items()}
    return score(reading.model, base, after, own, everywhere, round_, solvers)


def skills(rounds: Sequence[Sequence[SeatScore]]) -> dict[Address, float]:
    """Of each solver over rounds, the oldest first: Plackett and Luce's skill less three of its deviations, by rank of
    what updates gained on text of all shards.
    """
    from openskill.models import PlackettLuce

    model, rated = PlackettLuce(), dict[Address, "PlackettLuceRating"]()
    for scores in rounds:
        # Who has several seats is one that gained their mean.
        gains: dict[Address, list[float]] = {}
        for one in scores:
            gains.setdefault(one.solver, []).append(one.other.mean)
        if len(gains) < 2:
            continue
        teams = [[rated.get(solver) or model.rating()] for solver in gains]
        new = model.rate(teams, scores=[fmean(part) for part in gains.values()])
        rated |= {solver: team[0] for solver, team in zip(gains, new, strict=True)}
    return {solver: rating.ordinal() for solver, rating in rated.items()}
