"""One eager step of a recipe before it is captured: what changes, what the loss reaches, and what a step leaves behind.

A step may leave something in the user's objects (a cache, the last attention) if no later step depends on it. That is
tried: a step from what another left behind gives the same results, and leaves the same, as one from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from assay.engine.compiler.hidden.calls import forbidden_calls
from assay.engine.compiler.hidden.guard import Known, generators, read_before_written, refuse_changes, refuse_unheld
from assay.engine.compiler.hidden.lines import line_that_changes, where
from assay.engine.compiler.hidden.state import ChangedAt, Image, Watch, differences
from assay.engine.compiler.hidden.surroundings import uncompiled
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.errors import UserError

RunTrial = Callable[[int, float], list[Tensor | None]]
"""One eager step: (its number, a factor on the parameters) to everything that it computes."""


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


def tried(roots: Mapping[str, object], run: RunTrial, is_written: Callable[[], bool]) -> Trial:
    """The results of step 0, computed eagerly; `roots` are afterwards as they were before.

    is_written: whether a parameter differs from what the step began with.

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
            reason = (str(error).strip().splitlines() or [""])[0]
            raise UserError(
                f"The loss fails on the recipe's own data: {type(error).__name__}: {reason}{where(error)}",
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
    left_behind = frozenset(p.path for p in left)
    return Trial(first, Known(roots, left_behind, fixed, calls_are_checked=True, named=tuple(watch.named)))


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


def _part(image: Image, path: str) -> Image:
    return {name: token for name, token in image.items() if name.startswith(path)}


def alike(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two tensors have one shape and the same canonical bytes."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and to_bytes(a.detach()) == to_bytes(b.detach())
