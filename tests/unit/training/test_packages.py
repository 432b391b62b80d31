"""Globals of installed packages: what a step changes and reads there is refused, and the rest is the package's own."""

from __future__ import annotations

import gc
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
import torch
from hypothesis.internal import entropy
from torch import Tensor, nn

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor
from assay.protocol.errors import UserError
from assay.training.recipes.recipe import RecipeStep
from tests.harness.engine.helpers import captured, relative
from tests.harness.training import own_code as own
from tests.unit.training.test_hidden_state import recipe_of

PATH = str(Path(sysconfig.get_path("purelib"), "stranger", "__init__.py"))


def installed(source: str) -> ModuleType:
    """A package `stranger` as if it were installed."""
    module = ModuleType("stranger")
    module.__file__ = PATH
    exec(compile(dedent(source), PATH, "exec"), vars(module))
    return module


def loss_by(package: ModuleType) -> Callable[[nn.Module, Tensor, Tensor], Tensor]:
    """A loss that the package's function `factor` scales."""

    def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return own.base_loss(module, x, y) * package.factor()

    return loss


COUNTED = """
    KEPT = 0
    def factor():
        global KEPT
        KEPT += 1
        return 1.0 + KEPT
"""
RARELY = """
    KEPT = 0
    def factor():
        global KEPT
        KEPT += 1
        return 2.0 if KEPT % 100 == 0 else 1.0
"""
READ_ELSEWHERE = """
    KEPT = 0
    def count():
        global KEPT
        KEPT += 1
    def factor():
        count()
        return 2.0 if KEPT % 100 == 0 else 1.0
"""
LISTED = """
    KEPT = []
    def factor():
        KEPT.append(0.5)
        return 2.0 if len(KEPT) % 100 == 0 else 1.0
"""
AVERAGED = """
    import torch
    KEPT = torch.ones(())
    def factor():
        global KEPT
        KEPT = KEPT * 0.5
        return KEPT
"""
NUMBERED = """
    import itertools
    KEPT = itertools.count(1)
    def factor():
        return 2.0 if next(KEPT) % 100 == 0 else 1.0
"""
BY_ITS_MODULE = """
    import sys
    from types import ModuleType
    STATE = ModuleType("stranger.state")
    STATE.__file__ = __file__
    STATE.KEPT = 0
    def factor():
        STATE.KEPT += 1
        return 2.0 if STATE.KEPT % 100 == 0 else 1.0
"""

REFUSED = {
    "a counter": (COUNTED, r"global stranger.KEPT changes during a step at .*stranger/__init__.py:5"),
    "a counter that seldom decides": (RARELY, r"global stranger.KEPT changes during a step at .*__init__.py:5"),
    "a counter that another function reads": (READ_ELSEWHERE, r"global stranger.KEPT changes .*__init__.py:5"),
    "a list": (LISTED, r"global stranger.KEPT\[0\] changes during a step at .*__init__.py:4"),
    "an average": (AVERAGED, r"global stranger.KEPT changes during a step at .*__init__.py:6"),
    "an iterator": (NUMBERED, "global stranger.KEPT is an iterator"),
    "a module's attribute": (BY_ITS_MODULE, r"KEPT changes during a step at .*__init__.py:8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_step_changes_and_reads_in_a_package_is_refused_with_its_line(name: str):
    source, words = REFUSED[name]
    package = installed(source)
    with pytest.raises(UserError, match=words) as caught:
        RecipeStep(recipe_of(loss_by(package)))
    assert caught.value.code == "HiddenState"
    if name != "an iterator":
        assert repr(package.KEPT if hasattr(package, "KEPT") else package.STATE.KEPT) in ("0", "[]", "tensor(1.)")


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_are_captured_alone_are_held_to_the_same(name: str):
    source, words = REFUSED[name]
    package = installed(source)
    with pytest.raises(UserError, match=words):
        captured(lambda x: (x * package.factor(),), torch.ones(3))
    if name != "an iterator":
        assert repr(package.KEPT if hasattr(package, "KEPT") else package.STATE.KEPT) in ("0", "[]", "tensor(1.)")


ONLY_COUNTED = """
    CALLS, SECONDS = 0, 0.0
    def factor():
        global CALLS, SECONDS
        CALLS += 1
        SECONDS += 0.25
        return 2.0
"""
NAMED_BUT_NOT_CALLED = """
    import itertools
    NUMBERS, CALLS = itertools.count(), 0
    def numbered():
        global CALLS
        CALLS = CALLS + next(NUMBERS)
        return CALLS
    def factor():
        return 2.0 if callable(numbered) else 1.0
"""
MADE_ONCE = """
    import torch
    TABLE = None
    def factor():
        global TABLE
        if TABLE is None:
            TABLE = torch.full((), 2.0)
        return TABLE
"""
WATCHES_COLLECTIONS = """
    import gc
    TIMES = 0
    def factor():
        gc.collect()
        return 2.0 if callable(collected) else 1.0
    def collected(phase, info):
        global TIMES
        TIMES = TIMES + len(phase)
"""


@contextmanager
def watching_collections(package: ModuleType) -> Iterator[None]:
    """While active, the garbage collector calls the package's `collected`, where it has one."""
    watchers = [package.collected] if hasattr(package, "collected") else []
    gc.callbacks.extend(watchers)
    try:
        yield
    finally:
        for watcher in watchers:
            gc.callbacks.remove(watcher)


@pytest.mark.gate_takes(2)
@pytest.mark.parametrize("source", [ONLY_COUNTED, NAMED_BUT_NOT_CALLED, MADE_ONCE, WATCHES_COLLECTIONS])
def test_what_cannot_decide_in_a_package_is_its_own_matter(source: str):
    package = installed(source)
    with watching_collections(package):
        step = RecipeStep(recipe_of(loss_by(package)))
        state = step.state()
        program = capture(step, state, FIXED22).program
    plain = RecipeStep(recipe_of(lambda m, x, y: own.base_loss(m, x, y) * 2.0))
    for ours, theirs in zip(Executor(program).run(state)[0], plain(*state)[0], strict=True):
        assert relative(ours, theirs) < 1e-4
    if source is WATCHES_COLLECTIONS:
        assert package.TIMES > 0, "nothing was collected, so the test looked at nothing"


def test_a_packages_iterator_that_the_step_does_not_advance_is_left_alone():
    # The module numbers generators by `itertools.count`, which a step that names the function can reach.
    def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        assert callable(entropy.register_random)
        return own.base_loss(module, x, y)

    RecipeStep(recipe_of(loss))
