"""The loss of what a solver trains, for its screen: on a few examples of its shard, and on a few held-out ones.

A step gives no loss, and a solver has programs and no recipe. So once a round, when the work is committed, the loss
that the run's card names is evaluated on one batch of each kind, exactly; a preset's by the stock PyTorch module. It
moves nothing: without a card, or where it would take more than a hundredth of the process's CPU time, there is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final, Protocol

from assay.protocol.errors import UnavailableError
from assay.protocol.program.nodes import Map, ScatterSum
from assay.protocol.program.programfile import encode_program
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.state import Scalar, TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Round, Seat
from assay.sponsor.cards import Card, read_card
from assay.sponsor.validation import CapturedLoss, CardValidation, chunk_of, held_out
from assay_ledger.deadline import waiting_at_most

if TYPE_CHECKING:
    from assay.protocol.program.program import Program
    from assay_ledger.rounds.archive import Archive
    from assay_ledger.store.objects import Objects

SHARE: Final = 0.01
"""Of the process's CPU time, that all evaluations but the first may take."""

STORE_S: Final = 5.0
"""That a store may keep a solver waiting for what only its screen needs."""

MOST_HELD_OUT: Final = 1 << 28
"""Bytes of held-out examples that a solver reads for it; more are left to who asks for the loss (`model losses`)."""

FILE_ROOM: Final = 2
"""Times the bytes of the step program that are read for that of its loss."""

TEXT_ROOM: Final = 5
"""Bytes of text that are read for each token to train on: nine in ten of its characters are, of four bytes at most."""

WINDOWS: Final = 16
"""Of a preset's text that are evaluated."""


@dataclass(frozen=True, slots=True)
class WorkLoss:
    """Mean losses of some weights, and on how many examples each; None where a run has held nothing out."""

    training: float
    examples: int
    validation: float | None = None
    held_out: int = 0

    def __str__(self) -> str:
        text = f"training loss {self.training:.4f} ({self.examples} examples of its shard)"
        if self.validation is None:
            return text
        return f"{text}, validation loss {self.validation:.4f} ({self.held_out} held out)"


class _Weigher(Protocol):
    """What evaluates the loss of a run."""

    def weigh(self, parameters: Sequence[bytes], first: int, length: int) -> WorkLoss:
        """The losses of parameters, on examples of the shard that begins at entry `first` of the data."""
        ...


class WorkLosses:
    """The losses of one solver's work. `cpu`: seconds of CPU time that this process has used."""

    def __init__(self, archive: Archive, cpu: Callable[[], float] = time.process_time) -> None:
        self._archive, self._cpu = archive, cpu
        self._weigher: _Weigher | None = None
        self.spent: list[float] = []
        """CPU seconds of each evaluation so far, that of the first with all that it had to fetch and make."""

    def after(self, round_: Round, seat: Seat, parameters: Sequence[bytes]) -> WorkLoss | None:
        """The losses of what a seat's work in a round ended with; None where it is not the time for another one.

        Raises UnavailableError (CardWrong, NoLoss, and what the store raises), UserError (ProgramTooLarge).
        """
        begin, later = self._cpu(), self.spent[1:]
        if self.spent and sum(later) + max(later, default=0.0) > SHARE * begin:
            return None
        with waiting_at_most(STORE_S):
            if self._weigher is None:
                self._weigher = _weigher(self._archive)
            scalars = self._archive.facts.round_scalars(round_, seat)
            first = scalars.shard * scalars.shard_length
            found = self._weigher.weigh(parameters, first, scalars.shard_length)
        self.spent.append(self._cpu() - begin)
        return found


def operations(program: Program) -> int:
    """What a program computes, roughly: terms and scalar instructions of all its elements."""
    total = 0
    for node in program.nodes:
        each = len(node.code) // 8 if isinstance(node, Map) else prod(getattr(node, "red", ()))
        # Kernels look at each term once, whatever the number of places.
        count = node.spec.dims[1:] if isinstance(node, ScatterSum) else node.spec.dims
        total += prod(count) * max(each, 1)
    return total


def examples_of(chunk: TensorSpec, data: TensorSpec, given: bytes, first: int, length: int) -> bytes:
    """As many entries or windows of a shard as `chunk` holds, evenly spaced; laid out as it is.

    given: the bytes of the data, laid out as `data` [N, ...]; chunk is [B, ...] or, of windows, [B, W, ...]. Raises
    UnavailableError (CardWrong): it is neither, or longer than the shard.
    """
    window = chunk.dims[1] if len(chunk.dims) == len(data.dims) + 1 else 1
    count, choices = chunk.dims[0], length - (window - 1)
    dims = (count, *((window,) if len(chunk.dims) > len(data.dims) else ()), *data.dims[1:])
    if chunk != TensorSpec(data.dtype, dims) or choices < 1:
        raise UnavailableError(
            "The run's card names a loss whose examples are not laid out as the run's data.",
            code="CardWrong",
            remedy="Ask the sponsor for the right card.",
        )
    row = data.nbytes // data.dims[0]
    starts = [first + k * choices // count for k in range(count)]
    return b"".join(given[s * row : (s + window) * row] for s in starts)


# --- inside


def _weigher(archive: Archive) -> _Weigher:
    card = read_card(archive.objects.store, archive.facts.address)
    return _StockLoss(archive, card) if card.preset is not None else _CardLoss(archive, card)


class _CardLoss:
    """By the program that a recipe's card names."""

    def __init__(self, archive: Archive, card: Card) -> None:
        from assay.engine.runtime.room import check_memory

        objects, root = archive.objects, card.loss if card.validation is None else card.validation.program
        if root is None:
            raise UnavailableError("The run's card names no program of its loss.", code="NoLoss")
        # Attack: who may write to the store gives the run a card of its own, whose loss takes days or all memory: to be
        # computed, or to be read and made ready, a node at a time.
        program, step = objects.program(root, FILE_ROOM * len(encode_program(archive.step))), archive.step
        chunk = chunk_of(program, archive.specs(TrainingList.PARAMETERS))
        is_longer = len(program.nodes) > len(step.nodes) or operations(program) > operations(step)
        if violations(program) or is_longer:
            raise UnavailableError("The loss that the run's card names takes more than a step.", code="CardWrong")
        check_memory(program)
        self._archive, self._loss = archive, CapturedLoss(program, chunk)
        self._held_out = b"" if card.validation is None else _first(objects, card.validation, chunk)

    def weigh(self, parameters: Sequence[bytes], first: int, length: int) -> WorkLoss:
        """See _Weigher."""
        chunk, data = self._loss.chunk, self._archive.specs(TrainingList.SCALARS)[Scalar.DATA]
        training = self._loss.of(parameters, examples_of(chunk, data, self._archive.data, first, length))
        if not self._held_out:
            return WorkLoss(training, chunk.dims[0])
        return WorkLoss(training, chunk.dims[0], self._loss.of(parameters, self._held_out), chunk.dims[0])


class _StockLoss:
    """By a preset's stock module, on windows of its text."""

    def __init__(self, archive: Archive, card: Card) -> None:
        from assay.sponsor.cards import read_corpus
        from assay.training.model import build_model

        tokens = archive.specs(TrainingList.SCALARS)[Scalar.DATA].dims[0]
        # Attack: a card of a gigabyte of text, which is cut into tokens before it is known to be another one.
        most = TEXT_ROOM * tokens
        preset, self._corpus = read_corpus(archive.objects.store, card, archive.charter.training.data, most)
        self._model = build_model(preset, len(self._corpus.vocabulary))
        self._specs = archive.specs(TrainingList.PARAMETERS)
        # Attack: a card of another preset, or of a text with the run's tokens and letters that its model does not know.
        if [tuple(p.shape) for p in self._model.parameters()] != [spec.dims for spec in self._specs]:
            raise UnavailableError(
                "The preset and the text that the run's card names are not those of the run's model.",
                code="CardWrong",
                remedy="Ask the sponsor for the right card.",
            )

    def weigh(self, parameters: Sequence[bytes], first: int, length: int) -> WorkLoss:
        """See _Weigher."""
        from assay.engine.runtime.values.state_io import tensor_from_bytes
        from assay.training.evaluate import split_loss

        tensors = [tensor_from_bytes(s, data) for s, data in zip(self._specs, parameters, strict=True)]
        context, found = self._model.context, []
        for tokens in (self._corpus.train[first : first + length], self._corpus.validation):
            few = tokens[: WINDOWS * context + 1]
            windows = (few.numel() - 1) // context
            found.append((split_loss(self._model, tensors, few, context), windows) if windows else (None, 0))
        (training, examples), (validation, count) = found
        if training is None:
            raise UnavailableError("The shard is shorter than a window.", code="NoLoss")
        return WorkLoss(training, examples, validation, count)


def _first(objects: Objects, card: CardValidation, chunk: TensorSpec) -> bytes:
    """The first batch of the held-out examples; none where reading them takes more than a solver's screen is worth.

    Attack: a card of a thousand gigabytes of them, which are read whole before their root is known.
    """
    if card.count // chunk.dims[0] * chunk.nbytes > MOST_HELD_OUT:
        return b""
    return held_out(objects, card, chunk)[: chunk.nbytes]
