"""Where the caller makes new tensors by default decides nothing, for tests of a machine and for the draws of a step.

On a GPU programs are made and run while it is torch's default device. The device `meta` stands for it here: it has no
values, so whatever would be made there cannot be read, nor meet a tensor of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
import torch

from assay.engine import ops
from assay.engine.runtime import executor
from assay.engine.runtime.exact import philox
from assay.engine.runtime.products.freivalds import ProductWatch, products
from assay.engine.runtime.triton import probe, sha256
from assay.engine.runtime.triton.checks import ProductChecks
from assay.engine.runtime.triton.routes import route
from assay.engine.runtime.triton.words import words as words_by_kernel
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

with_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


@pytest.fixture
def elsewhere() -> Iterator[None]:
    with torch.device("meta"):
        yield


def anew(cached: Callable[..., object], *given: object) -> object:
    """What a function says that keeps its answers, asked for the first time."""
    return cached.__wrapped__(*given)  # type: ignore[attr-defined]


@with_triton
@pytest.mark.parametrize("precisions", [(14, 14), (22, 14), (8, 8)], ids=str)
def test_carriers_are_probed_on_the_cpu(elsewhere: None, precisions: tuple[int, int]):
    found = route(*precisions)
    assert found is not None
    assert anew(probe.failure, found, *precisions) == ""


@with_triton
def test_hashing_is_compared_on_the_cpu(elsewhere: None):
    assert anew(sha256.failure) == ""


@with_triton
def test_tritons_kernels_are_compared_on_the_cpu(elsewhere: None):
    assert anew(executor._wrong_by_triton) == ""


def test_native_kernels_are_compared_on_the_cpu(elsewhere: None):
    natives, reason = executor.usable_natives.__wrapped__()
    assert natives is not None, reason


@with_triton
def test_what_a_products_check_weighs_with_is_drawn_on_the_cpu(elsewhere: None):
    a, b = TensorSpec(DType.F32, (5, 7)), TensorSpec(DType.F32, (3, 7))
    builder = ProgramBuilder([[a, b]])
    x, y = builder.input(0, 0), builder.input(0, 1)
    exponents = builder.rowexp(x, 1).unsqueeze(1), builder.rowexp(y, 1).unsqueeze(0)
    product = builder.dot(x.unsqueeze(1), y.unsqueeze(0), *exponents, (5, 3), (7,), 14, 14)
    program = builder.build([[product]])
    checks = ProductChecks(program, ProductWatch(products(program)))
    checks.begin()
    assert bool(checks.weights.any())
    checks.verify()


@with_triton
def test_draws_by_one_kernel_are_those_of_stock_torch(elsewhere: None):
    """Words of every place in a counter, numbers above 2^31, and more than a kernel's block."""
    cases = [((3, -5), (7, 0), 0, 1), ((1, 0), (2**31 - 1, -1), 1, 70_000), ((-1, 9), (0, 4), 2**32 - 1, 33)]
    for key, step, stream, count in [*cases, ((1, 2), (3, 4), 16, 0)]:
        given = [torch.tensor(words, dtype=torch.int32, device="cpu") for words in (key, step)]
        assert torch.equal(words_by_kernel(*given, stream, count), philox.words(*given, stream, count))


def test_draws_lie_where_the_key_lies():
    key, step = (torch.tensor([3, 4], dtype=torch.int32) for _ in range(2))
    wanted = philox.words(key, step, 1, 9)
    with torch.device("meta"):
        found = philox.words(key, step, 1, 9)
    assert torch.equal(found, wanted)


def test_what_is_taken_lies_where_the_table_lies():
    table, index = torch.arange(12.0).reshape(4, 3), torch.tensor([3, -1, 0], dtype=torch.int32)
    wanted = ops.take(table, index)
    with torch.device("meta"):
        found = ops.take._init_fn(table, index)
    assert torch.equal(found, wanted) or bool(torch.isnan(found[1]).all())
    assert torch.equal(found[::2], wanted[::2])
