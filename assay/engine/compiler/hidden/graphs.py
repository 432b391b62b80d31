"""Where two traces of one function part."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node


def first_difference(one: GraphModule, other: GraphModule) -> tuple[Node | None, str] | None:
    """The first node (of the first trace, where it has one) at which two traces differ, and how; None if nowhere."""
    known: dict[Node, int] = {}
    nodes, others = list(one.graph.nodes), list(other.graph.nodes)
    for k in range(max(len(nodes), len(others))):
        if k >= len(nodes) or k >= len(others):
            longer = others if k >= len(nodes) else nodes
            return longer[k], f"one of them ends where the other goes on with {longer[k].target}"
        known[nodes[k]] = known[others[k]] = k
        a, b = _described(one, nodes[k], known), _described(other, others[k], known)
        if a != b:
            return nodes[k], f"{_words(nodes[k])} in one, {_words(others[k])} in the other"
        if nodes[k].op == "get_attr":
            held, too = getattr(one, nodes[k].target), getattr(other, others[k].target)
            if not _same_tensor(held, too):
                return nodes[k], "constants of different values"
    return None


def _described(graph: GraphModule, node: Node, known: dict[Node, int]) -> tuple[Any, ...]:
    arguments = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: _Place(known[n]))
    target = "" if node.op in ("get_attr", "placeholder", "output") else str(node.target)
    value = node.meta.get("val")
    shapes = [
        (tuple(t.shape), t.dtype) if isinstance(t, Tensor) else type(t)
        for t in (value if isinstance(value, list | tuple) else (value,))
    ]
    return node.op, target, repr(arguments), shapes


class _Place(str):
    """A reference to an earlier node, written as its number."""

    def __new__(cls, number: int) -> _Place:
        return super().__new__(cls, f"%{number}")


def _words(node: Node) -> str:
    plain = [repr(a) for a in node.args if not isinstance(a, Node)]
    return f"{node.target}({', '.join(['...', *plain])})" if plain else str(node.target)


def _same_tensor(a: Any, b: Any) -> bool:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return a is b
    if a is b:
        return True
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(a.detach().reshape(-1).view(torch.uint8), b.detach().reshape(-1).view(torch.uint8))
