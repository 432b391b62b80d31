"""A graph in the making: steps that are cheap to write, to run again and to drop.

A node of torch.fx knows its neighbours and its users, so nodes that nothing asks for stay until the collector finds
them: they are made of those steps only that a graph ends with.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule

_NESTED = (tuple, list, dict)


@dataclass(eq=False, slots=True)
class Step:
    """One node of a graph, by torch.fx's names; arguments refer to earlier steps."""

    op: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any
    """What tracing found as its result."""
    line: str | None = None

    @property
    def gives_results_alone(self) -> bool:
        """Whether nothing is missing without it where nothing asks for its results; of doubtful ones torch.fx judges.

        What gives none checks something; operations of other libraries may have effects that no schema shows.
        """
        func = self.target
        if not isinstance(func, OpOverload):
            return self.op == "get_attr" or func is operator.getitem
        is_plain = func.namespace == "aten" and not func._schema.is_mutable and len(func._schema.returns) > 0
        return is_plain and torch.Tag.nondeterministic_seeded not in func.tags


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps of a graph in order, the output last, and the module that holds its constants."""

    root: torch.nn.Module
    all: list[Step]

    @classmethod
    def of(cls, graph: GraphModule) -> Steps:
        """The steps of a graph."""
        known: dict[Node, Step] = {}
        for node in graph.graph.nodes:
            args, kwargs = each((node.args, node.kwargs), lambda a: known[a] if isinstance(a, Node) else a)
            value, line = node.meta.get("val"), node.meta.get("stack_trace")
            known[node] = Step(node.op, node.target, args, kwargs, value, line)
        return cls(graph, list(known.values()))

    def live(self) -> Steps:
        """Those that something depends on, or that do more than give results."""
        needed: set[Step] = set()
        kept: list[Step] = []

        def need(a: Any) -> None:
            if isinstance(a, Step):
                needed.add(a)

        for step in reversed(self.all):
            if step in needed or not step.gives_results_alone:
                each((step.args, step.kwargs), need)
                kept.append(step)
        return Steps(self.root, kept[::-1])

    def graph(self) -> GraphModule:
        """The graph of these steps."""
        graph = Graph()
        known: dict[Step, Node] = {}
        for step in self.all:
            args, kwargs = each((step.args, step.kwargs), lambda a: known[a] if isinstance(a, Step) else a)
            known[step] = node = graph.create_node(step.op, step.target, args, kwargs)
            if step.op != "output":
                node.meta["val"] = step.value
            if step.line is not None:
                node.meta["stack_trace"] = step.line
        # It is looked at and not called: no Python code is made for it.
        return _LazyGraphModule(self.root, graph)


def each(arguments: Any, change: Callable[[Any], Any]) -> Any:
    """Arguments of an operation with everything in their lists changed."""
    if not isinstance(arguments, _NESTED):
        return change(arguments)
    if isinstance(arguments, dict):
        return {name: each(a, change) for name, a in arguments.items()}
    changed = [each(a, change) for a in arguments]
    return tuple(changed) if isinstance(arguments, tuple) else changed
