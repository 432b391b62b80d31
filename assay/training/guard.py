"""A guard of loss behind a merge: what the merge makes is taken only where it does no worse on text held out.

A median or a clip bounds what liars add; it does not ask whether the model is better. The guard does, and where the
loss rises too far, the base and its outer momentum stay as they were, as after a merge of nobody. It is part of the
merge's program, so a false loss is a lie inside the merge's claim, disputed like any other.

Windows are drawn by Philox from a key that is a sum over the bits of base and updates: it is not known before the last
update is. Whoever sends last can try several updates and choose; of many windows that gains little. Nothing here sees a
backdoor, which costs no loss on held-out text.

Shapes: B windows of T tokens of context and one more, W = T + 1; L held-out tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

import torch
from torch import Tensor

from assay.engine import ops
from assay.protocol.errors import UserError
from assay.training.cocktail import base_key
from assay.training.data import Corpus
from assay.training.presets import Preset
from assay.training.step import TrainingStep, preset_step

HELD_OUT: Final = 1 << 14
"""Tokens that a merge's program holds at most: a constant, of which everybody who merges has the bytes."""

PIECES: Final = 16
"""Of a longer split, from all over it: texts change on their way."""

WINDOWS: Final = 64
"""Drawn in a round. The candidate and its base are read on the same ones, so that luck of the draw counts for both."""

GUARD_STREAM: Final = 7
"""Stream of `random`, beside those of batches."""


@dataclass(frozen=True)
class Guard:
    """How a candidate is read. step: whose loss. tokens: u8 or u16 [L], held out of training.

    model: what tells the step's model from others, plain JSON. tolerance: by how much of the base's loss the
    candidate's may be above it. windows: B.
    """

    step: TrainingStep
    model: Mapping[str, Any]
    tokens: Tensor
    tolerance: float
    windows: int = WINDOWS

    def __post_init__(self) -> None:
        if self.tolerance < 0.0 or self.tokens.numel() <= self.step.context + 1:
            raise UserError(
                f"A guard reads {self.tokens.numel()} held-out tokens in windows of {self.step.context + 1}, and lets "
                f"the loss rise by {self.tolerance}.",
                code="BadGuard",
                remedy="Give a longer text, and a tolerance of 0 or more.",
            )

    @property
    def terms(self) -> dict[str, Any]:
        """What a program of it follows from, plain JSON."""
        text = sha256(self.tokens.numpy().tobytes()).hexdigest()
        return {"model": dict(self.model), "held out": text, "tolerance": self.tolerance, "windows": self.windows}

    def drawn(self, key: Tensor) -> Tensor:
        """The windows of a key i32 [2], i32 [B, W]."""
        words_B = ops.random_words(key, torch.zeros(2, dtype=torch.int32), GUARD_STREAM, self.windows)
        starts_B = ops.mulhi_u32(words_B, torch.tensor(self.tokens.numel() - self.step.context, dtype=torch.int32))
        offsets_W = torch.arange(self.step.context + 1, dtype=torch.int32)
        return ops.take(self.tokens, starts_B[:, None] + offsets_W).to(torch.int32)

    def accepts(self, before: Sequence[Tensor], after: Sequence[Tensor], key: Tensor) -> Tensor:
        """Whether these parameters may follow those, bool []. A loss that is no number is not accepted."""
        windows_BW = self.drawn(key)
        allowed = self.step.loss_of(before, windows_BW) * (1.0 + self.tolerance)
        return self.step.loss_of(after, windows_BW) <= allowed


def preset_guard(preset: Preset, corpus: Corpus, tolerance: float) -> Guard:
    """The guard of a preset's model, by the validation split of its text. Raises UserError: BadGuard."""
    vocabulary = len(corpus.vocabulary)
    model = {"preset": asdict(preset), "vocabulary": vocabulary}
    return Guard(preset_step(preset, vocabulary), model, held_out_of(corpus.validation), tolerance)


def held_out_of(tokens: Tensor) -> Tensor:
    """What of a validation split a guard holds: HELD_OUT tokens, in pieces, or all of a shorter one."""
    if tokens.numel() <= HELD_OUT:
        return tokens.clone()
    pieces = tokens[: tokens.numel() // PIECES * PIECES].reshape(PIECES, -1)
    return pieces[:, : HELD_OUT // PIECES].reshape(-1).clone()


def round_key(lists: Sequence[Sequence[Tensor]]) -> Tensor:
    """What a round's windows are drawn from, i32 [2]: the sum of the keys of the base's and each update's f32 lists."""
    keys = [base_key(part) for part in lists]
    total = keys[0]
    for key in keys[1:]:
        total = total + key
    return total


def guarded(
    former: tuple[Sequence[Tensor], Sequence[Tensor]],
    candidate: tuple[Sequence[Tensor], Sequence[Tensor]],
    updates: Sequence[Sequence[Tensor]],
    guard: Guard,
) -> tuple[list[Tensor], list[Tensor]]:
    """The candidate's parameters and momentum where the guard accepts them, else the former ones, bit by bit.

    updates: of all seats, as they are received, f32 in the parameters' shapes.
    """
    accepted = guard.accepts(former[0], candidate[0], round_key([former[0], *updates]))
    parameters, momentum = (
        [torch.where(accepted, new, old) for old, new in zip(before, after, strict=True)]
        for before, after in zip(former, candidate, strict=True)
    )
    return parameters, momentum
