"""The fused executor equals the reference and stock torch on every bit: whole programs, edges, blocks, threads."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assay.conformance.fuzz.programs import Limits, draw
from assay.engine.runtime.executor import Executor, KernelVariant, how_programs_run, usable_natives
from assay.engine.runtime.fused import plan as plan_module
from assay.engine.runtime.native import library
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import UserError
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.fused_instruction_sets import PRESENT, at_instruction_set, needs_kernels
from tests.harness.engine.helpers import differing_nodes, same_lists, tensors_of
from tests.harness.programs import Example, all_examples, unary

F32, I32, U8 = DType.F32, DType.I32, DType.U8

pytestmark = needs_kernels


def wrong_outputs(program: Program, inputs: Sequence[Sequence[Tensor]]) -> list[int]:
    """Slots of Y on which a plain run disagrees with the reference."""
    reference = ReferenceExecutor(program).run([[to_bytes(t) for t in part] for part in inputs])
    ends = [to_bytes(t) for part in Executor(program, variant=KernelVariant.FUSED).run(inputs) for t in part]
    return [k for k, end in enumerate(ends) if end != reference[len(program.nodes) - len(ends) + k]]


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_hand_written_programs_agree_with_the_reference(example: Example, instruction_set: str):
    inputs = tensors_of(example.program, example.state)
    with at_instruction_set(instruction_set):
        assert differing_nodes(example.program, inputs, KernelVariant.FUSED) == []
        assert wrong_outputs(example.program, inputs) == []


@pytest.mark.gate_takes(2)
@pytest.mark.parametrize("instruction_set", PRESENT)
@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_random_programs_agree_with_the_reference(instruction_set: str, seed: int):
    case = draw(seed)
    program, inputs = case.program, tensors_of(case.program, case.state)
    with at_instruction_set(instruction_set):
        assert differing_nodes(program, inputs, KernelVariant.FUSED) == []
        assert wrong_outputs(program, inputs) == []


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("unused", [DType.I64, DType.U16, DType.BOOL])
def test_an_operand_that_a_map_does_not_use_takes_no_room_of_others(unused: DType, instruction_set: str):
    dims = (3, 40, 6)
    specs = [
        TensorSpec(unused, dims),
        TensorSpec(unused, (3,)),
        TensorSpec(DType.F32, (6,)),
        TensorSpec(DType.F32, dims),
    ]
    b = ProgramBuilder([specs])
    whole, per_row, last, x = (b.input(0, k) for k in range(4))
    reads = {
        "strided": whole.permute(0, 1, 2),
        "of a run": per_row.unsqueeze(1).unsqueeze(2).expand(*dims),
        "repeated": last.unsqueeze(0).unsqueeze(0).expand(*dims),
        "direct": x,
    }
    outputs = []
    for order in permutations(reads):
        s = ScalarBuilder([unused if name in ("strided", "of a run") else DType.F32 for name in order])
        total = s.add(s.operand(order.index("repeated")), s.operand(order.index("direct")))
        outputs.append(b.map(s.build(total), [reads[name] for name in order], dims))
    program = b.build([outputs])
    generator = random.Random(7)
    inputs = tensors_of(program, [[generator.randbytes(spec.nbytes) for spec in specs]])
    with at_instruction_set(instruction_set):
        assert differing_nodes(program, inputs, KernelVariant.FUSED) == []
        assert wrong_outputs(program, inputs) == []


LARGE = Limits(nodes=6, elements=2200, terms=300)
"""Values that fill several tiles, with runs long enough to be taken one by one."""


@pytest.mark.parametrize("block", [1 << 8, 1 << 17])
@pytest.mark.parametrize("threads", [1, 3])
@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_large_random_programs_agree_with_stock_torch(block: int, threads: int, seed: int):
    case = draw(seed, LARGE)
    program, inputs = case.program, tensors_of(case.program, case.state)
    stock = Executor(program, variant=KernelVariant.STOCK).run(inputs)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan_module, "_BLOCK_BYTES", block)
            patch.setattr(plan_module, "_PARALLEL_BYTES", block)
            fused = Executor(program, variant=KernelVariant.FUSED)
            assert same_lists(stock, fused.run(inputs))
            assert same_lists(stock, fused.run(inputs, lambda _, value: value))
    finally:
        torch.set_num_threads(before)


def edge_rows(columns: int, seed: int) -> Tensor:
    """Rows whose largest element is at each extreme of the exponent, ordinary ones and ones with NaN or infinity."""
    rng = random.Random(seed)
    tops = (-149, -148, -127, -126, -125, -114, -113, -98, -97, -96, -30, 0, 1, 30, 31, 60, 126, 127)
    rows = []
    for top in tops:
        row = [rng.choice((0.0, -0.0, *(rng.uniform(-1, 1) * 2.0**top for _ in range(6)))) for _ in range(columns)]
        row[rng.randrange(columns)] = rng.choice((1, -1)) * 2.0**top
        rows.append(row)
    rows += [[rng.choice((0.0, -0.0)) for _ in range(columns)]]
    for odd in (float("nan"), float("inf"), float("-inf")):
        rows.append([rng.gauss(0, 1) for _ in range(columns)])
        rows[-1][rng.randrange(columns)] = odd
    rows += [[rng.choice((1.0, 1.0, 1.0 + 2.0**-23, 2.0**-30, 3 * 2.0**-31, -(2.0**-31))) for _ in range(columns)]]
    return torch.tensor(rows, dtype=torch.float64).to(torch.float32)


def reductions(b: ProgramBuilder, x: Ref) -> list[Ref]:
    return [b.rowexp(x, 1), b.max(x, 1), b.sum(x, 1)]


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("columns", [1, 2, 15, 16, 17, 64, 103, 600])
def test_reductions_of_edge_rows_agree_along_rows_columns_and_through_tiles(columns: int, instruction_set: str):
    x = edge_rows(columns, columns)
    rows = len(x)
    b = ProgramBuilder([[TensorSpec(F32, (rows, columns)), TensorSpec(F32, (columns, rows))]])
    along, across = b.input(0, 0), b.input(0, 1).permute(1, 0)
    padded = along.pad(1, 1, 2, 0x3F800000)
    ends = [*reductions(b, along), *reductions(b, across), *reductions(b, padded)]
    with at_instruction_set(instruction_set):
        inputs = [[x, x.t().contiguous()]]
        program = b.build([ends])
        assert not Executor(program, variant=KernelVariant.FUSED).fallbacks
        assert differing_nodes(program, inputs, KernelVariant.FUSED) == []
        assert wrong_outputs(program, inputs) == []


@pytest.mark.parametrize("exponent", [-400, -150, -149, -98, -97, 0, 1, 31, 127, 128, 129, 130, 2**31 - 1, -(2**31)])
def test_sums_clamp_under_exponents_that_are_not_the_rows_own(exponent: int):
    x = edge_rows(40, 3)
    b = ProgramBuilder([[TensorSpec(F32, tuple(x.shape))]])
    e = b.const(TensorSpec(I32, ()), struct.pack("<i", exponent))
    along = b.sum(b.input(0, 0), 1, e.expand(len(x)))
    across = b.sum(b.input(0, 0).permute(1, 0), 1, e.expand(40))
    for instruction_set in PRESENT:
        with at_instruction_set(instruction_set):
            assert wrong_outputs(b.build([[along, across]]), [[x]]) == []


@pytest.mark.parametrize("terms", [1 << 23, (1 << 23) + 1, 9_000_001])
def test_sums_beyond_53_bits_are_rounded_once(terms: int):
    """All ones under the exponent 1 give 2^29 each; one small odd term decides a tie, or is a tie itself."""
    ones = torch.ones(terms)
    ones[terms // 2] = 2.0**-29
    b = ProgramBuilder([[TensorSpec(F32, (terms,))]])
    program = b.build([[b.sum(b.input(0, 0), 1)]])
    ((fused,),) = Executor(program, variant=KernelVariant.FUSED).run([[ones]])
    exact = (terms - 1) * (1 << 29) + 1
    assert fused.item() == torch.tensor(exact, dtype=torch.int64).float().item() / 2.0**29


def test_finish_keeps_the_sticky_bit_at_midpoints():
    """Sums of 2^54 and more just beside the midpoint of two binary32 numbers."""
    terms = (1 << 24) + 2
    for small, expected in ((2.0**-29, 2.0**24 + 2), (0.0, 2.0**24), (-(2.0**-29), 2.0**24)):
        x = torch.ones(terms)
        x[0] = small  # 2^24 + 1 ones: the midpoint of 2^24 and 2^24 + 2
        b = ProgramBuilder([[TensorSpec(F32, (terms,))]])
        ((fused,),) = Executor(b.build([[b.sum(b.input(0, 0), 1)]]), variant=KernelVariant.FUSED).run([[x]])
        assert fused.item() == expected


def chain(rows: int, columns: int) -> tuple[Program, list[list[Tensor]]]:
    """A softmax and what follows it: values of rows that nothing else reads."""
    b = ProgramBuilder([[TensorSpec(F32, (rows, columns))]])
    x = b.input(0, 0)
    top = b.max(x, 1)
    from tests.harness.programs import binary

    moved = b.map(binary((F32, F32), "sub"), [x, top.unsqueeze(1).expand(rows, columns)], (rows, columns))
    total = b.sum(moved, 1)
    share = b.map(binary((F32, F32), "div"), [moved, total.unsqueeze(1).expand(rows, columns)], (rows, columns))
    program = b.build([[b.map(unary(F32, "add", 1.0), [share], (rows, columns)), b.rowexp(share, 1)]])
    torch.manual_seed(1)
    return program, [[torch.randn(rows, columns)]]


def test_values_that_only_their_group_reads_have_no_place_of_their_own():
    program, inputs = chain(4096, 96)
    fused = Executor(program, variant=KernelVariant.FUSED)
    assert fused._plan is not None
    assert len(fused._plan.groups) == 1
    assert sum(map(len, fused._plan.scratch.values())) == 5
    assert same_lists(fused.run(inputs), Executor(program, variant=KernelVariant.STOCK).run(inputs))


def test_threads_do_not_change_a_bit():
    program, inputs = chain(4096, 96)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(Executor(program, variant=KernelVariant.FUSED).run(inputs))
    finally:
        torch.set_num_threads(before)
    assert same_lists(results[0], results[1]) and same_lists(results[0], results[2])


def test_outputs_of_one_run_outlive_the_next():
    program, inputs = chain(64, 40)
    fused = Executor(program, variant=KernelVariant.FUSED)
    first = fused.run(inputs)
    kept = [t.clone() for t in first[0]]
    fused.run([[inputs[0][0] * 2]])
    assert all(torch.equal(a, b) for a, b in zip(first[0], kept, strict=True))


def test_what_a_hook_keeps_is_not_overwritten():
    program, inputs = chain(64, 40)
    fused = Executor(program, variant=KernelVariant.FUSED)
    seen: list[Tensor] = []
    copies: list[Tensor] = []

    def keep(_: int, value: Tensor) -> Tensor:
        seen.append(value)
        copies.append(value.clone())
        return value

    fused.run(inputs, keep)
    fused.run([[inputs[0][0] * 2]])
    assert all(to_bytes(a) == to_bytes(b) for a, b in zip(seen, copies, strict=True))


def test_the_executor_says_what_it_is_and_why(monkeypatch: pytest.MonkeyPatch):
    example = all_examples()[0]
    fused, stock = Executor(example.program), Executor(example.program, variant=KernelVariant.STOCK)
    assert (fused.variant, fused.reason) == (KernelVariant.FUSED, "")
    assert (stock.variant, stock.reason) == (KernelVariant.STOCK, "asked for")
    assert Executor(example.program, cross_check=True).variant is KernelVariant.STOCK
    monkeypatch.setattr("assay.engine.runtime.executor.usable_natives", lambda: (None, "no C compiler was found"))
    assert Executor(example.program).reason == "no C compiler was found"
    with pytest.raises(UserError, match="no C compiler"):
        Executor(example.program, variant=KernelVariant.FUSED)


def test_one_line_says_how_programs_run_and_why_not_by_kernels(monkeypatch: pytest.MonkeyPatch):
    natives, _ = usable_natives()
    assert natives is not None
    assert how_programs_run() == f"Programs run by native kernels ({natives.nodes.instruction_set})."
    monkeypatch.setattr(library, "native", lambda unit: library.Native(None, "", f"no {unit}"))
    for found in ((None, "no C compiler was found"), (replace(natives, products=None), "")):
        monkeypatch.setattr("assay.engine.runtime.executor.usable_natives", lambda found=found: found)
        assert re.search(r"by stock torch.*: no (C compiler was found|dot)\.$", how_programs_run())


def test_nodes_that_stay_with_stock_torch_are_named_with_the_reason():
    example = next(e for e in all_examples() if e.name == "every_family")
    fallbacks = Executor(example.program).fallbacks
    families = {example.program.nodes[k].family.name.lower(): reason for k, reason in fallbacks.items()}
    assert families["rank"] == "no kernel for rank"
    assert set(families) <= {"rank", "dot"}


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("shape", [(5000, 14), (700, 100), (40, 1700), (1500, 2, 30), (9000, 8)], ids=str)
def test_terms_of_few_columns_are_divided_among_threads(shape: tuple[int, ...], instruction_set: str):
    """Edge rows across memory, repeated to 65,536 elements and more, from where on the kernels divide them."""
    terms, *columns = shape
    rows = edge_rows(terms, terms)
    x = rows.repeat(-(-prod(columns) // len(rows)), 1)[-prod(columns) :].t().reshape(shape)
    assert x.numel() >= 1 << 16
    b = ProgramBuilder([[TensorSpec(F32, tuple(x.shape))]])
    across = b.input(0, 0).permute(*range(1, x.ndim), 0)
    program = b.build([reductions(b, across)])
    stock = Executor(program, variant=KernelVariant.STOCK).run([[x]])
    before = torch.get_num_threads()
    with at_instruction_set(instruction_set):
        try:
            for threads in (1, 2, 5):
                torch.set_num_threads(threads)
                assert same_lists(stock, Executor(program, variant=KernelVariant.FUSED).run([[x]])), threads
        finally:
            torch.set_num_threads(before)
