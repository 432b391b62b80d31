"""A step that does something else while it is traced than on real numbers is refused, whatever it asked, and where."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from assay.engine.compiler import graph
from assay.engine.compiler.operations import Operations
from assay.programs.capture import capture_recipe
from assay.protocol.errors import AssayError, UserError
from assay.training.recipes.recipe import Recipe, RecipeStep
from tests.harness.engine.helpers import run_captured
from tests.unit.training.test_hidden_state import adamw

Middle = Callable[["Net", Tensor], Tensor]


class Net(nn.Module):
    """Two layers, and between them what a test puts there."""

    def __init__(self, middle: Middle, prepare: Callable[[Net], object] = lambda net: None) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)
        self.middle = middle
        prepare(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.middle(self, torch.tanh(self.a(x))))


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss(module(x)[:, 0], y)


def traced(module: nn.Module) -> Any:
    """The graph of a step of this module."""
    step = step_of(module)
    return graph.trace(step, step.state())


def step_of(module: nn.Module) -> RecipeStep:
    torch.manual_seed(1)
    data = torch.randn(64, 4), torch.randn(64)
    return RecipeStep(Recipe(module, loss, adamw(module), data=data, batch_size=8))


def number_or_else(net: Net, h: Tensor) -> Tensor:
    try:
        scale = float(h.sum())
    except Exception:
        scale = 0.0
    return h if scale != 0.0 else h * 0.5


def branch_or_else(net: Net, h: Tensor) -> Tensor:
    try:
        if h.mean() > 100.0:  # never so far: both ways give the same, until they do not
            return h * 0.5
    except RuntimeError:
        pass
    return h


def array_or_else(net: Net, h: Tensor) -> Tensor:
    try:
        return h / float(np.abs(h.detach().numpy()).max() + 1.0)
    except Exception:
        return h


def by_its_text(net: Net, h: Tensor) -> Tensor:
    return h * (len(repr(h.detach())) % 7 + 1)


def by_its_type(net: Net, h: Tensor) -> Tensor:
    return h if type(h) is Tensor else h * 0.5


def by_parameter(net: Net, h: Tensor) -> Tensor:
    return h if isinstance(net.a.weight, nn.Parameter) else h * 0.5


def by_attribute(net: Net, h: Tensor) -> Tensor:
    return h * getattr(net.a.weight, "scale", 1.0)


def by_identity(net: Net, h: Tensor) -> Tensor:
    return h * net.scales.get(net.a.weight, 1.0)


@pytest.mark.parametrize(
    ("middle", "prepare"),
    [
        (number_or_else, lambda net: None),
        (branch_or_else, lambda net: None),
        (array_or_else, lambda net: None),
        (by_its_text, lambda net: None),
        (by_its_type, lambda net: None),
        (by_parameter, lambda net: None),
        (by_attribute, lambda net: setattr(net.a.weight, "scale", 0.5)),
        (by_identity, lambda net: setattr(net, "scales", {net.a.weight: 0.5})),
    ],
)
def test_what_a_trace_answers_otherwise_than_stock_pytorch_is_refused(middle: Middle, prepare: Any):
    with pytest.raises(UserError) as caught:
        traced(Net(middle, prepare))
    assert caught.value.code == "ValuesDecide"
    assert "test_values_decide.py:" in caught.value.message


def by_deepcopy(net: Net, h: Tensor) -> Tensor:
    return h * copy.deepcopy(net.b).weight.detach().abs().mean()


def with_a_look(net: Net, h: Tensor) -> Tensor:
    """Looks for what it would warn of, as libraries do, unless it is traced."""
    if not isinstance(h, torch._subclasses.FakeTensor) and bool((h > 100.0).any()):
        print("large")
    return h


def with_a_tally(net: Net, h: Tensor) -> Tensor:
    """Counts beside the loss, unless it is traced; the tally is read by nobody, what is added to it by the loss too."""
    if not isinstance(h, FakeTensor):  # imported before: a run on real numbers is not told that it is traced
        torch.zeros(8).add_(h.detach()[0])
    return h


def by_parts(net: Net, h: Tensor) -> Tensor:
    out = torch.zeros_like(h)
    out[:, :4] = h[:, 4:]
    return out + torch.full_like(h, float("-inf")).masked_fill(torch.ones(8, dtype=torch.bool), 0.5)


def by_attention(net: Net, h: Tensor) -> Tensor:
    q = h.view(2, 1, -1, 8)
    return F.dropout(F.scaled_dot_product_attention(q, q, q).view_as(h), 0.1)


def by_strides(net: Net, h: Tensor) -> Tensor:
    """A linear layer is one operation or two, by how its input lies in memory, which a trace may not know."""
    return net.more(net.norm(h.view(2, -1, 8).transpose(1, 2)).transpose(1, 2)).reshape(h.shape)


def by_classes(net: Net, h: Tensor) -> Tensor:
    """One class of each row: on real numbers PyTorch writes ones at places, while it is traced it compares."""
    return h * F.one_hot(h.argmax(1), 8)


@pytest.mark.gate_takes(6)
@pytest.mark.parametrize(
    ("middle", "prepare"),
    [
        (by_classes, lambda net: None),
        (by_strides, lambda net: net.__dict__["_modules"].update(norm=nn.BatchNorm1d(8), more=nn.Linear(8, 8))),
        (by_deepcopy, lambda net: None),
        (with_a_look, lambda net: None),
        (with_a_tally, lambda net: None),
        (lambda net, h: h * net.ones, lambda net: net.register_buffer("ones", torch.ones(1).expand(8))),
        (by_parts, lambda net: None),
        (by_attention, lambda net: None),
        (lambda net, h: h, lambda net: parametrizations.spectral_norm(net.a)),
        (lambda net, h: net.norm(h), lambda net: setattr(net, "norm", nn.BatchNorm1d(8))),
        (lambda net, h: h + net.more(h), lambda net: setattr(net, "more", torch.jit.script(nn.Linear(8, 8)))),
    ],
)
def test_what_a_step_does_either_way_is_captured(middle: Middle, prepare: Any):
    module = Net(middle, prepare)
    before = {n: t.clone() for n, t in module.state_dict().items()}
    assert traced(module).graph.graph.nodes
    assert all(torch.equal(t, before[n]) for n, t in module.state_dict().items())


def test_what_fails_only_where_it_is_traced_is_refused_with_its_line():
    def middle(net: Net, h: Tensor) -> Tensor:
        if torch.fx._symbolic_trace.is_fx_tracing():
            raise KeyError("traced")
        return h

    with pytest.raises(
        UserError, match=r"told that it is traced: KeyError: 'traced' at .*test_values_decide\.py:\d+"
    ) as caught:
        traced(Net(middle))
    assert caught.value.code == "NotCapturable"


def test_integers_beyond_32_bits_are_refused_where_they_arise():
    def middle(net: Net, h: Tensor) -> Tensor:
        return h + ((h.detach() * 10).to(torch.int64) * 3_000_000_000 % 7).to(torch.float32)

    with pytest.raises(UserError) as caught:
        traced(Net(middle))
    assert caught.value.code == "IntegersTooWide"
    assert "test_values_decide.py:" in caught.value.message


PRIMES = torch.tensor([2654435761, 805459861])


def by_primes(net: Net, h: Tensor) -> Tensor:
    """As hash grids look things up."""
    return h + ((h.detach() * 10).long()[:, :2] * PRIMES % 7).sum(1, keepdim=True)


@pytest.mark.parametrize(
    "middle",
    [
        by_primes,
        lambda net, h: h + (h.detach() * 1e10).long() % 7,
        lambda net, h: h * ((h.detach() * 10).long() < 2**32 - 1),
        lambda net, h: h[(h.detach() * 10).long()[:, 0].clamp(min=0, max=10**10) * 0],
    ],
)
def test_integers_beyond_32_bits_are_refused_wherever_they_come_from(middle: Middle):
    with pytest.raises(AssayError, match=r"32 bits.*test_values_decide\.py:"):
        capture_recipe(step_of(Net(middle)).recipe, calibrate=False)


def test_a_number_without_a_sign_may_say_which_bits_are_kept():
    kept = run_captured(lambda i: (i & 0xFFFFFFFF, i ^ 0x80000000), torch.tensor([5, 2**31 - 1], dtype=torch.int32))
    assert [t.tolist() for t in kept] == [[5, 2**31 - 1], [5 - 2**31, -1]]


@pytest.mark.parametrize(("most", "is_refused"), [(2**31 - 1, False), (2**31, True)])
def test_the_largest_integer_of_32_bits_is_taken(most: int, is_refused: bool):
    def middle(net: Net, h: Tensor) -> Tensor:
        return h * (torch.ones(8, dtype=torch.int64) * most > 0)

    if is_refused:
        with pytest.raises(UserError, match="more than 32 bits"):
            traced(Net(middle))
    else:
        traced(Net(middle))


@pytest.mark.parametrize(
    "prepare",
    [
        lambda net: setattr(net, "seen", net.a.bias.data),
        lambda net: setattr(net, "seen", [net.a.weight.detach()[:, 0]]),
        lambda net: setattr(net, "seen", net.a.weight.detach().numpy()[:, 0]),
    ],
)
@pytest.mark.parametrize("view", [lambda t: t, lambda t: t.view(1, 8)])
def test_a_view_of_a_parameter_that_a_step_reads_is_refused(prepare: Any, view: Any):
    """Stock PyTorch trains what the view shows; a program would keep what it showed first."""

    def middle(net: Net, h: Tensor) -> Tensor:
        seen = net.seen[0] if isinstance(net.seen, list) else net.seen
        return h + view(torch.from_numpy(seen) if isinstance(seen, np.ndarray) else seen)

    with pytest.raises(UserError) as caught:
        traced(Net(middle, prepare))
    assert caught.value.code == "HiddenState"
    assert "shares its memory with a." in caught.value.message


@pytest.mark.parametrize(("first", "is_refused"), [(9, True), (10, False)])
def test_parameters_in_one_memory_may_lie_side_by_side_only(first: int, is_refused: bool):
    def prepare(net: Net) -> None:
        flat = torch.randn(20)
        net.p, net.q = nn.Parameter(flat[:10]), nn.Parameter(flat[first : first + 10])

    net = Net(lambda net, h: h * net.p[:8] * net.q[:8], prepare)
    if is_refused:
        with pytest.raises(UserError, match=r"q shares memory with p"):
            traced(net)
    else:
        traced(net)


def test_a_buffer_in_a_parameters_memory_is_refused():
    net = Net(lambda net, h: h + net.m, lambda net: net.register_buffer("m", net.a.bias.detach()))
    with pytest.raises(UserError, match=r"m shares memory with a\.bias"):
        traced(net)


def test_what_a_constant_lies_in_the_memory_of_leads_to_nothing():
    """Bad luck: what was freed gives its address to a tensor whose making nobody sees. A step and its trace had other
    addresses in common, and it was refused, once in twelve tries."""
    x, results = torch.ones(3), []
    with Operations() as seen:
        for _ in range(50):
            torch.arange(4)  # asked for, and never used
            results.append(x * torch.tensor([1.0, 2.0, 3.0]))
            assert [str(name) for (name, *_), _ in seen.leading_to([results[-1]])] == ["aten.mul.Tensor"]
