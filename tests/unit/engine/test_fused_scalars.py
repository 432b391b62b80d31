"""The tile interpreter equals the reference's scalar machine on every operation, whichever operands are single."""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.fused.functions import known
from assay.engine.runtime.fused.layout import kernels
from assay.engine.runtime.fused.nodes import TILE
from assay.engine.runtime.values.dtypes import from_bytes, to_bytes
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import CONSTANTS, Op, ScalarProgram, canonical_word, evaluate, infer_types
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.arithmetic.words import to_bytes as words_to_bytes
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.fused_instruction_sets import PRESENT, at_instruction_set, needs_kernels
from tests.harness.scalars import operation, random_program, word

F32, I32, I64, BOOL, U8, I8, U16 = DType

pytestmark = needs_kernels

ROWS, COLUMNS = 7, 103
"""More than a tile in all, and runs that no vector divides."""


def raw(dtype: DType, words: list[int]) -> bytes:
    """Elements from signed words, NaNs with whatever payload they have."""
    mask = (1 << 8 * dtype.size) - 1
    return b"".join((w & mask).to_bytes(dtype.size, "little") for w in words)


def spread(extent: str, ref: Ref) -> Ref:
    """An operand as a tile, one element, one per row, or one per column."""
    match extent:
        case "tile":
            return ref
        case "one":
            return ref.slice(0, 3, 4).slice(1, 5, 6).expand(ROWS, COLUMNS)
        case "row":
            return ref.slice(1, 4, 5).expand(ROWS, COLUMNS)
        case _:
            return ref.slice(0, 2, 3).expand(ROWS, COLUMNS)


@cache
def case(scalar: ScalarProgram, extents: tuple[str, ...], seed: int) -> tuple[Program, list[bytes], bytes]:
    """A program of one map, the bytes of its operands, and those that the reference gives."""
    rng = random.Random(seed)
    specs = [TensorSpec(d, (ROWS, COLUMNS)) for d in scalar.operands]
    words = [[word(rng, d) for _ in range(ROWS * COLUMNS)] for d in scalar.operands]
    b = ProgramBuilder([specs])
    reads = [spread(e, b.input(0, k)) for k, e in enumerate(extents)]
    result = infer_types(scalar.operands, scalar.instructions)[-1]
    program = b.build([[b.map(scalar, reads, (ROWS, COLUMNS), result)]])
    place = {
        "tile": lambda r, c: (r, c),
        "one": lambda r, c: (3, 5),
        "row": lambda r, c: (r, 4),
        "column": lambda r, c: (2, c),
    }
    code, expected = scalar.encode(), []
    for r, c in product(range(ROWS), range(COLUMNS)):
        operands = []
        for d, own, extent in zip(scalar.operands, words, extents, strict=True):
            y, x = place[extent](r, c)
            operands.append(canonical_word(d, own[y * COLUMNS + x]))
        expected.append(canonical_word(result, evaluate(code, operands)))
    return program, [raw(s.dtype, w) for s, w in zip(specs, words, strict=True)], raw(result, expected)


def mistakes(scalar: ScalarProgram, extents: tuple[str, ...], seed: int) -> list[str]:
    """Elements on which one map disagrees with the reference."""
    program, datas, wanted = case(scalar, extents, seed)
    executor = Executor(program, variant=KernelVariant.FUSED)
    assert not executor.fallbacks
    specs = program.specs
    ((out,),) = executor.run([[from_bytes(specs[k].dtype, specs[k].dims, d) for k, d in enumerate(datas)]])
    found, size = to_bytes(out), out.element_size()
    pairs = [(found[n : n + size].hex(), wanted[n : n + size].hex()) for n in range(0, len(wanted), size)]
    assert len(found) == len(wanted)
    return [f"{n}: {a} is not {b}" for n, (a, b) in enumerate(pairs) if a != b]


@pytest.mark.gate_takes(64)
@pytest.mark.parametrize("op", [op for op in Op if op not in CONSTANTS], ids=lambda op: op.name)
@pytest.mark.parametrize("instruction_set", PRESENT)
def test_every_operation_agrees_with_the_reference(op: Op, instruction_set: str):
    assert ROWS * COLUMNS > TILE
    scalar = operation(op)
    with at_instruction_set(instruction_set):
        for n, extents in enumerate(product(("tile", "one"), repeat=len(scalar.operands))):
            assert mistakes(scalar, extents, n) == []
        for n, extent in enumerate(("row", "column")):
            assert mistakes(scalar, (extent, *("tile",) * (len(scalar.operands) - 1)), 100 + n) == []


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("other", [I32, I64, BOOL], ids=lambda d: d.name)
def test_select_takes_every_type(other: DType, instruction_set: str):
    with at_instruction_set(instruction_set):
        for n, extents in enumerate(product(("tile", "one"), repeat=3)):
            assert mistakes(operation(Op.SELECT, (BOOL, other, other)), extents, n) == []


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("seed", range(25))
def test_random_programs_agree_with_the_reference(seed: int, instruction_set: str):
    rng = random.Random(seed)
    scalar = random_program(rng, rng.choice((1, 3, 8, 20, 64)))
    extents = tuple(rng.choice(("tile", "tile", "one", "row", "column")) for _ in scalar.operands)
    with at_instruction_set(instruction_set):
        assert mistakes(scalar, extents, seed) == []


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("name", ["exp", "log", "sigmoid", "tanh", "rsqrt", "erf", "gauss", "gelu_tanh", "sin", "cos"])
def test_functions_agree_with_the_reference(name: str, instruction_set: str):
    b = ScalarBuilder([F32])
    with at_instruction_set(instruction_set):
        assert mistakes(b.build(getattr(functions, name)(b, b.operand(0))), ("tile",), 5) == []


@pytest.mark.parametrize("instruction_set", PRESENT)
def test_functions_have_the_bits_of_stock_torch_on_numbers_of_every_size(instruction_set: str):
    """Where their last bits are decided, which edges do not show: 24,000 numbers for each function."""
    shape = (3, 8_000)
    program_in = ProgramBuilder([[TensorSpec(F32, shape)] * 2])
    reads = [program_in.input(0, k) for k in range(2)]
    scalars = known().values()
    program = program_in.build([[program_in.map(s, reads[: len(s.operands)], shape, F32) for s in scalars]])
    rng = torch.Generator().manual_seed(3)
    x, y = (torch.randn(shape, generator=rng) * torch.tensor([[0.3], [3.0], [40.0]]) for _ in range(2))
    (wanted,) = Executor(program, variant=KernelVariant.STOCK).run([[x, y]])
    with at_instruction_set(instruction_set):
        (found,) = Executor(program, variant=KernelVariant.FUSED).run([[x, y]])
    for name, a, b in zip(known(), wanted, found, strict=True):
        assert to_bytes(a) == to_bytes(b), name


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("name", ["gelu", "gelu_grad"])
def test_functions_of_two_arguments_agree_with_the_reference(name: str, instruction_set: str):
    b = ScalarBuilder([F32, F32])
    scalar = b.build(getattr(functions, name)(b, b.operand(0), b.operand(1)))
    with at_instruction_set(instruction_set):
        for n, extents in enumerate((("tile", "tile"), ("tile", "one"), ("row", "tile"))):
            assert mistakes(scalar, extents, n) == []


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("name", ["exp", "log", "sigmoid", "tanh", "sin"])
def test_functions_amid_other_operations_agree_with_the_reference(name: str, instruction_set: str):
    b = ScalarBuilder([F32, F32])
    x, y = b.operand(0), b.operand(1)
    inside = b.mul(x, y)
    value = getattr(functions, name)(b, inside)
    scalar = b.build(b.sub(b.mul(b.add(value, x), inside), b.mul(value, y)))
    with at_instruction_set(instruction_set):
        for n, extents in enumerate((("tile", "tile"), ("one", "column"))):
            assert mistakes(scalar, extents, n) == []


@pytest.mark.parametrize("instruction_set", PRESENT)
def test_functions_of_any_number_of_elements_agree_with_the_reference(instruction_set: str):
    b = ScalarBuilder([F32, F32])
    scalar = b.build(functions.gelu_grad(b, b.operand(0), b.operand(1)))
    rng = random.Random(8)
    with at_instruction_set(instruction_set):
        for count in (1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 79):
            program_in = ProgramBuilder([[TensorSpec(F32, (count,))] * 2])
            reads = [program_in.input(0, k) for k in range(2)]
            program = program_in.build([[program_in.map(scalar, reads, (count,), F32)]])
            words = [[word(rng, F32) for _ in range(count)] for _ in range(2)]
            inputs = [from_bytes(F32, (count,), raw(F32, w)) for w in words]
            ((out,),) = Executor(program, variant=KernelVariant.FUSED).run([inputs])
            pairs = zip(*words, strict=True)
            wanted = [evaluate(scalar.encode(), [canonical_word(F32, w) for w in pair]) for pair in pairs]
            assert to_bytes(out) == raw(F32, [canonical_word(F32, w) for w in wanted])


@pytest.mark.parametrize("first", ["add", "sub", "mul"])
@pytest.mark.parametrize("second", ["add", "sub", "mul"])
def test_two_operations_in_one_pass_are_rounded_twice(first: str, second: str):
    for turned in (False, True):
        b = ScalarBuilder([F32, F32, F32])
        inner = getattr(b, first)(b.operand(0), b.operand(1))
        operands = (b.operand(2), inner) if turned else (inner, b.operand(2))
        scalar = b.build(getattr(b, second)(*operands))
        for n, extents in enumerate(product(("tile", "one"), repeat=3)):
            assert mistakes(scalar, extents, n) == []


@pytest.mark.parametrize("stored", [U8, I8, U16, BOOL], ids=lambda d: d.name)
def test_storage_types_are_widened_and_cut_as_the_reference_does(stored: DType):
    rng = random.Random(int(stored))
    words = [rng.randrange(-300, 70_000) for _ in range(900)]
    program_in = ProgramBuilder([[TensorSpec(stored, (900,)), TensorSpec(I32, (900,))]])
    b = ScalarBuilder([stored])
    widened = program_in.map(
        b.build(b.cast(b.operand(0), I32) if stored is BOOL else b.operand(0)), [program_in.input(0, 0)], (900,), I32
    )
    b = ScalarBuilder([I32])
    cut = program_in.map(
        b.build(b.cast(b.operand(0), BOOL) if stored is BOOL else b.operand(0)),
        [program_in.input(0, 1)],
        (900,),
        stored,
    )
    program = program_in.build([[widened, cut]])
    inputs = [from_bytes(stored, (900,), raw(stored, words)), from_bytes(I32, (900,), raw(I32, words))]
    ((wide, narrow),) = Executor(program, variant=KernelVariant.FUSED).run([inputs])
    unsigned = [w & ((1 << 8 * stored.size) - 1) for w in words]
    assert wide.tolist() == [canonical_word(stored, u) for u in unsigned]
    assert to_bytes(narrow) == words_to_bytes(stored, [canonical_word(stored, w) for w in words])


def test_the_kernels_name_every_function_once():
    found, _ = kernels()
    assert found is not None
    assert sorted(found.functions.values()) == list(range(len(found.functions)))
