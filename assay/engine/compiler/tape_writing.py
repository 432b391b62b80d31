"""A tape in core operations: each kind of operation is traced once, however often it comes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.proxy_tensor import make_fx

from assay.engine.compiler.decompositions import decompositions
from assay.engine.compiler.lowering.registry import RULES
from assay.engine.compiler.steps import Step, Steps, each
from assay.engine.compiler.tape_parts import ConstantNumber, NotOnTape, Signatures, Taped, TensorNumber


class TapeWriter:
    """Writes a tape's operations as steps: those with a rule as they are, others as their decompositions."""

    def __init__(self, signatures: Signatures, fakes: Sequence[FakeTensor], constants: Sequence[Tensor]) -> None:
        self._templates, self._fakes, self._constants = signatures.templates, fakes, constants
        self._root = torch.nn.Module()
        self._steps: list[Step] = []
        self._known: dict[int, Step | None] = {}
        self._attributes: dict[int, str] = {}
        if signatures.decompositions is None:
            signatures.decompositions = decompositions()
        self._table = signatures.decompositions

    def written(self, given: int, operations: Sequence[tuple[Taped, str | None, Any]], outputs: Sequence[Any]) -> Steps:
        """The steps of a tape with this many inputs."""
        for k in range(given):
            self._known[k] = self._put("placeholder", f"arg{k}_1", (), {}, self._fakes[k])
        for operation, line, key in operations:
            before = len(self._steps)
            if operation.func in RULES and operation.func not in self._table:
                self._direct(operation)
            else:
                self._decomposed(operation, key)
            for step in self._steps[before:]:
                step.line = line
        results = tuple(self._argument(o) for o in outputs)
        self._put("output", "output", (results,), {}, None)
        return Steps(self._root, self._steps)

    def _put(self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> Step:
        step = Step(op, target, args, kwargs, value)
        self._steps.append(step)
        return step

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

    def _attribute(self, value: Any) -> Step:
        if id(value) not in self._attributes:
            self._attributes[id(value)] = name = f"_constant{len(self._attributes)}"
            setattr(self._root, name, value)
        return self._put("get_attr", self._attributes[id(value)], (), {}, value)

    def _direct(self, operation: Taped) -> None:
        positional, named = operation.arguments
        arguments = tuple([self._argument(a) for a in positional])
        kwargs = {k: self._argument(v) for k, v in named}
        values = [None if n is None else self._fakes[n] for n in operation.results]
        if not operation.is_sequence:
            step = self._put("call_function", operation.func, arguments, kwargs, values[0])
            self._known.update({n: step for n in operation.results if n is not None})
            return
        step = self._put("call_function", operation.func, arguments, kwargs, tuple(values))
        for k, n in enumerate(operation.results):
            if n is not None:
                self._known[n] = self._put("call_function", operator.getitem, (step, k), {}, values[k])

    def _decomposed(self, operation: Taped, key: Any) -> None:
        numbers: list[int] = []
        _collect(operation.arguments, numbers)
        if key is None:
            raise NotOnTape
        template = self._templates.get(key)
        if template is None:
            alike = _anywhere(key)
            if alike not in self._templates:
                self._templates[alike] = Steps.of(self._template(operation, numbers))
            template = self._templates[key] = self._templates[alike]
        inner: dict[Step, Step | None] = {}
        supply = iter(numbers)

        def own(a: Any) -> Any:
            return inner[a] if isinstance(a, Step) else a

        for step in template.all:
            match step.op:
                case "placeholder":
                    inner[step] = self._known[next(supply)]
                case "get_attr":
                    inner[step] = self._attribute(getattr(template.root, step.target))
                case "call_function":
                    args, kwargs = each((step.args, step.kwargs), own)
                    inner[step] = self._put("call_function", step.target, args, kwargs, step.value)
                case "output":
                    for n, end in zip(operation.results, step.args[0], strict=True):
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
