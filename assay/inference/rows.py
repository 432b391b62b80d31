"""Several texts at once, each continued token by token: by whole windows, or with what was read kept.

Both give each row the bits that it gets alone. Shapes: B rows at once, W context, S places of a cache, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import torch
from torch import Tensor

from assay.engine.runtime.executor import KernelVariant
from assay.engine.runtime.held import HeldExecutor, held_there
from assay.engine.runtime.products.packed_pool import PackedPool
from assay.inference.model import LanguageModel
from assay.inference.programs import next_program, prompt_program
from assay.protocol.errors import InvariantError
from assay.protocol.program.program import Program

SIZES: Final = (1, 2, 4, 8, 16, 32)
"""Rows of the programs that there are; a batch takes the smallest that holds it."""

_SHORTEST: Final = 16
"""Tokens of the smallest program for prompts; others have twice as many, up to the context."""


_STEPS: Final = 8
"""Sizes of caches: programs for one more token read this many parts of a context, or fewer, or at least 16 places."""

_MOST_EXECUTORS: Final = 64
"""That are kept at once, more than there are kinds of unless contexts are very long; one more takes the place of the
one not used for longest. Weights are packed once for all of them."""

_CHECK_EVERY: Final = 16
"""Tokens between two that have a product checked against faults of the machine: of single rows a check takes longer
than all products of a token. A false answer that gets by is one that any verifier finds."""


@dataclass(eq=False, slots=True)
class TextRow:
    """A text that is being continued: all its tokens so far. place: of its cache among the others."""

    tokens: list[int] = field(default_factory=list)
    place: int = 0


class TextRows(Protocol):
    """What continues texts. most: rows at once."""

    most: int

    def admit(self, tokens: Sequence[int]) -> tuple[TextRow, Tensor]:
        """A new row and the logits [V] behind its tokens."""
        ...

    def advance(self, rows: Sequence[TextRow], tokens: Sequence[int]) -> Tensor:
        """One more token for some rows, at most `most`; the logits [B, V] behind them."""
        ...

    def release(self, row: TextRow) -> None:
        """The row is over."""
        ...


class _Executors:
    """A model's executors by what they are for, each made when it is asked for; all hold the same parameters."""

    def __init__(self, model: LanguageModel, variant: KernelVariant | None) -> None:
        self._parameters, self._variant = held_there(model.parameters, variant), variant
        self._made: dict[Hashable, HeldExecutor] = {}
        self._packed = PackedPool()

    def of(self, purpose: Hashable, program: Callable[[], Program]) -> HeldExecutor:
        """The one for a purpose, of the program that is captured for it."""
        made = self._made.pop(purpose, None) or HeldExecutor(
            program(), self._parameters, variant=self._variant, check_every=_CHECK_EVERY, pool=self._packed
        )
        self._made[purpose] = made  # now the last that was used
        if len(self._made) > _MOST_EXECUTORS:
            del self._made[next(iter(self._made))]
        return made


class WindowRows:
    """By the definition: every token from a whole window. Slower, and of any module."""

    def __init__(self, model: LanguageModel, most: int = 1, *, variant: KernelVariant | None = None) -> None:
        self._model, self._executors = model, _Executors(model, variant)
        self.most = most if most == 1 or self._is_rowwise(most) else 1

    def admit(self, tokens: Sequence[int]) -> tuple[TextRow, Tensor]:
        """See TextRows."""
        row = TextRow(list(tokens))
        return row, self._logits([row])[0]

    def advance(self, rows: Sequence[TextRow], tokens: Sequence[int]) -> Tensor:
        """See TextRows."""
        for row, token in zip(rows, tokens, strict=True):
            row.tokens.append(token)
        return torch.cat([self._logits(rows[k : k + self.most]) for k in range(0, len(rows), self.most)])

    def release(self, row: TextRow) -> None:
        """See TextRows."""

    def _logits(self, rows: Sequence[TextRow]) -> Tensor:
        size = size_for(len(rows))
        windows_BW, lengths_B = windows([row.tokens for row in rows], self._model.context, size)
        executor = self._executors.of(size, lambda: self._model.window(size))
        return executor.run([windows_BW, lengths_B])[0][0][: len(rows)]

    def _is_rowwise(self, most: int) -> bool:
        """Whether rows of the largest batch get the bits that each gets alone; of modules that we did not write.

        A module that mixes rows (statistics of a batch, say) mixes any.
        """
        if self._model.shape is not None:
            return True
        size = size_for(most)
        generator = torch.Generator().manual_seed(1)
        texts = torch.randint(self._model.vocabulary, (size, self._model.context), generator=generator).tolist()
        rows = [TextRow(text) for text in texts]
        together = self._logits(rows)
        return all(
            torch.equal(together[k].view(torch.int32), self._logits([row])[0].view(torch.int32))
            for k, row in enumerate(rows)
        )


class CachedRows:
    """With keys and values kept, for presets; a text that is longer than the context goes on by windows.

    The cache has as many places as the longest text needs, in steps: a token costs what is read of it.
    """

    def __init__(self, model: LanguageModel, most: int = 1, *, variant: KernelVariant | None = None) -> None:
        assert model.shape is not None
        self.most = most
        self._model, self._shape, self._executors = model, model.shape, _Executors(model, variant)
        self._step = max(self._shape.context // _STEPS, min(_SHORTEST, self._shape.context))
        # By turns: the pages of new memory cost more than what is copied into them.
        self._flat, self._spare = (torch.empty(model.shape.cache(size_for(most)).numel()) for _ in range(2))
        self._cache = self._shaped(self._flat, self._step)
        self._rows: list[TextRow] = []

    def admit(self, tokens: Sequence[int]) -> tuple[TextRow, Tensor]:
        """See TextRows."""
        if len(self._rows) == self.most:
            raise InvariantError(f"{self.most} rows are being continued already.")
        row = TextRow(list(tokens), len(self._rows))
        self._rows.append(row)
        try:
            return row, self._read(row)
        except BaseException:
            self.release(row)
            raise

    def advance(self, rows: Sequence[TextRow], tokens: Sequence[int]) -> Tensor:
        """See TextRows."""
        found: dict[int, Tensor] = {}
        next_ones = []
        for k, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            row.tokens.append(token)
            if len(row.tokens) > self._model.context:
                found[k] = self._read(row)
            else:
                next_ones.append(k)
        if next_ones:
            for k, logits_V in zip(next_ones, self._next([rows[k] for k in next_ones]), strict=True):
                found[k] = logits_V
        return torch.stack([found[k] for k in range(len(rows))])

    def release(self, row: TextRow) -> None:
        """See TextRows."""
        last = self._rows.pop()
        if last is not row:
            # Places stay the first ones, so that the smallest program holds them.
            self._rows[row.place] = last
            self._cache[row.place] = self._cache[last.place]
            last.place = row.place

    def _read(self, row: TextRow) -> Tensor:
        """The logits [V] behind all of a row's text, whose keys and values are kept."""
        own = row.tokens[-self._model.context :]
        count = min(max(_SHORTEST, 1 << (len(own) - 1).bit_length()), self._model.context)
        windows_1T, length_1 = windows([own], count, 1)
        executor = self._executors.of(
            ("prompt", count), lambda: prompt_program(self._shape, count, self._model.precision)
        )
        (logits_1V,), (cache,) = executor.run([windows_1T, length_1])
        self._fit()
        self._cache[row.place, :, :, :, : len(own)] = cache[0, :, :, :, : len(own)]
        return logits_1V[0]

    def _fit(self) -> None:
        """Gives the cache the places of the smallest program that holds all texts; new ones hold anything."""
        longest = min(max(len(row.tokens) for row in self._rows), self._shape.context)
        places = min(-(-longest // self._step) * self._step, self._shape.context)
        if places != self._cache.shape[4]:
            former, both = self._cache, min(places, self._cache.shape[4])
            self._flat, self._spare = self._spare, self._flat
            self._cache = self._shaped(self._flat, places)
            self._cache[:, :, :, :, :both] = former[:, :, :, :, :both]

    def _shaped(self, flat: Tensor, places: int) -> Tensor:
        """The beginning of some memory as a cache of so many places."""
        sizes = self._shape.cache(0, places).shape[1:]
        return flat[: size_for(self.most) * sizes.numel()].view(-1, *sizes)

    def _next(self, rows: Sequence[TextRow]) -> Tensor:
        """The logits [B, V] behind the last token of each row, whose earlier ones are kept."""
        self._fit()
        size, kept_places = size_for(1 + max(row.place for row in rows)), self._cache.shape[4]
        token_B, position_B = torch.zeros(size, dtype=torch.int32), torch.zeros(size, dtype=torch.int32)
        places = [row.place for row in rows]
        token_B[places] = torch.tensor([row.tokens[-1] for row in rows], dtype=torch.int32)
        positions = [len(row.tokens) - 1 for row in rows]
        position_B[places] = torch.tensor(positions, dtype=torch.int32)
        executor = self._executors.of(
            ("next", size, kept_places),
            lambda: next_program(self._shape, self._model.precision, rows=size, places=kept_places),
        )
        (logits_BV,), (kept,) = executor.run([token_B, position_B], [self._cache[:size]])
        self._cache[places, :, :, :, positions] = kept[places]
        return logits_BV[places]


def rows_of(model: LanguageModel, most: int = 1, *, variant: KernelVariant | None = None) -> TextRows:
    """The fastest way to continue texts by this model."""
    return CachedRows(model, most, variant=variant) if model.shape else WindowRows(model, most, variant=variant)


def size_for(rows: int) -> int:
    """Rows of the smallest program that holds so many. Raises InvariantError."""
    if rows > SIZES[-1]:
        raise InvariantError(f"{rows} rows are more than a program has.")
    return next(size for size in SIZES if size >= rows)


def windows(texts: Sequence[Sequence[int]], width: int, rows: int) -> tuple[Tensor, Tensor]:
    """The last tokens of each text in a window i32 [rows, width], 0 behind them, and their numbers i32 [rows].

    Rows without a text are one token 0.
    """
    made_BW, length_B = torch.zeros(rows, width, dtype=torch.int32), torch.ones(rows, dtype=torch.int32)
    for k, text in enumerate(texts):
        own = text[-width:]
        made_BW[k, : len(own)] = torch.tensor(own, dtype=torch.int32)
        length_B[k] = len(own)
    return made_BW, length_B
