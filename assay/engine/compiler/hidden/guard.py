"""Traces a function twice and refuses whatever it keeps or reads beside its arguments; nothing of it is left changed.

The second trace begins with other random numbers, and with `STALE` where the first left something behind that differs
from step to step: a step that a program can hold is traced to the same graph.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor
from torch.fx import Node

from assay.engine.compiler.hidden import arrays
from assay.engine.compiler.hidden.calls import forbidden_calls
from assay.engine.compiler.hidden.code import Global
from assay.engine.compiler.hidden.lines import here, line_that_changes
from assay.engine.compiler.hidden.state import ChangedAt, Watch
from assay.protocol.errors import NumericsError, UserError

_Trace = TypeVar("_Trace")

_SEEDS = (0x5EED0001, 0x5EED0002)


@dataclass(frozen=True, slots=True)
class Known:
    """What a function says of itself, as its attribute `hidden`.

    roots: where its user's state lies, by the name that the user gives it. left: paths of what a step leaves behind and
    none reads before writing it; those in `fixed` become the same in every step. calls_are_checked: an eager trial has
    looked at its calls already.
    """

    roots: Mapping[str, object]
    left: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    calls_are_checked: bool = False
    named: tuple[Global, ...] = ()


def known_of(function: Callable[..., object]) -> Known:
    """What is known of a function's state; nothing but itself unless it says more."""
    declared = getattr(function, "hidden", None)
    return declared if isinstance(declared, Known) else Known({"the function": function})


@contextmanager
def generators() -> Iterator[Callable[[int], None]]:
    """Gives a function that seeds all generators for run 0 or 1; at the end they are where they were."""
    before = random.getstate(), arrays.drawn(), torch.get_rng_state()

    def seed(run: int) -> None:
        random.seed(_SEEDS[run])
        arrays.seed(_SEEDS[run])
        torch.manual_seed(_SEEDS[run])

    try:
        yield seed
    finally:
        random.setstate(before[0])
        arrays.put_back(before[1])
        torch.set_rng_state(before[2])


def refuse_unheld(watch: Watch) -> None:
    """Raises UserError (HiddenState) where a step can reach what yields its values once, or scales its loss."""
    if watch.scalers:
        raise UserError(
            f"{watch.scalers[0]} is a GradScaler: its step, which divides gradients again, is no part of this one.",
            code="HiddenState",
            remedy="Return the loss as it is: exact gradients need no scaling.",
        )
    if watch.iterators:
        raise UserError(
            f"{watch.iterators[0]} is an iterator: how far it has come is in no state.",
            code="HiddenState",
            remedy="Keep what it yields in a list or tensor, and choose from that by the step's own tensors.",
        )


def refuse_backward(_: Tensor) -> None:
    """A hook on a parameter, called when something accumulates its gradient. Raises UserError (LossFails)."""
    raise UserError(
        f"The loss calls backward itself{here()}, which leaves gradients that a step would add its own to.",
        code="LossFails",
        remedy="Return the loss and call no backward: the step computes the gradients.",
    )


def refuse_changes(watch: Watch, places: Sequence[ChangedAt], run: Callable[[], object]) -> None:
    """Raises UserError (HiddenState), naming the first of the places and the line that `run` changes it in."""
    if not places:
        return
    place = places[0]
    watch.restore()
    line = line_that_changes(run, lambda: watch.is_changed(place))
    raise hidden_state(place.path, line)


def hidden_state(path: str, line: str | None) -> UserError:
    """The refusal of state that a step keeps beside its arguments."""
    return UserError(
        f"{path} changes during a step{f' at {line}' if line else ''}, and no state holds it.",
        code="HiddenState",
        remedy="Keep what a step changes in a tensor registered by register_buffer, or leave it out of the step.",
    )


def traced_alike(
    function: Callable[..., object],
    trace: Callable[[bool], _Trace],
    first_difference: Callable[[_Trace, _Trace], tuple[Node | None, str] | None],
) -> _Trace:
    """What `trace`, which calls the function, gives twice; it is told to keep source lines the first time only.

    Raises:
        UserError: HiddenState, TracesDiffer; what `trace` raises. NumericsError: HiddenInput.
    """
    known = known_of(function)

    def again() -> object:
        return trace(False)

    with generators() as seed:
        seed(0)
        with Watch(known.roots, known.named) as watch:
            refuse_unheld(watch)
            with nullcontext() if known.calls_are_checked else forbidden_calls(watch.enter):
                first = trace(True)
            refuse_unheld(watch)
            left = watch.changes()
            refuse_changes(watch, [p for p in left if p.path not in known.left], again)
            watch.restore()
            seed(1)
            stale = [p for p in left if p.path not in known.fixed]
            watch.spoil(stale)
            try:
                second = trace(False)
            except (UserError, NumericsError) as error:
                if stale:
                    raise read_before_written(watch, stale[0], again, "without it tracing fails") from error
                raise
            difference = first_difference(first, second)
            if difference is None:
                return first
            if stale:
                raise read_before_written(watch, stale[0], again, f"without it there is {difference[1]}")
    node, how = difference
    line = node.meta.get("stack_trace") if node is not None else None
    raise UserError(
        f"Two traces of the function differ: {how}{f' at {line}' if line else ''}.",
        code="TracesDiffer",
        remedy="Something beside its tensors decides what it computes: take it from the state, or leave it out.",
    )


def read_before_written(watch: Watch, place: ChangedAt, run: Callable[[], object], why: str) -> UserError:
    """The refusal of what a step reads of the step before it, with the line that `run` writes it in."""
    watch.restore()
    line = line_that_changes(run, lambda: watch.is_changed(place))
    written = f" (written at {line})" if line else ""
    return UserError(
        f"{place.path}{written} is read before a step writes it, so steps depend on each other: {why}.",
        code="HiddenState",
        remedy="Keep what a step changes in a tensor registered by register_buffer, or leave it out of the step.",
    )
