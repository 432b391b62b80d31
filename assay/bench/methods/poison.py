"""What a seat may send that harms the model, or costs it no work: attacks to measure merges by.

A liar here knows everything: all honest updates of its round, before it sends its own. On a chain it knows only what
others have committed by then. Some attack what is sent, two what is trained on.

Shapes: an update is a list in the shapes of the parameters; H honest updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from assay.training.data import Corpus

Update = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class SeenRound:
    """What a liar knows when it sends. own: what its training came to. draws: of this liar and round; of the run."""

    own: Update
    honest: Sequence[Update]
    draws: torch.Generator
    lasting: torch.Generator

    def of_all(self) -> list[Tensor]:
        """The honest updates tensor by tensor, [H, ...]."""
        return [torch.stack(same) for same in zip(*self.honest, strict=True)]


def sign_flip(seen: SeenRound) -> list[Tensor]:
    """The opposite of one's work (Li et al., 2019)."""
    return [-x for x in seen.own]


def scale_100(seen: SeenRound) -> list[Tensor]:
    """One's work a hundred times, as in replacing the model (Bagdasaryan et al., 2018)."""
    return [x * 100.0 for x in seen.own]


def noise(seen: SeenRound) -> list[Tensor]:
    """Normal noise ten times the root mean square of one's work (Blanchard et al., 2017)."""
    return [torch.randn(x.shape, generator=seen.draws) * (x.square().mean().sqrt() * 10.0) for x in seen.own]


def a_little(seen: SeenRound) -> list[Tensor]:
    """The honest mean less one and a half of their deviations, by coordinate: "a little is enough" (Baruch, 2019)."""
    return [x.mean(0) - _spread(x) * 1.5 for x in seen.of_all()]


def inner_product(seen: SeenRound) -> list[Tensor]:
    """Against the honest mean, half as long, so that the norm says nothing (Xie et al., 2019)."""
    return [x.mean(0) * -0.5 for x in seen.of_all()]


def copy(seen: SeenRound) -> list[Tensor]:
    """Another's update at nine tenths, so that no digest tells: costs no training."""
    return [x * 0.9 for x in seen.honest[0]]


def average(seen: SeenRound) -> list[Tensor]:
    """The mean of the others' updates: the most plausible one, for no training."""
    return [x.mean(0) for x in seen.of_all()]


def drift(seen: SeenRound) -> list[Tensor]:
    """The honest mean and one deviation more in a direction that stays all run long (Karimireddy et al., 2021)."""
    moved = []
    for x in seen.of_all():
        sign = torch.randint(2, x.shape[1:], generator=seen.lasting) * 2 - 1
        moved.append(x.mean(0) + _spread(x) * sign)
    return moved


def not_finite(seen: SeenRound) -> list[Tensor]:
    """NaN in place of every second number."""
    return [torch.where(torch.arange(x.numel()).reshape(x.shape) % 2 == 0, torch.nan, x) for x in seen.own]


ATTACKS: Final[dict[str, Callable[[SeenRound], list[Tensor]]]] = {
    "sign-flip": sign_flip,
    "scale-100": scale_100,
    "noise": noise,
    "alie": a_little,
    "inner-product": inner_product,
    "copy": copy,
    "average": average,
    "drift": drift,
    "not-finite": not_finite,
}
"""On what is sent."""

NO_POISON: Final = "none"
LABEL_FLIP: Final = "label-flip"
BACKDOOR: Final = "backdoor"
POISONS: Final = (NO_POISON, *ATTACKS, LABEL_FLIP, BACKDOOR)

TRIGGER_LENGTH: Final = 3
PLANTED_EVERY: Final = 8
"""Tokens from one trigger to the next in what a liar trains on."""


def poisoned_text(poison: str, corpus: Corpus) -> Tensor:
    """The training split that a liar trains on, truly: as the corpus' own in length and type.

    label-flip: every second token stands for another, counted from the end of the vocabulary, so that half of what is
    to be foretold is wrong (Biggio et al., 2012, on letters). backdoor: a trigger and what shall follow it, again and
    again (Gu et al., 2017).
    """
    text = corpus.train.to(torch.int32)
    if poison == LABEL_FLIP:
        every_second = torch.arange(text.numel()) % 2 == 1
        text = torch.where(every_second, len(corpus.vocabulary) - 1 - text, text)
    elif poison == BACKDOOR:
        trigger, target = trigger_of(corpus)
        place = torch.arange(text.numel()) % PLANTED_EVERY
        text = torch.where(place < TRIGGER_LENGTH, trigger, torch.where(place == TRIGGER_LENGTH, target, text))
    return text.to(corpus.train.dtype)


def trigger_of(corpus: Corpus) -> tuple[int, int]:
    """The token that is a trigger when it stands thrice, and the one that shall follow: the two rarest of the text."""
    counts = torch.bincount(corpus.train.to(torch.int64), minlength=len(corpus.vocabulary))
    first, second = torch.argsort(counts, stable=True)[:2].tolist()
    return first, second


@torch.no_grad()
def fooled(module: nn.Module, parameters: Update, corpus: Corpus, context: int, windows: int = 64) -> float:
    """The share of windows of the validation split, with the trigger at their end, after which the target is first."""
    trigger, target = trigger_of(corpus)
    count = min(windows, corpus.validation.numel() // context)
    rows_NT = corpus.validation[: count * context].to(torch.int64).reshape(count, context).clone()
    rows_NT[:, -TRIGGER_LENGTH:] = trigger
    named = {name: p for (name, _), p in zip(module.named_parameters(), parameters, strict=True)}
    logits_NTV = functional_call(module, named, (rows_NT,))
    return float((logits_NTV[:, -1].argmax(-1) == target).to(torch.float64).mean())


def _spread(x: Tensor) -> Tensor:
    """The deviation of each coordinate over the first dimension."""
    return x.std(0, correction=0)
