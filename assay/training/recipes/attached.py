"""What hangs on a module or optimizer and never runs inside a program: refused by name, before anything is tried."""

from __future__ import annotations

import gc
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import optimizer as torch_optimizer
from torch.optim.lr_scheduler import LRScheduler

from assay.engine.compiler.hidden.lines import definition
from assay.engine.compiler.operations import memory
from assay.protocol.errors import UserError
from assay.training.recipes.form import Recipe
from assay.training.recipes.schedulers import FollowedSchedule
from assay.training.schedules import Schedule


def refuse_attached(recipe: Recipe) -> None:
    """Raises UserError: AttachedHook, AttachedScheduler, LazyParameter, OptimizerInUse, SharedMemory, WrappedModule."""
    _refuse_wrappers(recipe.module)
    for name, p in (*recipe.module.named_parameters(), *recipe.module.named_buffers()):
        if torch.nn.parameter.is_lazy(p):
            raise _refused(
                "LazyParameter",
                f"{name} has no shape yet.",
                "Call the module once on a batch before you make the recipe.",
            )
        for kind in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            hooks = getattr(p, kind, None)
            if hooks:
                raise _refused(
                    "AttachedHook",
                    f"{name} has a hook on its gradient{_first(hooks)}, which a step does not run.",
                    "Remove it; change gradients in the loss (a hook on a tensor that forward computes is captured), by"
                    " clip_norm, or in an optimizer of your own.",
                )
    _refuse_shared(recipe.module)
    if isinstance(recipe.optimizer, torch.optim.Optimizer):
        _refuse_on_optimizer(recipe.optimizer, recipe.schedule)


def _refuse_shared(module: nn.Module) -> None:
    """Raises UserError (SharedMemory) where a write to one parameter changes another, or a buffer."""
    named = [*module.named_parameters(), *module.named_buffers()]
    count = len(list(module.parameters()))
    ends: dict[int, dict[str, tuple[int, int]]] = {}
    for place, (name, t) in enumerate(named):
        if t.requires_grad:
            _refuse_overlap(name, t)
        begin, end = _bytes_of(t)
        for other, (first, last) in ends.get(memory(t), {}).items():
            if begin < last and first < end:
                raise _refused(
                    "SharedMemory",
                    f"{name} shares memory with {other}: a step that writes one changes both.",
                    "Give each a copy of its own by .clone(), or tie them as one and the same Parameter.",
                )
        if place < count:
            ends.setdefault(memory(t), {})[name] = begin, end


def refuse_shared_buffers(module: nn.Module, changed: Collection[str]) -> None:
    """Raises UserError (SharedMemory) where what a step writes into one buffer another shows, or it itself twice."""
    named = dict(module.named_buffers())
    for name in changed:
        begin, end = _bytes_of(named[name])
        _refuse_overlap(name, named[name])
        for other, t in named.items():
            first, last = _bytes_of(t)
            if other != name and memory(t) == memory(named[name]) and begin < last and first < end:
                raise _refused(
                    "SharedMemory",
                    f"{name} shares memory with {other}: a step that writes one changes both.",
                    "Give each a copy of its own by .clone(), or register one tensor under both names.",
                )


def _refuse_overlap(name: str, t: Tensor) -> None:
    """Raises UserError (SharedMemory) where elements of one tensor lie in one place, as after expand()."""
    if torch._debug_has_internal_overlap(t) == 1:
        raise _refused(
            "SharedMemory",
            f"{name} has elements that share memory, which PyTorch writes in no step.",
            "Give it a copy of its own by .clone().",
        )


def _bytes_of(t: Tensor) -> tuple[int, int]:
    """Where in its storage a tensor begins and ends."""
    if t.numel() == 0:
        return 0, 0
    first = int(t.storage_offset())
    last = first + sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True))
    return first * t.element_size(), int(last + 1) * t.element_size()


def _refuse_wrappers(module: nn.Module) -> None:
    inner = {"DataParallel": "module", "DistributedDataParallel": "module", "OptimizedModule": "_orig_mod"}
    for name, part in module.named_modules():
        kind = type(part).__name__
        if kind in inner and type(part).__module__.startswith("torch."):
            at = f"module{'.' if name else ''}{name}"
            raise _refused("WrappedModule", f"{at} is a {kind}.", f"Give the module inside it: {at}.{inner[kind]}.")


def _refuse_on_optimizer(optimizer: torch.optim.Optimizer, schedule: Schedule | None) -> None:
    kind = type(optimizer).__name__
    hooks: tuple[tuple[str, Any], ...] = (
        ("pre-hook", optimizer._optimizer_step_pre_hooks),
        ("post-hook", optimizer._optimizer_step_post_hooks),
        ("global pre-hook", torch_optimizer._global_optimizer_pre_hooks),
        ("global post-hook", torch_optimizer._global_optimizer_post_hooks),
    )
    for what, found in hooks:
        if found:
            raise _refused(
                "AttachedHook",
                f"{kind}.step has a {what}{_first(found)}, which a step does not run.",
                "Remove it, or write an optimizer of your own (assay/training/optimizer.py).",
            )
    honoured = schedule.schedulers if isinstance(schedule, FollowedSchedule) else ()
    if isinstance(schedule, FollowedSchedule) and schedule.optimizer is not optimizer:
        raise _refused(
            "AttachedScheduler",
            f"The scheduler that the recipe follows is attached to another {type(schedule.optimizer).__name__}.",
            "Attach it to the recipe's own optimizer.",
        )
    scheduler = _scheduler_of(optimizer, honoured)
    if scheduler is not None or (not honoured and any("initial_lr" in group for group in optimizer.param_groups)):
        rates = sorted({float(group["lr"]) for group in optimizer.param_groups})
        raise _refused(
            "AttachedScheduler",
            f"{scheduler or 'A scheduler'} is attached to {kind}, whose rate stands at {rates[0]:g}: "
            "no step of a program would call it.",
            "Give the recipe schedule=followed(scheduler, steps=...) (assay/training/recipes/schedulers.py), or make"
            " the optimizer alone and give schedule=, a function of the step (assay/training/schedules.py).",
        )
    if not (honoured and hasattr(optimizer.step, "_wrapped_by_lr_sched")) and "step" in vars(optimizer):
        raise _refused(
            "AttachedHook", f"{kind}.step is replaced.", "Write an optimizer of your own (assay/training/optimizer.py)."
        )
    if any(float(kept.get("step", 1)) != 0.0 for kept in optimizer.state.values()):  # Adagrad's begins with step 0
        raise _refused(
            "OptimizerInUse",
            f"{kind} has taken steps, and what it remembers of {len(optimizer.state)} parameters would be lost.",
            "Make a new optimizer: a recipe starts from the module's values and zero-initialised moments.",
        )


def _scheduler_of(optimizer: torch.optim.Optimizer, honoured: Sequence[LRScheduler]) -> str | None:
    """The kind of another scheduler that refers to an optimizer; some leave no other trace."""
    for holder in gc.get_referrers(optimizer):
        owners = gc.get_referrers(holder) if isinstance(holder, dict) and holder.get("optimizer") is optimizer else []
        for owner in (holder, *owners):
            is_attached = isinstance(owner, LRScheduler) and owner.optimizer is optimizer
            if is_attached and not any(owner is known for known in honoured):
                return type(owner).__name__
    return None


def _first(hooks: Mapping[Any, Any]) -> str:
    return definition(next(iter(hooks.values())))


def _refused(code: str, what: str, remedy: str) -> UserError:
    return UserError(what, code=code, remedy=remedy)
