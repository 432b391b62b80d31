"""What a recipe holds, and everything that can be wrong with it before its loss is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from assay.protocol.errors import UserError
from assay.training.optimizer import Optimizer
from assay.training.recipes.storage import STORABLE
from assay.training.schedules import RoundWarmup, Schedule

Loss = Callable[..., Tensor]

_LARGEST_RATE: Final = float(torch.finfo(torch.float32).max)


@dataclass(frozen=True)
class Recipe:
    """What a user brings.

    module: with its starting values, of float32, bfloat16 or float16; parameters that need no gradient stay so.
    loss: (module, *batch) to a f32 scalar, or one of 16 bits.
    optimizer: of `torch.optim`, but LBFGS and SparseAdam, or an object like those of `training.optimizer` together with
    `learning_rate`; no state of a stock optimizer is taken over.
    data: tensors whose first dimension counts examples (the shard); a step draws `batch_size` with replacement.
    window: data is one stream [L], examples are windows of so many elements.
    micro_batches: pieces of the batch whose gradients are computed apart, summed exactly and averaged.
    clip_norm: limit of the gradients' joint norm. clip_value: limit of each of their elements, which is cut first.
    schedule, round_warmup: see `training.schedules`. wide_parameters: those of 16 bits lie in the state as float32, and
    the optimizer moves these; so it is in runs, which merge float32.
    validation: held-out tensors laid out as data; the loss on them, in eval mode, is shown for each round of a run.
    tokenizer: the exact bytes of the file that text was made tokens with; a run publishes it, and its SHA-256.

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
    round_warmup: RoundWarmup | None = None
    clip_value: float | None = None
    wide_parameters: bool = False
    validation: Sequence[Tensor] | None = None
    tokenizer: bytes | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def own_parts(self) -> dict[str, object]:
        """Where the user's code and values lie, by field."""
        return {name: getattr(self, name) for name in ("module", "loss", "optimizer", "schedule")}


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
        if torch.nn.parameter.is_lazy(t):
            continue  # it answers nothing, and is refused by name with what else is attached
        _check_plain(name, t)
        if t.dtype not in STORABLE:
            remedy = "Convert it to float32: module.float() for all of a module, tensor.float() for data."
            if t.dtype.is_complex:
                remedy = "Keep real and imaginary parts as two float32 tensors, such as cosines and sines of angles."
            raise _bad(f"{name} has the element type {t.dtype}, which no state holds.", remedy)
        if t.dtype is torch.int64 and t.numel() and (int(t.max()) >= 2**31 or int(t.min()) < -(2**31)):
            raise _bad(f"{name} holds integers beyond 32 bits, which no state holds.", "Keep them within 32 bits.")
    _check_validation(recipe)
    tokenizer: Any = recipe.tokenizer
    if tokenizer is not None and not isinstance(tokenizer, bytes):
        raise _bad(f"tokenizer is a {type(tokenizer).__name__}.", "Give the bytes of its file, such as tokenizer.json.")
    for name in ("batch_size", "micro_batches", "window"):
        given = getattr(recipe, name)
        if not isinstance(given, int) and not (given is None and name == "window"):
            raise _bad(f"{name} is {given!r}.", "Give a whole number; 64 / 2 is none in Python, 64 // 2 is.")
    if recipe.batch_size < 1 or recipe.micro_batches < 1 or recipe.batch_size % recipe.micro_batches:
        raise _bad(
            f"{recipe.batch_size} examples do not divide into {recipe.micro_batches} micro-batches.",
            "Choose a batch_size that is a multiple of micro_batches.",
        )
    if recipe.window is not None and not 0 < recipe.window < data[0].shape[0]:
        raise _bad(
            f"A window of {recipe.window} does not fit a stream of {data[0].shape[0]}.", "Choose a shorter window."
        )
    if isinstance(recipe.schedule, LRScheduler):
        raise _bad(
            f"schedule is a {type(recipe.schedule).__name__}, which says nothing of how often it is called.",
            "Give followed(scheduler, steps=...), one call after each step (assay/training/recipes/schedulers.py).",
        )
    for name, limit in (("clip_norm", recipe.clip_norm), ("clip_value", recipe.clip_value)):
        if limit is not None and not limit > 0.0:
            raise _bad(f"{name} is {limit}, which leaves no gradient.", f"Give a limit above 0, or leave {name} out.")
    rise = recipe.round_warmup
    if rise is not None and not 1 <= rise.steps <= rise.round_length:
        raise _bad(
            f"A warm-up of {rise.steps} steps does not fit a round of {rise.round_length}.",
            "Give from one step to as many as a round has, or leave round_warmup out.",
        )
    if not any(p.requires_grad for p in recipe.module.parameters()):
        raise _bad("The module has no parameter that needs a gradient.", "Leave requires_grad on where it shall learn.")
    if not isinstance(recipe.optimizer, torch.optim.Optimizer):
        if not all(callable(getattr(recipe.optimizer, verb, None)) for verb in ("size", "zero_init", "update")):
            raise _bad(
                f"optimizer is a {type(recipe.optimizer).__name__}.",
                "Give an optimizer of torch.optim, or an object with size, zero_init and update.",
            )
        if recipe.learning_rate is None:
            raise _bad("An optimizer of one's own comes without a learning rate.", "Give learning_rate.")
        if not isinstance(recipe.learning_rate, int | float) or not 0.0 <= recipe.learning_rate <= _LARGEST_RATE:
            raise _bad(f"learning_rate is {recipe.learning_rate!r}.", "Give a finite number, 0 or more.")
    elif recipe.learning_rate is not None:
        kind = type(recipe.optimizer).__name__
        raise _bad(
            f"learning_rate is {recipe.learning_rate!r}, and {kind} has a rate of its own.",
            "Give the rate to the optimizer, and leave learning_rate out.",
        )


def _check_plain(name: str, t: Tensor) -> None:
    """Whether a tensor is numbers in memory and nothing else, as every slot of a state is."""
    # One of its own class has its numbers elsewhere, or none: whoever reads its memory reads nobody's.
    if type(t).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise _bad(f"{name} is a {type(t).__name__}, which computes by rules of its own.", "Give a plain tensor.")
    if t.layout is not torch.strided:
        raise _bad(f"{name} has the layout {t.layout}, which no state holds.", "Give tensor.to_dense().")
    if t.is_conj() or t.is_neg():
        raise _bad(f"{name} is a view that conjugates or negates.", "Give tensor.resolve_conj().resolve_neg().")
    if t.is_meta:
        raise _bad(f"{name} is on the device meta, where no values are.", "Make it on the CPU, and give it values.")


def _check_validation(recipe: Recipe) -> None:
    """Whether held-out tensors are such as the loss is given."""
    held_out = recipe.validation
    if held_out is None:
        return
    given = [(t.dtype, t.shape[1:]) if isinstance(t, Tensor) and t.ndim else None for t in held_out]
    if given != [(t.dtype, t.shape[1:]) for t in recipe.data]:
        raise _bad(
            "validation is laid out otherwise than data.",
            "Give as many tensors, each with its element type and the shape of an example.",
        )
    counts, least = {t.shape[0] for t in held_out}, recipe.window or 1
    if len(counts) != 1 or min(counts) < least:
        raise _bad(
            f"The validation tensors hold {[t.shape[0] for t in held_out]} examples.",
            f"Give as many of each, at least {least}.",
        )


def _tensors(recipe: Recipe) -> list[tuple[str, Tensor]]:
    named: list[tuple[str, Tensor]] = [(f"Parameter {n}", p) for n, p in recipe.module.named_parameters()]
    named += [(f"Buffer {n}", b) for n, b in recipe.module.named_buffers()]
    return named + [(f"Data tensor {k}", t) for k, t in enumerate(recipe.data)]
