"""Ranges of registers hold whatever the operands are, and shorter texts are taken where they hold and nowhere else."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import scalar_text
from assay.engine.runtime.triton.ranges import ranges
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import Op, ScalarProgram, evaluate, infer_types
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Map
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

F32, I32 = DType.F32, DType.I32


def scalar(make: Callable[..., Reg], *types: DType) -> ScalarProgram:
    s = ScalarBuilder(list(types))
    return s.build(make(s, *(s.operand(k) for k in range(len(types)))))


def number(word: int) -> float:
    return float(struct.unpack("<f", (word & 0xFFFFFFFF).to_bytes(4, "little"))[0])


def word(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def texts(program: ScalarProgram) -> str:
    return "\n".join(scalar_text.lines(program, [f"x{k}" for k in range(len(program.operands))], "r"))


FUNCTIONS = ("exp", "log", "sigmoid", "tanh", "rsqrt", "erf", "gauss", "gelu_tanh", "sin", "cos")


@pytest.mark.parametrize("name", FUNCTIONS)
@given(x=st.one_of(st.floats(width=32), st.integers(0, 2**32 - 1).map(number)))
@pytest.mark.gate_takes(4)
def test_every_register_lies_in_its_range(name: str, x: float) -> None:
    program = scalar(lambda s, a: getattr(functions, name)(s, a), F32)
    types = infer_types(program.operands, program.instructions)
    for k, known in enumerate(ranges(program.instructions, program.operands)):
        if known is None or types[k] not in (F32, I32):
            continue
        code = ScalarProgram(program.operands, program.instructions[:k]).encode()
        got = evaluate(code, [word(x)])
        value = number(got) if types[k] is F32 else got
        assert (types[k] is F32 and math.isnan(value)) or known[0] <= value <= known[1], (
            k,
            Op(program.instructions[k - 1].op),
        )


def test_an_exponential_takes_the_shorter_texts() -> None:
    text = texts(scalar(functions.exp, F32))
    assert all(f"{name}(" in text for name in ("nearest_small", "to_i32_whole", "scale2_near"))


@pytest.mark.parametrize("n,is_near", [(-252, True), (-253, False), (254, True), (255, False)])
def test_two_powers_are_taken_up_to_their_last_and_no_further(n: int, is_near: bool) -> None:
    program = scalar(lambda s, x: s.scale2(x, s.i32(n)), F32)
    assert ("scale2_near" in texts(program)) == is_near


@pytest.mark.parametrize("most,is_small", [(2.0**22, True), (2.0**22 + 1, False)])
def test_a_small_number_is_rounded_in_short_up_to_the_last(most: float, is_small: bool) -> None:
    program = scalar(lambda s, x: s.apply(Op.F32_RINT, functions.clamp(s, x, -most, most)), F32)
    assert ("nearest_small" in texts(program)) == is_small


def test_what_may_be_anything_is_taken_for_anything() -> None:
    program = scalar(lambda s, x, n: s.scale2(s.apply(Op.F32_RINT, x), n), F32, I32)
    text = texts(program)
    assert "_small" not in text and "_near" not in text


@pytest.mark.parametrize("is_padded", [False, True])
def test_exponents_of_rows_are_known_to_be_small_unless_a_view_fills_in_others(is_padded: bool) -> None:
    b = ProgramBuilder([[TensorSpec(F32, (6, 4))]])
    x = b.input(0, 0)
    e = b.rowexp(x, 1)
    e = (e.slice(0, 1, 6).pad(0, 1, 0, 1 << 30) if is_padded else e).unsqueeze(1).expand(6, 4)
    program = b.build([[b.map(scalar(lambda s, a, n: s.scale2(a, n), F32, I32), [x, e], (6, 4))]])
    node = program.nodes[-2]
    assert isinstance(node, Map)
    text = "\n".join(scalar_text.map_lines(program, node, ["x0", "x1"], "r"))
    assert ("scale2_near" in text) != is_padded


def test_products_of_large_bounds_are_taken_for_anything() -> None:
    s = ScalarBuilder([F32])
    x = functions.clamp(s, s.operand(0), -4097.0, 4097.0)
    program = s.build(s.mul(x, x))
    assert ranges(program.instructions, program.operands)[-1] == (-math.inf, math.inf)


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("bounds", [None, (-252.0, 254.0)], ids=["any", "near"])
def test_powers_of_two_round_once(bounds: tuple[float, float] | None) -> None:
    """Numbers of all lengths by all powers, those at which results become subnormal, zero and infinite among them."""
    torch.manual_seed(7)
    n = torch.arange(-420, 421)
    mantissas = torch.tensor([0, 1, 0x400000, 0x400001, 0x7FFFFF, 0x2AAAAA, 0x555555, 0x3FFFFF])
    fields = torch.tensor([0, 1, 2, 22, 23, 24, 25, 60, 126, 127, 128, 150, 200, 253, 254, 255])
    words = ((fields[:, None] << 23) | mantissas[None, :]).flatten()
    words = torch.cat([words, words | -(1 << 31)]).to(torch.int32)
    x = words.view(torch.float32)[:, None].expand(-1, len(n)).contiguous()
    powers = n.to(torch.int32)[None, :].expand(len(words), -1).contiguous()

    def make(s: ScalarBuilder, a: Reg, b: Reg) -> Reg:
        return s.scale2(a, b if bounds is None else s.cast(functions.clamp(s, s.cast(b, F32), *bounds), I32))

    program = scalar(make, F32, I32)
    assert ("scale2_near" in texts(program)) == (bounds is not None)
    b = ProgramBuilder([[TensorSpec(F32, tuple(x.shape)), TensorSpec(I32, tuple(x.shape))]])
    made = b.build([[b.map(program, [b.input(0, 0), b.input(0, 1)], tuple(x.shape))]])
    stock, ours = (Executor(made, variant=v).run([[x, powers]]) for v in (KernelVariant.STOCK, KernelVariant.TRITON))
    assert state_root(ours) == state_root(stock)
    exact = powers if bounds is None else powers.clamp(int(bounds[0]), int(bounds[1]))
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x.numpy().astype(np.float64), exact.numpy()).astype(np.float32)
    assert np.array_equal(ours[0][0].numpy(), wanted, equal_nan=True)
