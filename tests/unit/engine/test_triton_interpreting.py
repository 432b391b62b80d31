"""Triton's interpreter as it is quickened: every function of the language is there for a kernel, and gone after it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

SIZE = 16


def patched() -> dict[str, Any]:
    """What stands under each name of Triton's language, as an object of its own."""
    from triton import language

    return {name: value for name, value in vars(language).items() if not name.startswith("__")}


def test_functions_within_functions_have_the_whole_language_and_leave_nothing() -> None:
    """`tl.sum` is a function of Triton's own that sees another module of the language than our kernels do."""
    from assay.engine.runtime.triton import backend
    from tests.harness.engine.nested_kernel import sums_of_squares

    before, found = patched(), torch.zeros(1, dtype=torch.int32)
    for turn in (1, 2):
        backend.launch(sums_of_squares, (1,), torch.arange(SIZE, dtype=torch.int32), found, SIZE=SIZE)
        assert int(found) == sum(i * i for i in range(SIZE)), turn
        assert patched() == before


def test_a_kernel_that_fails_leaves_the_language_to_the_next() -> None:
    from assay.engine.runtime.triton import backend
    from tests.harness.engine.nested_kernel import fails, sums_of_squares

    before, found = patched(), torch.zeros(1, dtype=torch.int32)
    with pytest.raises(Exception, match="refused"):
        backend.launch(fails, (1,), found, SIZE=SIZE)
    assert patched() == before
    backend.launch(sums_of_squares, (1,), torch.arange(SIZE, dtype=torch.int32), found, SIZE=SIZE)
    assert int(found) == sum(i * i for i in range(SIZE))


def test_the_language_is_patched_once_a_kernel_and_not_once_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each patch looks through all that the language has."""
    from triton.runtime import interpreter

    from assay.engine.runtime.triton import backend
    from tests.harness.engine.nested_kernel import sums_of_squares

    looked, patch = [], interpreter._patch_builtin
    monkeypatch.setattr(interpreter, "_patch_builtin", lambda *a: (looked.append(a[0]), patch(*a)))
    found = torch.zeros(1, dtype=torch.int32)
    backend.launch(sums_of_squares, (8,), torch.arange(SIZE, dtype=torch.int32), found, SIZE=SIZE)
    assert 0 < len(looked) <= 16, "eight programs of three calls each"


def test_kernels_of_several_threads_are_interpreted_one_after_another() -> None:
    """Bad luck: a root is hashed while another thread runs a program, and the first to end takes the language along."""
    from assay.engine.runtime.triton import backend
    from tests.harness.engine.nested_kernel import sums_of_squares

    def summed(number: int) -> set[int]:
        found, terms = torch.zeros(1, dtype=torch.int32), torch.full((SIZE,), number, dtype=torch.int32)
        sums = set()
        for _ in range(30):
            backend.launch(sums_of_squares, (4,), terms, found, SIZE=SIZE)
            sums.add(int(found))
        return sums

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(summed, range(1, 5))) == [{SIZE * n * n} for n in range(1, 5)]
