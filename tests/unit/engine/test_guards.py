"""Guards of the arithmetic, each proved by the fault that it is for: instructions, flushing, bits, calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.products import native_dot, product_variants
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.errors import InvariantError
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.presets import TINY, preset
from assay.training.programs import training_program
from assay.training.state import Scalars
from assay.training.step import initial_state, preset_step
from tests.harness.engine.helpers import bits_equal, captured, tensors_of
from tests.harness.programs import Example, all_examples

ROOT = Path(__file__).resolve().parents[3]

ALLOWED = {
    *("add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "neg", "neg_", "abs", "abs_"),
    *("where", "round", "round_", "floor", "floor_", "sqrt", "sqrt_"),
    *("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isfinite", "isinf"),
    *("amax", "amin", "clamp", "clamp_", "clamp_max", "clamp_min", "maximum", "minimum", "nan_to_num", "equal"),
    # Sums of integers that stay below 2^53 in binary64, or below 2^24 in binary32.
    *("mm", "bmm", "sum", "scatter_add_"),
}
"""What may compute with binary32 and binary64, beside operations that only move bits."""

MOVES = {
    *("view", "_unsafe_view", "reshape", "as_strided", "expand", "permute", "transpose", "t", "select", "slice"),
    *(
        "unsqueeze",
        "squeeze",
        "flip",
        "clone",
        "copy_",
        "_to_copy",
        "detach",
        "alias",
        "unbind",
        "diagonal",
        "lift_fresh",
    ),
    *("empty", "empty_strided", "empty_like", "zeros", "ones", "full", "full_like", "zeros_like", "new_empty"),
    *("index_select", "index", "index_put_", "gather", "take", "cat", "stack", "constant_pad_nd", "fill_", "zero_"),
    *(
        "scalar_tensor",
        "_local_scalar_dense",
        "is_nonzero",
        "split",
        "arange",
        "view_as",
        "new_zeros",
        "_reshape_alias",
    ),
    *("new_full", "item", "frombuffer", "split_with_sizes", "_unsafe_index", "masked_fill", "masked_fill_"),
}


class FloatCalls(TorchDispatchMode):
    """Every ATen call that reads or makes binary32 or binary64, and what is wrong with it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.wrong: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        flat = [a for a in torch.utils._pytree.tree_leaves((args, kwargs, result)) if isinstance(a, Tensor)]
        if any(t.dtype.is_floating_point for t in flat):
            self.seen.add(name)
            self._check(name, func, args, kwargs or {}, flat)
        return result

    def _check(self, name, func, args, kwargs, flat) -> None:
        if name in MOVES:
            return
        if name not in ALLOWED:
            self.wrong.append(f"{func} is on no list")
        elif name.startswith(("add", "sub")) and kwargs.get("alpha", 1) != 1:
            self.wrong.append(f"{func} with alpha")
        elif name.startswith("div") and (not isinstance(args[1], Tensor) or kwargs.get("rounding_mode")):
            self.wrong.append(f"{func} by a number")
        elif name.startswith("sqrt") and args[0].dtype is not torch.float64:
            self.wrong.append(f"{func} of {args[0].dtype}")
        elif name in ("mm", "bmm", "sum", "scatter_add_") and any(t.dtype is torch.float32 for t in flat):
            self.wrong.append(f"{func} in binary32")
        elif any(t.dtype in (torch.float16, torch.bfloat16) for t in flat):
            self.wrong.append(f"{func} in half precision")


def calls(program, inputs: Lists, *, cross_check: bool = False) -> FloatCalls:
    """What the stock executor calls."""
    executor = Executor(program, variant=None if cross_check else KernelVariant.STOCK, cross_check=cross_check)
    with FloatCalls() as mode:
        executor.run(inputs)
    return mode


def demo(name: str = "demo") -> tuple[object, Lists]:
    size = preset(name)
    corpus = corpus_from_text(pydoc_text()[:20_000])
    step = preset_step(size, len(corpus.vocabulary))
    return training_program(size, corpus), initial_state(
        step, initialize(step.module, 1), Scalars.of(corpus.train, learning_rate=3e-3)
    )


@pytest.mark.parametrize("cross_check", [False, True], ids=["usual", "cross-check"])
def test_a_demo_step_calls_no_float_operation_outside_the_list(cross_check: bool):
    mode = calls(*demo(), cross_check=cross_check)
    assert mode.wrong == []
    assert {"mul", "add", "div"} <= mode.seen, "nothing was recorded"


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_no_family_calls_a_float_operation_outside_the_list(example: Example):
    assert calls(example.program, tensors_of(example.program, example.state)).wrong == []


@pytest.mark.parametrize(
    "function",
    [torch.exp, torch.tanh, torch.rsqrt, torch.sigmoid, torch.log, torch.sqrt, torch.erf, torch.nn.functional.gelu],
    ids=lambda f: f.__name__,
)
def test_no_function_calls_a_float_operation_outside_the_list(function):
    x = torch.tensor([0.5, 2.0, 1e-40, 3.0])
    program = captured(lambda a: (function(a),), x).program
    assert calls(program, [[x]]).wrong == []


@pytest.mark.parametrize(
    "banned",
    [
        lambda x: torch.add(x, x, alpha=2),
        lambda x: x / 3.0,
        lambda x: torch.addcmul(x, x, x),
        lambda x: torch.lerp(x, x, 0.5),
        lambda x: x.sqrt(),
        lambda x: x.exp(),
        lambda x: x.mean(),
        lambda x: x.pow(2),
        lambda x: x.sum(),
        lambda x: torch.mm(x, x),
        lambda x: torch._foreach_add([x], [x]),
        lambda x: torch.randn(3),
        lambda x: x.to(torch.bfloat16) + 1,
    ],
)
def test_the_list_notices_what_it_bans(banned):
    with FloatCalls() as mode:
        banned(torch.ones(3, 3))
    assert mode.wrong


AVX2 = """
import json, torch
from assay.engine.runtime.products import product_variants
from assay.engine.runtime.executor import Executor, KernelVariant
from tests.unit.engine.test_guards import big_product, SATURATING
a, b, program = big_product()
executor = Executor(program, variant=KernelVariant.STOCK)
ones = torch.full((64, 64), 127, dtype=torch.int8)
print(json.dumps({
    "raw": int(torch._int_mm(ones, ones)[0, 0]),
    "full digits": product_variants.failure(SATURATING),
    "ours": product_variants.failure(product_variants.KARATSUBA),
    "used": sorted(set(executor.product_variants.values())),
    "result": executor.run([[a, b]])[0][0].view(torch.int32).flatten().tolist(),
}))
"""


def _full_digits(qa: Tensor, qb: Tensor) -> Tensor:
    """One int8 product of operands clamped to +-127."""
    a, b = (q.clamp(-127, 127).to(torch.int8)[0] for q in (qa, qb))
    rest = product_variants.INT64.multiply(qa, qb) - product_variants.INT64.multiply(
        qa.clamp(-127, 127), qb.clamp(-127, 127)
    )
    return rest + product_variants.int8_product(a, b).to(torch.int64)[None]


SATURATING = product_variants.ProductVariant("int8x1", _full_digits)
"""A product of digits up to 127: right with VNNI, wrong without."""


def big_product() -> tuple[Tensor, Tensor, object]:
    """Operands and program of a product that is worth three int8 products."""
    generator = torch.Generator().manual_seed(1)
    a, b = torch.rand(256, 384, generator=generator), torch.rand(384, 256, generator=generator)
    return a, b, captured(lambda x, y: (x @ y,), a, b).program


def under(limits: dict[str, str]) -> dict[str, object]:
    """What a process reports whose libraries see these limits."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **limits}
    command = [sys.executable, "-c", AVX2]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=300)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.gate_takes(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("isa", ["AVX2", "DEFAULT"])
def test_int8_products_are_used_exactly_where_the_library_multiplies_right(isa: str):
    """Whatever oneDNN does under this limit, the self-test tells, and the result is the same."""
    found = under({"ONEDNN_MAX_CPU_ISA": isa})
    a, b, program = big_product()
    assert (
        found["result"]
        == Executor(program, variant=KernelVariant.STOCK).run([[a, b]])[0][0].view(torch.int32).flatten().tolist()
    )
    if found["raw"] == 127 * 127 * 64:
        assert (found["full digits"], found["ours"], found["used"]) == ("", "", ["int8x3"])
    else:
        assert found["raw"] == int(saturating_product(ONES, ONES)[0, 0])
        assert "int8x1" in str(found["full digits"]) and " at " in str(found["full digits"])
        assert "int8x3" in str(found["ours"]) and " at " in str(found["ours"]), "the vector is named"
        assert found["used"] == ["fp64"]


ONES = torch.full((64, 64), 127, dtype=torch.int8)


def saturating_product(a: Tensor, b: Tensor) -> Tensor:
    """a [M, K] times b [K, N], both i8, as oneDNN computes it on AVX2: (a + 128) b in pairs of saturating 16 bits."""
    shifted, right = a.to(torch.int64) + 128, b.to(torch.int64)
    pairs = shifted.t()[:, :, None] * right[:, None, :]  # [K, M, N]
    joined = (pairs[0::2] + pairs[1::2]).clamp(-(1 << 15), (1 << 15) - 1)
    return (joined.sum(0) - 128 * right.sum(0)).to(torch.int32)


@pytest.fixture
def unproved() -> Iterator[None]:
    """Self-tests run again, in this test and after it."""
    for known in (product_variants.failure, product_variants._choose, product_variants._another):
        known.cache_clear()
    yield
    for known in (product_variants.failure, product_variants._choose, product_variants._another):
        known.cache_clear()


@pytest.mark.usefixtures("unproved")
def test_int8_products_that_saturate_are_refused_and_a_slower_one_is_taken(monkeypatch: pytest.MonkeyPatch):
    """What AVX2 does, on a machine of any kind: 127 * 255 * 2 does not fit 16 bits."""
    small = ONES[:16] // 4
    assert torch.equal(saturating_product(small, small.t()), small.to(torch.int32) @ small.to(torch.int32).t())
    monkeypatch.setattr(torch, "_int_mm", saturating_product)
    assert "int8x1 is wrong for " in product_variants.failure(SATURATING)
    assert "int8x3 is wrong for " in product_variants.failure(product_variants.KARATSUBA)
    assert product_variants.choose(14, 14, 1, 256, 256, 384) is product_variants.F64
    assert product_variants.choose(14, 14, 1, 256, 256, 384, other=True) is not product_variants.KARATSUBA
    program = big_product()[2]
    assert set(Executor(program, variant=KernelVariant.STOCK).product_variants.values()) == {"fp64"}


def test_the_self_tests_of_all_products_take_less_than_a_second():
    start = time.process_time()
    for product_variant in (product_variants.F64, product_variants.KARATSUBA, product_variants.INT64):
        assert product_variants.failure.__wrapped__(product_variant) == ""
    found = native_dot.kernels()
    for pa, pb in ((14, 14), (22, 14), (8, 8)) if found is not None else ():
        assert found is not None
        assert native_dot.failure.__wrapped__(found, pa, pb, found.product_variant(pa, pb, 1)) == ""
    assert time.process_time() - start < 1.0


@pytest.fixture
def flushing() -> Iterator[None]:
    """Whatever a test switches on is switched off again."""
    yield
    torch.set_flush_denormal(False)


def tiny() -> tuple[Executor, Lists]:
    program, state = demo(TINY.name)
    return Executor(program), state  # type: ignore[arg-type]


@pytest.mark.usefixtures("flushing")
def test_a_library_that_flushes_subnormals_in_the_middle_of_a_run_is_noticed():
    executor, state = tiny()
    middle = len(executor.program.nodes) // 2

    def library(k: int, value: Tensor) -> Tensor:
        if k == middle:
            assert torch.set_flush_denormal(True)
        return value

    with pytest.raises(InvariantError) as caught:
        executor.run(state, library)
    assert caught.value.code == "FlushToZero"


@pytest.mark.usefixtures("flushing")
def test_flushing_in_a_worker_thread_is_noticed():
    """The mode belongs to a thread: what the main thread sees says nothing of the one that runs."""
    executor, state = tiny()
    before = executor.run(state)
    caught: list[str] = []

    def library(k: int, value: Tensor) -> Tensor:
        if k == 40:
            torch.set_flush_denormal(True)
        return value

    def work() -> None:
        try:
            executor.run(state, library)
        except InvariantError as error:
            caught.append(error.code)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert caught == ["FlushToZero"]
    assert all(
        bits_equal(a, b) for p, q in zip(executor.run(state), before, strict=True) for a, b in zip(p, q, strict=True)
    )


@pytest.mark.parametrize("bit", [0, 1, 20])
def test_one_wrong_bit_in_a_product_is_caught_when_its_turn_comes(bit: int, monkeypatch: pytest.MonkeyPatch):
    program, state = demo(TINY.name)
    executor = Executor(program, variant=KernelVariant.STOCK)  # type: ignore[arg-type]
    products = len(executor.product_variants)
    mm, count = torch.mm, [0]

    def faulty(a: Tensor, b: Tensor) -> Tensor:
        s = mm(a, b)
        count[0] += 1
        if s.dtype is torch.float64:
            s.view(-1)[s.numel() // 2] += 2.0**bit
        return s

    for _ in range(2):
        executor.run(state)
    monkeypatch.setattr(torch, "mm", faulty)
    with pytest.raises(InvariantError) as caught:
        for _ in range(products):
            executor.run(state)
    assert caught.value.code == "HardwareFault"
    assert count[0]
