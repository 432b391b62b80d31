"""The programs that text follows from, captured: a window (the definition), a prompt, and one more token.

Shapes: B rows, T tokens of a window or prompt, S places of a cache, L blocks, N heads, D size of a head, V vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.capture import capture
from assay.engine.compiler.hidden.guard import Known
from assay.engine.compiler.lowering.registry import FIXED14, Precision
from assay.inference.forward import NextLogits, PromptLogits, WindowLogits
from assay.protocol.program.program import Program
from assay.training.model import CharacterGPT
from assay.training.recipes.evaluation import resting
from assay.training.state import TensorLists

_ALONE: Final = threading.RLock()
"""One capture at a time: a module that another thread makes draws PyTorch's random numbers, which a capture takes for
its own function's doing and refuses."""


@dataclass(frozen=True, slots=True)
class GptShape:
    """The sizes of a preset's model: context in tokens, vocabulary in symbols."""

    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int

    def module(self) -> CharacterGPT:
        """A module of these sizes, its values not set."""
        return CharacterGPT(self.vocabulary, self.layers, self.width, self.heads, self.context)

    def cache(self, rows: int, places: int | None = None) -> Tensor:
        """An empty cache, f32 [B, L, 2, N, S, D]; of as many places as the context has unless given."""
        sizes = (rows, self.layers, 2, self.heads, places or self.context, self.width // self.heads)
        return torch.zeros(sizes)


class _Forward:
    """A module as a function from lists to lists: (parameters, inputs, ...) to one list per result."""

    def __init__(self, module: nn.Module, names: Sequence[str]) -> None:
        self._module, self._names = module, [f"model.{name}" for name in names]
        # What it calls is ordinary PyTorch of this package, or was asked for by name on the user's own command line.
        self.hidden = Known({"the module": module}, calls_are_checked=True)

    def __call__(self, parameters: Sequence[Tensor], *lists: Sequence[Tensor]) -> TensorLists:
        named = dict(zip(self._names, parameters, strict=True))
        given = tuple(t for part in lists for t in part)
        with resting(self._module), torch.no_grad():
            found = functional_call(self._module, named, given)
        return tuple([t] for t in (found if isinstance(found, tuple) else (found,)))


def window_program(shape: GptShape, precision: Precision = FIXED14, *, rows: int = 1) -> Program:
    """(parameters, (tokens i32 [B, W], length i32 [B])) to ((logits f32 [B, V])), for a preset's model."""
    with _ALONE:
        return _cached(WindowLogits(shape.module()), shape, precision, _tokens(rows, shape.context))


def prompt_program(shape: GptShape, tokens: int, precision: Precision = FIXED14, *, rows: int = 1) -> Program:
    """The same for T tokens, at most the context, to ((logits), (cache f32 [B, L, 2, N, T, D]))."""
    with _ALONE:
        return _cached(PromptLogits(shape.module()), shape, precision, _tokens(rows, tokens))


def next_program(
    shape: GptShape, precision: Precision = FIXED14, *, rows: int = 1, places: int | None = None
) -> Program:
    """(parameters, (token i32 [B], position i32 [B]), (cache)) to ((logits), (keys and values f32 [B, L, 2, N, D])).

    places: of the cache, above every position; the context's. What a row gets is the same of any that hold it.
    """
    zeros = torch.zeros(rows, dtype=torch.int32)
    with _ALONE:
        return _cached(NextLogits(shape.module()), shape, precision, [zeros, zeros], [shape.cache(rows, places)])


def own_window_program(module: nn.Module, context: int, precision: Precision = FIXED14, *, rows: int = 1) -> Program:
    """As `window_program`, of any module that maps tokens [B, W] to logits. Raises what `capture` raises."""
    names = [name for name, _ in module.named_parameters()]
    parameters = [p.detach() for _, p in module.named_parameters()]
    function = _Forward(WindowLogits(module), names)
    with _ALONE:
        return capture(function, [parameters, _tokens(rows, context)], precision).program


def _tokens(rows: int, count: int) -> list[Tensor]:
    return [torch.zeros(rows, count, dtype=torch.int32), torch.ones(rows, dtype=torch.int32)]


def _cached(module: nn.Module, shape: GptShape, precision: Precision, *lists: Sequence[Tensor]) -> Program:
    own = module.model
    assert isinstance(own, CharacterGPT)
    names = [name for name, _ in own.named_parameters()]
    parameters = [torch.zeros_like(p, requires_grad=False) for p in own.parameters()]
    description = {
        "kind": type(module).__name__,
        "shape": asdict(shape),
        "precision": asdict(precision),
        "lists": [[list(t.shape) for t in part] for part in lists],
    }
    return cached_program(
        description, lambda: capture(_Forward(module, names), [parameters, *lists], precision).program
    )
