"""Tracing a pure PyTorch function into a graph of core ATen operations that know their source lines."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
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

from assay.engine import lowering  # noqa: F401 - fills the table of rules
from assay.engine.decompositions import decompositions
from assay.protocol.errors import UserError

Function = Callable[..., Sequence[Sequence[Tensor]]]
"""A pure function from lists of tensors to lists of tensors."""

_GRADIENT = " (gradient)"
_LIBRARIES = (str(Path(torch.__file__).parent), str(Path(__file__).parent))


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
        if not frame.f_code.co_filename.startswith(_LIBRARIES):
            return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown line"


def _short(path: str) -> str:
    """A path relative to the working folder where it lies inside."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


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


def _where(error: Exception) -> str:
    """The innermost line of the user's own code that the error came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_LIBRARIES)]
    return f" at {_short(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def trace(function: Function, lists: Sequence[Sequence[Tensor]]) -> GraphModule:
    """The graph of one call on tensors like these (shapes and types count, values do not).

    Raises:
        UserError: NotCapturable, when the function's control flow depends on values, or it fails.
    """

    def flat(*tensors: Tensor) -> tuple[Tensor, ...]:
        supply = iter(tensors)
        arguments = [[next(supply) for _ in part] for part in lists]
        with _ForwardLines(), _GradientLines():
            return tuple(t for part in function(*arguments) for t in part)

    # One tensor given for two slots would be traced as one input: every slot gets a tensor of its own.
    tensors = [torch.empty(t.shape, dtype=t.dtype) for part in lists for t in part]
    try:
        with (
            warnings.catch_warnings(),
            sdpa_kernel(SDPBackend.MATH),
            _without_onednn(),
            torch.autograd.set_detect_anomaly(True, check_nan=False),
            fx_traceback.preserve_node_meta(),
        ):
            # Anomaly mode is what remembers forward lines; `detect_anomaly` would warn that it is for debugging.
            warnings.simplefilter("ignore")
            traced = _make_graph(flat, tensors)
            writing = [node for node in traced.graph.nodes if _writes(node)]
            _check_writes(writing)
            if writing:
                # Operations in place become ordinary ones; the interpreter carries each node's source line over.
                pure = torch.func.functionalize(Interpreter(traced).run, remove="mutations")
                traced = _make_graph(pure, tensors)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"The function cannot be captured: {_reason(error)}{_where(error)}",
            code="NotCapturable",
            remedy="Make it a pure function of its tensors, with no control flow that depends on their values.",
        ) from error
    traced.graph.eliminate_dead_code()
    return traced
