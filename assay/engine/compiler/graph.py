"""Tracing a pure PyTorch function into a graph of core ATen operations that know their source lines."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from assay.engine.compiler import lowering  # noqa: F401 - fills the table of rules
from assay.engine.compiler.decompositions import decompositions
from assay.engine.compiler.hidden.guard import traced_alike
from assay.engine.compiler.hidden.lines import is_library, line_of, where
from assay.engine.compiler.known import KnownValues
from assay.protocol.errors import AssayError, UserError

GraphFunction = Callable[..., Sequence[Sequence[Tensor]]]
"""A pure function from lists of tensors to lists of tensors."""

_GRADIENT = " (gradient)"


@dataclass(frozen=True, slots=True)
class Traced:
    """The graph of one call, and how many tensors each list of its result has."""

    graph: GraphModule
    sizes: tuple[int, ...]


class _ForwardLines(TorchFunctionMode):
    """Notes for every call the line of the user's code that makes it, before autograd records the call."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Makes the call with its line noted."""
        fx_traceback.current_meta["stack_trace"] = _line_of_caller()
        return func(*args, **(kwargs or {}))


class _GradientLines(TorchDispatchMode):
    """Notes for every operation of a backward pass the forward line whose gradient it computes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operation with its line noted."""
        node = torch._C._current_autograd_node()
        metadata: Any = {} if node is None else node.metadata
        # Anomaly mode keeps here what `current_meta` said when autograd recorded the forward call.
        lines = [str(line) for line in metadata.get("traceback_", []) if line]
        if lines:
            fx_traceback.current_meta["stack_trace"] = lines[-1].removesuffix(_GRADIENT) + _GRADIENT
        return func(*args, **(kwargs or {}))


def _line_of_caller() -> str:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return line_of(frame)
        frame = frame.f_back
    return "unknown line"


@contextmanager
def _without_onednn() -> Iterator[None]:
    """oneDNN's recurrent layers are one opaque operation each; without it they are products and gates."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _make_graph(function: Callable[..., Any], tensors: Sequence[Tensor]) -> GraphModule:
    tracer = make_fx(function, decomposition_table=decompositions(), tracing_mode="fake", _allow_non_fake_inputs=True)
    return tracer(*tensors)


def _writes(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def _check_writes(nodes: Sequence[Node]) -> None:
    """What a function changes in place must be made in it or given to it. Raises UserError (NotCapturable)."""
    for node in nodes:
        target = node.args[0] if node.args else None
        if isinstance(target, Node) and target.op == "get_attr":
            raise UserError(
                f"A tensor that is neither input nor result is changed at {node.meta.get('stack_trace')}.",
                code="NotCapturable",
                remedy="Make it an input and a result of the function; a module's tensor must be a registered buffer.",
            )


def _reason(error: Exception) -> str:
    """Why tracing failed, in words where PyTorch speaks of its insides."""
    if isinstance(error, DynamicOutputShapeException):
        return f"the size of a result of {error.func} depends on values"
    if isinstance(error, DataDependentOutputException | GuardOnDataDependentSymNode):
        return "a Python number or a branch depends on a tensor's values"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def trace(function: GraphFunction, lists: Sequence[Sequence[Tensor]]) -> Traced:
    """The graph of one call on tensors like these (shapes and types count, values do not).

    Whatever the function can reach besides its arguments is afterwards as it was before.

    Raises:
        UserError: NotCapturable, when the function's control flow depends on values, or it fails; HiddenState and
            TracesDiffer, when something besides its arguments has a say. NumericsError: HiddenInput.
    """
    sizes: list[int] = []
    # One tensor given for two slots would be traced as one input: every slot gets a tensor of its own.
    tensors = [torch.empty(t.shape, dtype=t.dtype) for part in lists for t in part]

    def flat(*tensors: Tensor) -> tuple[Tensor, ...]:
        supply = iter(tensors)
        with KnownValues():
            parts = function(*[[next(supply) for _ in part] for part in lists])
        sizes[:] = [len(part) for part in parts]
        return tuple(t for part in parts for t in part)

    def with_lines(*tensors: Tensor) -> tuple[Tensor, ...]:
        with _ForwardLines(), _GradientLines():
            return flat(*tensors)

    def once(keeps_lines: bool) -> GraphModule:
        with _tracing(keeps_lines):
            return _make_graph(with_lines if keeps_lines else flat, tensors)

    graph = traced_alike(function, once)
    writing = [node for node in graph.graph.nodes if _writes(node)]
    _check_writes(writing)
    if writing:
        # Operations in place become ordinary ones; the interpreter carries each node's source line over.
        pure = torch.func.functionalize(Interpreter(graph).run, remove="mutations")
        with _tracing(keeps_lines=True):
            graph = _make_graph(pure, tensors)
    graph.graph.eliminate_dead_code()
    return Traced(graph, tuple(sizes))


@contextmanager
def _tracing(keeps_lines: bool) -> Iterator[None]:
    """PyTorch's modes while a function is traced, and its errors in our words. Raises UserError (NotCapturable)."""
    try:
        with (
            warnings.catch_warnings(),
            sdpa_kernel(SDPBackend.MATH),
            _without_onednn(),
            torch.autograd.set_detect_anomaly(keeps_lines, check_nan=False),
            fx_traceback.preserve_node_meta(keeps_lines),
        ):
            # Anomaly mode is what remembers forward lines; `detect_anomaly` would warn that it is for debugging.
            warnings.simplefilter("ignore")
            yield
    except AssayError:
        raise
    except Exception as error:
        raise UserError(
            f"The function cannot be captured: {_reason(error)}{where(error)}",
            code="NotCapturable",
            remedy="Make it a pure function of its tensors, with no control flow that depends on their values.",
        ) from error
