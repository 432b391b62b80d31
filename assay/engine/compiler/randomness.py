"""Random numbers of the state: what `torch.nn.Dropout`, `torch.rand` and their kin draw inside a training step.

    with Randomness(key, step):
        loss = module(x)

Inside the block PyTorch's random operations draw Philox words under the key and step instead of the global generator,
in eager PyTorch as well as in capture: element i of a draw comes from word i of a stream of its own, numbered in the
order of draws. Operations that have no such form are refused, so that no hidden generator gets a say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from assay.engine import ops
from assay.engine.compiler.hidden.lines import checkpoint_call, here
from assay.engine.compiler.modes import DEVICE, QuickMode, device_of
from assay.protocol.errors import NumericsError

aten = torch.ops.aten

FIRST_STREAM = 1
"""Streams below belong to the drawing of batches."""

_BITS = 24
"""A word's top 24 bits are exact in f32: uniform numbers are multiples of 2^-24."""


class Randomness(QuickMode):
    """While active, random operations of PyTorch draw Philox words under key i32 [2] and step i32 [2].

    first_stream: of the first draw; `stream` is the next free one. While `is_closed` nothing may be drawn.

    Raises (inside the block):
        NumericsError: HiddenRandomness.
    """

    def __init__(self, key: Tensor, step: Tensor, first_stream: int = FIRST_STREAM) -> None:
        super().__init__()
        self.key, self.step, self.stream = key, step, first_stream
        self.is_closed = False
        self._checkpoints: list[str] = []
        """The user's lines that checkpoint a layer of PyTorch's which has drawn."""

    def words(self, shape: Sequence[int]) -> Tensor:
        """i32 words of the next stream."""
        found: Tensor = ops.random_words(self.key, self.step, self.stream, math.prod(shape))
        self.stream += 1
        return found.reshape(tuple(shape))

    def uniform(self, shape: Sequence[int]) -> Tensor:
        """f32 multiples of 2^-24 in [0, 1)."""
        top = (self.words(shape) >> (32 - _BITS)) & ((1 << _BITS) - 1)
        return top.to(torch.float32) * 2.0**-_BITS

    def normal(self, shape: Sequence[int]) -> Tensor:
        """f32 normal numbers by Box and Muller (1958) from two streams; at most 5.8 in size."""
        radius = torch.sqrt(torch.log(1.0 - self.uniform(shape)) * -2.0)
        return radius * torch.cos(self.uniform(shape) * (2.0 * math.pi))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Replaces what draws at random; passes on all else."""
        if func is DEVICE:
            return device_of(args[0])
        replacement = _REPLACED.get(func)
        if replacement is not None:
            if self.is_closed:
                raise self._drawn_again()
            line = checkpoint_call()
            if line is not None and line not in self._checkpoints:
                self._checkpoints.append(line)
            return replacement(self, *args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags and func not in _WITHOUT_DROPOUT:
            raise NumericsError(
                f"{func} draws random numbers that no state determines{here()}.",
                code="HiddenRandomness",
                remedy="Use dropout, rand, randn, randint, randperm or bernoulli, without generators of their own.",
            )
        return func(*args, **(kwargs or {}))

    def _drawn_again(self) -> NumericsError:
        """The refusal of a draw in the backward pass: at its own line, or else the lines that can have caused it."""
        line = here()
        if not line and self._checkpoints:
            line = f" of what is checkpointed at {' or '.join(self._checkpoints)}"
        return NumericsError(
            f"A layer that drops is computed again in the backward pass{line}, which draws random numbers.",
            code="HiddenRandomness",
            remedy="Checkpoint no layer that draws: a program keeps what its gradients need anyway.",
        )


def _made(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x if dtype is None else x.to(dtype)


def _bernoulli(mode: Randomness, x: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    _no_generator(generator)
    return (mode.uniform(x.shape) < (x if p is None else p)).to(x.dtype)


def _bernoulli_in_place(mode: Randomness, x: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    _no_generator(generator)
    return x.copy_(mode.uniform(x.shape) < p)


def _dropout(mode: Randomness, x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0.0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    kept = mode.uniform(x.shape) < 1.0 - p
    return x * kept * (0.0 if p == 1.0 else 1.0 / (1.0 - p)), kept


def _rand(mode: Randomness, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return _made(mode.uniform(size), dtype)


def _rand_like(mode: Randomness, x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _made(mode.uniform(x.shape), dtype or x.dtype)


def _randn(mode: Randomness, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return _made(mode.normal(size), dtype)


def _randn_like(mode: Randomness, x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _made(mode.normal(x.shape), dtype or x.dtype)


def _integers(mode: Randomness, low: int, high: int, size: Sequence[int], dtype: Any) -> Tensor:
    """Integers in [low, high): high products of words, at most (high - low) / 2^32 from uniform."""
    if not 0 < high - low < 1 << 31:
        raise NumericsError(f"{high - low} different random integers have no form.", remedy="Ask for fewer than 2^31.")
    drawn: Tensor = ops.mulhi_u32(mode.words(size), torch.tensor(high - low, dtype=torch.int32))
    return (drawn + low).to(dtype or torch.int64)


def _with(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A draw that takes a generator, for which None is given: libraries hand on what they were not given."""

    def drawn(mode: Randomness, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        _no_generator(generator)
        return draw(mode, *args, **kwargs)

    return drawn


def _randint(mode: Randomness, high: int, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(mode, 0, high, size, dtype)


def _randint_low(mode: Randomness, low: int, high: int, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(mode, low, high, size, dtype)


def _randint_like(mode: Randomness, x: Tensor, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return _integers(mode, 0, high, x.shape, dtype or x.dtype)


def _randperm(mode: Randomness, n: int, *, dtype: Any = None, **_: Any) -> Tensor:
    """The ranks of n uniform numbers; equal ones stand in order."""
    ranks: Tensor = ops.rank(mode.uniform((n,)))
    return ranks.to(dtype or torch.int64)


def _uniform_in_place(
    mode: Randomness, x: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None
) -> Tensor:
    _no_generator(generator)
    return x.copy_(mode.uniform(x.shape) * (high - low) + low)


def _normal_in_place(
    mode: Randomness, x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Tensor:
    _no_generator(generator)
    return x.copy_(mode.normal(x.shape) * std + mean)


def _normal(
    mode: Randomness, mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, **_: Any
) -> Tensor:
    """Of means or deviations that are tensors, or of both; of none a size is given."""
    _no_generator(generator)
    given = [t.shape for t in (mean, std) if isinstance(t, Tensor)]
    drawn = mode.normal(torch.broadcast_shapes(*given) if given else size)
    return drawn * std + mean


def _exponential_in_place(mode: Randomness, x: Tensor, rate: float = 1.0, *, generator: Any = None) -> Tensor:
    _no_generator(generator)
    return x.copy_(torch.log(1.0 - mode.uniform(x.shape)) / -rate)


def _no_generator(generator: Any) -> None:
    if generator is not None:
        raise NumericsError(
            f"A generator of its own is given to a random operation{here()}.",
            code="HiddenRandomness",
            remedy="Leave the generator out: inside a training step numbers come from the state.",
        )


_WITHOUT_DROPOUT = frozenset({aten._scaled_dot_product_flash_attention_for_cpu.default})
"""Attention that PyTorch takes only where no weight is dropped."""

_REPLACED: dict[Any, Callable[..., Any]] = {
    aten.bernoulli.default: _bernoulli,
    aten.bernoulli.p: _bernoulli,
    aten.bernoulli_.float: _bernoulli_in_place,
    aten.bernoulli_.Tensor: _bernoulli_in_place,
    aten.native_dropout.default: _dropout,
    aten.rand.default: _rand,
    aten.rand_like.default: _rand_like,
    aten.randn.default: _randn,
    aten.randn_like.default: _randn_like,
    aten.randint.default: _randint,
    aten.randint.low: _randint_low,
    aten.randint_like.default: _randint_like,
    aten.randperm.default: _randperm,
    aten.rand.generator: _with(_rand),
    aten.randn.generator: _with(_randn),
    aten.randint.generator: _with(_randint),
    aten.randint.low_generator: _with(_randint_low),
    aten.randperm.generator: _with(_randperm),
    aten.uniform_.default: _uniform_in_place,
    aten.normal_.default: _normal_in_place,
    aten.normal.Tensor_Tensor: _normal,
    aten.normal.Tensor_float: _normal,
    aten.normal.float_Tensor: _normal,
    aten.normal.float_float: _normal,
    aten.exponential_.default: _exponential_in_place,
}
