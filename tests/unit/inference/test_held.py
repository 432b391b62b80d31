"""What follows from the parameters alone is computed once, and no bit of the text changes by it."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import Tensor

from assay.engine.compiler.lowering.registry import FIXED8, FIXED14, FIXED22, Precision
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.held import HeldExecutor, held_there, parted
from assay.engine.runtime.products.packed_pool import PackedPool
from assay.engine.runtime.triton import backend
from assay.inference.programs import next_program, window_program
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Input, RowExp
from assay.protocol.program.program import Program
from assay.protocol.program.wellformed import violations
from tests.harness.engine.helpers import bits_equal
from tests.harness.inference.models import SHAPE, small_gpt

NEXT = [torch.tensor([3], dtype=torch.int32), torch.tensor([2], dtype=torch.int32)]
WINDOW = [torch.arange(12, dtype=torch.int32)[None], torch.tensor([7], dtype=torch.int32)]


def cache() -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(SHAPE.cache(1).shape, generator=generator)


def same(found: list[list[Tensor]], wanted: list[list[Tensor]]) -> bool:
    return all(bits_equal(a, b) for p, q in zip(found, wanted, strict=True) for a, b in zip(p, q, strict=True))


def asked(precision: Precision = FIXED14) -> list[tuple[Program, list[list[Tensor]]]]:
    """Two programs, and the lists behind the parameters."""
    return [(window_program(SHAPE, precision), [WINDOW]), (next_program(SHAPE, precision), [NEXT, [cache()]])]


@pytest.mark.parametrize("threads", [1, 2], ids=["one-thread", "two-threads"])
@pytest.mark.parametrize(
    "precision",
    [
        pytest.param(FIXED14, id="fixed14"),
        pytest.param(FIXED8, marks=pytest.mark.long, id="fixed8"),
        pytest.param(FIXED22, marks=pytest.mark.long, id="fixed22"),
    ],
)
def test_a_program_on_held_parameters_gives_the_bits_of_the_whole(precision: Precision, threads: int) -> None:
    parameters = list(small_gpt().parameters)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for program, lists in asked(precision)[: 2 if precision is FIXED14 else 1]:
            wanted = Executor(program, variant=KernelVariant.STOCK).run([parameters, *lists])
            held = HeldExecutor(program, parameters)
            assert all(same(held.run(*lists), wanted) for _ in range(3))
    finally:
        torch.set_num_threads(before)


def test_the_parts_are_programs_and_nothing_of_the_parameters_is_left_to_each_run() -> None:
    for program, _ in asked():
        cut = parted(program)
        assert cut.once is not None
        assert violations(cut.once) == violations(cut.each) == ()
        for node in cut.each.nodes:
            if isinstance(node, RowExp):
                assert not isinstance(cut.each.nodes[node.x.node], Input) or node.x.node >= len(small_gpt().parameters)
        assert cut.each.outputs == program.outputs


def test_a_program_in_which_nothing_follows_from_the_first_list_alone_stays_whole() -> None:
    program = parted(window_program(SHAPE)).each
    assert parted(program).once is None and parted(program).each is program


def test_parameters_that_somebody_changes_after_all_are_found_by_the_watch() -> None:
    if Executor(next_program(SHAPE)).variant is not KernelVariant.FUSED:
        pytest.skip("stock torch packs nothing")
    parameters = [p.clone() for p in small_gpt().parameters]
    held = HeldExecutor(next_program(SHAPE), parameters)
    lists = [NEXT, [cache()]]
    held.run(*lists)
    for p in parameters:
        p *= 1.5
    with pytest.raises(InvariantError) as found:
        for _ in range(40):
            held.run(*lists)
    assert found.value.code == "HardwareFault"


def test_weights_are_packed_once_for_all_programs_that_read_them() -> None:
    if Executor(next_program(SHAPE)).variant is not KernelVariant.FUSED:
        pytest.skip("stock torch packs nothing")
    parameters, pool = small_gpt().parameters, PackedPool()
    programs = [next_program(SHAPE), window_program(SHAPE), next_program(SHAPE, rows=4)]
    lists = [[NEXT, [cache()]], [WINDOW], [[t.repeat(4) for t in NEXT], [cache().repeat(4, 1, 1, 1, 1, 1)]]]
    alone = [HeldExecutor(program, parameters).run(*x) for program, x in zip(programs, lists, strict=True)]
    first = HeldExecutor(programs[0], parameters, pool=pool)
    packed = len(pool)
    assert packed > 0
    others = [HeldExecutor(program, parameters, pool=pool) for program in programs[1:]]
    assert len(pool) == packed
    together = [held.run(*x) for held, x in zip([first, *others], lists, strict=True)]
    for mine, own in zip(together, alone, strict=True):
        assert all(bits_equal(a, b) for p, q in zip(mine, own, strict=True) for a, b in zip(p, q, strict=True))
    # Of other weights there is another copy, and what nobody holds any more is gone.
    HeldExecutor(programs[0], [2 * p for p in parameters], pool=pool)
    del first, others
    gc.collect()
    assert len(pool) == 0


def test_a_gpu_is_given_the_parameters_once_for_all_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "device", lambda: torch.device("meta"))
    parameters = small_gpt().parameters
    there = held_there(parameters, KernelVariant.TRITON)
    assert all(t.is_meta for t in there)
    assert all(a is b for a, b in zip(held_there(there, KernelVariant.TRITON), there, strict=True))
    here = held_there(parameters, KernelVariant.FUSED)
    assert all(a is b for a, b in zip(here, parameters, strict=True))
