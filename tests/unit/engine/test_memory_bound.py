"""A program that takes more memory than it was estimated to ends its process by name, and nobody else's."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from assay.engine.runtime import devices, executor, memory_bound, second_kernels
from assay.engine.runtime.devices import Device
from assay.engine.runtime.memory_bound import GpuFailed, MemoryExceeded, bounded_here, bounded_memory, free_memory
from assay.protocol.errors import ExitCode
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.rounds import TorchCompute
from tests.harness.engine.fused_instruction_sets import needs_kernels

ROOT = Path(__file__).resolve().parents[3]

CHILD = """
import sys
from assay.cli.endings import run_to_its_end
from assay.engine.runtime.executor import KernelVariant
from assay.engine.runtime.memory_bound import _table, bounded_memory
from assay.training.rounds import TorchCompute
from tests.unit.engine.test_footprint import F32, Map, TensorSpec, of_one, one_node, unary

def work():
    numel = int(sys.argv[1])
    program = one_node(Map(TensorSpec(F32, (numel,)), (of_one((numel,)),), unary(F32, "add", 1.0).encode()),
                       TensorSpec(F32, ()))
    with bounded_memory(_table("/proc/self/status")["VmData"] + (256 << 20)):
        (values,), = TorchCompute(KernelVariant(sys.argv[2])).run(program, ((bytes(4),),))
    print(len(values))

sys.exit(run_to_its_end(work))
"""


def child(numel: int, variant: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", CHILD, str(numel), variant]
    # The estimate is out of the way: it knows of 64 GiB.
    with_estimate = {"ASSAY_MEMORY": "64GiB", "PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        words, cwd=ROOT, env={"PATH": "/usr/bin:/bin", **with_estimate}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("variant", ["stock", "fused"])
def test_a_program_that_outgrows_its_estimate_ends_by_name_with_exit_code_3(variant: str) -> None:
    small = child(1 << 20, variant)
    assert small.returncode == 0 and int(small.stdout) == 4 << 20, small.stderr
    large = child(1 << 28, variant)
    assert large.returncode == ExitCode.CONFIG, large.stderr
    assert large.stderr.splitlines()[-1].startswith("MemoryExceeded: There is no memory for what a program asked for")
    assert "Traceback" not in large.stderr


def test_the_bound_ends_with_its_block_and_other_errors_pass() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_memory() as bound:
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == bound > free_memory() // 2
    with pytest.raises(RuntimeError, match="something else"), bounded_memory():
        raise RuntimeError("something else")
    with pytest.raises(MemoryExceeded), bounded_memory():
        raise MemoryError
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@needs_kernels
def test_a_second_calculation_without_memory_is_refused_and_ends_no_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what an actor is refused by name is tried again later; all else ends it, with its calls unopened.

    By stock torch, as where no other kernels are: natives take no memory for such a sum.
    """
    monkeypatch.setattr(second_kernels, "second_natives", lambda: None)
    b, terms = ProgramBuilder([[TensorSpec(DType.F32, (8,))]]), 1 << 25
    x = b.input(0, 0)
    program = b.build([[b.sum(x.unsqueeze(1).expand(8, terms), 1, b.rowexp(x.unsqueeze(1), 1))]])
    with bounded_memory(memory_bound._table("/proc/self/status")["VmData"] + (1 << 30)):
        with pytest.raises(MemoryExceeded, match="GiB"):
            TorchCompute().recheck(program, ((bytes(32),),))
        assert TorchCompute().run(program, ((bytes(32),),)) == ((bytes(32),),)


def test_an_actor_that_starts_beside_others_may_have_what_they_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound for good, of a minute in which a neighbour held the memory, would end its actor in a game.

    The machine's account is told here: what is free in truth depends on what else is tested at the same time.
    """
    monkeypatch.setenv("ASSAY_MEMORY", "64GiB")
    free = {"MemAvailable": 3 << 30}
    system = memory_bound._table
    monkeypatch.setattr(memory_bound, "_table", lambda path: free if path == "/proc/meminfo" else system(path))
    with bounded_memory(renewed_s=0.05) as first:
        free["MemAvailable"] += 1 << 30
        until = time.monotonic() + 30
        while resource.getrlimit(resource.RLIMIT_DATA)[0] < first + (1 << 29):
            assert time.monotonic() < until, "the bound did not follow"
            time.sleep(0.05)


def test_a_system_without_an_account_of_its_memory_sets_no_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS has none: an actor there must not end with a traceback as it starts."""
    monkeypatch.setattr(memory_bound, "_ACCOUNT", tmp_path / "meminfo")
    monkeypatch.setattr(memory_bound, "_table", lambda path: pytest.fail(f"{path} is not there"))
    monkeypatch.setenv("ASSAY_MEMORY", "3GiB")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_memory() as bound:
        assert (bound, free_memory()) == (3 << 30, 3 << 30)
        assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_whoever_computes_on_a_gpu_is_bound_by_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver maps more than it uses, as an actor and as who asks whether it can be one."""
    monkeypatch.setattr(executor, "_wrong_by_triton", lambda: "")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_here():
        assert resource.getrlimit(resource.RLIMIT_DATA) != before
    devices.ask_for(Device.CUDA)  # the interpreter's
    with bounded_here():
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with pytest.raises(MemoryExceeded, match="The GPU has no memory for what a program asked for"), bounded_here():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 14.64 GiB.\nand more")


def test_a_gpu_that_fails_ends_an_actor_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad luck: a GPU falls off its bus in a round; its operator read a traceback of torch's."""
    monkeypatch.setattr(executor, "_wrong_by_triton", lambda: "")
    devices.ask_for(Device.CUDA)  # the interpreter's
    with pytest.raises(GpuFailed, match="CUDA error: unspecified launch failure") as caught, bounded_here():
        raise RuntimeError("CUDA error: unspecified launch failure\nCompile with `TORCH_USE_CUDA_DSA`")
    assert "--device cpu" in caught.value.remedy
    with pytest.raises(RuntimeError, match="a fault of ours"), bounded_here():
        raise RuntimeError("a fault of ours")
