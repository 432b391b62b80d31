"""Where a map's instructions are a function that kernels compute in one pass, and where they only look like one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from assay.engine.runtime.fused import functions as known_functions
from assay.engine.runtime.fused.functions import HEADER, known, text
from assay.engine.runtime.fused.layout import kernels
from assay.engine.runtime.fused.scalars import Extent, TileCode, assemble
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import CONSTANTS, Instruction, Op, ScalarProgram, infer_types
from assay.protocol.arithmetic.scalar_builder import COMMUTATIVE, ScalarBuilder
from assay.protocol.types import DType
from tests.harness.engine.fused_instruction_sets import needs_kernels

F32, I32 = DType.F32, DType.I32
NAMES = sorted(known())


def passes(program: ScalarProgram, extents: Sequence[Extent] = ()) -> list[str]:
    """What kernels do with a tile, in order."""
    found, _ = kernels()
    assert found is not None
    code: TileCode = assemble(program, F32, extents or [Extent.TILE] * len(program.operands), found.functions)
    names = {number: name for name, number in found.functions.items()}
    return [names[step[0]].removesuffix("_vv") for step in code.steps[code.n_first :]]


def altered(program: ScalarProgram, k: int, **changed: int) -> ScalarProgram:
    """A program with one instruction changed."""
    body = list(program.instructions)
    body[k] = replace(body[k], **changed)
    return ScalarProgram(program.operands, tuple(body))


def test_the_header_is_what_the_functions_say() -> None:
    assert HEADER.read_text(encoding="utf-8") == text()


@needs_kernels
@pytest.mark.parametrize("name", NAMES)
def test_every_function_is_one_pass_in_whichever_order_its_terms_are(name: str) -> None:
    program, rng = known()[name], random.Random(name)
    assert passes(program) == [name]

    def turned(i: Instruction) -> Instruction:
        return replace(i, a=i.b, b=i.a) if i.op in COMMUTATIVE and rng.random() < 0.5 else i

    for _ in range(20):
        assert passes(ScalarProgram(program.operands, tuple(map(turned, program.instructions)))) == [name]


@needs_kernels
@pytest.mark.parametrize("name", NAMES)
def test_a_function_with_another_constant_or_operation_is_computed_as_it_is_written(name: str) -> None:
    program = known()[name]
    for k, i in enumerate(program.instructions):
        if i.op in CONSTANTS:
            assert name not in passes(altered(program, k, imm=i.imm ^ 1)), k
        elif i.op in (Op.F32_MUL, Op.F32_SUB):
            assert name not in passes(altered(program, k, op=Op.F32_ADD)), k


@needs_kernels
def test_a_function_whose_inner_value_is_read_elsewhere_is_computed_as_it_is_written() -> None:
    program = known()["f32_exp"]
    last = len(program.operands) + len(program.instructions) - 1
    inner = program.instructions[-1].a
    for other, count in ((inner, 0), (last, 1), (0, 1)):
        body = (*program.instructions, Instruction(Op.F32_ADD, last, other, 0, 0))
        assert passes(ScalarProgram(program.operands, body)).count("f32_exp") == count


@needs_kernels
def test_functions_of_functions_are_a_pass_each() -> None:
    b = ScalarBuilder([F32, F32])
    x, y = b.operand(0), b.operand(1)
    assert passes(b.build(functions.exp(b, functions.exp(b, b.mul(x, y))))) == ["f32_mul", "f32_exp", "f32_exp"]
    both = ScalarBuilder([F32])
    x = both.operand(0)
    scalar = both.build(both.add(functions.exp(both, x), functions.exp(both, both.neg(x))))
    assert sorted(passes(scalar)) == ["f32_add", "f32_exp", "f32_exp", "f32_neg"]


@needs_kernels
def test_an_argument_that_is_one_element_for_all_is_no_tile() -> None:
    assert passes(known()["f32_exp"], [Extent.NODE]) == ["spread", "copy"]
    assert passes(known()["f32_gelu"], [Extent.TILE, Extent.NODE]) == ["spread", "f32_gelu"]


@needs_kernels
@pytest.mark.parametrize("name", NAMES)
def test_what_is_compared_has_a_bound_that_every_function_keeps_within(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the bound it is found, one below it is not; the bound that stands is many times what anything needs."""
    program, stands = known()[name], known_functions.MOST_COMPARED

    def is_found(most: int) -> bool:
        monkeypatch.setattr(known_functions, "MOST_COMPARED", most)
        return passes(program) == [name]

    needed = next(most for most in range(1, 1000) if is_found(most))
    assert len(program.instructions) <= needed <= stands // 8
    assert not is_found(needed - 1) and is_found(needed)


@needs_kernels
def test_a_stranger_s_sums_of_sums_are_compared_so_often_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them could be a function's in two orders, and every end of the map one of ten functions."""
    program = known()["f32_gelu_grad"]
    body = [replace(i, a=max(i.a, i.b), b=max(i.a, i.b)) if i.op == Op.F32_ADD else i for i in program.instructions]
    hostile = ScalarProgram(program.operands, (*body, *[body[-1]] * (64 - len(body))))
    live = set(range(len(program.operands), len(program.operands) + 64))
    counted: list[int] = []
    compare = known_functions._Unifier._same

    def seen(self: known_functions._Unifier, value: int, register: int) -> bool:
        counted[-1] += self._left > 0
        return compare(self, value, register)

    monkeypatch.setattr(known_functions._Unifier, "_same", seen)
    for most in (100_000, 100):
        monkeypatch.setattr(known_functions, "MOST_COMPARED", most)
        counted.append(0)
        uses = dict.fromkeys(range(len(program.operands) + 64), 9)
        types = infer_types(hostile.operands, hostile.instructions)
        assert known_functions.found(hostile, types, live, uses, dict.fromkeys(known(), 0)) == {}
    assert counted[0] > 100 == counted[1]
