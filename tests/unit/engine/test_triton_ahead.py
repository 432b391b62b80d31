"""Kernels compiled before their first launch: each once, in order, by the key under which the launch looks it up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import ahead, backend, nodes, probe
from assay.engine.runtime.triton.backend import Launch
from assay.engine.runtime.triton.routes import Carrier, route
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

ROOT = Path(__file__).resolve().parents[3]


class WarmedKernel:
    """Takes what it is warmed up with."""

    arg_names = ("x", "node", "count", "BLOCK")
    do_not_specialize = ("node",)

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.warmed = error, list[tuple[tuple[Any, ...], dict[str, Any]]]()

    def warmup(self, *arguments: Any, **named: Any) -> None:
        self.warmed.append((arguments, named))
        if self.error is not None:
            raise self.error


def test_launches_of_one_kernel_are_one_and_keep_their_order():
    kernel, other = WarmedKernel(), WarmedKernel()
    whole = torch.zeros(64, dtype=torch.uint8)
    start = -whole.data_ptr() % 16
    x, further, odd = (whole[start + at : start + at + 8].view(torch.int32) for at in (0, 16, 4))
    first = Launch(kernel, (x, 7, 100), {"BLOCK": 8}, 4, 3)
    alike = [Launch(kernel, (x, 8, 100), {"BLOCK": 8}, 4, 3), Launch(kernel, (further, 1, 100), {"BLOCK": 8}, 4, 3)]
    apart = [
        Launch(kernel, (odd, 7, 100), {"BLOCK": 8}, 4, 3),
        Launch(kernel, (x, 1 << 31, 100), {"BLOCK": 8}, 4, 3),
        Launch(kernel, (x, 7, 96), {"BLOCK": 8}, 4, 3),
        Launch(kernel, (x.view(torch.float32), 7, 100), {"BLOCK": 8}, 4, 3),
        Launch(kernel, (x, 7, 100), {"BLOCK": 16}, 4, 3),
        Launch(kernel, (x, 7, 100), {"BLOCK": 8}, 8, 3),
        Launch(other, (x, 7, 100), {"BLOCK": 8}, 4, 3),
    ]
    found = ahead.distinct([first, *alike, *apart, first])
    assert [id(launch) for launch in found] == [id(launch) for launch in (first, *apart)]


def test_kernels_are_warmed_up_as_launched_and_one_that_fails_stops_no_other():
    fails, works = WarmedKernel(ValueError("no such operation")), WarmedKernel()
    x = torch.zeros(4)
    ahead.warm([Launch(k, (x, 7, 100), {"BLOCK": 8}, 2, 3) for k in (fails, works)])
    ((arguments, named),) = works.warmed
    assert arguments[0] is x and arguments[1:] == (7, 100)
    assert named == {"grid": (1,), "BLOCK": 8, "num_warps": 2, "num_stages": 3, "enable_fp_fusion": False}


def test_the_interpreter_compiles_nothing_ahead(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ahead, "warm", lambda launches: pytest.fail("there is nothing to compile"))
    ahead.compile_ahead(lambda: pytest.fail("nobody asked"))


def test_a_run_is_recorded_once_and_recording_it_changes_no_bit(monkeypatch: pytest.MonkeyPatch):
    """Over the places of the run itself, before its inputs lie there."""
    seen = []
    monkeypatch.setattr(ahead, "compile_ahead", lambda launches: seen.append(launches()))
    b = ProgramBuilder([[TensorSpec(DType.F32, (6, 40)), TensorSpec(DType.I32, (6,))]])
    x, at = (b.input(0, k) for k in range(2))
    e = b.rowexp(x, 1)
    moved = b.scatter_sum(x.permute(1, 0).unsqueeze(0), at.unsqueeze(0).unsqueeze(0), e.unsqueeze(1), (6, 40), (6,))
    program = b.build([[moved, at]])
    state = [[torch.randn(6, 40), torch.tensor([5, 4, 4, 1, 1, 7], dtype=torch.int32)]]
    stock, ours = (Executor(program, variant=v) for v in (KernelVariant.STOCK, KernelVariant.TRITON))
    assert state_root(ours.repeat(state, 2)) == state_root(stock.repeat(state, 2))
    (launches,) = seen
    assert len(launches) == 3  # exponents, terms where they fall, rounding
    assert ours.whole is not None
    own = ours.whole._arena.whole.untyped_storage().data_ptr()
    assert {t.untyped_storage().data_ptr() for launch in launches for t in launch.arguments} == {own}


BY_TRITON = """
import json, torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver, jit

class Absent(DriverBase):
    "A GPU that is not here: kernels are compiled for it, and none can be loaded."
    is_active = staticmethod(lambda: True)
    get_current_target = lambda self: GPUTarget("cuda", 90, 32)
    get_current_device = get_current_stream = lambda self, *_: 0
    get_active_torch_device = get_benchmarker = map_python_to_cpp_type = None
    def __init__(self): pass

driver.set_active(Absent())
from assay.engine.runtime.triton import ahead, assembly, backend, nodes
backend.absence, backend.device = lambda: "", lambda: torch.device("cpu")
program, values = assembly._others()
with backend.recorded() as seen:
    for node in program.nodes:
        if (made := nodes.kernel(program, node)) is not None:
            made[0](values)
text = "def kernel(x, N: tl.constexpr):\\n    tl.nonsense(x)\\n"
wrong = backend.Launch(backend.kernel_of(text, "kernel", {}), (torch.zeros(4),), {"N": 3}, 4, 3)
compiling, compiled = jit.JITFunction._do_compile, []

def counted(self, *given):
    compiled.append(self)
    return compiling(self, *given)

jit.JITFunction._do_compile = counted
ahead.os.sched_getaffinity = lambda _: {0, 1}
ahead.compile_ahead(lambda: [*seen, wrong, *seen])
ahead_of = len(compiled)
errors = []
for launch in [*seen, wrong]:
    try:
        backend.launch(launch.kernel, (1,), *launch.arguments, warps=launch.warps, **launch.constants)
    except Exception as error:
        errors.append([type(error).__name__, *error.__notes__])
print(json.dumps([len(seen), ahead_of, len([k for k in compiled[ahead_of:] if k is not wrong.kernel]), errors]))
"""


def test_what_was_compiled_ahead_is_found_by_the_launch_and_what_cannot_be_is_named(tmp_path: Path):
    """By Triton itself, for a GPU that is not here: every launch ends where its kernel would be loaded."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BY_TRITON]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    launches, ahead_of, later, errors = json.loads(done.stdout)
    assert launches >= 8
    assert (ahead_of, later) == (launches + 1, 0)
    assert errors[-1][0] == "CompilationError"
    assert "{'N': 3}" in errors[-1][1]
    assert all(name != "CompilationError" for name, *_ in errors[:-1])


def test_probes_of_carriers_are_compiled_as_they_are_launched_and_once(monkeypatch: pytest.MonkeyPatch):
    """One after another the dozen kernels of each pair of precisions take seconds of a GPU that waits."""
    found = route(22, 14, next(iter(Carrier)))
    assert found is not None
    asked, launched = list[Launch](), list[Launch]()
    monkeypatch.setattr(probe, "_compiled", set())
    monkeypatch.setattr(ahead, "compile_ahead", lambda launches: asked.extend(launches()))
    for _ in range(2):
        probe.compile_probes([(found, 22, 14)])
    run = backend.launch

    def seen(kernel: Any, grid: tuple[int, ...], *arguments: Any, warps: int = 4, stages: int = 3, **constants: Any):
        launched.append(Launch(kernel, arguments, constants, warps, stages, grid))
        run(kernel, grid, *arguments, warps=warps, stages=stages, **constants)

    monkeypatch.setattr(backend, "launch", seen)
    assert probe.failure.__wrapped__(found, 22, 14) == ""
    assert len(asked) == len(launched) > 4
    assert [ahead._key(launch) for launch in asked] == [ahead._key(launch) for launch in launched]


def test_a_gpu_without_memory_for_a_probe_has_its_carriers_all_the_same(monkeypatch: pytest.MonkeyPatch):
    """What is refused is refused for good: products would go term by term, a hundred times as long."""
    found = route(14, 14, next(iter(Carrier)))
    assert found is not None

    def full(*_: Any, **__: Any) -> None:
        raise RuntimeError("Triton Error [CUDA]: out of memory")

    monkeypatch.setattr(backend, "launch", full)
    with pytest.raises(RuntimeError, match="out of memory"):
        probe.failure.__wrapped__(found, 14, 14)


def test_a_program_s_probes_are_asked_for_before_its_kernels(monkeypatch: pytest.MonkeyPatch):
    b = ProgramBuilder([[TensorSpec(DType.F32, (4, 8))] * 2])
    x, y = b.input(0, 0), b.input(0, 1)
    program = b.build([[b.matmul(x, y), b.matmul(x, y, 22, 14)]])
    asked = list[tuple[str, int, int]]()
    monkeypatch.setattr(nodes, "compile_probes", lambda probed: asked.extend((r.name, a, b) for r, a, b in probed))
    Executor(program, variant=KernelVariant.TRITON)
    assert [pair for _, *pair in asked] == [[14, 14], [14, 22], [22, 14]]
