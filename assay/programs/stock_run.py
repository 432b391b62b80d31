"""The stock step of a recipe: its own module, its own loss, autograd, its own optimizer, on the program's batches.

Nothing of capture has a say here but what has no other definition: which examples a step draws, and what dropout and
`torch.rand` draw in it (`engine.compiler.randomness`).
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from assay.engine.compiler.randomness import Randomness
from assay.protocol.errors import AssayError, UserError
from assay.training.recipes.recipe import RecipeStep
from assay.training.recipes.schedulers import FollowedSchedule
from assay.training.recipes.trial import reason
from assay.training.state import SCALAR_NAMES, Scalars


class StockRun:
    """Steps of a recipe by stock PyTorch, from the values that its module held at the start.

    Shapes: as the module gives them. One run at a time: the user's module and optimizer are what is trained; `restored`
    gives them back what they held.
    """

    def __init__(self, step: RecipeStep) -> None:
        self.step, self.recipe = step, step.recipe
        self._start = step.state()
        self._parameters = dict(self.recipe.module.named_parameters())
        self._rates: list[Any] = []
        self._scheduler: LRScheduler | None = None

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Parameters, buffers, gradients and mode are afterwards as before; the optimizer remembers nothing."""
        module, optimizer, schedule = self.recipe.module, self.recipe.optimizer, self.recipe.schedule
        held = {n: t.detach().clone() for n, t in (*module.named_parameters(), *module.named_buffers())}
        grads = {n: p.grad for n, p in module.named_parameters()}
        modes = {n: m.training for n, m in module.named_modules()}
        parts = optimizer.param_groups if isinstance(optimizer, torch.optim.Optimizer) else []
        groups = [{n: _copy(v) for n, v in part.items() if n != "params"} for part in parts]
        # Adagrad's and its kin's begin with accumulators.
        remembered = optimizer.state if isinstance(optimizer, torch.optim.Optimizer) else {}
        held_state = {p: copy.deepcopy(kept) for p, kept in remembered.items()}
        self._rates = [g["lr"] for g in groups]
        self._scheduler = copy.deepcopy(schedule.schedulers[0]) if isinstance(schedule, FollowedSchedule) else None
        try:
            yield
        finally:
            with torch.no_grad():
                for n, t in (*module.named_parameters(), *module.named_buffers()):
                    if n in held and held[n].shape == t.shape:
                        t.copy_(held[n])
            for n, p in module.named_parameters():
                p.grad = grads.get(n)
            for n, m in module.named_modules():
                m.training = modes.get(n, m.training)
            if isinstance(optimizer, torch.optim.Optimizer):
                optimizer.state.clear()
                optimizer.state.update(held_state)
                for group, kept in zip(optimizer.param_groups, groups, strict=True):
                    group.update(kept)

    def steps(
        self, count: int, nudge: float = 0.0, in_update: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Iterator[tuple[float, list[Tensor], list[Tensor]]]:
        """After each of `count` steps: the loss that it began with, all parameters, the buffers of the program's state.

        The tensors are the run's own: they change in the next step, which begins with what they then hold. nudge: the
        run is disturbed as rounding would do it: parameters start that much off, relatively, and every gradient that
        much of the largest of its tensor, up or down by a generator of its own. in_update: the context that the
        optimizer steps in.
        """
        noise = RunNoise(nudge) if nudge else None
        with self.restored():
            if noise is not None:
                with torch.no_grad():
                    for p in filter(Tensor.is_floating_point, self._parameters.values()):
                        p.add_(noise.like(p) * p)
            now = Scalars.from_list(self._start[2][: len(SCALAR_NAMES)])
            more = self._start[2][len(SCALAR_NAMES) :]
            own = None if isinstance(self.recipe.optimizer, torch.optim.Optimizer) else self._zero_init()
            for k in range(count):
                with _said(k):
                    loss = self._gradients(now, more)
                if noise is not None:
                    for p in self._parameters.values():
                        if p.grad is not None and p.grad.numel():
                            # What is zero exactly, such as a row of an embedding that no token names, stays it.
                            p.grad.add_(noise.like(p) * p.grad.abs().max() * (p.grad != 0))
                with in_update():
                    own = self._update(now, own)
                now = now.advanced()
                buffers = dict(self.recipe.module.named_buffers())
                yield (
                    loss,
                    [p.detach() for p in self._parameters.values()],
                    [buffers[n].detach() for n in self.step.buffers],
                )

    def _zero_init(self) -> list[Tensor]:
        return self.step.optimizer.zero_init([p.detach() for p in self._parameters.values()])

    def _gradients(self, now: Scalars, more: Sequence[Tensor]) -> float:
        """Leaves the gradients of the mean loss over micro-batches in the parameters; returns that loss."""
        recipe, pieces = self.recipe, self.recipe.micro_batches
        batch = self.step.batch([*now.to_list(), *more])
        size = recipe.batch_size // pieces
        for p in self._parameters.values():
            p.grad = None
        mode, total = Randomness(now.key, now.step), 0.0
        for m in range(pieces):
            mode.is_closed = False
            with torch.enable_grad(), mode:
                loss = recipe.loss(recipe.module, *(t[m * size : (m + 1) * size] for t in batch))
                mode.is_closed = True
                torch.autograd.backward(loss / pieces if pieces > 1 else loss)
            total += float(loss.detach()) / pieces
        return total

    def _update(self, now: Scalars, own: list[Tensor] | None) -> list[Tensor] | None:
        recipe = self.recipe
        trained = [p for p in self._parameters.values() if p.grad is not None]
        if recipe.clip_value is not None:
            torch.nn.utils.clip_grad_value_(trained, recipe.clip_value)
        if recipe.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(trained, recipe.clip_norm)
        factor = self._factor(now)
        if isinstance(recipe.optimizer, torch.optim.Optimizer):
            for group, rate in zip(recipe.optimizer.param_groups, self._scheduled(factor), strict=True):
                group["lr"] = rate
            # The class's own: a scheduler that is followed has wrapped the object's, and would count this step.
            type(recipe.optimizer).step(recipe.optimizer)
            return None
        assert own is not None
        rate = now.learning_rate if factor is None else now.learning_rate * factor
        before = [p.detach().clone() for p in self._parameters.values()]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._parameters.values()]
        with torch.no_grad():
            updated, kept = self.step.optimizer.update(before, grads, own, rate)
            for p, new in zip(self._parameters.values(), updated, strict=True):
                if p.grad is not None:
                    p.copy_(new)
        return kept

    def _scheduled(self, factor: float | None) -> list[Any]:
        """The rates of the groups in this step, as the user's scheduler sets them where there is one."""
        schedule = self.recipe.schedule
        if self._scheduler is not None and self.recipe.round_warmup is None:
            rates = [group["lr"] for group in self._scheduler.optimizer.param_groups]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that no optimizer was stepped: the copy's is not
                self._scheduler.step()
            return rates
        base = schedule.peaks if isinstance(schedule, FollowedSchedule) else self._rates
        return [rate if factor is None else rate * factor for rate in base]

    def _factor(self, now: Scalars) -> float | None:
        recipe = self.recipe
        if recipe.round_warmup is not None:
            return float(recipe.round_warmup.factor(now.step, now.round, recipe.schedule))
        if recipe.schedule is not None:
            return float(recipe.schedule(now.step[0].to(torch.float32)))
        return None


@contextmanager
def _said(step: int) -> Iterator[None]:
    """Raises UserError (LossFails) for what the user's code raises, which a program would not: it has no bounds."""
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        raise UserError(
            f"In step {step} the loss fails in stock PyTorch, on other examples than the first: {reason(error)}",
            code="LossFails",
            remedy="Look at the data for what plain PyTorch does not take, such as a label that is no class.",
        ) from error


class RunNoise:
    """Signs of one size, the same in every run."""

    def __init__(self, size: float) -> None:
        self._size, self._generator = size, torch.Generator().manual_seed(1)

    def like(self, t: Tensor) -> Tensor:
        """`size` up or down, in the shape and type of t."""
        signs = torch.randint(0, 2, t.shape, generator=self._generator) * 2 - 1
        return signs.to(t.dtype) * self._size


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def rms(t: Tensor) -> float:
    """The root mean square of a tensor's elements; 0 of none."""
    return math.sqrt(float((t.to(torch.float64) ** 2).mean())) if t.numel() else 0.0
