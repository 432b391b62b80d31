"""Programs of one run on a GPU that holds each of them, and not all at once: its memory goes to the one that runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from weakref import ref

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.trace import TorchTrace
from assay.engine.runtime.triton import backend, nodes
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.errors import ConfigError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.rounds import TorchCompute

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

N = 1000
LISTS = ((b"\x00\x00\x80\x3f" * N,),)


def program(make: Callable[[ScalarBuilder, Reg], Reg]) -> Program:
    b, s = ProgramBuilder([[TensorSpec(DType.F32, (N,))]]), ScalarBuilder([DType.F32])
    return b.build([[b.map(s.build(make(s, s.operand(0))), [b.input(0, 0)], (N,))]])


DOUBLED, HALVED = program(lambda s, x: s.add(x, x)), program(lambda s, x: s.mul(x, s.f32(0.5)))


def size(of: Program) -> int:
    whole = Executor(of, variant=KernelVariant.TRITON).whole
    assert whole is not None
    return whole.plan.size


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A GPU of so many bytes for the memory of whole runs."""
    arenas, honest = list[ref[Tensor]](), torch.empty

    def limit(most: int) -> None:
        def empty(*given: Any, **named: Any) -> Tensor:
            made = honest(*given, **named)
            if named.get("dtype") is torch.uint8 and not made.is_meta:
                if made.nbytes + sum(t.nbytes for each in arenas if (t := each()) is not None) > most:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 14.64 GiB.")
                arenas.append(ref(made))
            return made

        monkeypatch.setattr(torch, "empty", empty)

    return limit


def test_the_program_that_runs_has_the_memory_of_those_that_do_not(full: Callable[[int], None]) -> None:
    """Until one of them has none by itself."""
    compute, stock = TorchCompute(KernelVariant.TRITON), TorchCompute(KernelVariant.STOCK)
    full(max(size(DOUBLED), size(HALVED)))
    for each in (DOUBLED, HALVED, DOUBLED):
        assert compute.run(each, LISTS, 3) == stock.run(each, LISTS, 3)
    full(size(HALVED) - 1)
    with pytest.raises(ConfigError) as caught:
        compute.run(HALVED, LISTS)
    assert caught.value.code == "MemoryExceeded"


def test_a_game_goes_on_where_a_gpu_holds_no_whole_run(full: Callable[[int], None]) -> None:
    traces = [TorchTrace(Executor(DOUBLED, variant=v), LISTS, 3) for v in (KernelVariant.TRITON, KernelVariant.STOCK)]
    full(0)
    ours, stock = ([trace.state_root(t) for t in range(4)] for trace in traces)
    assert ours == stock
    assert traces[0].prefix_root(2, 1) == traces[1].prefix_root(2, 1)


@pytest.mark.parametrize("error", ["CUDA error: out of memory", "Triton Error [CUDA]: out of memory"])
def test_memory_that_a_driver_refuses_is_memory_of_the_gpu(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of kernels and stacks of threads, after a run has all its values: no class of torch's says so."""
    compute, stock = TorchCompute(KernelVariant.TRITON), TorchCompute(KernelVariant.STOCK)
    compute.run(DOUBLED, LISTS, 2)
    honest, given_back = backend.launch, [0]

    def full(*given: Any, **constants: Any) -> None:
        if not given_back[0]:
            raise RuntimeError(error)
        honest(*given, **constants)

    monkeypatch.setattr(backend, "launch", full)
    monkeypatch.setattr(backend, "give_back", lambda: given_back.__setitem__(0, 1))
    assert compute.run(HALVED, LISTS, 2) == stock.run(HALVED, LISTS, 2)
    assert given_back[0] == 1
    given_back[0] = 0
    with pytest.raises(ConfigError, match=r"The GPU has no memory left .*: out of memory") as caught:
        compute.run(HALVED, LISTS)  # no other program holds any
    assert caught.value.code == "MemoryExceeded"


@pytest.mark.parametrize("error", ["Triton Error [CUDA]: out of memory", "CUDA error: device-side assert triggered"])
def test_a_game_goes_on_where_a_gpu_fails_in_a_whole_run(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [TorchTrace(Executor(DOUBLED, variant=v), LISTS, 3) for v in (KernelVariant.TRITON, KernelVariant.STOCK)]

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError(error)

    monkeypatch.setattr(backend, "launch", fails)
    with pytest.warns(RuntimeWarning, match="goes on by the CPU"):
        ours = [traces[0].state_root(t) for t in range(4)]
    assert ours == [traces[1].state_root(t) for t in range(4)]
    assert traces[0].prefix_root(2, 1) == traces[1].prefix_root(2, 1)


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 32.00 MiB."), RuntimeError("CUDA error: lost")],
)
def test_a_game_begins_on_a_gpu_that_is_full_by_the_cpu(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Carriers of products are probed there before anything runs, which takes memory too."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (40, 25))]])
    x = b.input(0, 0)
    multiplied, lists = b.build([[b.matmul(x, x)]]), ((LISTS[0][0],),)

    def full(*_: Any) -> str:
        raise error

    monkeypatch.setattr(nodes, "failure", full)
    compute = TorchCompute(KernelVariant.TRITON)
    with pytest.raises(type(error)):  # who has nothing to lose yet is told
        compute.run(multiplied, lists)
    stock = TorchTrace(Executor(multiplied, variant=KernelVariant.STOCK), lists)
    assert compute.trace(multiplied, lists).state_root(1) == stock.state_root(1)
