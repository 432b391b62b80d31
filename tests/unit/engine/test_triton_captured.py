"""Runs by Triton as a GPU has them: captured once and replayed, beside those of other threads, in memory that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from threading import Event, current_thread, main_thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import arena, backend
from assay.engine.runtime.triton import whole as whole_runs
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import ConfigError, InvariantError, UserError
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.helpers import tensors_of
from tests.harness.programs import mlp_step

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

EXAMPLE = mlp_step()
N = 40


def added(*slots: Callable[[ProgramBuilder, Ref, Ref, Ref], Ref]) -> Program:
    """A program on x and y whose slots are made of these and their sum."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (N,))] * 2])
    x, y, s = b.input(0, 0), b.input(0, 1), ScalarBuilder([DType.F32, DType.F32])
    both = b.map(s.build(s.add(s.operand(0), s.operand(1))), [x, y], (N,))
    return b.build([[slot(b, x, y, both) for slot in slots]])


def by_triton(program: Program) -> Executor:
    return Executor(program, variant=KernelVariant.TRITON)


def by_stock(program: Program) -> Executor:
    return Executor(program, variant=KernelVariant.STOCK)


class ReplayedGraph:
    """A graph without a GPU: what was asked for within its capture, in order, and done when it is replayed alone."""

    made: ClassVar[list[ReplayedGraph]] = []

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []
        self.replays = 0
        self.made.append(self)

    def replay(self) -> None:
        self.replays += 1
        for call in self.calls:
            call()


class _Within(TorchDispatchMode):
    """Keeps what writes memory for the replay; views are taken, and anything else has no place in a capture."""

    def __init__(self, graph: ReplayedGraph) -> None:
        super().__init__()
        self._graph = graph

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = func._schema.name.removeprefix("aten::")
        if name in ("copy_", "zero_", "fill_"):
            self._graph.calls.append(partial(func, *args, **(kwargs or {})))
            return args[0]
        made = func(*args, **(kwargs or {}))
        shared = {t.untyped_storage().data_ptr() for t in args if isinstance(t, Tensor)}
        assert isinstance(made, Tensor) and made.untyped_storage().data_ptr() in shared, f"{func} within a capture"
        return made


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ReplayedGraph]]:
    """Whole runs take the interpreter for a GPU, as far as capturing goes."""

    streams = ["own"]

    @contextmanager
    def capturing(graph: ReplayedGraph, *, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        launch, own = backend.launch, streams[0]
        streams[0] = "the graph's"

        def keep(kernel: Any, grid: tuple[int, ...], *given: Any, **constants: Any) -> None:
            graph.calls.append(partial(launch, kernel, grid, *given, **constants))

        with monkeypatch.context() as patch, _Within(graph):
            patch.setattr(backend, "launch", keep)
            yield
        streams[0] = own  # torch's own leaves it so where a capture does not end

    ReplayedGraph.made.clear()
    seen = SimpleNamespace(
        is_interpreted=lambda: False,
        recorded=backend.recorded,
        memory=backend.memory,
        in_one_line=backend.in_one_line,
    )
    monkeypatch.setattr(whole_runs, "backend", seen)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", ReplayedGraph)
    monkeypatch.setattr(torch.cuda, "graph", capturing)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: streams[0])
    monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: streams.__setitem__(0, stream))
    yield ReplayedGraph.made


def test_a_training_goes_on_by_replays_with_the_bits_of_stock_torch(graphs: list[ReplayedGraph]) -> None:
    """Also where a run with a hook, or one of another state, comes between."""
    state = tensors_of(EXAMPLE.program, EXAMPLE.state)
    ours, stock = by_triton(EXAMPLE.program), by_stock(EXAMPLE.program)
    assert state_root(ours.repeat(state, 4)) == state_root(stock.repeat(state, 4))
    (graph,) = graphs
    assert graph.replays == 3
    other = [[t.clone() for t in part] for part in state]
    other[0][0] *= 1.5
    assert state_root(ours.run(other, lambda _, value: value)) == state_root(stock.run(other))
    assert state_root(ours.run(other)) == state_root(stock.run(other))
    assert state_root(ours.repeat(state, 2)) == state_root(stock.repeat(state, 2))
    assert (len(graphs), graph.replays) == (1, 6)


SLOTS: dict[str, tuple[Callable[[ProgramBuilder, Ref, Ref, Ref], Ref], ...]] = {
    "swapped": (lambda _b, x, y, s: y, lambda _b, x, y, s: x),
    "one over the other": (lambda _b, x, y, s: s, lambda _b, x, y, s: x),
    "one twice": (lambda _b, x, y, s: s, lambda _b, x, y, s: s),
    "a constant": (
        lambda b, x, y, s: b.const(TensorSpec(DType.F32, (N,)), bytes(range(4 * N))),
        lambda _b, x, y, s: s,
    ),
}


@pytest.mark.parametrize("name", SLOTS)
def test_slots_that_change_places_are_copied_within_the_graph(name: str, graphs: list[ReplayedGraph]) -> None:
    program, state = added(*SLOTS[name]), [[torch.randn(N), torch.randn(N)]]
    assert state_root(by_triton(program).repeat(state, 5)) == state_root(by_stock(program).repeat(state, 5))
    assert [graph.replays for graph in graphs] == [4]


def test_no_run_is_captured_before_one_came_to_its_end(
    graphs: list[ReplayedGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernels may not be there yet, and a graph cannot load any."""
    program = added(lambda _b, x, y, s: s, lambda _b, x, y, s: y)
    state, ours = [[torch.ones(N), torch.ones(N)]], by_triton(program)

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no memory for a kernel")

    with monkeypatch.context() as patch:
        patch.setattr(backend, "launch", fails)
        with pytest.raises(RuntimeError):
            ours.run(state)
    assert ours.run(state)[0][0][0].item() == 2.0
    assert graphs == []
    assert ours.run(state)[0][0][0].item() == 2.0
    assert len(graphs) == 1


def test_a_run_that_cannot_be_captured_is_launched_all_the_same(
    graphs: list[ReplayedGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a repeated one, whose state nobody else has; it is said once."""
    program = added(lambda _b, x, y, s: s, lambda _b, x, y, s: y)
    state, ours = [[torch.ones(N), torch.ones(N)]], by_triton(program)

    capture = torch.cuda.graph

    @contextmanager
    def refuses(graph: ReplayedGraph, **given: Any) -> Iterator[None]:
        with capture(graph, **given):
            yield
            raise RuntimeError("operation failed due to a previous error during capture\nwith a long text")

    monkeypatch.setattr(torch.cuda, "graph", refuses)
    with pytest.warns(RuntimeWarning, match=r"kernel by kernel: .* \(RuntimeError: .* during capture\)") as said:
        ends = ours.repeat(state, 4)
    assert len(said) == 1
    assert state_root(ends) == state_root(by_stock(program).repeat(state, 4))
    assert [graph.replays for graph in graphs] == [0]
    assert torch.cuda.current_stream() == "own"


def test_no_run_is_captured_while_another_is(graphs: list[ReplayedGraph], monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins a capture waits for the device, and so ends one that is under way."""
    program = added(lambda _b, x, y, s: s, lambda _b, x, y, s: y)
    state, held, capture = [[torch.ones(N), torch.ones(N)]], list[bool](), torch.cuda.graph

    @contextmanager
    def noted(graph: ReplayedGraph, **given: Any) -> Iterator[None]:
        held.append(whole_runs._one_at_a_time.locked())
        with capture(graph, **given):
            yield
        held.append(whole_runs._one_at_a_time.locked())

    monkeypatch.setattr(torch.cuda, "graph", noted)
    by_triton(program).repeat(state, 3)
    assert held == [True, True] and not whole_runs._one_at_a_time.locked()


def test_a_thread_runs_while_another_collects_what_it_would_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it launches is not taken for the other's, and its values do not lie in the other's memory."""
    state, ours = tensors_of(EXAMPLE.program, EXAMPLE.state), by_triton(EXAMPLE.program)
    launch, is_running, is_collecting = backend.launch, Event(), Event()

    def waits(*given: Any, **constants: Any) -> None:
        if current_thread() is not main_thread() and not backend._recording.seen:
            is_running.set()
            assert is_collecting.wait(60)
        launch(*given, **constants)

    monkeypatch.setattr(backend, "launch", waits)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(ours.run, state)
        assert is_running.wait(60)
        with backend.recorded() as seen, arena.within(arena.Requests()):
            is_collecting.set()
            found = run.result()
    assert state_root(found) == state_root(by_stock(EXAMPLE.program).run(state))
    assert seen == []


def test_a_slot_that_its_owner_changed_makes_none_stale_that_lies_in_the_same_memory() -> None:
    program = added(lambda _b, x, y, s: x, lambda _b, x, y, s: s)
    x, y = torch.ones(N), torch.ones(N)
    ours = by_triton(program)
    state = ours.run([[x, y]], store=False)
    x += 4
    assert ours.run(state)[0][1][0].item() == 7.0


def test_a_state_that_is_refused_leaves_the_one_that_is_there() -> None:
    program = added(lambda _b, x, y, s: x, lambda _b, x, y, s: s)
    x, y = torch.ones(N), torch.ones(N)
    ours = by_triton(program)
    state = ours.run([[x, y]], store=False)
    with pytest.raises(InvariantError, match="another run came between"):
        ours.run([[x * 8, ours.whole._slots[1].view(N)]])  # type: ignore[union-attr]
    assert ours.run(state)[0][1][0].item() == 3.0


def test_a_program_that_no_gpu_holds_is_refused_before_it_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own memory, which is looked at too, may be larger."""
    size = by_triton(EXAMPLE.program).whole.nbytes  # type: ignore[union-attr]
    monkeypatch.setattr(backend, "memory", lambda: size)
    by_triton(EXAMPLE.program)
    monkeypatch.setattr(backend, "memory", lambda: size - 1)
    with pytest.raises(UserError, match="of the GPU's memory, which has") as caught:
        by_triton(EXAMPLE.program)
    assert caught.value.code == "ProgramTooLarge"


def test_a_program_has_room_for_its_constants_and_checks_and_leaves_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it finds out in its first run it finds out after the stake."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (N, N))]])
    constant = b.const(TensorSpec(DType.F32, (N, N)), bytes(4 * N * N))
    whole = by_triton(b.build([[b.matmul(b.input(0, 0), constant)]])).whole
    assert whole is not None
    assert whole.nbytes == whole.plan.size + 4 * N * N + 3 * 8 * N  # weights of rows, of terms, what is left of rows
    monkeypatch.setattr(backend, "device", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=139 << 30))
    assert backend.memory() == 138 << 30


def test_a_gpu_whose_memory_others_hold_is_said_and_the_next_run_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    state, ours, empty = tensors_of(EXAMPLE.program, EXAMPLE.state), by_triton(EXAMPLE.program), torch.empty

    def none_left(*given: Any, **named: Any) -> Tensor:
        if named.get("dtype") is torch.uint8 and named["device"] != "meta":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 14.64 GiB.")
        return empty(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", none_left)
        with pytest.raises(ConfigError, match=r"The GPU has no 0\.0 GiB left") as caught:
            ours.run(state)
    assert caught.value.code == "MemoryExceeded"
    assert state_root(ours.run(state)) == state_root(by_stock(EXAMPLE.program).run(state))
