"""Capture: from an ordinary PyTorch function to a program that no longer depends on PyTorch.

    program = capture(step, lists).program

`step` is a pure function from lists of tensors to lists of tensors: it may call modules, losses and
`torch.autograd.grad`. Shapes and element types of the lists count, their values do not.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from assay.engine.compiler.collector import without_collector
from assay.engine.compiler.emit import emit
from assay.engine.compiler.graph import GraphFunction, Traced, trace
from assay.engine.compiler.ir.strided import Strided, whole
from assay.engine.compiler.ir.value import Literal
from assay.engine.compiler.ir.values import MAX_RANK, Fill, GraphValues, number
from assay.engine.compiler.lowering.registry import (
    FIXED14,
    RULES,
    SIXTEEN,
    Context,
    Precision,
    Product,
    Treatment,
    Unsupported,
    program_dtype,
)
from assay.engine.compiler.operations import is_wide
from assay.engine.compiler.steps import each
from assay.engine.runtime.values.dtypes import PROTOCOL, TORCH, fill_tensor, to_bytes
from assay.protocol.errors import InvariantError, NumericsError
from assay.protocol.program.program import MAX_NODES, Program

_FOLDED = 1 << 20
"""Constants of up to this many elements are computed at capture."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A program and where its nodes come from. sources: the user's line of each node, by node index."""

    program: Program
    sources: Mapping[int, str]
    products: Mapping[int, tuple[Product, ...]]
    """Per dot node the products that it computes, by whose numbers calibration names them."""
    narrowed: Mapping[str, str] = field(default_factory=dict)
    """The user's lines that cast to bfloat16 or float16, with the type: there the program computes in f32."""
    treatments: Mapping[int, Treatment] = field(default_factory=dict)
    """What single products got, by their numbers."""


aten = torch.ops.aten

_CREATION = frozenset({aten.arange.default, aten.arange.start, aten.arange.start_step})


_SHAPE_ONLY = frozenset({aten.ones_like.default, aten.zeros_like.default})
"""What reads no value, so that a gradient is looked at even where its loss is lost."""


_UNWRITTEN = frozenset(
    {aten.empty_like.default, aten.new_empty.default, aten.new_empty_strided.default, aten.empty_permuted.default}
)
"""What holds nothing before it is written: computed at capture it would hold whatever memory held."""

_NO_SIZE = "its result has no fixed size (use torch.where, or weights that are zero)"

_COMPLEX = "complex numbers (compute with real and imaginary parts, such as the cosines and sines of angles)"

_WHY: dict[Any, str] = {
    aten.view_as_complex.default: _COMPLEX,
    aten.complex.default: _COMPLEX,
    aten.polar.default: _COMPLEX,
    aten.nonzero.default: _NO_SIZE,
    aten._unique2.default: _NO_SIZE,
    aten._local_scalar_dense.default: "a tensor's value as a Python number (leave out item() and float())",
}
"""What is refused in other words than an operator's name."""


_WIDE = "integers beyond 32 bits (a program keeps int64 in 32: use smaller numbers)"
_REASONS = {
    "RankTooHigh": f"it takes more than {MAX_RANK} dimensions (merge or unroll some)",
    "NumberTooWide": _WIDE,
}
"""Why an operation is refused, by the code of what a value said."""


class _NotLowered:
    """What an operation that cannot be lowered leaves behind, so that later ones are still looked at."""


_LOST = _NotLowered()


class CannotLowerError(NumericsError):
    """Some operations of the function have no exact form; the message lists all of them with their lines."""

    code = "CannotLower"
    remedy = "Replace these operations by supported ones: docs/adr/0006-capture.md lists them."


@without_collector()
def capture(
    function: GraphFunction,
    lists: Sequence[Sequence[Tensor]],
    precision: Precision = FIXED14,
    treatments: Mapping[int, Treatment] | None = None,
    traced: Traced | None = None,
) -> Captured:
    """The program of a pure function on lists of tensors of these shapes and types.

    precision: the tier of products. treatments: what single products get, by their numbers (from `calibrate`). traced:
    the function's graph on these lists, where it is at hand.

    Raises:
        UserError: NotCapturable; HiddenState and TracesDiffer (assay/engine/compiler/hidden). NumericsError:
        HiddenInput. CannotLowerError: operations without a rule; all of them are listed.
    """
    traced = trace(function, lists) if traced is None else traced
    graph = traced.graph
    values = GraphValues()
    context = Context(values, precision, treatments or {})
    for position, tensor in enumerate(t for part in lists for t in part):
        if tensor.dtype not in PROTOCOL or tensor.dtype is torch.int64:
            raise CannotLowerError(
                f"Input {position} has the element type {tensor.dtype}, which no state holds.",
                remedy="Use float32, int32, bool, uint8, int8 or uint16 (indices may be int64 inside the function).",
            )
        values.add("input", PROTOCOL[tensor.dtype], tuple(tensor.shape), attributes=(position,))
    results = _lower(graph, context)
    slots = []
    for result, node in zip(results, _output(graph), strict=True):
        expected = node.meta["val"]
        if result.dtype is not program_dtype(expected.dtype) or result.shape != tuple(expected.shape):
            raise InvariantError(f"Lowering made {result.dtype.name} {result.shape} of {node}.")
        slots.append((result, tuple(expected.shape)))
    if len(values.items) > MAX_NODES:
        raise CannotLowerError(
            f"The function takes {len(values.items)} values, a program has at most 2^20 nodes.",
            remedy="Use larger tensors and fewer operations: write loops over positions or layers as batched products.",
        )
    parts = []
    for size in traced.sizes:
        parts.append(slots[:size])
        slots = slots[size:]
    program, numbers = emit(values, [len(part) for part in lists], parts)
    sources = {node: values.items[n].source for n, node in numbers.items()}
    products: dict[int, tuple[Product, ...]] = {}
    for value, product in context.products:
        if value.number in numbers:
            k = numbers[value.number]
            products[k] = (*products.get(k, ()), product)
    return Captured(program, sources, products, context.narrowed, dict(treatments or {}))


def _output(graph: GraphModule) -> Sequence[Node]:
    return next(node for node in graph.graph.nodes if node.op == "output").args[0]


def _lower(graph: GraphModule, context: Context) -> list[Any]:
    """The outputs as tensors over values."""
    known: dict[Node, Any] = {}
    context.known = known
    offenders: dict[tuple[str, str, str], None] = {}
    inputs = iter(context.values.items[:])
    results: list[Any] = []
    for node in graph.graph.nodes:
        match node.op:
            case "placeholder":
                known[node] = whole(next(inputs))
            case "get_attr":
                known[node] = getattr(graph, node.target)
            case "call_function":
                known[node] = _call(node, known, context, offenders)
            case "output":
                results = [_input(context, known[n]) for n in node.args[0]]
    if offenders:
        lines = [f"{what}{': ' + why if why else ''} at {where}" for what, why, where in offenders]
        count = "1 operation" if len(lines) == 1 else f"{len(lines)} operations"
        raise CannotLowerError(f"Cannot lower {count}: {'; '.join(lines)}.", offenders=lines)
    return results


def _call(node: Node, known: dict[Node, Any], context: Context, offenders: dict[tuple[str, str, str], None]) -> Any:
    """The result of one operation."""
    assert callable(node.target)
    positional, named = each((node.args, node.kwargs), lambda a: known[a] if isinstance(a, Node) else a)
    if node.target is operator.getitem:
        return _LOST if positional[0] is _LOST else positional[0][positional[1]]
    flat: list[Any] = []
    each((positional, named), flat.append)
    source = str(node.meta.get("stack_trace") or "unknown line")
    rule = RULES.get(node.target)
    if any(a is _LOST for a in flat) and node.target not in _SHAPE_ONLY:
        if rule is None:
            offenders[(str(node.target), "", source)] = None
        return _LOST
    if _is_double(node, flat):
        flat = [_table(a) for a in flat]
        positional, named = each((positional, named), _table)
    if _foldable(node, flat):
        return node.target(*positional, **named)
    try:
        if rule is None:
            raise Unsupported(_WHY.get(node.target, ""))
        context.node, context.result = node, node.meta["val"]
        context.values.source = source
        args, kwargs = each((positional, named), lambda a: _input(context, a))
        return _typed(context, rule(context, *args, **kwargs), node.meta["val"])
    except Unsupported as error:
        offenders[(str(node.target), str(error), source)] = None
        return _LOST
    except InvariantError as error:
        if error.code not in _REASONS:
            raise
        offenders[(str(node.target), _REASONS[error.code], source)] = None
        return _LOST


def _typed(context: Context, found: Any, expected: Any) -> Any:
    """What a rule found in the element types that PyTorch gives: i32 wraps where they are of 8 bits."""
    if isinstance(found, tuple | list):
        return type(found)([_typed(context, x, e) for x, e in zip(found, expected, strict=False)])
    is_tensor = isinstance(found, Strided | Fill) and isinstance(expected, Tensor)
    return context.cast(found, program_dtype(expected.dtype)) if is_tensor else found


def _results(node: Node) -> Sequence[Any]:
    result = node.meta["val"]
    return result if isinstance(result, tuple | list) else (result,)


def _is_double(node: Node, flat: Sequence[Any]) -> bool:
    """Whether an operation is on constants alone and some are float64: a table, as a module computes when it is made.

    The program gets its numbers once they are float32; no step computes in 53 bits.
    """
    if any(isinstance(a, Strided) for a in flat):
        return False
    tensors = [a for a in (*flat, *_results(node)) if isinstance(a, Tensor)]
    return any(t.dtype is torch.float64 for t in tensors)


def _table(a: Any) -> Any:
    """A fill as the tensor that it stands for."""
    return fill_tensor(a.dtype, a.word).expand(a.shape).clone() if isinstance(a, Fill) else a


def _foldable(node: Node, flat: Sequence[Any]) -> bool:
    """Whether an operation on constants may be computed now: integers and bools, whose bits no machine changes.

    Of float64 all may, on the machine that captures: there is nothing else that could.
    """
    if any(isinstance(a, Strided | Fill) for a in flat):
        return False
    if not any(isinstance(a, Tensor) for a in flat) and node.target not in _CREATION:
        return False
    results = _results(node)
    if node.target in _UNWRITTEN or not all(isinstance(r, Tensor) for r in results):
        return False
    if _is_double(node, flat):
        return all(r.numel() <= _FOLDED for r in results)
    moves = all(isinstance(a, Tensor) and a.dtype == r.dtype for a in flat if isinstance(a, Tensor) for r in results)
    exact = all(not r.dtype.is_floating_point for r in results) or (moves and _is_reshaping(node))
    return exact and all(r.numel() <= _FOLDED for r in results)


def _is_reshaping(node: Node) -> bool:
    from assay.engine.compiler.lowering import memory, shapes, writes

    rule = RULES.get(node.target)
    return rule is not None and rule.__module__ in (shapes.__name__, memory.__name__, writes.__name__)


def _input(context: Context, a: Any) -> Any:
    """An argument as rules take it: constant tensors become values or fills."""
    if not isinstance(a, Tensor):
        return a
    if a.requires_grad:
        raise Unsupported(
            "a parameter that is no input of the function (make it one of the recipe's module; of a frozen model beside"
            " it call requires_grad_(False))"
        )
    dtype = program_dtype(a.dtype)
    if is_wide(a):
        raise Unsupported(_WIDE)
    narrow = a.to(TORCH[dtype]) if a.dtype is torch.int64 or a.dtype in SIXTEEN else a
    if a.numel() and _is_uniform(narrow.flatten()):
        word: Literal = number(dtype.value_type, narrow.flatten()[0].item())
        return Fill(dtype, tuple(a.shape), word.word)
    return context.values.const(dtype, tuple(a.shape), to_bytes(narrow))


def _is_uniform(x: Tensor) -> bool:
    """Whether all elements are one number; 0 and -0 are two."""
    alike = bool((x == x[0]).all())
    return alike and not (x.dtype.is_floating_point and bool((x.signbit() != x[0].signbit()).any()))
