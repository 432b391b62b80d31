"""The witnessed step on every executor: one accumulator, however the work is divided, with every product in it."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.parallel.layout import Division, long_dots, micro_batch_sums, norm_sums
from assay.engine.runtime.parallel.pieces import PieceExecutor
from assay.engine.runtime.parallel.stages import RankPlan
from assay.engine.runtime.parallel.witness import sampled_by, with_witness, witness_sums
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.witness import witness_lists, witnessed_program
from assay.protocol.program.witness_rows import sampled_products, witness_rows
from tests.harness.engine import ranks
from tests.harness.engine.helpers import differing_nodes, tensors_of
from tests.harness.programs import WITNESS_KEY, witnessed_mlp

MICRO_BATCHES = 4


@cache
def step() -> tuple[Program, Program, Lists]:
    """A small GPT's step in micro-batches, clipped: plain, witnessed, and the first state of the witnessed one."""
    plain, state = ranks.gpt_step(micro_batches=MICRO_BATCHES)
    program = witnessed_program(plain)
    specs = state_io.input_specs(program)[len(state) :]
    return plain, program, (*state, *state_io.from_lists_of_bytes(specs, witness_lists(WITNESS_KEY)))


@pytest.mark.parametrize("variant", KernelVariant)
def test_every_node_of_a_witness_is_what_the_reference_says(variant: KernelVariant) -> None:
    example = witnessed_mlp()
    if variant is KernelVariant.FUSED and Executor(example.program).variant is not variant:
        pytest.skip("no native kernels here")
    assert differing_nodes(example.program, tensors_of(example.program, example.state), variant) == []


@pytest.mark.long
def test_one_accumulator_by_every_executor_alone_and_in_pieces() -> None:
    plain, program, state = step()
    ends = {
        "as it comes": Executor(program).repeat(state, 3),
        "stock": Executor(program, variant=KernelVariant.STOCK).repeat(state, 3),
        "cross-check": Executor(program, cross_check=True).repeat(state, 3),
        **{f"{n} pieces": PieceExecutor(program, n).repeat(state, 3) for n in (2, 3, 5)},
    }
    accumulators = {name: tuple(end[4][0].tolist()) for name, end in ends.items()}
    assert len(set(accumulators.values())) == 1, accumulators
    assert len({state_io.state_root(end) for end in ends.values()}) == 1
    assert state_io.state_root(ends["stock"][:3]) == state_io.state_root(Executor(plain).repeat(state[:3], 3))


@pytest.mark.long
def test_the_accumulator_of_a_captured_training_is_the_references() -> None:
    _, program, state = step()
    values = ReferenceExecutor(program).run(state_io.to_lists_of_bytes(state))
    ours = state_io.to_lists_of_bytes(Executor(program).run(state))
    assert values[program.output_nodes[4][0]] == ours[4][0]


def test_every_product_of_every_layer_and_micro_batch_is_in_it() -> None:
    plain = step()[0]
    products = [k for k, node in enumerate(plain.nodes) if isinstance(node, Dot)]
    assert list(sampled_products(plain)) == products
    needs = [RankPlan(plain, Division(micro_batch_sums(plain)), r, MICRO_BATCHES).need for r in range(MICRO_BATCHES)]
    of_batch = Counter(rank for row in witness_rows(plain) for rank, need in enumerate(needs) if row.node in need)
    assert len(of_batch) == MICRO_BATCHES
    assert set(of_batch.values()) == {len(products) // MICRO_BATCHES}


# --- divided


def nodes_of(program: Program, layout: Division, size: int) -> list[int]:
    """How many nodes each rank has to know something of."""
    return [len(RankPlan(program, layout, rank, size).need) for rank in range(size)]


@pytest.mark.parametrize("size", (2, 3, 4, 5))
@pytest.mark.parametrize("is_sharded", (False, True))
def test_a_rank_computes_no_other_ranks_micro_batches_for_the_witness(size: int, is_sharded: bool) -> None:
    plain, program, _ = step()

    def layout(of: Program) -> Division:
        batches = micro_batch_sums(of)
        return Division(batches | norm_sums(of, batches), frozenset((0, 1))) if is_sharded else Division(batches)

    alone = nodes_of(plain, layout(plain), size)
    added = len(program.nodes) - len(plain.nodes)
    divided = nodes_of(program, with_witness(layout(program), program, size), size)
    assert all(b <= a + added for a, b in zip(alone, divided, strict=True))
    whole = nodes_of(program, layout(program), size)
    assert all(b > 1.4 * a for a, b in zip(alone, whole, strict=True)), "what it would be without the cuts"


def test_products_that_all_ranks_share_are_added_once() -> None:
    plain, program, state = step()
    dots = long_dots(program, 8)
    layout = with_witness(Division(dots), program, 3)
    (k,) = witness_sums(program)
    assert [first for first, _ in layout.cuts[k]][1:] == [last for _, last in layout.cuts[k]][:-1]
    assert (layout.cuts[k][0][0], layout.cuts[k][-1][1]) == (0, len(witness_rows(plain)))
    ours = PieceExecutor(program, 3, splits=dots)
    assert state_io.state_root(ours.run(state)) == state_io.state_root(Executor(program).run(state))


def test_the_sum_of_a_witness_is_told_from_other_sums() -> None:
    plain, program, _ = step()
    twice = witnessed_program(program)
    assert witness_sums(plain) == []
    assert len(witness_sums(program)) == 1 and len(witness_sums(twice)) == 2
    for k in witness_sums(twice):
        assert [twice.specs[j] for j in sampled_by(twice, k)] == [plain.specs[row.node] for row in witness_rows(plain)]
    assert with_witness(Division(), plain, 2) == Division()


torch.set_num_threads(1)
