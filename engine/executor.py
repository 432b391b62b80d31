"""The stock-torch executor: runs a program on tensors, every bit as `protocol.reference` defines it.

Only operations that round once or are exact are used: add, sub, mul, div by a tensor, comparisons, integer operations,
binary64 conversions. Sums are exact integers, so the number of threads and the order of additions do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from assay.engine import gather, reduce
from assay.engine.dot import dot
from assay.engine.dtypes import PROTOCOL, TORCH, from_bytes
from assay.engine.floats import check_float_environment
from assay.engine.freivalds import ProductWatch
from assay.engine.maps import scalar_map
from assay.engine.reduce import Kernel
from assay.protocol.errors import InvariantError, UserError
from assay.protocol.nodes import (
    Const,
    Dot,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
    reads,
)
from assay.protocol.program import Program
from assay.protocol.wellformed import violations

Lists = Sequence[Sequence[Tensor]]
Hook = Callable[[int, Tensor], Tensor]
"""Given a node's index and value, returns the value that later nodes shall read."""


@dataclass(frozen=True)
class _Step:
    kernel: Kernel
    exponents: tuple[int, ...]
    dims: tuple[int, ...]
    dtype: torch.dtype
    dead: tuple[int, ...]


class Executor:
    """Runs one program, as often as wanted; holds its constants and a plan, no state between runs.

    `routes` says per dot node which exact product is used. careful: products by other routes than usual and sums by the
    general kernels, for whoever is about to accuse: the bits are the same, the instructions are not.

    Raises:
        UserError: IllFormedProgram.
    """

    def __init__(self, program: Program, *, careful: bool = False) -> None:
        self._is_careful = careful
        self._watch = ProductWatch()
        found = violations(program)
        if found:
            raise UserError(
                f"The program is ill-formed: {'; '.join(str(v) for v in found[:3])}.",
                code="IllFormedProgram",
                remedy="Refuse the run that names it.",
            )
        self.program = program
        self.routes: dict[int, str] = {}
        kept = set(range(len(program.nodes)))
        last_use: dict[int, int] = {}
        for k, node in enumerate(program.nodes):
            for j in reads(node):
                last_use[j] = k
        dead: dict[int, list[int]] = {}
        for j in sorted(kept):
            if not isinstance(program.nodes[j], Const | Output):
                dead.setdefault(max(last_use.get(j, j), j), []).append(j)
        self._steps = [
            _Step(
                self._kernel(k, node), _exponents(node), node.spec.dims, TORCH[node.spec.dtype], tuple(dead.get(k, ()))
            )
            for k, node in enumerate(program.nodes)
        ]

    def run(self, inputs: Lists, hook: Hook | None = None) -> list[list[Tensor]]:
        """The lists of Y for these lists of X; no input is changed, outputs may alias inputs.

        hook: sees the value of every node in order and returns what later nodes read.

        Raises:
            UserError: the inputs do not fit the program.
            InvariantError: FlushToZero, a thread flushes subnormal numbers, before or after; HardwareFault, the product
                that this run checks is wrong.
        """
        self._check_inputs(inputs)
        check_float_environment()
        self._watch.begin()
        values: list[Tensor | None] = [None] * len(self._steps)
        flat = [t for part in inputs for t in part]
        for k, tensor in enumerate(flat):
            values[k] = _own_memory(tensor)
        altered: set[int] = set()
        first_output = len(self._steps) - sum(self.program.outputs)
        for k, step in enumerate(self._steps):
            if k >= len(flat):
                kernel = self._careful(k) if altered and altered.intersection(step.exponents) else step.kernel
                values[k] = _own_memory(kernel(values))  # type: ignore[arg-type]
            if hook is not None:
                seen = hook(k, values[k])  # type: ignore[arg-type]
                if seen is not values[k]:
                    altered.add(k)
                    values[k] = _own_memory(self._checked(k, step, seen))
            for j in step.dead:
                values[j] = None
        check_float_environment()
        ends = iter(values[first_output:])
        return [[next(ends) for _ in range(size)] for size in self.program.outputs]  # type: ignore[misc]

    def repeat(self, inputs: Lists, steps: int) -> list[list[Tensor]]:
        """The state after several steps of a program whose Y is its X."""
        state: Lists = inputs
        for _ in range(steps):
            state = self.run(state)
        return [list(part) for part in state]

    def _careful(self, k: int) -> Kernel:
        """The kernel of a dot or sum that takes any exponents: after a hook has replaced those of a row."""
        node = self.program.nodes[k]
        if isinstance(node, Dot):
            return dot(self.program, node, trusted=False)[0]
        assert isinstance(node, Sum)
        return reduce.total(self.program, node, trusted=False)

    def _check_inputs(self, inputs: Lists) -> None:
        sizes = tuple(len(part) for part in inputs)
        if sizes != self.program.inputs:
            raise UserError(
                f"The program takes lists of {self.program.inputs} tensors, not {sizes}.", code="InputLayout"
            )
        flat = [t for part in inputs for t in part]
        for k, tensor in enumerate(flat):
            spec = self.program.specs[k]
            if tuple(tensor.shape) != spec.dims or PROTOCOL.get(tensor.dtype) is not spec.dtype:
                raise UserError(
                    f"Input {k} is {tensor.dtype} {list(tensor.shape)}, not {spec.dtype.name} {list(spec.dims)}.",
                    code="InputLayout",
                )

    def _check_product(self, k: int, qa: Tensor, qb: Tensor, s: Tensor) -> None:
        if self._watch.is_due(k):
            self._watch.check(k, qa, qb, s)

    @staticmethod
    def _checked(k: int, step: _Step, value: Tensor) -> Tensor:
        if value.dtype is not step.dtype or tuple(value.shape) != step.dims:
            raise InvariantError(f"A hook returned {value.dtype} {list(value.shape)} for node {k}.")
        return value

    def _kernel(self, k: int, node: Node) -> Kernel:
        match node:
            case Input():
                return lambda values: values[k]
            case Const():
                constant = from_bytes(node.spec.dtype, node.spec.dims, self.program.consts[node.root])
                return lambda _: constant
            case Output():
                return lambda values: values[node.node]
            case Map():
                return scalar_map(self.program, node)
            case RowExp():
                return reduce.rowexp(self.program, node)
            case Max():
                return reduce.maximum(self.program, node)
            case Sum():
                return reduce.total(self.program, node, trusted=not self._is_careful)
            case ScatterSum():
                return reduce.scatter_sum(self.program, node)
            case Rank():
                return reduce.rank(self.program, node)
            case Dot():
                careful = self._is_careful
                kernel, self.routes[k] = dot(
                    self.program, node, trusted=not careful, other=careful, check=partial(self._check_product, k)
                )
                if self.routes[k] != "elementwise":
                    self._watch.products.append(k)
                return kernel
            case Gather():
                return gather.gather(self.program, node)
            case Random():
                return gather.random(node)


def _exponents(node: Node) -> tuple[int, ...]:
    """The nodes whose values a fast kernel takes for the exponents of the rows it quantizes."""
    match node:
        case Dot():
            return node.exponent_a.node, node.exponent_b.node
        case Sum():
            return (node.exponent.node,)
        case _:
            return ()


def _own_memory(t: Tensor) -> Tensor:
    """The tensor, contiguous and at the start of its memory, as readers of strided views need it."""
    return t if t.is_contiguous() and t.storage_offset() == 0 else t.clone(memory_format=torch.contiguous_format)
