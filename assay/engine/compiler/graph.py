"""Tracing a pure PyTorch function into a graph of core ATen operations that know their source lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.overrides import TorchFunctionMode

from assay.engine.compiler import lowering  # noqa: F401 - fills the table of rules
from assay.engine.compiler.as_traced import like_fx, one_way
from assay.engine.compiler.collector import without_collector
from assay.engine.compiler.decompositions import decompositions
from assay.engine.compiler.hidden.graphs import first_difference
from assay.engine.compiler.hidden.guard import traced_alike
from assay.engine.compiler.hidden.lines import calling_line, came_through, here, layer_line, where
from assay.engine.compiler.known import KnownValues
from assay.engine.compiler.modes import DEVICE, QuickMode, device_of
from assay.engine.compiler.steps import Step, Steps, each
from assay.engine.compiler.tape import Tape
from assay.engine.compiler.tape_parts import NotOnTape, Signatures
from assay.engine.compiler.written.calls import WrittenOut
from assay.protocol.errors import AssayError, InvariantError, UserError

GraphFunction = Callable[..., Sequence[Sequence[Tensor]]]
"""A pure function from lists of tensors to lists of tensors."""

_PURE = "Make it a pure function of its tensors, with no control flow that depends on their values."
_DISTRIBUTION = "Pass validate_args=False to the distribution: it looks at the values of its arguments."
_SIZES = (
    "No program has such a size: compute all of it and choose by torch.where or by weights that are zero, as experts"
    " do of which each sees every example."
)
_GRADIENT = " (gradient)"


@dataclass(frozen=True, slots=True)
class Traced:
    """The graph of one call, and how many tensors each list of its result has."""

    graph: GraphModule
    sizes: tuple[int, ...]


_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]


class _Calls(TorchFunctionMode):
    """Refuses what no trace sees; notes for every call its line in the user's code, before autograd records the call.

    Raises (inside the block):
        UserError: NotCapturable, where `.data` is set: a tensor changes, and no operation says so.
    """

    def __init__(self, keeps_lines: bool) -> None:
        super().__init__()
        self._keeps_lines = keeps_lines

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Makes the call."""
        if func == _SET_DATA:
            raise UserError(
                f"The data of a tensor is exchanged{here()}, which no operation shows.",
                code="NotCapturable",
                remedy="Write into the tensor under torch.no_grad(): x.copy_(value).",
            )
        if self._keeps_lines:
            fx_traceback.current_meta["stack_trace"] = calling_line()
        return func(*args, **(kwargs or {}))


class _GradientLines(QuickMode):
    """Notes for every operation of a backward pass the forward line whose gradient it computes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operation with its line noted."""
        if func is DEVICE:
            return device_of(args[0])
        node = torch._C._current_autograd_node()
        metadata: Any = {} if node is None else node.metadata
        # Anomaly mode keeps here what `current_meta` said when autograd recorded the forward call.
        lines = [str(line) for line in metadata.get("traceback_", []) if line]
        if lines:
            fx_traceback.current_meta["stack_trace"] = lines[-1].removesuffix(_GRADIENT) + _GRADIENT
        return func(*args, **(kwargs or {}))


def _run(steps: Steps, tensors: Sequence[Tensor]) -> Any:
    """The operations of a graph, each under its source line, on tensors of a functionalization.

    Constants are wrapped as its tensors are: else it would overlook what is made of constants and written to.
    """
    known: dict[Step, Any] = {}
    supply = iter(tensors)

    def found(a: Any) -> Any:
        return known[a] if isinstance(a, Step) else a

    for step in steps.all:
        match step.op:
            case "placeholder":
                known[step] = next(supply)
            case "get_attr":
                held = getattr(steps.root, step.target)
                known[step] = torch._to_functional_tensor(held) if isinstance(held, Tensor) else held
            case "call_function":
                fx_traceback.current_meta["stack_trace"] = step.line
                args, kwargs = each((step.args, step.kwargs), found)
                known[step] = _laid_out(step.target(*args, **kwargs), step)
            case "output":
                return each(step.args[0], found)
    raise InvariantError("A graph has no output.")


def _laid_out(result: Any, step: Step) -> Any:
    """A new tensor of a second run in the order in memory that it had in the first, which views of it ask for.

    An operation follows the order of its arguments, and one in place keeps its own, whatever takes its place.
    """
    then = step.value
    if not isinstance(result, Tensor) or not isinstance(then, Tensor) or result.stride() == then.stride():
        return result
    if not isinstance(step.target, OpOverload) or any(r.alias_info is not None for r in step.target._schema.returns):
        return result
    strides: tuple[int, ...] = then.stride()
    order = sorted(range(then.ndim), key=lambda d: (-strides[d], d))
    back = [order.index(d) for d in range(then.ndim)]
    return result.permute(order).contiguous().permute(back)


def _make_graph(function: Callable[..., Any], tensors: Sequence[Tensor]) -> GraphModule:
    tracer = make_fx(function, decomposition_table=decompositions(), tracing_mode="fake", _allow_non_fake_inputs=True)
    graph = tracer(*tensors)
    if any(isinstance(getattr(graph, n.target), FakeTensor) for n in graph.graph.nodes if n.op == "get_attr"):
        raise UserError(
            "A value of the step is computed where tracing does not see it.",
            code="NotCapturable",
            remedy="Compute it in the thread that calls the step, not in one that the step starts.",
        )
    return graph


def _writes(step: Step) -> bool:
    return isinstance(step.target, OpOverload) and step.target._schema.is_mutable


def _check_writes(steps: Sequence[Step]) -> None:
    """What a function changes in place must be made in it or given to it. Raises UserError (NotCapturable)."""
    for step in steps:
        target = step.args[0] if step.args else None
        if isinstance(target, Step) and target.op == "get_attr":
            raise UserError(
                f"A tensor that is neither input nor result is changed at {step.line}.",
                code="NotCapturable",
                remedy="Make it an input and a result of the function; a module's tensor must be a registered buffer.",
            )


def _check_sizes(steps: Sequence[Step]) -> None:
    """Every size must be known before writes are taken out, which PyTorch does of no other. Raises UserError."""
    for step in steps:
        results = step.value if isinstance(step.value, tuple | list) else (step.value,)
        if any(isinstance(n, torch.SymInt) for t in results if isinstance(t, Tensor) for n in t.shape):
            raise UserError(
                f"The function cannot be captured: the size of a result of {step.target} depends on values at"
                f" {step.line}",
                code="NotCapturable",
                remedy=_SIZES,
            )


def _reason(error: Exception) -> str:
    """Why tracing failed, in words where PyTorch speaks of its insides."""
    said = str(error)
    if isinstance(error, DynamicOutputShapeException):
        return f"the size of a result of {error.func} depends on values"
    asks = isinstance(error, DataDependentOutputException | GuardOnDataDependentSymNode)
    # What a trace has in a tensor's place was asked for what it is worth, such as its text.
    is_stand_in = "FakeTensor" in said and "FakeTensors" not in said
    if asks or is_stand_in or said.startswith(".numpy() is not supported"):
        return "a Python number or a branch depends on a tensor's values"
    return (said.strip().splitlines() or [type(error).__name__])[0]


@without_collector()
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
        with KnownValues(), WrittenOut():
            parts = function(*[[next(supply) for _ in part] for part in lists])
        sizes[:] = [len(part) for part in parts]
        return tuple(t for part in parts for t in part)

    def once(keeps_lines: bool) -> GraphModule:
        def watched(*tensors: Tensor) -> tuple[Tensor, ...]:
            with _Calls(keeps_lines), _GradientLines() if keeps_lines else nullcontext():
                return flat(*tensors)

        with _tracing(keeps_lines):
            return _make_graph(watched, tensors)

    signatures = Signatures()

    def taped(keeps_lines: bool) -> Tape:
        with _tracing(keeps_lines), like_fx():
            lines = _GradientLines() if keeps_lines else nullcontext()
            return _tape(flat, tensors, signatures, _Calls(keeps_lines), lines)

    def taped_alike() -> Steps | None:
        try:
            return traced_alike(function, taped, _tapes_part).steps()
        except NotOnTape:
            return None
        except UserError as error:
            # What `make_fx` may take, or says in its own words.
            if error.code != "NotCapturable":
                raise
            return None

    steps = taped_alike() or Steps.of(traced_alike(function, once, first_difference))
    writing = [step for step in steps.all if _writes(step)]
    _check_writes(writing)
    if writing:
        _check_sizes(steps.all)
        # Operations in place become ordinary ones; each keeps its source line.
        pure = torch.func.functionalize(lambda *given: _run(steps, given), remove="mutations")
        with _tracing(keeps_lines=True):
            try:
                steps = _tape(pure, tensors, signatures).steps()
            except NotOnTape:
                steps = Steps.of(_make_graph(pure, tensors))
    graph = steps.live().graph()
    graph.graph.eliminate_dead_code()
    return Traced(graph, tuple(sizes))


def _tape(
    function: Callable[..., Sequence[Tensor]],
    tensors: Sequence[Tensor],
    signatures: Signatures,
    *inside: AbstractContextManager[Any],
) -> Tape:
    """The tape of a function of tensors like these, called inside these contexts."""
    fakes = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True)
    inputs = [fakes.from_tensor(t) for t in tensors]
    with Tape(fakes, inputs, signatures) as tape, ExitStack() as stack:
        for context in inside:
            stack.enter_context(context)
        tape.close(function(*inputs))
    return tape


def _tapes_part(one: Tape, other: Tape) -> tuple[Node | None, str] | None:
    return None if one.is_same(other) else first_difference(one.steps().graph(), other.steps().graph())


@contextmanager
def _tracing(keeps_lines: bool) -> Iterator[None]:
    """PyTorch's modes while a function is traced, and its errors in our words. Raises UserError (NotCapturable)."""
    try:
        with (
            warnings.catch_warnings(),
            one_way(),
            torch.autograd.set_detect_anomaly(keeps_lines, check_nan=False),
            fx_traceback.preserve_node_meta(keeps_lines),
        ):
            # Anomaly mode is what remembers forward lines; `detect_anomaly` would warn that it is for debugging.
            warnings.simplefilter("ignore")
            yield
    except (AssayError, NotOnTape):
        raise
    except Exception as error:
        raise UserError(
            f"The function cannot be captured: {_reason(error)}{where(error)}{layer_line(error)}",
            code="NotCapturable",
            remedy=_DISTRIBUTION if came_through(error, "distributions") else _PURE,
        ) from error
