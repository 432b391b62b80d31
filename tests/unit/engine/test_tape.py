"""A tape gives the program that PyTorch's own tracer gives, and works out alike layers once."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler import graph, tape_parts, tape_writing
from assay.engine.compiler.capture import Captured, capture
from assay.engine.compiler.collector import without_collector
from assay.engine.compiler.ir import fusion
from assay.protocol.errors import UserError
from assay.protocol.program.programfile import encode_program

LSTM = nn.LSTM(6, 6, bias=False)
MASK, OTHER_MASK = torch.ones(6, 6).tril().bool(), torch.ones(6, 6).triu().bool()


def gradient(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    w = w.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.layer_norm(F.gelu(x @ w), (6,)).square().sum()
    return torch.autograd.grad(loss, [w])


def writes(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    y = x.clone()
    left, right = y.chunk(2, 1)
    left.sigmoid_()
    right.add_(w[:, :3], alpha=0.5)
    y[:, ::2] = w[:, ::2]
    return y, left * 2.0


def masks(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    scale = torch.tensor([0.5, -0.0, 2.0, 3.0, 4.0, 5.0])
    return x.masked_fill(MASK, 0.0) + w.masked_fill(OTHER_MASK, -1.0), torch.where(MASK, x, -0.0) * scale


def parts(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    top = x.topk(3)
    pieces = torch.cat([top.values, w[:, 3:], x.unbind(1)[2][:, None]], 1)
    return pieces.softmax(1), top.indices.int(), torch.stack([x, x, w]).amax(0)


def loop(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    for k in range(6):
        x = torch.tanh(F.linear(x, w)) + float(k % 2)
    return (x,)


def cell(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    h = torch.zeros(6, 6)
    for row in x.split(2):
        h = F.dropout(torch.gru_cell(row.repeat(3, 1), h, torch.cat([w] * 3), torch.cat([w] * 3)), 0.0)
    return (h,)


FUNCTIONS = [gradient, writes, masks, parts, loop, cell]
TENSORS = [torch.zeros(6, 6), torch.zeros(6, 6)]


def of(function: Callable[..., Any]) -> Captured:
    """What is captured of a function of two tensors."""
    return capture(lambda part: (function(*part),), [TENSORS])


def forbidden(*_: Any, **__: Any) -> Any:
    """Stands for a tracer that must not be asked."""
    raise tape_parts.NotOnTape


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.gate_takes(3)
def test_the_program_and_its_lines_are_those_of_pytorchs_tracer(function: Any, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patched:
        patched.setattr(graph, "_make_graph", forbidden)
        taped = of(function)
    with monkeypatch.context() as patched:
        patched.setattr(graph, "_tape", forbidden)
        traced = of(function)
    assert encode_program(taped.program) == encode_program(traced.program)
    assert taped.sources == traced.sources


@pytest.mark.parametrize("count", [2, 9])
def test_layers_that_are_alike_are_worked_out_once(count: int, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True) for _ in range(count))
    given = [p.detach() for p in layers.parameters()]
    asked: list[int] = []
    make_fx = tape_writing.make_fx

    def counting(*args: Any, **kwargs: Any) -> Any:
        asked.append(1)
        return make_fx(*args, **kwargs)

    def step(parameters: list[Tensor], x: list[Tensor]) -> tuple[Any, ...]:
        names = [n for n, _ in layers.named_parameters()]
        leaves = [p.detach().requires_grad_() for p in parameters]

        def run(h: Tensor) -> Tensor:
            for layer in layers:
                h = layer(h)
            return h.square().sum()

        carrier = _StepCarrier(layers, run)
        with torch.enable_grad():
            loss = torch.func.functional_call(
                carrier, {f"layers.{n}": p for n, p in zip(names, leaves, strict=True)}, (x[0],)
            )
        return (torch.autograd.grad(loss, leaves),)

    monkeypatch.setattr(tape_writing, "make_fx", counting)
    capture(step, [given, [torch.zeros(3, 5, 8)]])
    assert 0 < len(asked) <= 40, asked


def lstm_of(steps: int, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    """Gradients of an LSTM, whose gates are added up in place, in parts of one tensor."""
    leaves = [w.repeat(4, 1).requires_grad_() for w in (w, w + 1.0)]
    with torch.enable_grad():
        states = torch.func.functional_call(
            LSTM, {"weight_ih_l0": leaves[0], "weight_hh_l0": leaves[1]}, (x.repeat(steps, 1, 1),)
        )
        return torch.autograd.grad(states[0].square().sum(), leaves)


def test_steps_that_are_alike_are_worked_out_once_wherever_they_lie(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    asked: list[int] = []
    make_fx = tape_writing.make_fx
    monkeypatch.setattr(tape_writing, "make_fx", lambda *a, **k: asked.append(1) or make_fx(*a, **k))
    of(lambda x, w: lstm_of(4, x, w))
    few, written = len(asked), fusion._written.cache_info().misses
    of(lambda x, w: lstm_of(9, x, w))
    assert len(asked) == 2 * few
    assert fusion._written.cache_info().misses <= written + 4


def test_a_program_is_the_same_where_every_step_is_worked_out_anew(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    taken = of(lambda x, w: lstm_of(4, x, w))
    monkeypatch.setattr(tape_writing, "_anywhere", lambda key: key)
    monkeypatch.setattr(fusion, "_written", fusion._written.__wrapped__)
    anew = of(lambda x, w: lstm_of(4, x, w))
    assert encode_program(taken.program) == encode_program(anew.program)
    assert taken.sources == anew.sources


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_of_cycles_is_on_after_a_capture_where_it_was_before(is_on: bool):
    before = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        with pytest.raises(ValueError, match="within"), without_collector():
            assert not gc.isenabled()
            raise ValueError("within")
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()


class _StepCarrier(nn.Module):
    def __init__(self, layers: nn.Module, run: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layers, self.run = layers, run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)


def test_constants_that_differ_between_traces_are_refused():
    kept: list[Tensor] = []

    def f(x: Tensor, _: Tensor) -> tuple[Tensor, ...]:
        return (x * torch.tensor([float(len(kept)), 1.0, 2.0, 3.0, 4.0, 5.0]) + _drawn(6),)

    with pytest.raises(UserError) as caught:
        of(f)
    assert caught.value.code in ("TracesDiffer", "HiddenState")


def test_what_two_traces_do_otherwise_is_refused_where_no_result_depends_on_it():
    turns = mmap.mmap(-1, 1)  # counts where no record looks

    def f(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        turns[0] += 1
        x.mul(float(turns[0]))
        return (x + w,)

    with pytest.raises(UserError, match=r"aten.mul.Tensor\(..., 1.0\) in one, aten.mul.Tensor\(..., 2.0\)") as caught:
        of(f)
    assert caught.value.code == "TracesDiffer"


def test_how_operations_are_written_out_is_listed_once_for_all_passes(monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []
    listed = tape_writing.decompositions
    monkeypatch.setattr(tape_writing, "decompositions", lambda: asked.append(1) or listed())
    of(writes)
    assert asked == [1]


def _drawn(n: int) -> Tensor:
    """A constant that PyTorch draws where no operation shows it."""
    with torch.utils._python_dispatch._disable_current_modes():
        return torch.rand(n)


def test_what_no_tape_takes_is_traced_all_the_same():
    def f(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        y = x.clone()
        y.t_()
        return (y @ w,)

    assert of(f).program.nodes
