"""Steps keep what a graph holds, and leave out what nothing asks for; maps leave the collector nothing."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from assay.engine.compiler.collector import without_collector
from assay.engine.compiler.hidden.graphs import first_difference
from assay.engine.compiler.ir.fusion import OpenMap
from assay.engine.compiler.ir.value import ValueRead, full_axis
from assay.engine.compiler.ir.values import GraphValues
from assay.engine.compiler.steps import Steps
from assay.protocol.types import DType

TABLE = torch.arange(6.0).reshape(2, 3)


def traced() -> GraphModule:
    """A graph of lists, names, constants, parts of results, a write and a draw, of which two lines give nothing."""

    def function(x: Tensor, y: Tensor) -> tuple[Any, ...]:
        x.sin().cos()
        torch.rand(2)
        joined = torch.cat([x, y + TABLE], dim=1)
        left, _ = joined.split([4, 2], dim=1)
        y.add_(1.0, alpha=0.5)
        return left, y

    return make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(torch.zeros(2, 3), torch.zeros(2, 3))


def names(graph: GraphModule) -> list[str]:
    """Operations and targets of a graph, in order."""
    return [f"{node.op} {node.target}" for node in graph.graph.nodes]


def test_a_graph_comes_back_from_its_steps() -> None:
    graph = traced()
    again = Steps.of(graph).graph()
    assert first_difference(graph, again) is None
    assert names(again) == names(graph)
    given = [torch.rand(2, 3) for _ in range(2)]
    for one, other in zip(graph(*(t.clone() for t in given)), again(*(t.clone() for t in given)), strict=True):
        assert torch.equal(one, other)


def test_steps_that_are_left_out_are_those_that_torch_fx_leaves_out() -> None:
    graph = traced()
    live = Steps.of(graph).live().graph()
    before = names(graph)
    graph.graph.eliminate_dead_code()
    assert names(live) == names(graph)
    assert set(before) - set(names(live)) == {f"call_function aten.{op}.default" for op in ("sin", "cos")}
    assert any("aten.rand." in name for name in names(live))
    assert any("aten.add_." in name for name in names(live))


def test_a_map_under_construction_is_gone_with_its_last_reference() -> None:
    values = GraphValues()
    x = values.add("input", DType.F32, (4,), attributes=(0,))
    read = ValueRead(x, (full_axis(4, 1),))
    fused = OpenMap(values.add("pointwise", DType.F32, (4,), (), (read,), ("neg", (), (0,))))
    with without_collector():
        assert fused.fits()
        gone = weakref.ref(fused)
        del fused
        assert gone() is None
