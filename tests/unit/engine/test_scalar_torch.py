"""Scalar programs on torch tensors equal the reference interpreter on every bit."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from assay.engine.runtime.stock import scalar as scalar_torch
from assay.engine.runtime.stock.scalar import compile_scalar
from assay.engine.runtime.values.dtypes import TORCH, canonical, from_bytes, to_bytes
from assay.protocol.arithmetic.scalar import CONSTANTS, SIGNATURES, Op, ScalarProgram, canonical_word, evaluate
from assay.protocol.types import DType
from tests.harness.scalars import BOOL, F32, I32, I64, operation, random_program, word
from tests.unit.protocol.test_functions import ORACLES, inputs, programs

NAMES = list(ORACLES)


def tensor(dtype: DType, words: Sequence[int]) -> Tensor:
    """Words as a tensor, NaN payloads included."""
    size = dtype.size
    return from_bytes(dtype, (len(words),), b"".join((w & (1 << 8 * size) - 1).to_bytes(size, "little") for w in words))


def words(dtype: DType, t: Tensor) -> list[int]:
    """The canonical words of a tensor's elements."""
    data, size = to_bytes(t), dtype.size
    raw = [int.from_bytes(data[k : k + size], "little") for k in range(0, len(data), size)]
    return [canonical_word(dtype, r) for r in raw]


def check(program: ScalarProgram, columns: Sequence[Sequence[int]]) -> None:
    """Both machines on the same operands, one column per operand."""
    result = program.result_type
    computed = compile_scalar(program)([tensor(d, c) for d, c in zip(program.operands, columns, strict=True)])
    assert computed.dtype is TORCH[result]
    code = program.encode()
    expected = [canonical_word(result, evaluate(code, row)) for row in zip(*columns, strict=True)]
    got = words(result, computed.expand(len(expected)) if columns else computed.reshape(1))
    wrong = [k for k, (g, e) in enumerate(zip(got, expected, strict=True)) if g != e]
    assert not wrong, [([hex(c[k]) for c in columns], hex(got[k]), hex(expected[k])) for k in wrong[:3]]


@pytest.mark.vectors
@pytest.mark.parametrize("op", [op for op in Op if op not in CONSTANTS], ids=lambda op: op.name)
def test_every_operation_equals_the_reference(op: Op, vector_count: int) -> None:
    source = random.Random(f"torch {op.name}")
    kinds = [(BOOL, t, t) for t in (F32, I32, I64, BOOL)] if op is Op.SELECT else [SIGNATURES[op][0]]
    for types in kinds:
        check(operation(op, types), [[word(source, d) for _ in range(vector_count)] for d in types])


@given(st.integers(0, 2**32), st.integers(1, 64))
def test_random_programs_equal_the_reference(seed: int, length: int) -> None:
    source = random.Random(seed)
    program = random_program(source, length)
    check(program, [[word(source, d) for _ in range(40)] for d in program.operands])


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("name", NAMES)
def test_functions_equal_the_reference(name: str, vector_count: int) -> None:
    _check_function(name, inputs(name, 4 * vector_count))


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_functions_equal_the_reference_on_a_quarter_of_a_million_inputs(name: str) -> None:
    _check_function(name, inputs(name, 1 << 18))


def _check_function(name: str, xs: list[int]) -> None:
    """All maps of a function on the same inputs."""
    maps = programs(name)
    columns = [xs]
    if len(maps) == 2:
        first = maps[0].encode()
        check(maps[0], columns)
        columns.append([evaluate(first, (x,)) for x in xs])
    check(maps[-1], columns)


@pytest.mark.parametrize("dtype", (DType.U8, DType.I8, DType.U16))
def test_storage_types_are_read_as_i32(dtype: DType) -> None:
    program = ScalarProgram((dtype, I32), operation(Op.I32_MUL).instructions)
    raw = torch.arange(256, dtype=torch.int32).to(TORCH[dtype])
    assert torch.equal(compile_scalar(program)([raw, torch.tensor(3, dtype=torch.int32)]), raw.to(torch.int32) * 3)


def test_operands_are_broadcast_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    program = operation(Op.F32_SUB)
    x, y, scalar = torch.randn(4, 1, 6), torch.randn(5, 6), torch.randn(())
    for chunk in (1, 7, 30, 1 << 15):
        monkeypatch.setattr(scalar_torch, "CHUNK", chunk)
        evaluator = compile_scalar(program)
        assert torch.equal(evaluator([x, y]), x - y)
        assert torch.equal(evaluator([x, scalar]), x - scalar)
        assert torch.equal(evaluator([x.transpose(0, 2), scalar]), x.transpose(0, 2) - scalar)
        assert torch.equal(evaluator([scalar, scalar]), torch.zeros(()))
    assert compile_scalar(program)([torch.empty(0, 3), torch.empty(3)]).shape == (0, 3)


def test_operands_are_left_as_they_were() -> None:
    source = random.Random(5)
    for name in NAMES:
        for program in programs(name):
            operands = [tensor(F32, [word(source, F32) for _ in range(64)]) for _ in program.operands]
            before = [to_bytes(t.view(torch.int32)) for t in operands]
            compile_scalar(program)(operands)
            assert [to_bytes(t.view(torch.int32)) for t in operands] == before


def test_bits_are_read_after_the_one_nan_is_put_in() -> None:
    payloads = tensor(F32, [0xFFC12345, 0x7F800001, 0xFF800000])
    assert words(I32, compile_scalar(operation(Op.F32_BITS))([payloads])) == [0x7FC00000, 0x7FC00000, -0x800000]
    assert words(F32, canonical(payloads)) == [0x7FC00000, 0x7FC00000, 0xFF800000]


ALLOWED_FLOAT = {
    "add", "sub", "mul", "div", "neg", "abs", "where", "round", "floor", "eq", "ne", "lt", "le", "gt", "minimum",
    "maximum", "clamp", "clamp_", "nan_to_num", "isnan", "sqrt", "masked_fill", "copy_", "empty",
}  # fmt: skip
MOVES = {
    "_to_copy",
    "view",
    "expand",
    "slice",
    "select",
    "detach",
    "lift_fresh",
    "clone",
    "unsqueeze",
    "alias",
    "scalar_tensor",
}


class _Recorder(TorchDispatchMode):
    """Notes every ATen operation that reads or writes a floating tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, set[torch.dtype]] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        tensors = [t for t in (*args, result) if isinstance(t, Tensor) and t.dtype.is_floating_point]
        name = func._schema.name.removeprefix("aten::")
        for t in tensors:
            self.seen.setdefault(name, set()).add(t.dtype)
        assert kwargs.get("alpha", 1) == 1, f"{name} with alpha may fuse"
        assert not (name == "div" and not isinstance(args[1], Tensor)), "division by a Python scalar"
        return result


def test_only_operations_that_round_alike_everywhere_touch_floats() -> None:
    with _Recorder() as recorder:
        for op in Op:
            program = operation(op)
            compile_scalar(program)([tensor(d, [1, 0, 1]) for d in program.operands])
    assert set(recorder.seen) <= ALLOWED_FLOAT | MOVES
    assert recorder.seen["sqrt"] == {torch.float64}
    assert recorder.seen["div"] == {torch.float32}


DIGEST = """
import hashlib, random, torch
from tests.unit.engine.test_scalar_torch import NAMES, compile_scalar, inputs, programs, tensor, to_bytes, F32
torch.set_num_threads(1)
digest = hashlib.sha256()
for name in NAMES:
    maps = programs(name)
    xs = [tensor(F32, inputs(name, 20000))]
    for program in maps:
        xs.append(compile_scalar(program)(xs))
        digest.update(to_bytes(xs[-1]))
print(torch.backends.cpu.get_cpu_capability(), digest.hexdigest())
"""


@pytest.mark.long
def test_every_instruction_set_gives_the_same_bits() -> None:
    found = {}
    for capability in ("default", "avx2", "avx512"):
        environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability, "OMP_NUM_THREADS": "1"}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        used, digest = run.stdout.split()
        found[used] = digest
    assert len(set(found.values())) == 1, found
    assert "DEFAULT" in found
