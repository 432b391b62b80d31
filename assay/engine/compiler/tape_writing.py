"""The graph of a tape in core operations: each kind of operation is traced once, however often it comes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule, _use_lazy_graph_module
from torch.fx.experimental.proxy_tensor import make_fx

from assay.engine.compiler.decompositions import decompositions
from assay.engine.compiler.lowering.registry import RULES
from assay.engine.compiler.tape_parts import ConstantNumber, NotOnTape, Signatures, Taped, TensorNumber


class TapeWriter:
    """Writes a tape's operations into a graph: those with a rule as they are, others as their decompositions."""

    def __init__(self, signatures: Signatures, fakes: Sequence[FakeTensor], constants: Sequence[Tensor]) -> None:
        self._templates, self._fakes, self._constants = signatures.templates, fakes, constants
        self._root, self._graph = torch.nn.Module(), Graph()
        self._known: dict[int, Node | None] = {}
        self._attributes: dict[int, str] = {}
        self._table: Mapping[OpOverload, Callable[..., Any]] = decompositions()

    def written(
        self, given: int, operations: Sequence[tuple[Taped, str | None, Any]], outputs: Sequence[Any]
    ) -> GraphModule:
        """The graph of a tape with this many inputs."""
        for k in range(given):
            node = self._graph.placeholder(f"arg{k}_1")
            node.meta["val"] = self._fakes[k]
            self._known[k] = node
        for operation, line, key in operations:
            before = len(self._graph.nodes)
            if operation.func in RULES and operation.func not in self._table:
                self._direct(operation)
            else:
                self._decomposed(operation, key)
            if line is not None and len(self._graph.nodes) > before:
                self._mark(line, len(self._graph.nodes) - before)
        self._graph.output(tuple(self._argument(o) for o in outputs))
        # It is looked at and not called: no Python code is made for it.
        return _LazyGraphModule(self._root, self._graph)

    def _mark(self, line: str, count: int) -> None:
        node = self._graph._root.prev
        for _ in range(count):
            node.meta["stack_trace"] = line
            node = node.prev

    def _argument(self, described: Any) -> Any:
        match described:
            case TensorNumber():
                return self._known[described.number]
            case ConstantNumber():
                return self._attribute(self._constants[described.number])
            case (type() as kind, value):
                return float.fromhex(value) if kind is float else value
            case tuple():
                return [self._argument(x) for x in described]
        raise NotOnTape

    def _attribute(self, value: Any) -> Node:
        if id(value) not in self._attributes:
            self._attributes[id(value)] = name = f"_constant{len(self._attributes)}"
            setattr(self._root, name, value)
        node = self._graph.get_attr(self._attributes[id(value)])
        node.meta["val"] = value
        return node

    def _direct(self, operation: Taped) -> None:
        positional, named = operation.arguments
        arguments = tuple(self._argument(a) for a in positional)
        node = self._graph.call_function(operation.func, arguments, {k: self._argument(v) for k, v in named})
        values = [None if n is None else self._fakes[n] for n in operation.results]
        if not operation.is_sequence:
            node.meta["val"] = values[0]
            self._known.update({n: node for n in operation.results if n is not None})
            return
        node.meta["val"] = tuple(values)
        for k, n in enumerate(operation.results):
            if n is not None:
                part = self._graph.call_function(operator.getitem, (node, k))
                part.meta["val"] = values[k]
                self._known[n] = part

    def _decomposed(self, operation: Taped, key: Any) -> None:
        numbers: list[int] = []
        _collect(operation.arguments, numbers)
        if key is None:
            raise NotOnTape
        template = self._templates.get(key)
        if template is None:
            alike = _anywhere(key)
            if alike not in self._templates:
                self._templates[alike] = self._template(operation, numbers)
            template = self._templates[key] = self._templates[alike]
        inner: dict[Node, Any] = {}
        supply = iter(numbers)
        for node in template.graph.nodes:
            match node.op:
                case "placeholder":
                    inner[node] = self._known[next(supply)]
                case "get_attr":
                    inner[node] = self._attribute(getattr(template, str(node.target)))
                case "call_function":
                    inner[node] = self._graph.node_copy(node, lambda n: inner[n])
                    inner[node].meta = {k: v for k, v in node.meta.items() if k == "val"}
                case "output":
                    for n, end in zip(operation.results, node.args[0], strict=True):
                        if n is not None:
                            self._known[n] = None if end is None else inner[end]

    def _template(self, operation: Taped, numbers: Sequence[int]) -> GraphModule:
        """The operation alone, traced."""
        positional, named = operation.arguments

        def alone(*tensors: Tensor) -> list[Any]:
            supply = dict(zip(numbers, tensors, strict=True))
            args = [_filled(a, supply, self._constants) for a in positional]
            kwargs = {k: _filled(v, supply, self._constants) for k, v in named}
            written = [
                given
                for k, a in enumerate(operation.func._schema.arguments)
                if a.alias_info is not None and a.alias_info.is_write
                for given in [args[k] if k < len(args) else kwargs.get(a.name)]
                if given is not None
            ]
            result = operation.func(*args, **kwargs)
            return [*(result if operation.is_sequence else [result]), *written]

        trace = make_fx(alone, decomposition_table=self._table, tracing_mode="fake", _allow_non_fake_inputs=True)
        fakes = [self._fakes[n] for n in numbers]
        with _use_lazy_graph_module(True):
            return trace(*(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype) for t in fakes))


def _anywhere(key: Any) -> Any:
    """A signature without where tensors begin in their memory, of which no way of writing an operation depends."""
    if not isinstance(key, tuple):
        return key
    if len(key) == 4 and isinstance(key[0], torch.Size):
        return key[0], key[1], key[3]
    return tuple([_anywhere(x) for x in key])


def _collect(described: Any, numbers: list[int]) -> None:
    """The numbers of the tensors in a description, each once, in order."""
    if isinstance(described, TensorNumber):
        if described.number not in numbers:
            numbers.append(described.number)
    elif isinstance(described, tuple):
        for x in described:
            _collect(x, numbers)


def _filled(described: Any, tensors: Mapping[int, Tensor], constants: Sequence[Tensor]) -> Any:
    match described:
        case TensorNumber():
            return tensors[described.number]
        case ConstantNumber():
            return constants[described.number]
        case (type() as kind, value):
            return float.fromhex(value) if kind is float else value
    return [_filled(x, tensors, constants) for x in described]
