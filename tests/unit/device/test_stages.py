"""What stages do first: on a GPU, what its time is for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from assay.bench import tasks
from assay.bench.nanogpt import NanoSize
from assay.bench.sides import CPU, Contender, Exact
from assay.bench.step import StepRow, StepTerms
from assay.conformance import answers, nodes
from assay.device import parts, stages
from assay.device import run as device_run
from assay.engine.runtime import executor
from assay.engine.runtime.devices import Device
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.whole import WholeRuns
from tests.harness.engine.scores import readers

DIRECTLY = {Device.CUDA: "triton, cuda", Device.CPU: "reference"}


@pytest.mark.parametrize("device", DIRECTLY)
def test_a_gpu_that_is_asked_for_is_the_first_that_gives_known_answers(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> list[list[bytes]]:
        raise ValueError("nothing is computed here")

    def executors() -> Iterator[tuple[str, nodes.RunNodes]]:
        yield from ((name, fails) for name in ("reference", "torch", "native vnni", "triton, cuda"))

    monkeypatch.setattr(nodes, "executors", executors)
    found = list(islice(answers.check_all(answers.default_vectors(), gpu_first=device is Device.CUDA), 6))
    assert found[0].implementation == DIRECTLY[device]
    if device is Device.CUDA:
        assert [t.group for t in found[:4]] == ["operations", "functions", "programs", "accumulators"]
        assert {t.implementation for t in found[:4]} == {"triton, cuda"}
        assert "triton, cuda" not in {t.implementation for t in found[4:]}


def test_a_stage_of_quality_that_runs_again_compares_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    original = tasks.Trainer

    def trainer(job: tasks.QualityRun, *given: Any) -> tasks.Trainer:
        made.append(job.tier)
        return original(job, *given)

    monkeypatch.setattr(tasks, "Trainer", trainer)
    monkeypatch.setattr(tasks, "seconds_of_a_step", lambda _: 60.0)
    size = NanoSize(layers=1, heads=2, width=32, context=16, batch=2, steps=2, dropout=0.0)
    monkeypatch.setattr(tasks, "CPU_SIZE", size)
    (tmp_path / "text").write_text("what was trained once is compared again " * 12)
    terms = stages.DeviceTerms(Device.CPU, time.monotonic() + 600, tmp_path, tmp_path / "text")
    for _ in range(2):
        *_, last = stages.quality(terms)
        assert last["steps"] == size.steps
        assert [(r["tier"], r["steps"]) for r in last["runs"]] == [("f32", 2), ("fixed14", 2)]
        assert [(r["tier"], r["met"]) for r in last["summary"]] == [("f32", None), ("fixed14", True)]
    assert made == ["f32", "fixed14"] * 2, "whoever was timed trained"
    # Fewer steps than what an earlier call finished would be compared with nothing.
    monkeypatch.setattr(tasks, "seconds_of_a_step", lambda _: 1e6)
    *_, last = stages.quality(terms)
    assert last["steps"] == size.steps and len(last["summary"]) == 2


@pytest.mark.parametrize("device", DIRECTLY)
def test_the_stage_asks_for_its_own_device_first(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def check_all(_: Path, *, gpu_first: bool) -> Iterator[answers.Tally]:
        asked.append(gpu_first)
        yield answers.Tally("triton, cuda", "programs", 3, 0, None)

    monkeypatch.setattr(stages, "check_all", check_all)
    (figures,) = stages.conformance(stages.DeviceTerms(device, 0.0, Path("nowhere")))
    assert asked == [device is Device.CUDA]
    assert figures["wrong"] == [] and figures["executors"][0]["equal"] is True


@pytest.mark.parametrize("device", DIRECTLY)
def test_a_gpu_that_was_asked_nothing_for_want_of_kernels_is_no_success(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "interpret_without_gpu", lambda: None)
    monkeypatch.setattr(backend, "absence", lambda: "Triton is not installed")
    absent = nodes._triton()
    assert isinstance(absent, nodes.Absent)
    tally = answers.Tally(absent.name, "programs", 0, 0, None, absent.reason)
    monkeypatch.setattr(stages, "check_all", lambda *_, **__: iter([tally]))
    (figures,) = stages.conformance(stages.DeviceTerms(device, 0.0, Path("nowhere")))
    assert figures["failed"] == ({"triton": "Triton is not installed"} if device is Device.CUDA else {})


def test_a_training_that_ends_in_another_bit_on_the_device_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = stages.DeviceTerms(Device.CPU, time.monotonic() + 600, tmp_path)
    *_, right = stages.training(terms)
    assert (right["equal"], right["wrong"], right["steps"]) == (True, [], 2)
    step = Exact.__call__

    def off_by_a_bit(side: Exact) -> None:
        step(side)
        if side.executor.variant.value == right["by"][0]:
            side.state[0][3].view(torch.int32).view(-1)[0] += 1

    monkeypatch.setattr(Exact, "__call__", off_by_a_bit)
    *_, wrong = stages.training(terms)
    assert not wrong["equal"]
    assert 3 in wrong["wrong"]


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_attention_by_tiles_is_timed_beside_stored_scores_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Triton's interpreter; another bit in what is made of tiles is no equal state."""
    program, state = readers(few=True)
    stored, by_tiles = parts.attention_rows(program, state, CPU, 0.0)
    assert (stored["by_tiles"], by_tiles["by_tiles"], by_tiles["equal"]) == (False, True, True)
    assert 0 <= by_tiles["gib"] <= stored["gib"]
    assert min(row["step_ms"] for row in (stored, by_tiles)) > 0
    run = WholeRuns.run

    def off_by_a_bit(self: WholeRuns, *given: Any, **named: Any) -> list[Tensor]:
        ends = run(self, *given, **named)
        if any("tiles" in name for name in whole[-1].product_variants.values()):
            ends[0].view(torch.int32).view(-1)[0] ^= 1
        return ends

    whole = list[Executor]()
    made = Executor.__init__

    def noted(self: Executor, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        whole.append(self)

    monkeypatch.setattr(Executor, "__init__", noted)
    monkeypatch.setattr(WholeRuns, "run", off_by_a_bit)
    *_, wrong = parts.attention_rows(program, state, CPU, 0.0)
    assert not wrong["equal"]
    monkeypatch.setattr(stages, "device_of", lambda _: torch.device("meta"))
    monkeypatch.setattr(stages, "start_of", lambda *_: (program, []))
    monkeypatch.setattr(parts, "attention_rows", lambda *_: iter([stored, wrong]))
    found = stages.attention(stages.DeviceTerms(Device.CUDA, time.monotonic() + 600, Path(), is_small=True))
    assert [figures["wrong"] for figures in found] == [[], [wrong]]


def test_a_training_says_what_the_device_gave_before_the_cpu_s_turn() -> None:
    found = list(stages.training(stages.DeviceTerms(Device.CPU, time.monotonic() + 600, Path(), is_small=True)))
    assert [(f["equal"], len(f["seconds_of_steps"])) for f in found] == [(None, 1), (None, 2), (True, 2)]


def test_a_step_that_fails_is_said_before_pytorch_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that a GPU is left in fails whatever comes next, and would be the only one in the file."""

    def measure(model: str, sides: Sequence[Contender], terms: StepTerms) -> list[StepRow]:
        raise RuntimeError("illegal access" if sides[0].tier != "f32" else "the GPU is in an error")

    monkeypatch.setattr(stages, "measure", measure)
    found = stages.step(stages.DeviceTerms(Device.CPU, time.monotonic() + 600, Path(), is_small=True))
    assert next(found) == {"rows": [], "failed": {"gpt-2x96": "RuntimeError: illegal access"}}
    with pytest.raises(RuntimeError, match="the GPU is in an error"):
        next(found)


def test_a_root_that_is_not_the_cpu_s_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = stages.DeviceTerms(Device.CPU, time.monotonic() + 600, Path(), is_small=True)
    (right,) = stages.root(terms)
    assert (right["equal_to_the_cpu_s"], right["wrong"]) == (True, [])
    asked, honest = list[Any](), parts.roots.state_root

    def root_of_the_first(lists: Any) -> Any:
        asked.append(lists)
        return honest(lists if len(asked) == 1 else [[]])

    monkeypatch.setattr(parts.roots, "state_root", root_of_the_first)
    (wrong,) = stages.root(terms)
    assert not wrong["equal_to_the_cpu_s"] and wrong["wrong"]


@pytest.mark.parametrize(
    ("last", "error", "wrong"),
    [
        ({"rows": [], "failed": {}, "no_time_for": ["gpt2-12x768"]}, None, 0),
        ({"rows": [], "failed": {"gpt2-12x768": "RuntimeError: illegal access"}}, "gpt2-12x768: RuntimeError: i", 0),
        ({"rows": [], "wrong": ["the root"]}, None, 1),
    ],
    ids=["no time", "failed", "wrong"],
)
def test_what_failed_or_is_wrong_in_a_stage_is_how_it_ends(
    last: dict[str, Any], error: str | None, wrong: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By which `make device` chooses its exit code: 0 is read as all right."""
    terms = stages.DeviceTerms(Device.CPU, time.monotonic() + 600, tmp_path)
    monkeypatch.setitem(stages.STAGES, "step", lambda _: iter([{"rows": [], "failed": {}}, last]))
    monkeypatch.setattr(device_run, "spawn", lambda _: device_run.run_here("step", terms) or EndedStage())
    monkeypatch.setattr(device_run, "stop", lambda _: None)
    (end,) = device_run.run_stages(["step"], terms)
    assert (end.error or "").startswith(error or "") and bool(end.error) is bool(error)
    assert end.wrong == wrong


def test_a_gpu_that_fails_its_self_test_ends_no_stage_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where ASSAY_DEVICE asks for it: known answers say what it gets wrong."""
    monkeypatch.setenv("ASSAY_DEVICE", "cuda")
    monkeypatch.setattr(executor, "usable_triton", lambda: "Triton's kernels (H200) fail their self-test: max")
    monkeypatch.setitem(stages.STAGES, "conformance", lambda _: iter([{"wrong": []}]))
    terms = stages.DeviceTerms(Device.CUDA, time.monotonic() + 600, tmp_path)
    device_run.run_here("conformance", terms)
    kept = json.loads((tmp_path / "conformance.json").read_text())
    assert kept["finished"] and "fail their self-test: max" in kept["machine"]["programs"]


class EndedStage:
    """A process that has come to its end."""

    returncode = 0

    def wait(self, timeout: float) -> int:
        assert timeout > 0
        return 0


def test_products_are_timed_by_graphs_or_both_sides_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph beside launches from Python would flatter whoever has it. Without a GPU: what is captured, and when."""
    calls, under_way = list[str](), list[bool]()

    class Graph:
        def replay(self) -> None:
            calls.append("replay")

    @contextmanager
    def capture(_: Graph, *, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        under_way.append(True)
        calls.append("capture")
        try:
            yield
        finally:
            under_way.pop()

    def waits() -> None:
        if under_way:
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    found = parts.captured([lambda: calls.append("a"), lambda: calls.append("b")])
    assert calls == ["a", "a", "capture", "a", "b", "b", "capture", "b"]
    assert found is not None and [side() for side in found] == [None, None] and calls[-2:] == ["replay"] * 2
    assert parts.captured([lambda: None, waits]) is None
