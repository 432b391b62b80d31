"""`--device`: which device programs run on, who decides it, and why a GPU that is asked for is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import typer
from typer.testing import CliRunner

from assay.cli import actors, bench, bench_dispute, conformance, demo, dispute, model, posting, program, run, service
from assay.cli.checks import CheckState, _finding, _gpu
from assay.cli.options import DeviceOption
from assay.engine.runtime import devices, executor
from assay.engine.runtime.devices import Device
from assay.engine.runtime.executor import Executor, KernelVariant, how_programs_run, usual_variant
from assay.engine.runtime.triton import backend
from assay.protocol.errors import ConfigError, UsageError
from assay.training.rounds import TorchCompute
from tests.harness.programs import mlp_step

EXAMPLE = mlp_step()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is asked for, and nothing is remembered about this machine's GPU."""
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    backend.absence.cache_clear()
    yield
    monkeypatch.undo()
    backend.absence.cache_clear()


def with_gpu(monkeypatch: pytest.MonkeyPatch, wrong: str = "") -> None:
    """A machine whose GPU gives these kernels what the self-test says."""
    monkeypatch.setenv(backend.INTERPRETER, "0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(executor, "_wrong_by_triton", lambda: wrong)
    monkeypatch.setattr(backend, "SEEN_ON_A_GPU", True)


def refusal() -> str:
    with pytest.raises(ConfigError) as caught:
        usual_variant()
    assert caught.value.code == "NoDevice"
    return caught.value.message


def test_what_is_asked_for_is_one_of_three() -> None:
    assert devices.asked({}) is devices.asked({devices.VARIABLE: ""}) is Device.AUTO
    assert [devices.asked({devices.VARIABLE: name}) for name in ("auto", "cpu", "cuda")] == list(Device)
    with pytest.raises(UsageError, match="There is no device 'tpu'"):
        devices.asked({devices.VARIABLE: "tpu"})


def test_left_open_a_gpu_is_taken_that_is_there_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu(monkeypatch)
    assert usual_variant() is KernelVariant.TRITON
    devices.ask_for(Device.CPU)
    assert usual_variant() is None


def test_left_open_a_gpu_that_is_wrong_is_passed_over_and_asked_for_it_is_refused(monkeypatch: pytest.MonkeyPatch):
    with_gpu(monkeypatch, "Triton's kernels (a card) fail their self-test: F32_ADD")
    assert usual_variant() is None
    monkeypatch.setenv(devices.VARIABLE, "cuda")
    assert refusal() == "Programs cannot run on a GPU here: Triton's kernels (a card) fail their self-test: F32_ADD."


def test_left_open_nobody_gets_kernels_that_were_never_seen_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu(monkeypatch)
    monkeypatch.setattr(backend, "SEEN_ON_A_GPU", False)
    assert usual_variant() is None
    devices.ask_for(Device.CUDA)
    assert usual_variant() is KernelVariant.TRITON


def test_left_open_nobody_gets_the_interpreter() -> None:
    assert backend.is_interpreted()
    assert usual_variant() is None


def test_a_gpu_that_is_not_there_is_refused_by_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(backend.INTERPRETER, "0")
    monkeypatch.setenv(devices.VARIABLE, "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for built, words in ((None, "is built for the CPU alone"), ("13.0", "is built for CUDA 13.0")):
        monkeypatch.setattr(torch.version, "cuda", built)
        backend.absence.cache_clear()
        assert refusal().endswith(f"there is no GPU that torch can use; torch {torch.__version__} {words}.")
    monkeypatch.setattr(backend, "find_spec", lambda _: None)
    backend.absence.cache_clear()
    assert refusal() == "Programs cannot run on a GPU here: Triton is not installed."
    monkeypatch.setenv(devices.VARIABLE, "auto")
    assert usual_variant() is None


def test_the_self_test_of_kernels_that_are_wrong_names_what_is(monkeypatch: pytest.MonkeyPatch) -> None:
    right = executor.selftest.failure
    monkeypatch.setattr(executor.selftest, "failure", lambda stock, _: right(stock, lambda p, x: broken(stock(p, x))))
    executor._wrong_by_triton.cache_clear()
    try:
        assert executor.usable_triton().startswith("Triton's kernels (interpreted) fail their self-test: ")
    finally:
        executor._wrong_by_triton.cache_clear()


def test_a_self_test_that_cannot_run_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton compiles what launches its kernels by a C compiler: a machine with a GPU may have none."""

    def fails(*_: object) -> str:
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.\nmore of it")

    monkeypatch.setattr(executor.selftest, "failure", fails)
    executor._wrong_by_triton.cache_clear()
    try:
        devices.ask_for(Device.CUDA)
        words = "Triton's kernels (interpreted) fail their self-test: RuntimeError: Failed to find C compiler. "
        assert refusal() == f"Programs cannot run on a GPU here: {words}Please specify via CC environment variable.."
        assert _finding("gpu", _gpu).state is CheckState.BROKEN
    finally:
        executor._wrong_by_triton.cache_clear()
        devices.ask_for(Device.AUTO)


def test_a_check_of_the_doctors_that_fails_itself_is_a_finding() -> None:
    def fails() -> str:
        raise OSError("libcuda.so.1: cannot open shared object file\nand more")

    found = _finding("gpu", fails)
    assert (found.state, found.found) == (
        CheckState.BROKEN,
        "OSError: libcuda.so.1: cannot open shared object file",
    )


def broken(lists: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    return [[t ^ 1 if t.dtype is torch.int32 else t for t in part] for part in lists]


def test_what_an_actor_computes_by_triton_has_the_roots_of_what_another_replays(monkeypatch: pytest.MonkeyPatch):
    """A solver on a GPU (the interpreter), a verifier on a CPU: states, and the trace that a game asks for."""
    monkeypatch.setattr(executor, "_wrong_by_triton", lambda: "")  # takes its time, and is tested elsewhere
    lists = EXAMPLE.state
    replayed, of_replay = TorchCompute().run(EXAMPLE.program, lists, 2), TorchCompute().trace(EXAMPLE.program, lists, 2)
    devices.ask_for(Device.CUDA)
    assert how_programs_run() == "Programs run by Triton's kernels (interpreted)."
    assert Executor(EXAMPLE.program).variant is KernelVariant.TRITON
    claimed, of_claim = TorchCompute().run(EXAMPLE.program, lists, 2), TorchCompute().trace(EXAMPLE.program, lists, 2)
    assert claimed == replayed
    last = len(EXAMPLE.program.nodes) - 1
    assert of_claim.state_root(2) == of_replay.state_root(2)
    assert of_claim.prefix_root(2, last) == of_replay.prefix_root(2, last)
    assert Executor(EXAMPLE.program, cross_check=True).variant is KernelVariant.STOCK


def test_every_command_that_computes_takes_a_device() -> None:
    app = typer.Typer()
    for command in (demo.demo, conformance.conformance, bench_dispute.dispute, posting.post):
        app.command(command.__name__)(command)
    nouns = {"solver": actors.solver, "verifier": actors.verifier, "whistleblower": actors.whistleblower}
    nouns |= {"bench": bench.app, "dispute": dispute.app, "model": model.app, "program": program.app}
    nouns |= {"run": run.app, "service": service.app}
    for name, noun in nouns.items():
        app.add_typer(noun, name=name)
    takes = set()
    for name, verb in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for below, inner in getattr(verb, "commands", {"": verb}).items():
            if any("--device" in parameter.opts for parameter in inner.params):
                takes.add(f"{name} {below}".strip())
    actors_ = {f"{role} start" for role in ("solver", "verifier", "whistleblower")}
    benches = {f"bench {verb}" for verb in ("step", "quality", "moments", "multiplier", "ulp", "witness")}
    others = {"demo", "conformance", "post", "dispute watch", "model pull", "program check", "program capture"}
    # What a sponsor or an onlooker computes, and what says whether a machine is fast enough for a role.
    others |= {"model losses", "service start", "run can-join", "model replay", "model scores"}
    assert takes >= actors_ | benches | others


def test_the_option_is_in_force_before_the_command_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.VARIABLE, "auto")
    app, seen = typer.Typer(), list[Device]()

    @app.command()
    def command(_device: DeviceOption = None) -> None:
        seen.append(devices.asked())

    for given in ([], ["--device", "cpu"], ["--device", "cuda"]):
        assert CliRunner().invoke(app, given).exit_code == 0
    assert seen == list(Device)
    assert CliRunner().invoke(app, ["--device", "tpu"]).exit_code == 2
