"""A whole program as native kernels run it: groups of nodes in order, and one place in memory per value.

Nodes that stay in Python are groups of one, between which the kernels run in one call each. A plan holds no state
between runs but memory: each run borrows an arena, and outputs take up memory that earlier ones have left.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.engine.runtime.fused.groups import NodeGroup, grouped
from assay.engine.runtime.fused.layout import CGroup, NodeKernels, OpKind, Strategy
from assay.engine.runtime.fused.memory import ALIGNMENT, Life, Recycled, placed
from assay.engine.runtime.fused.nodes import Compiled, compile_node, compile_product
from assay.engine.runtime.fused.places import overwritten
from assay.engine.runtime.products.dot import NativeProduct
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.values.dtypes import TORCH, bits
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Const, Dot, Input, Output, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec

_BLOCK_BYTES = 1 << 17
"""Bytes of a group's values that one block of its rows holds."""

_PARALLEL_BYTES = 1 << 18
"""Bytes of a group's values, and of the terms that it reduces, below which waking threads costs more than it saves."""

_SHARES = 16
"""Blocks of a group whose values are small but whose rows are long."""

_LARGE_PAGE = 1 << 21


@dataclass(frozen=True)
class _Made:
    """A group as the kernels take it, and what it points to."""

    structure: CGroup
    keep: tuple[Any, ...]


class _Arena:
    """Memory of one run: the pointers of all nodes, and tensors over those values that kernels in Python read."""

    def __init__(self, plan: FusedPlan) -> None:
        self.memory = mmap.mmap(-1, plan.arena_bytes + ALIGNMENT, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if plan.arena_bytes >= _LARGE_PAGE:
            with suppress(OSError):  # fewer faults and fewer misses, where the system has such pages
                self.memory.madvise(mmap.MADV_HUGEPAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.start, self.end = start, start + plan.arena_bytes
        specs = plan.program.specs
        self.table = (c_void_p * len(specs))()
        self.values: list[Any] = [None] * len(specs)
        for k, offset in plan.offsets.items():
            self.table[k] = start + offset
            if k in plan.shown:
                self.values[k] = _over(start + offset, specs[k])
        for k, constant in plan.constants.items():
            self.table[k], self.values[k] = constant.data_ptr(), constant


class FusedPlan:
    """Runs a program: nodes that the kernels take in groups, the others by stock torch, in order.

    stock: how a node is computed in Python; asked for constants, products and what the kernels do not take.
    `reasons` says per node that stays in Python why.
    """

    def __init__(self, program: Program, kernels: NodeKernels, stock: Callable[[int], Kernel]) -> None:
        self.program, self._kernels, self._stock = program, kernels, stock
        self.constants = {k: own_memory(stock(k)([])) for k, n in enumerate(program.nodes) if isinstance(n, Const)}
        self.reasons: dict[int, str] = {}
        self.compiled: dict[int, Compiled] = {}
        for k, node in enumerate(program.nodes):
            if isinstance(node, Input | Const | Output):
                continue
            found = (
                compile_product(program, k, node, stock(k))
                if isinstance(node, Dot)
                else compile_node(program, k, node, kernels)
            )
            if isinstance(found, str):
                self.reasons[k] = found
            else:
                self.compiled[k] = found
        self.groups = self._grouped()
        self.group_of = {k: g for g, group in enumerate(self.groups) for k in group.nodes}
        self._place()
        self._in_python = [g for g, group in enumerate(self.groups) if group.nodes[0] in self.reasons]
        self._made = [
            None if group.nodes[0] in self.reasons else self._make(group, self.scratch.get(g, ()))
            for g, group in enumerate(self.groups)
        ]
        addresses = (ctypes.addressof(made.structure) if made else 0 for made in self._made)
        self._pointers = (c_void_p * max(len(self._made), 1))(*addresses)
        self._arenas: list[_Arena] = []

    def run(self, flat: Sequence[Tensor], due: int | None = None, *, give: bool = False) -> list[Tensor]:
        """The outputs in the order of their slots; inputs are contiguous and at the start of their memory.

        due: a product that its kernel in Python shall compute this time, because it is checked. give: outputs may be
        written over inputs.

        Raises:
            InvariantError: OutOfMemory.
        """
        arena = self._arenas.pop() if self._arenas else _Arena(self)
        table, values = arena.table, arena.values
        for k, tensor in enumerate(flat):
            table[k], values[k] = tensor.data_ptr(), tensor
        given = self._given(flat) if give else {}
        for k, recycled in self._fresh:
            values[k] = fresh = given[k] if k in given else recycled.take()
            table[k] = fresh.data_ptr()
        stops = self._in_python
        if due in self.group_of and self.group_of[due] not in stops:
            stops = sorted((*stops, self.group_of[due]))
        done = 0
        for stop in (*stops, len(self.groups)):
            self._run_groups(ctypes.addressof(self._pointers), done, stop, table)
            if stop < len(self.groups):
                self._run_in_python(self.groups[stop].nodes[0], arena)
            done = stop + 1
        found = [values[k] for k in self._outputs]
        for k in self._dropped:
            values[k] = None
        self._arenas.append(arena)
        return found

    def _given(self, flat: Sequence[Tensor]) -> dict[int, Tensor]:
        """Per output the input that it is written over; none that shares its memory with another one."""
        storages = Counter(t.untyped_storage().data_ptr() for t in flat)
        return {k: flat[i] for k, i in self.over.items() if storages[flat[i].untyped_storage().data_ptr()] == 1}

    def single(self, k: int) -> Kernel:
        """A kernel in Python that computes a native node alone, into new memory: for runs that somebody watches."""
        compiled, spec, sources = self.compiled[k], self.program.specs[k], set(reads(self.program.nodes[k]))
        made = self._make(NodeGroup([k], max(spec.numel // compiled.unit, 1), 0), ())
        pointer = (c_void_p * 1)(ctypes.addressof(made.structure))
        count, dtype, dims = len(self.program.nodes), TORCH[spec.dtype], spec.dims

        def run(values: list[Tensor]) -> Tensor:
            assert made.keep  # what the pointer leads to lives as long as this function
            table = (c_void_p * count)()
            for j in sources:
                table[j] = values[j].data_ptr()
            out = torch.empty(dims, dtype=dtype)
            table[k] = out.data_ptr()
            self._run_groups(ctypes.addressof(pointer), 0, 1, table)
            return out

        return run

    def _run_groups(self, groups: int, first: int, last: int, table: ctypes.Array[c_void_p]) -> None:
        failed = first < last and self._kernels.run_groups(
            groups, first, last, ctypes.addressof(table), len(table), torch.get_num_threads()
        )
        if failed:
            raise InvariantError("There is no memory left for a block of rows or a product.", code="OutOfMemory")

    def _run_in_python(self, k: int, arena: _Arena) -> None:
        kernel, place = self._stock(k), arena.table[k]
        if k in self.compiled and isinstance(kernel, NativeProduct):  # it has its place already
            kernel(arena.values, _over(place or 0, self.program.specs[k]))
            return
        value = own_memory(kernel(arena.values))
        if arena.start <= value.data_ptr() < arena.end:
            value = value.clone()
        arena.values[k], arena.table[k] = value, value.data_ptr()

    def _grouped(self) -> list[NodeGroup]:
        """Every node but inputs, constants and outputs, in groups; what stays in Python and products stand alone."""
        groups: list[NodeGroup] = []
        segment: list[int] = []
        units = {k: c.unit for k, c in self.compiled.items()}
        for k, node in enumerate(self.program.nodes):
            if isinstance(node, Input | Const | Output):
                continue
            if k in self.compiled and not isinstance(node, Dot):
                segment.append(k)
                continue
            groups += [*grouped(self.program, segment, units), NodeGroup([k], 1, 0)]
            segment = []
        return groups + grouped(self.program, segment, units)

    def _place(self) -> None:
        """Which values live in blocks only, which in the arena and where, which are new in every run."""
        nodes, specs = self.program.nodes, self.program.specs
        readers: dict[int, list[int]] = {}
        for k, node in enumerate(nodes):
            for j in reads(node):
                readers.setdefault(j, []).append(k)
        self._outputs = [node.node for node in nodes if isinstance(node, Output)]
        outputs = set(self._outputs)
        asked = {k for k, n in enumerate(nodes) if k in self.reasons or isinstance(n, Dot)}
        self.shown = {j for k in asked for j in reads(nodes[k]) if j in self.compiled and j not in outputs}
        self.scratch: dict[int, list[int]] = {}
        lives = []
        for k in sorted(self.compiled.keys() - outputs):
            g = self.group_of[k]
            last = max((self.group_of[r] for r in readers.get(k, ())), default=g)
            if last == g and self.groups[g].rows > 1:
                self.scratch.setdefault(g, []).append(k)
            else:
                lives.append(Life(k, specs[k].nbytes, g, last))
        self.offsets, self.arena_bytes = placed(lives)
        self._fresh = [
            (k, Recycled(TORCH[specs[k].dtype], specs[k].dims)) for k in sorted(outputs & set(self.compiled))
        ]
        self.over = overwritten(self.program, self.groups, self.compiled)
        held = {*self.shown, *self.constants}
        self._dropped = [k for k in range(len(nodes)) if k not in held]

    def _make(self, group: NodeGroup, own: Sequence[int]) -> _Made:
        """A group for the kernels; `own` values live in its blocks only."""
        specs, count = self.program.specs, len(group.nodes)
        total = sum(specs[k].nbytes for k in group.nodes)
        block = max(1, min(group.rows, _BLOCK_BYTES * group.rows // max(total, 1)))
        if total < _PARALLEL_BYTES and not own:
            block = -(-group.rows // _SHARES) if self._reduces_long_rows(group) else group.rows
        row_bytes = [specs[k].nbytes // group.rows for k in own]
        lives = [
            Life(k, n * block, group.nodes.index(k), self._last_in(group, k))
            for k, n in zip(own, row_bytes, strict=True)
        ]
        offsets, scratch_bytes = placed(lives)
        ops = (c_void_p * count)(*(ctypes.addressof(self.compiled[k].op) for k in group.nodes))
        per_row = (c_int64 * count)(*(specs[k].numel // group.rows for k in group.nodes))
        numbers, places, sizes = (
            (c_int64 * max(len(own), 1))(*field) for field in (own, (offsets[k] for k in own), row_bytes)
        )
        made = CGroup(
            n_ops=count,
            ops=ctypes.addressof(ops),
            per_row=ctypes.addressof(per_row),
            rows=group.rows,
            block=block,
            n_scratch=len(own),
            scratch_node=ctypes.addressof(numbers),
            scratch_offset=ctypes.addressof(places),
            scratch_row_bytes=ctypes.addressof(sizes),
            scratch_bytes=scratch_bytes,
        )
        return _Made(made, (ops, per_row, numbers, places, sizes, *(self.compiled[k] for k in group.nodes)))

    def _reduces_long_rows(self, group: NodeGroup) -> bool:
        """Whether there is work to share out although values are small; kernels divide the terms of columns instead."""
        ops = [self.compiled[k].op for k in group.nodes]
        reducing = [op for op in ops if op.kind in (OpKind.ROWEXP, OpKind.MAX, OpKind.SUM)]
        if any(op.strategy == Strategy.BY_COLUMNS for op in reducing):
            return False
        return 4 * sum(op.numel * op.terms for op in reducing) >= _PARALLEL_BYTES

    def _last_in(self, group: NodeGroup, k: int) -> int:
        """The last place in the group that reads a value (its own when none does)."""
        nodes = self.program.nodes
        return max((n for n, r in enumerate(group.nodes) if k in reads(nodes[r])), default=group.nodes.index(k))


def _over(address: int, spec: TensorSpec) -> Tensor:
    """A tensor over some memory, as if it were its own: readers of strided views count from the start of it."""
    raw = (ctypes.c_char * spec.nbytes).from_address(address)
    return torch.frombuffer(raw, dtype=TORCH[spec.dtype]).view(spec.dims)


def own_memory(t: Tensor) -> Tensor:
    """The tensor, contiguous and at the start of its memory, as readers of strided views need it."""
    if t.is_contiguous() and t.storage_offset() == 0:
        return t
    return bits(t).clone(memory_format=torch.contiguous_format).view(t.dtype)
