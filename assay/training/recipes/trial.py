"""One eager step of a recipe before it is captured: what changes, what the loss reaches, and what a step leaves behind.

A step may leave something in the user's objects (a cache, the last attention) if no later step depends on it. That is
tried: a step from what another left behind gives the same results, and leaves the same, as one from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from assay.engine.compiler.hidden.calls import forbidden_calls
from assay.engine.compiler.hidden.guard import Known, generators, read_before_written, refuse_changes, refuse_unheld
from assay.engine.compiler.hidden.lines import line_that_changes, where
from assay.engine.compiler.hidden.state import ChangedAt, Image, Watch, differences
from assay.engine.compiler.hidden.surroundings import uncompiled
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.errors import UserError

RunTrial = Callable[[int, float], list[Tensor | None]]
"""One eager step: (its number, a factor on the parameters) to everything that it computes."""


_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


@dataclass(frozen=True, slots=True)
class Trial:
    """What the first step gave, and what is known of the user's objects."""

    results: list[Tensor | None]
    hidden: Known


class ParameterWritten(UserError):
    """The loss writes a parameter, which only the optimizer of a step may."""

    remedy = "Let only the optimizer change parameters: clip or normalize a copy, or write an optimizer of your own."

    def __init__(self, name: str, line: str | None = None) -> None:
        super().__init__(f"Parameter {name} is changed by the loss itself{f' at {line}' if line else ''}.")
        self.name = name


def tried(
    roots: Mapping[str, object], run: RunTrial, is_written: Callable[[], bool], record: Callable[[], object]
) -> Trial:
    """The results of step 0, computed eagerly; `roots` are afterwards as they were before.

    is_written: whether a parameter differs from what the step began with. record: step 0 once more, from the same
    beginning, as it goes while it is traced.

    Raises:
        UserError: LossFails; ParameterWritten; HiddenState, where steps depend on each other beside the state.
        NumericsError: HiddenInput, HiddenRandomness.
    """

    def step(number: int, factor: float) -> list[Tensor | None]:
        try:
            return run(number, factor)
        except ParameterWritten as error:
            watch.restore()
            raise ParameterWritten(error.name, line_that_changes(lambda: run(number, factor), is_written)) from None
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"The loss fails on the recipe's own data: {reason(error)}",
                code="LossFails",
                remedy="Make loss(module, *batch) work in plain PyTorch first; a batch has the data's element types.",
            ) from error

    with generators() as seed, uncompiled():
        seed(0)
        with Watch(roots) as watch:
            refuse_unheld(watch)
            with forbidden_calls(watch.enter):
                first = step(0, 1.0)
            refuse_unheld(watch)
            left = watch.changes()
            fixed = _fixed(watch, left, step) if left else frozenset()
            watch.restore()
            seed(0)
            try:
                record()
            except UserError:
                raise
            except Exception as error:
                raise UserError(
                    f"The loss fails when it is told that it is traced: {reason(error)}",
                    code="NotCapturable",
                    remedy="Let what it does not depend on whether it is traced.",
                ) from error
    left_behind = frozenset(p.path for p in left)
    return Trial(first, Known(roots, left_behind, fixed, calls_are_checked=True, named=tuple(watch.named)))


def refuse_reentrant(loss: Tensor) -> None:
    """Raises UserError (LossFails) where what is checkpointed the old way is part of the loss.

    It computes its gradients inside the backward pass, for whatever `backward()` reaches: asked for those of some
    tensors alone, autograd does not go through it, and its parameters look as if the loss did not reach them.
    """
    queue, seen = [loss.grad_fn], set()
    while queue:
        node = queue.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "CheckpointFunctionBackward":
            raise UserError(
                "The loss checkpoints a layer with use_reentrant=True, through which a step has no gradients.",
                code="LossFails",
                remedy="Give torch.utils.checkpoint use_reentrant=False, or leave it out: a program keeps what its"
                " gradients need anyway.",
            )
        queue += [following for following, _ in node.next_functions]


_TOLD: Final = 0.05
"""Ways to compute one layer part by less of its loss, in 16 bits too."""


def check_told(real: float, traced: float) -> None:
    """Raises UserError (ValuesDecide) where the loss is another one when it is told that it is traced.

    Libraries ask, and go a way that a trace can follow; it must lead to the same loss.
    """
    if abs(real - traced) > _TOLD * abs(real) + 1e-3:
        raise UserError(
            f"The loss is {real:.6g}, and {traced:.6g} on the same numbers when it is told that it is traced.",
            code="ValuesDecide",
            remedy="Let what it computes not depend on whether it is traced or compiled.",
        )


def reason(error: Exception) -> str:
    """What the user's code raised, in one line, and where."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}{where(error)}"


def _fixed(watch: Watch, left: list[ChangedAt], step: RunTrial) -> frozenset[str]:
    """Of what the first step left behind, that which is the same after every step. Raises UserError (HiddenState)."""
    refuse_changes(watch, [p for p in left if watch.is_of_process(p)], lambda: step(0, 1.0))
    after_first = watch.image()
    following = step(1, 1.0 + 2.0**-8)
    after_following = watch.image()
    watch.restore()
    alone = step(1, 1.0 + 2.0**-8)
    after_alone = watch.image()
    for path in differences(after_following, after_alone):
        places = [p for p in left if path == p.path] or [p for p in left if path.startswith(p.path)] or left
        refuse_changes(watch, places[:1], lambda: step(0, 1.0))
    if not all(alike(a, b) for a, b in zip(following, alone, strict=True)):
        why = "a step after another gives other results than a step alone"
        raise read_before_written(watch, left[0], lambda: step(0, 1.0), why)
    return frozenset(p.path for p in left if _part(after_first, p.path) == _part(after_alone, p.path))


@contextmanager
def kept_buffers(module: nn.Module) -> Iterator[None]:
    """A block in which the module itself runs: its buffers are afterwards as they were before, hooks of tensors too."""
    places = [(part, dict(part._buffers)) for part in module.modules() if type(part._buffers) is dict]
    values = [(b, b.detach().clone()) for b in module.buffers()]
    parameters = list(module.parameters())  # what forward hangs on one stays there, and on no stand-in
    hooks = [(p, name, getattr(p, name), dict(getattr(p, name) or {})) for p in parameters for name in _HOOKS]
    try:
        yield
    finally:
        for part, held in places:
            part._buffers.clear()
            part._buffers.update(held)
        with torch.no_grad():
            for b, value in values:
                if not alike(b, value):  # what was not written may be expanded, where nothing can be
                    b.copy_(value)
        for p, name, registered, before in hooks:
            if registered is not None:
                registered.clear()
                registered.update(before)
            if getattr(p, name) is not registered:
                setattr(p, name, registered)


def _part(image: Image, path: str) -> Image:
    return {name: token for name, token in image.items() if name.startswith(path)}


def alike(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two tensors have one shape and the same canonical bytes."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and to_bytes(a.detach()) == to_bytes(b.detach())
