"""What causal attention need not compute above the diagonal: known for every input, and the same bits without it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.products.freivalds import ProductWatch
from assay.engine.runtime.triton import backend, triangles
from assay.engine.runtime.triton import products as triton_products
from assay.engine.runtime.triton.products import Blocks
from assay.engine.runtime.triton.triangles import FINITE, NAN, ZEROS, Cut, Gap, Triangles, result, tells_signs
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic.f32 import canonical
from assay.protocol.arithmetic.scalar import Instruction, Op, ScalarProgram, evaluate
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.recipes.recipe import RecipeStep
from tests.harness.engine.models import language
from tests.harness.scalars import random_program, word

T, HEADS, DIM = 36, 2, 8


def masked(scores: Tensor) -> Tensor:
    """As nanoGPT without a fused kernel does it."""
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf"))


def added(scores: Tensor) -> Tensor:
    """As a mask of numbers does it."""
    return scores + torch.full((T, T), float("-inf")).triu(1)


class CausalGPT(nn.Module):
    """One block of attention whose scores go through a mask."""

    def __init__(self, mask: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(11, HEADS * DIM), nn.Linear(HEADS * DIM, 11)
        self.queries, self.keys, self.values = (nn.Linear(HEADS * DIM, HEADS * DIM) for _ in range(3))
        self._mask = mask

    def forward(self, tokens: Tensor) -> Tensor:
        """Integer [B, T] to f32 [B, T, 11]."""
        x = self.embed(tokens)
        q, k, v = (f(x).unflatten(2, (HEADS, DIM)).transpose(1, 2) for f in (self.queries, self.keys, self.values))
        weights = F.softmax(self._mask(q @ k.transpose(2, 3) * DIM**-0.5), dim=3)
        mixed: Tensor = self.head((weights @ v).transpose(1, 2).flatten(2))
        return mixed


def step_of(mask: Callable[[Tensor], Tensor]) -> tuple[RecipeStep, Program]:
    """A step that trains it, and its program."""
    torch.manual_seed(4)
    module = CausalGPT(mask)
    step = RecipeStep(language(module, torch.optim.SGD(module.parameters(), lr=1e-2), window=T + 1))
    return step, capture(step, step.state()).program


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Blocks of 16 rows and columns, of which the diagonal cuts off some; what their kernels leave out."""
    monkeypatch.setattr(triton_products, "blocks", lambda *_, **__: Blocks(16, 16, 32, 4, 1))
    seen: list[dict[str, Any]] = []
    honest = backend.launch

    def launch(kernel: Any, *arguments: Any, **constants: Any) -> None:
        if "GAP" in constants:
            seen.append({name: constants[name] for name in ("GAP", "TURNED", "CUT_A", "CUT_B")})
        honest(kernel, *arguments, **constants)

    monkeypatch.setattr(backend, "launch", launch)
    return seen


@pytest.mark.parametrize(("mask", "scores"), [(masked, Gap.UNREAD), (added, Gap.FINITE)])
def test_scores_and_their_gradients_have_a_gap_and_four_products_are_cut(mask: Any, scores: Gap):
    _, program = step_of(mask)
    found = Triangles(program)
    gaps = [found.gap(k) for k, node in enumerate(program.nodes) if isinstance(node, Dot)]
    assert [gap for gap in gaps if gap] == [scores, Gap.FINITE]
    assert {known.size for known in found.known.values()} == {T}


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize(
    ("mask", "most_splits"), [(masked, 0), pytest.param(added, 9, marks=pytest.mark.long)], ids=["packed", "split"]
)
def test_a_causal_step_has_the_bits_of_stock_torch(mask: Any, most_splits: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_products, "MOST_SPLITS", most_splits)
    seen = small_blocks(monkeypatch)
    step, program = step_of(mask)
    state = step.state(key=(7, 8))
    stock = state_root(Executor(program, variant=KernelVariant.STOCK).run(state))
    ours = Executor(program, variant=KernelVariant.TRITON)
    seen.clear()  # of the probe
    for _ in range(2):
        assert state_root(ours.run(state)) == stock
    left_out = Counter((made["GAP"] > 0, bool(made["CUT_A"] or made["CUT_B"])) for made in seen)
    passes = 3  # the first of which plans
    assert left_out[True, False] == 2 * passes
    assert left_out[False, True] == 4 * passes


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize(
    ("mask", "bad"), [pytest.param(masked, float("inf"), marks=pytest.mark.long), (added, 2.0**127)]
)
def test_numbers_that_are_none_reach_whoever_they_would(mask: Any, bad: float, monkeypatch: pytest.MonkeyPatch):
    """An embedding that no scores are finite of: where they are dropped, and where a gradient is not."""
    small_blocks(monkeypatch)
    step, program = step_of(mask)
    state = step.state(key=(7, 8))
    for part in state:
        for t in part:
            if t.shape == (11, HEADS * DIM):
                t[3:5] = bad
    stock = state_root(Executor(program, variant=KernelVariant.STOCK).run(state))
    assert state_root(Executor(program, variant=KernelVariant.TRITON).run(state)) == stock


def four_sides() -> tuple[Program, list[list[Tensor]]]:
    """Scores of two batches, dropped above the diagonal; they multiply from either side, straight and turned."""
    torch.manual_seed(3)
    b = ProgramBuilder([[TensorSpec(DType.F32, (2, T, 20))] * 2])
    q, k = b.input(0, 0), b.input(0, 1)

    def dot(x: Ref, y: Ref, rows: int, columns: int, terms: int) -> Ref:
        ex, ey = b.rowexp(x, 1).unsqueeze(2), b.rowexp(y, 1).unsqueeze(1)
        return b.dot(x.unsqueeze(2), y.unsqueeze(1), ex, ey, (2, rows, columns), (terms,), 14, 14)

    data = torch.ones(T, T, dtype=torch.bool).triu(1).numpy().tobytes()
    s = ScalarBuilder([DType.BOOL, DType.F32])
    drop = s.build(s.select(s.operand(0), s.f32(0.0), s.operand(1)))
    kept = b.map(drop, [b.const(TensorSpec(DType.BOOL, (T, T)), data), dot(q, k, T, T, 20)], (2, T, T))
    columns, q_columns = kept.permute(0, 2, 1), q.permute(0, 2, 1)
    ends = [dot(kept, q_columns, T, 20, T), dot(columns, q_columns, T, 20, T)]
    ends += [dot(q_columns, kept, 20, T, T), dot(q_columns, columns, 20, T, T)]
    x = [torch.randn(2, T, 20) * torch.exp2(torch.randint(-30, 30, (2, T, 1))) for _ in range(2)]
    x[0][0, 3], x[1][1, 2, 1], x[0][1, 4, 0] = 0.0, float("inf"), float("nan")
    return b.build([ends]), [x]


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.long
@pytest.mark.parametrize("most_splits", [0, 9], ids=["packed", "split"])
def test_each_side_is_cut_and_every_product_is_checked_whole(most_splits: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_products, "MOST_SPLITS", most_splits)
    seen = small_blocks(monkeypatch)
    program, inputs = four_sides()
    stock = state_root(Executor(program, variant=KernelVariant.STOCK).run(inputs))
    ours, turns = Executor(program, variant=KernelVariant.TRITON), []
    seen.clear()  # of the probe
    original = ProductWatch.key
    monkeypatch.setattr(ProductWatch, "key", lambda self, k: (turns.append(k), original(self, k))[1])
    for _ in range(5):
        assert state_root(ours.run(inputs)) == stock
    assert len(set(turns)) == 5
    cuts = [(made["CUT_A"], made["CUT_B"]) for made in seen[:5]]
    after, before = int(Cut.AFTER), int(Cut.BEFORE)
    assert cuts == [(0, 0), (after, 0), (before, 0), (0, after), (0, before)]
    assert [made["GAP"] for made in seen[:5]] == [int(Gap.UNREAD), 0, 0, 0, 0]


def test_an_instrumented_run_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch):
    """Whoever disputes may put any value in a node's place."""
    seen = small_blocks(monkeypatch)
    program, inputs = four_sides()
    Executor(program, variant=KernelVariant.TRITON).run(inputs, hook=lambda _, value: value)
    assert len(seen) >= 5
    assert {tuple(made.values()) for made in seen} == {(0, False, 0, 0)}


def test_a_mask_that_is_not_the_same_everywhere_above_says_nothing():
    for r, c in ((0, 1), (T - 2, T - 1), (0, T - 1)):
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        future[r, c] = False
        b = ProgramBuilder([[TensorSpec(DType.F32, (T, T))]])
        mask = b.const(TensorSpec(DType.BOOL, (T, T)), future.numpy().tobytes())
        assert not Triangles(b.build([[mask]])).known


def test_what_is_on_the_diagonal_and_below_it_does_not_count():
    b = ProgramBuilder([[TensorSpec(DType.F32, (T, T))]])
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    future[5, 5] = future[7, 2] = True
    mask = b.const(TensorSpec(DType.BOOL, (T, T)), future.numpy().tobytes())
    assert [known.words for known in Triangles(b.build([[mask]])).known.values()] == [{1}]


def words_like(source: random.Random, dtype: DType) -> int:
    """A canonical word of the scalar machine; zeros and what is no number more often."""
    if dtype is DType.F32 and source.random() < 0.5:
        return source.choice((0, 0x80000000, 0x7F800000, 0xFF800000, NAN, 0x3F800000))
    found = word(source, dtype)
    return canonical(found) if dtype is DType.F32 else found


@given(st.integers(0, 2**63))
@settings(max_examples=400)
def test_a_scalar_program_gives_one_of_the_words_that_it_is_said_to(seed: int):
    source = random.Random(seed)
    code = random_program(source, source.randrange(1, 6))
    sets = [None if source.random() < 0.4 else {words_like(source, t) for _ in range(2)} for t in code.operands]
    found = result(code, sets)
    for _ in range(20):
        operands = [
            words_like(source, t) if some is None else source.choice(sorted(some))
            for t, some in zip(code.operands, sets, strict=True)
        ]
        assert found is None or evaluate(code.encode(), operands) in found


@given(st.integers(0, 2**63))
@settings(max_examples=400)
def test_what_is_said_of_finite_numbers_holds_for_any_of_them(seed: int):
    source = random.Random(seed)
    code = random_program(source, source.randrange(1, 6))
    own = [words_like(source, t) for t in code.operands]
    finite = [source.random() < 0.5 and t is DType.F32 for t in code.operands]
    found = result(code, [{FINITE} if some else {w} for some, w in zip(finite, own, strict=True)])
    for _ in range(20):
        for k, some in enumerate(finite):
            while some and (own[k] & 0x7F800000 == 0x7F800000 or source.random() < 0.5):
                own[k] = words_like(source, DType.F32)
        if any(some and own[k] & 0x7F800000 == 0x7F800000 for k, some in enumerate(finite)):
            continue
        assert found is None or evaluate(code.encode(), own) in found


@given(st.integers(0, 2**63))
@settings(max_examples=400)
def test_a_program_that_tells_no_signs_gives_the_same_for_either(seed: int):
    source = random.Random(seed)
    code = random_program(source, source.randrange(1, 6))
    own = [words_like(source, t) for t in code.operands]
    for k, t in enumerate(code.operands):
        if t is DType.F32 and source.random() < 0.5:
            own[k] = 0
    unsigned = [t is DType.F32 and w == 0 and source.random() < 0.8 for t, w in zip(code.operands, own, strict=True)]
    other = [w | 0x80000000 if some else w for some, w in zip(unsigned, own, strict=True)]
    one, two = (evaluate(code.encode(), given) for given in (own, other))
    if (tells := tells_signs(code, unsigned)) is False:
        assert one == two
    elif tells is None:
        assert one == two or {one, two} <= ZEROS


def test_a_quotient_by_a_zero_and_a_pattern_tell_its_sign():
    for op, operands in ((Op.F32_DIV, (DType.F32, DType.F32)), (Op.F32_BITS, (DType.F32,))):
        code = ScalarProgram(operands, (Instruction(op, 0, 1 if len(operands) == 2 else 0),))
        assert tells_signs(code, [False, True][-len(operands) :]) is True


@pytest.mark.parametrize(("factor", "stays_finite"), [(0.5, True), (1.0, True), (-1.0, True), (1.0000001, False)])
def test_a_finite_number_stays_finite_by_factors_up_to_one(factor: float, stays_finite: bool):
    s = ScalarBuilder([DType.F32])
    found = result(s.build(s.mul(s.mul(s.operand(0), s.f32(factor)), s.f32(0.0))), [{FINITE}])
    assert (found == ZEROS) is stays_finite
    assert stays_finite or found is None or NAN in found


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("bad", [float("inf"), float("nan"), 2.0**100, 2.0**45, 0.0])
def test_a_dropped_score_that_is_no_number_makes_its_row_none(bad: float, monkeypatch: pytest.MonkeyPatch):
    """Minus infinity is added to it: what it was shows in the largest of its row, though it was to be dropped."""
    seen = small_blocks(monkeypatch)
    b = ProgramBuilder([[TensorSpec(DType.F32, (T, 20))] * 2])
    q, k = b.input(0, 0), b.input(0, 1)
    scores = b.dot(
        q.unsqueeze(1), k.unsqueeze(0), b.rowexp(q, 1).unsqueeze(1), b.rowexp(k, 1).unsqueeze(0), (T, T), (20,), 14, 14
    )
    mask = b.const(TensorSpec(DType.F32, (T, T)), torch.full((T, T), float("-inf")).triu(1).numpy().tobytes())
    s = ScalarBuilder([DType.F32, DType.F32])
    program = b.build([[b.max(b.map(s.build(s.add(s.operand(0), s.operand(1))), [scores, mask], (T, T)), 1)]])
    torch.manual_seed(2)
    x = [torch.randn(T, 20), torch.randn(T, 20)]
    x[0][1], x[1][T - 1] = 2.0**80, bad
    # A product that is checked is whole, and there is but one.
    ours = Executor(program, variant=KernelVariant.TRITON, check_every=100)
    seen.clear()  # of the probe
    stock = state_root(Executor(program, variant=KernelVariant.STOCK).run([x]))
    assert [state_root(ours.run([x])) for _ in range(2)] == [stock, stock]
    assert {made["GAP"] for made in seen} == {int(Gap.FINITE)}


def by_zeros(b: ProgramBuilder, scores: Ref, mask: Ref) -> Ref:
    s = ScalarBuilder([DType.F32, DType.F32])
    return b.map(s.build(s.mul(s.operand(0), s.operand(1))), [scores, mask], (T, T))


def chained(
    make: Callable[[ProgramBuilder, Ref], Ref], drop: Callable[[ProgramBuilder, Ref, Ref], Ref] = by_zeros
) -> Gap:
    """The gap of scores that are multiplied by a mask of zeros, of which `make` makes what is read."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (T, 8))]])
    x = b.input(0, 0)
    e = b.rowexp(x, 1)
    scores = b.dot(x.unsqueeze(1), x.unsqueeze(0), e.unsqueeze(1), e.unsqueeze(0), (T, T), (8,), 14, 14)
    mask = b.const(TensorSpec(DType.F32, (T, T)), torch.ones(T, T).tril().numpy().tobytes())
    end = make(b, drop(b, scores, mask))
    found = Triangles(b.build([[end]]))
    return next(found.gap(k) for k, node in enumerate(found._program.nodes) if isinstance(node, Dot))


def summed(b: ProgramBuilder, x: Ref) -> Ref:
    return b.sum(x, 1, b.rowexp(x, 1))


def test_a_pattern_as_a_number_is_no_zero():
    """Attack: the word of -0 in an i64 is 2^31, by the sign of a score that would have been left out."""

    def as_number(b: ProgramBuilder, scores: Ref, mask: Ref) -> Ref:
        s = ScalarBuilder([DType.F32, DType.F32])
        bits = s.apply(Op.I32_TO_I64, s.apply(Op.F32_BITS, s.mul(s.operand(0), s.operand(1))))
        return b.map(s.build(s.apply(Op.I64_SUB, s.apply(Op.I64_SUB, bits, bits), bits)), [scores, mask], (T, T))

    s = ScalarBuilder([DType.I64])
    to_float = s.build(s.apply(Op.I64_TO_F32, s.operand(0)))
    assert chained(summed) is Gap.FINITE
    assert chained(lambda b, x: summed(b, b.map(to_float, [x], (T, T))), as_number) is Gap.NONE


@pytest.mark.parametrize("reads_of_each", [1, 8])
def test_long_chains_of_maps_are_looked_at_once(reads_of_each: int):
    """Attack: a stranger's program that takes whoever runs it for ever, or out of its stack."""
    s = ScalarBuilder([DType.F32] * reads_of_each)
    total = s.operand(0)
    for k in range(1, reads_of_each):
        total = s.add(total, s.operand(k))
    code = s.build(s.mul(total, s.f32(0.5)))

    def make(b: ProgramBuilder, x: Ref) -> Ref:
        for _ in range(1_500 // reads_of_each):
            x = b.map(code, [x] * reads_of_each, (T, T))
        return summed(b, x)

    assert chained(make) is Gap.FINITE


def test_cases_are_counted_before_they_are_made():
    """Attack: eight operands of 64 words each, which no memory holds."""
    s = ScalarBuilder([DType.F32] * 8)
    total = s.operand(0)
    for k in range(1, 8):
        total = s.add(total, s.operand(k))
    assert result(s.build(total), [frozenset(range(64))] * 8) is None


def test_whatever_a_program_holds_only_so_much_of_it_is_looked_at(monkeypatch: pytest.MonkeyPatch):
    _, program = step_of(masked)
    monkeypatch.setattr(triangles, "_MOST_LOOKS", 0)
    found = Triangles(program)
    assert {found.gap(k) for k, node in enumerate(program.nodes) if isinstance(node, Dot)} == {Gap.NONE}


def test_readers_are_looked_at_once_however_many_ask_for_them():
    """Attack: a value that very many kernels of rows read, each of which asks who else does."""
    _, program = step_of(masked)
    found = Triangles(program)
    gaps = [found.gap(k) for k in range(len(program.nodes))]
    left = found._left
    assert [found.gap(k) for k in range(len(program.nodes))] == gaps and Gap.FINITE in gaps
    assert found._left == left


def test_who_reads_a_zero_is_looked_at_for_so_long_only(monkeypatch: pytest.MonkeyPatch):
    """Attack: very many readers of one value, which is come by from every product anew."""
    monkeypatch.setattr(triangles, "_MOST_LOOKS", 100)

    def make(b: ProgramBuilder, x: Ref) -> Ref:
        for _ in range(100):
            b.max(x, 1)
        return summed(b, x)

    assert chained(summed) is Gap.FINITE
    assert chained(make) is Gap.NONE
