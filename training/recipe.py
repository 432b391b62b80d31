"""A recipe: an own module, loss, optimizer and data, and the training step that follows from them.

    def factory():
        module = MyModule()
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        return Recipe(module, loss, optimizer, data=(inputs, targets), batch_size=32)

`loss(module, *batch)` is ordinary PyTorch and returns a scalar. One step draws a batch from the data in the state,
computes gradients, perhaps clips them, and updates; dropout and `torch.rand` draw from the state too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from assay.engine import ops
from assay.engine.dtypes import PROTOCOL, to_bytes
from assay.engine.randomness import Randomness
from assay.protocol.errors import UserError
from assay.training.optimizer import Group, Grouped, Optimizer, clip_by_global_norm
from assay.training.schedules import Schedule
from assay.training.state import SCALAR_NAMES, Lists, Scalars
from assay.training.step import BATCH_STREAM
from assay.training.torch_optimizers import translated

Loss = Callable[..., Tensor]


@dataclass(frozen=True)
class Recipe:
    """What a user brings.

    module: with its starting values; parameters that need no gradient stay as they are.
    loss: (module, *batch) to a f32 scalar.
    optimizer: SGD, Adam, AdamW or Muon of `torch.optim`, or an object like those of `training.optimizer` together with
    `learning_rate`; no state of a stock optimizer is taken over.
    data: tensors whose first dimension counts examples (the shard); a step draws `batch_size` with replacement.
    window: data is one stream [L], examples are windows of so many elements.
    micro_batches: pieces of the batch whose gradients are computed apart, summed exactly and averaged.
    clip_norm: limit of the gradients' joint norm. schedule: see `training.schedules`.

    Raises:
        UserError: BadRecipe, UnsupportedOptimizer.
    """

    module: nn.Module
    loss: Loss
    optimizer: torch.optim.Optimizer | Optimizer
    data: Sequence[Tensor]
    batch_size: int
    window: int | None = None
    micro_batches: int = 1
    clip_norm: float | None = None
    schedule: Schedule | None = None
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        _check(self)


def _bad(what: str, remedy: str) -> UserError:
    return UserError(what, code="BadRecipe", remedy=remedy)


def _check(recipe: Recipe) -> None:
    """Everything that can be wrong with a recipe before its loss is called."""
    if not isinstance(recipe.module, nn.Module):
        raise _bad(f"module is a {type(recipe.module).__name__}.", "Give a torch.nn.Module.")
    if not callable(recipe.loss):
        raise _bad(f"loss is a {type(recipe.loss).__name__}.", "Give a function (module, *batch) to a scalar.")
    data: Any = recipe.data
    if not isinstance(data, tuple | list) or not data or not all(isinstance(t, Tensor) and t.ndim for t in data):
        raise _bad("data is no sequence of tensors with a first dimension.", "Give a tuple such as (inputs, targets).")
    if len({t.shape[0] for t in data}) != 1 or not data[0].shape[0]:
        raise _bad(
            f"The data tensors hold {[t.shape[0] for t in data]} examples.", "Give as many of each, at least one."
        )
    for name, t in _tensors(recipe):
        if t.dtype not in PROTOCOL:
            raise _bad(f"{name} has the element type {t.dtype}, which no state holds.", "Convert it to float32.")
        if t.dtype is torch.int64 and t.numel() and (int(t.max()) >= 2**31 or int(t.min()) < -(2**31)):
            raise _bad(f"{name} holds integers beyond 32 bits, which no state holds.", "Keep them within 32 bits.")
    if recipe.batch_size < 1 or recipe.micro_batches < 1 or recipe.batch_size % recipe.micro_batches:
        raise _bad(
            f"{recipe.batch_size} examples do not divide into {recipe.micro_batches} micro-batches.",
            "Choose a batch_size that is a multiple of micro_batches.",
        )
    if recipe.window is not None and not 0 < recipe.window < data[0].shape[0]:
        raise _bad(
            f"A window of {recipe.window} does not fit a stream of {data[0].shape[0]}.", "Choose a shorter window."
        )
    if not any(p.requires_grad for p in recipe.module.parameters()):
        raise _bad("The module has no parameter that needs a gradient.", "Leave requires_grad on where it shall learn.")
    if not isinstance(recipe.optimizer, torch.optim.Optimizer):
        if not all(callable(getattr(recipe.optimizer, verb, None)) for verb in ("size", "blank", "update")):
            raise _bad(
                f"optimizer is a {type(recipe.optimizer).__name__}.",
                "Give torch.optim.SGD, Adam, AdamW or Muon, or an object with size, blank and update.",
            )
        if recipe.learning_rate is None:
            raise _bad("An optimizer of one's own comes without a learning rate.", "Give learning_rate.")


def _tensors(recipe: Recipe) -> list[tuple[str, Tensor]]:
    named: list[tuple[str, Tensor]] = [(f"Parameter {n}", p) for n, p in recipe.module.named_parameters()]
    named += [(f"Buffer {n}", b) for n, b in recipe.module.named_buffers()]
    return named + [(f"Data tensor {k}", t) for k, t in enumerate(recipe.data)]


_LossAndGradients = tuple[Tensor, list[Tensor]]


class _Carrier(nn.Module):
    """The module with its loss as one module, so that one stateless call covers whatever the loss calls."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.module, self.loss = module, loss

    def forward(self, batch: Sequence[Tensor], wanted: Sequence[Tensor], mode: Randomness) -> _LossAndGradients:
        """The loss, and its gradients (zero where it does not reach)."""
        loss = self.loss(self.module, *batch)
        if not wanted:
            return loss, []
        # Inside the stateless call: layers that are computed again for their gradients must find the same parameters.
        mode.is_closed = True
        try:
            slopes = torch.autograd.grad(loss, list(wanted), allow_unused=True, materialize_grads=True)
        finally:
            mode.is_closed = False
        return loss, list(slopes)


class RecipeStep:
    """One step of a recipe: (parameters, optimizer, scalars) to the same lists one step later.

    Parameters: all of the module, tied ones once, in `named_parameters` order. Optimizer: the optimizer's list, then
    the buffers that the step changes (running statistics). Scalars: the protocol's, with further data tensors at the
    end. Buffers that no step changes are constants of the program. int64 is kept as i32.

    Raises:
        UserError: LossFails, when the loss cannot be computed on the recipe's own data or is no f32 scalar; what
            `Recipe` raises.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        named = dict(recipe.module.named_parameters())
        self.names = list(named)
        self._trained = [k for k, p in enumerate(named.values()) if p.requires_grad]
        self._start = [p.detach() for p in named.values()]
        self.optimizer: Optimizer
        given = recipe.optimizer
        if isinstance(given, torch.optim.Optimizer):
            self.optimizer, rate = translated(given, list(named.values()), self.names)
        else:
            self.optimizer, rate = Grouped((Group(tuple(self._trained), given),)), recipe.learning_rate or 0.0
        self._rate = rate if recipe.learning_rate is None else recipe.learning_rate
        self._carrier = _Carrier(recipe.module, recipe.loss)
        self.buffers: list[str] = []
        self._types: dict[str, torch.dtype] = {}
        self.buffers, self.first_loss = self._tried()

    @cached_property
    def slot_names(self) -> tuple[list[str], list[str], list[str]]:
        """What each tensor of the state is."""
        own = [f"optimizer.{k}" for k in range(self.optimizer.size(len(self.names)))]
        more = [f"data.{k}" for k in range(1, len(self.recipe.data))]
        return self.names, [*own, *self.buffers], [*SCALAR_NAMES, *more]

    @property
    def output_sizes(self) -> list[int]:
        """Tensors per list."""
        return [len(part) for part in self.slot_names]

    def state(self, *, step: int = 0, key: tuple[int, int] = (0, 0)) -> Lists:
        """The state before the first step: the module's own values, blank moments, all of the data."""
        module = self.recipe.module
        values = {n: b.detach() for n, b in module.named_buffers()}
        buffers = [_stored(values[n]) for n in self.buffers]
        data = [_stored(t) for t in self.recipe.data]
        scalars = Scalars.of(data[0], learning_rate=self._rate, step=step, key=key, shard_length=data[0].shape[0])
        parameters = [p.clone() for p in self._start]
        return parameters, [*self.optimizer.blank(parameters), *buffers], [*scalars.to_list(), *data[1:]]

    def batch(self, scalars: Sequence[Tensor]) -> list[Tensor]:
        """The examples of the step that these scalars name, in the element types that the recipe's data had."""
        now, more = Scalars.from_list(scalars[: len(SCALAR_NAMES)]), scalars[len(SCALAR_NAMES) :]
        words = ops.random_words(now.key, now.step, BATCH_STREAM, self.recipe.batch_size)
        window = self.recipe.window
        choices = now.shard_length if window is None else now.shard_length - (window - 1)
        rows = now.shard_start + ops.mulhi_u32(words, choices)
        if window is not None:
            rows = rows[:, None] + torch.arange(window, dtype=torch.int32)
        taken = [ops.take(t, rows) for t in (now.data, *more)]
        return [t.to(given.dtype) for t, given in zip(taken, self.recipe.data, strict=True)]

    def loss_of(
        self,
        parameters: Sequence[Tensor],
        buffers: Sequence[Tensor],
        batch: Sequence[Tensor],
        mode: Randomness,
        wanted: Sequence[Tensor] = (),
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The loss, its gradients for the parameters `wanted`, and the buffers left behind; no argument is changed."""
        names = [f"module.{n}" for n in (*self.names, *self.buffers)]
        copies = [b.clone().to(self._types[n]) for n, b in zip(self.buffers, buffers, strict=True)]
        given = dict(zip(names, [*parameters, *copies], strict=True))
        with mode:
            loss, slopes = functional_call(self._carrier, given, (batch, wanted, mode))
        return loss, slopes, [_stored(given[f"module.{n}"].detach()) for n in self.buffers]

    def gradients(
        self, parameters: Sequence[Tensor], buffers: Sequence[Tensor], batch: Sequence[Tensor], mode: Randomness
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Gradients of the mean loss over micro-batches (zero where there is none), and new buffers."""
        pieces = self.recipe.micro_batches
        size = self.recipe.batch_size // pieces
        parts: list[list[Tensor]] = []
        now = list(buffers)
        for m in range(pieces):
            leaves = [p.detach().requires_grad_(k in self._trained) for k, p in enumerate(parameters)]
            piece = [t[m * size : (m + 1) * size] for t in batch]
            with torch.enable_grad():
                _, slopes, now = self.loss_of(leaves, now, piece, mode, [leaves[k] for k in self._trained])
            parts.append(slopes)
        if pieces == 1:
            return parts[0], now
        # Gradients stand side by side and are summed exactly: the order of micro-batches leaves no trace.
        return [torch.stack(same).sum(0) / float(pieces) for same in zip(*parts, strict=True)], now

    def __call__(
        self, parameters: Sequence[Tensor], optimizer: Sequence[Tensor], scalars: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The state one step later."""
        now = Scalars.from_list(scalars[: len(SCALAR_NAMES)])
        own = len(optimizer) - len(self.buffers)
        mode = Randomness(now.key, now.step)
        trained, buffers = self.gradients(parameters, optimizer[own:], self.batch(scalars), mode)
        if self.recipe.clip_norm is not None:
            trained = clip_by_global_norm(trained, self.recipe.clip_norm)
        rate = now.learning_rate
        if self.recipe.schedule is not None:
            rate = rate * self.recipe.schedule(now.step[0].to(torch.float32))
        slopes = dict(zip(self._trained, trained, strict=True))
        gradients = [slopes[k] if k in slopes else torch.zeros_like(p) for k, p in enumerate(parameters)]
        news, moments = self.optimizer.update(parameters, gradients, optimizer[:own], rate)
        news = [new if k in slopes else parameters[k] for k, new in enumerate(news)]
        return news, [*moments, *buffers], [*now.advanced().to_list(), *scalars[len(SCALAR_NAMES) :]]

    def _tried(self) -> tuple[list[str], float]:
        """The buffers that one loss changes, in place or by another tensor, and that loss."""
        named = dict(self.recipe.module.named_buffers())
        copies = {n: b.detach().clone() for n, b in named.items()}
        given = {f"module.{n}": b for n, b in copies.items()}
        given |= {f"module.{n}": p for n, p in zip(self.names, self._start, strict=True)}
        versions = {n: b._version for n, b in copies.items()}
        scalars = self.state()[2]
        now = Scalars.from_list(scalars[: len(SCALAR_NAMES)])
        try:
            size = self.recipe.batch_size // self.recipe.micro_batches
            mode = Randomness(now.key, now.step)
            with torch.no_grad(), mode:
                piece = [t[:size] for t in self.batch(scalars)]
                loss, _ = functional_call(self._carrier, given, (piece, (), mode))
        except UserError:
            raise
        except Exception as error:
            reason = (str(error).strip().splitlines() or [""])[0]
            raise UserError(
                f"The loss fails on the recipe's own data: {type(error).__name__}: {reason}",
                code="LossFails",
                remedy="Make loss(module, *batch) work in plain PyTorch first; a batch has the data's element types.",
            ) from error
        if not isinstance(loss, Tensor) or loss.ndim != 0 or loss.dtype is not torch.float32:
            found = f"{loss.dtype} {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise UserError(
                f"The loss is {found}.", code="LossFails", remedy="Return one float32 number, such as a mean."
            )
        # Not every write is counted by `_version`: batch norm's are not.
        changed = [
            n
            for n, b in copies.items()
            if given[f"module.{n}"] is not b or b._version != versions[n] or to_bytes(b) != to_bytes(named[n])
        ]
        self._types = {n: named[n].dtype for n in changed}
        return changed, float(loss)


def _stored(t: Tensor) -> Tensor:
    """The tensor in an element type that a state holds."""
    return t.to(torch.int32) if t.dtype is torch.int64 else t
