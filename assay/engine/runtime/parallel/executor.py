"""One rank's part in running a program together: the bits of the results are those of one executor alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.engine.runtime.exact.exponents import E_ZERO
from assay.engine.runtime.exact.floats import check_float_environment, check_float_environment_held
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.parallel.group import Alone, RankGroup
from assay.engine.runtime.parallel.layout import Division
from assay.engine.runtime.parallel.partial import finished, partial_sum
from assay.engine.runtime.parallel.stages import RankPlan, RankStage
from assay.engine.runtime.products.freivalds import ProductCheck, ProductWatch, products
from assay.engine.runtime.values.dtypes import TORCH, bits, canonical, from_bytes
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.errors import UserError
from assay.protocol.program.nodes import Const, Dot, Input, Node, Output, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep


@dataclass
class Traffic:
    """What one rank has given to exchanges since it was made: calls and bytes."""

    calls: int = 0
    bytes: int = 0

    def add(self, t: Tensor) -> None:
        """One exchange of this tensor."""
        self.calls += 1
        self.bytes += t.numel() * t.element_size()


class ParallelExecutor:
    """Runs a program together with the other ranks of a group; every rank makes one with the same program and layout.

    X and Y are this rank's: of lists in `layout.sharded` its rows only (`shard`, `unshard`). variant: of the executors
    of the stages.

    Raises:
        UserError: as `Executor`; LayoutMismatch, when Y is sharded otherwise than X.
    """

    def __init__(
        self,
        program: Program,
        layout: Division | None = None,
        group: RankGroup | None = None,
        variant: KernelVariant | None = None,
    ) -> None:
        self.program, self.group = program, group or Alone()
        self.layout = layout or Division()
        self.plan = RankPlan(program, self.layout, self.group.rank, self.group.size)
        self.traffic = Traffic()
        self._stages = self.plan.stages
        self._executors: list[Executor | None] = [
            None if s.program is None else Executor(s.program, variant=variant) for s in self._stages
        ]
        self._gathered = self._shared_inputs()
        self._watch = split_products(program, self.layout, f"rank {self.group.rank} of {self.group.size}")

    @property
    def executors(self) -> list[Executor]:
        """What runs this rank's nodes between exchanges."""
        return [e for e in self._executors if e is not None]

    def run(self, inputs: Lists) -> list[list[Tensor]]:
        """This rank's part of Y for its part of X. Raises what `Executor.run` raises."""
        check_float_environment()
        self._watch.begin()
        values = self._taken(inputs)
        for stage, executor in zip(self._stages, self._executors, strict=True):
            if executor is not None:
                found = executor.run([[values[k] for k in stage.takes]])[0]
                values.update(zip(stage.gives, found, strict=True))
            self._exchange(stage, values)
            for k in stage.drops:
                values.pop(k, None)
        check_float_environment_held()
        return [
            [self._result(number, k, values) for k in part] for number, part in enumerate(self.program.output_nodes)
        ]

    def repeat(self, inputs: Lists, steps: int, on_step: OnStep | None = None) -> list[list[Tensor]]:
        """This rank's part of the state after several steps of a program whose Y is its X; on_step: see `Executor`."""
        state: Lists = inputs
        for t in range(1, steps + 1):
            state = self.run(state)
            if on_step is not None:
                on_step(t)
        return [list(part) for part in state]

    def shard(self, whole: Lists) -> list[list[Tensor]]:
        """This rank's rows of a state."""
        return shard(self.layout, self.program, whole, self.group.rank, self.group.size)

    def unshard(self, parts: Lists) -> list[list[Tensor]]:
        """The whole state, on every rank, from every rank's rows of Y."""
        return [
            [self._whole(number, k, t) for k, t in zip(nodes, part, strict=True)]
            for number, (nodes, part) in enumerate(zip(self.program.output_nodes, parts, strict=True))
        ]

    def _shared_inputs(self) -> frozenset[int]:
        """Inputs of which some rank needs rows that it does not hold: all ranks gather them, in the same order."""
        found = set()
        for rank in range(self.group.size):
            need = self.layout.needs(self.program, rank, self.group.size)
            for number, part in enumerate(self.program.input_nodes):
                for k in part:
                    first, last = self.layout.rows(self.program.specs[k], number, rank, self.group.size)
                    if k in need and not first <= need[k][0] <= need[k][1] <= last:
                        found.add(k)
        return frozenset(found)

    def _taken(self, inputs: Lists) -> dict[int, Tensor]:
        """The rows of the inputs that this rank needs, by node; those of other ranks are gathered."""
        sizes = tuple(len(part) for part in inputs)
        if sizes != self.program.inputs:
            raise UserError(
                f"The program takes lists of {self.program.inputs} tensors, not {sizes}.", code="InputLayout"
            )
        values = {}
        for number, (nodes, part) in enumerate(zip(self.program.input_nodes, inputs, strict=True)):
            for k, t in zip(nodes, part, strict=True):
                spec = self.program.specs[k]
                first, last = self.layout.rows(spec, number, self.group.rank, self.group.size)
                wanted = (last - first, *spec.dims[1:]) if spec.dims else ()
                if tuple(t.shape) != wanted:
                    raise UserError(
                        f"Input {k} is {list(t.shape)} on rank {self.group.rank}, which holds {list(wanted)} of it.",
                        code="InputLayout",
                        remedy="Pass a whole state through `shard` first.",
                    )
                if k in self._gathered:
                    t, first = self._whole(number, k, t), 0
                if k in self.plan.need:
                    values[k] = narrowed(t, self.plan.need[k][0] - first, self.plan.need[k][1] - first)
        return values

    def _whole(self, in_list: int, k: int, t: Tensor) -> Tensor:
        spec, size = self.program.specs[k], self.group.size
        if in_list not in self.layout.sharded or not spec.dims or size == 1:
            return t
        ranges = [self.layout.rows(spec, in_list, rank, size) for rank in range(size)]
        self.traffic.add(t)
        return self.group.gather(t.contiguous(), [last - first for first, last in ranges])

    def _exchange(self, stage: RankStage, values: dict[int, Tensor]) -> None:
        """All exponents of a stage by one maximum, then all integers by one sum."""
        specs = self.program.specs
        if stage.exponents:
            parts = [values.get(k, torch.full(specs[k].dims, E_ZERO, dtype=torch.int32)) for k in stage.exponents]
            found = self._joined(parts, torch.int32)
            values.update(zip(stage.exponents, found, strict=True))
        if stage.sums:
            sums = [self._partial(k, node, values) for k, node in stage.sums]
            for (k, _), s in zip(stage.sums, self._joined(sums, torch.int64), strict=True):
                values[k] = finish_node(self.plan, k, s, values)

    def _joined(self, parts: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        flat = torch.cat([t.reshape(-1) for t in parts])
        self.traffic.add(flat)
        (self.group.maximum if dtype is torch.int32 else self.group.total)(flat)
        # Readers of views count from the start of a tensor's memory, so each gets memory of its own.
        pieces = torch.split(flat, [p.numel() for p in parts])
        return [t.clone().view(p.shape) for t, p in zip(pieces, parts, strict=True)]

    def _partial(self, k: int, node: Node | None, values: Mapping[int, Tensor]) -> Tensor:
        return partial_node(self.plan, k, node, values, self._watch)

    def _result(self, in_list: int, k: int, values: Mapping[int, Tensor]) -> Tensor:
        return result_of(self.plan, in_list, k, values)


def shard(layout: Division, program: Program, whole: Lists, rank: int, size: int) -> list[list[Tensor]]:
    """The rows of a state that one of `size` ranks holds."""
    parts = []
    for number, (nodes, part) in enumerate(zip(program.input_nodes, whole, strict=True)):
        rows = [layout.rows(program.specs[k], number, rank, size) for k in nodes]
        parts.append([narrowed(t, *r) for t, r in zip(part, rows, strict=True)])
    return parts


def split_products(program: Program, layout: Division, name: str) -> ProductWatch:
    """The watch over products that are divided among ranks or pieces; those of stages have their executors'."""
    divided = [k for k in products(program) if k in layout.splits]
    return ProductWatch(divided, (program.root, name, tuple(divided)))


def partial_node(
    plan: RankPlan, k: int, node: Node | None, values: Mapping[int, Tensor], watch: ProductWatch
) -> Tensor:
    """A rank's integers of split node k, i64; zeros where it has no terms. Raises InvariantError: HardwareFault."""
    if node is None:
        return torch.zeros(plan.program.specs[k].dims, dtype=torch.int64)
    assert isinstance(node, Sum | Dot)
    held = _operands(plan, node, values)
    check = ProductCheck(watch, k) if watch.is_due(k) else None
    return partial_sum(node, held, {j: plan.held_spec(j) for j in held}, check)


def finish_node(plan: RankPlan, k: int, total: Tensor, values: Mapping[int, Tensor]) -> Tensor:
    """The value of split node k from the integers of all ranks."""
    node = plan.finishing(k)
    assert isinstance(node, Sum | Dot)
    exponents = [node.exponent] if isinstance(node, Sum) else [node.exponent_a, node.exponent_b]
    held = {o.node: _value(plan, o.node, values) for o in exponents}
    return finished(node, total, held, {j: plan.held_spec(j) for j in held})


def result_of(plan: RankPlan, in_list: int, k: int, values: Mapping[int, Tensor]) -> Tensor:
    """A rank's rows of a slot of Y: of an input as they are, of anything computed as a store writes them."""
    node, spec = plan.program.nodes[k], plan.program.specs[k]
    assert isinstance(node, Output)
    first, last = plan.layout.rows(spec, in_list, plan.rank, plan.size)
    if first == last or spec.numel == 0:
        return from_bytes(spec.dtype, (last - first, *spec.dims[1:]), b"")
    start = plan.held(node.node)[0]
    rows = narrowed(_value(plan, node.node, values), first - start, last - start)
    return rows if isinstance(plan.program.nodes[node.node], Input) else canonical(rows)


def _operands(plan: RankPlan, node: Sum | Dot, values: Mapping[int, Tensor]) -> dict[int, Tensor]:
    operands = [node.x, node.exponent] if isinstance(node, Sum) else [node.a, node.b, node.exponent_a, node.exponent_b]
    return {o.node: _value(plan, o.node, values) for o in operands}


def _value(plan: RankPlan, k: int, values: Mapping[int, Tensor]) -> Tensor:
    if k < 0:
        return torch.zeros((), dtype=TORCH[plan.held_spec(k).dtype])
    node = plan.program.nodes[k]
    if isinstance(node, Const):
        return from_bytes(node.spec.dtype, node.spec.dims, plan.program.consts[node.root])
    return values[k]


def narrowed(t: Tensor, first: int, last: int) -> Tensor:
    """Rows of a tensor, bit for bit, in memory of their own where they are not all of it."""
    return t if t.ndim == 0 or (first == 0 and last == t.shape[0]) else bits(t)[first:last].clone().view(t.dtype)
