"""A whole program as native kernels run it: groups between the nodes that stay in Python, and one place per value.

A plan holds no state between runs but memory: each run borrows an arena, so that nothing is allocated but outputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.engine.dtypes import TORCH
from assay.engine.fused.groups import Group, grouped
from assay.engine.fused.layout import CGroup, Kernels
from assay.engine.fused.memory import ALIGNMENT, Life, placed
from assay.engine.fused.nodes import Compiled, compile_node
from assay.protocol.errors import InvariantError
from assay.protocol.nodes import Const, Input, Output, reads
from assay.protocol.program import Program

Kernel = Callable[[list[Tensor]], Tensor]

_BLOCK_BYTES = 1 << 17
"""Bytes of a group's values that one block of its rows holds."""

_PARALLEL_BYTES = 1 << 18
"""Bytes of a group's values below which waking other threads costs more than it saves."""


@dataclass(frozen=True)
class _Step:
    """Groups first .. last - 1 by the kernels, or one node by a kernel in Python (groups are empty then)."""

    first: int
    last: int
    node: int
    kernel: Kernel | None


class _Arena:
    """Memory of one run: the pointers of all nodes, and tensors over those values that kernels in Python read."""

    def __init__(self, plan: Plan) -> None:
        self.memory = torch.empty(plan.arena_bytes + ALIGNMENT, dtype=torch.uint8)
        start = -(-self.memory.data_ptr() // ALIGNMENT) * ALIGNMENT
        self.start, self.end = start, start + plan.arena_bytes
        specs = plan.program.specs
        self.table = (c_void_p * len(specs))()
        self.values: list[Any] = [None] * len(specs)
        self.keep: list[Any] = []
        for k, offset in plan.offsets.items():
            self.table[k] = start + offset
            if k in plan.shown:
                # Readers of strided views count from the start of a tensor's memory, so each has memory of its own.
                raw = (ctypes.c_char * specs[k].nbytes).from_address(start + offset)
                self.keep.append(raw)
                self.values[k] = torch.frombuffer(raw, dtype=TORCH[specs[k].dtype]).view(specs[k].dims)
        for k, constant in plan.constants.items():
            self.table[k], self.values[k] = constant.data_ptr(), constant


class Plan:
    """Runs a program: nodes that the kernels take in groups, the others by the given kernels, in order."""

    def __init__(self, program: Program, kernels: Kernels, stock: Callable[[int], Kernel]) -> None:
        """stock: how a node is computed by stock torch; asked for constants and for what the kernels do not take."""
        self.program, self._kernels, self._stock = program, kernels, stock
        self.constants = {k: own_memory(stock(k)([])) for k, n in enumerate(program.nodes) if isinstance(n, Const)}
        self.reasons: dict[int, str] = {}
        self.compiled: dict[int, Compiled] = {}
        for k, node in enumerate(program.nodes):
            if isinstance(node, Input | Const | Output):
                continue
            found = compile_node(program, k, node, kernels)
            if isinstance(found, str):
                self.reasons[k] = found
            else:
                self.compiled[k] = found
        self.groups: list[Group] = []
        self._steps = list(self._schedule())
        self._place()
        self._groups = [self._c_group(group, self.scratch.get(g, ())) for g, group in enumerate(self.groups)]
        self._pointers = (c_void_p * max(len(self._groups), 1))(*(ctypes.addressof(g[0]) for g in self._groups))
        self._arenas: list[_Arena] = []

    def run(self, flat: Sequence[Tensor]) -> list[Tensor]:
        """The outputs in the order of their slots; inputs are contiguous and at the start of their memory.

        Raises:
            InvariantError: OutOfMemory.
        """
        arena = self._arenas.pop() if self._arenas else _Arena(self)
        table, values = arena.table, arena.values
        for k, tensor in enumerate(flat):
            table[k], values[k] = tensor.data_ptr(), tensor
        for k, dtype, dims in self._fresh:
            values[k] = torch.empty(dims, dtype=dtype)
            table[k] = values[k].data_ptr()
        count, threads = len(self.program.nodes), torch.get_num_threads()
        address, groups, run_groups = (
            ctypes.addressof(table),
            ctypes.addressof(self._pointers),
            self._kernels.run_groups,
        )
        for step in self._steps:
            if step.kernel is None:
                if run_groups(groups, step.first, step.last, address, count, threads):
                    raise out_of_memory()
            else:
                value = own_memory(step.kernel(values))
                if arena.start <= value.data_ptr() < arena.end:
                    value = value.clone()
                values[step.node] = value
                table[step.node] = value.data_ptr()
        found = [values[k] for k in self._outputs]
        for k in self._dropped:
            values[k] = None
        self._arenas.append(arena)
        return found

    def single(self, k: int) -> Kernel:
        """A kernel in Python that computes a native node alone, into new memory: for runs that somebody watches."""
        compiled, spec, sources = self.compiled[k], self.program.specs[k], set(reads(self.program.nodes[k]))
        rows = max(spec.numel // compiled.unit, 1)
        group = Group([k], rows, 0)
        made, keep = self._c_group(group, ())
        pointer = (c_void_p * 1)(ctypes.addressof(made))
        count, dtype, dims = len(self.program.nodes), TORCH[spec.dtype], spec.dims
        run_groups = self._kernels.run_groups

        def run(values: list[Tensor]) -> Tensor:
            assert made and keep  # what the pointers lead to
            table = (c_void_p * count)()
            for j in sources:
                table[j] = values[j].data_ptr()
            out = torch.empty(dims, dtype=dtype)
            table[k] = out.data_ptr()
            if run_groups(ctypes.addressof(pointer), 0, 1, ctypes.addressof(table), count, torch.get_num_threads()):
                raise out_of_memory()
            return out

        return run

    def _schedule(self) -> list[_Step]:
        """Segments of native nodes, and between them the nodes of kernels in Python."""
        steps: list[_Step] = []
        segment: list[int] = []

        def close() -> None:
            if segment:
                first = len(self.groups)
                self.groups += grouped(self.program, segment, {k: self.compiled[k].unit for k in segment})
                steps.append(_Step(first, len(self.groups), -1, None))
                segment.clear()

        for k, node in enumerate(self.program.nodes):
            if isinstance(node, Input | Const | Output):
                continue
            if k in self.compiled:
                segment.append(k)
            else:
                close()
                steps.append(_Step(0, 0, k, self._stock(k)))
        close()
        return steps

    def _place(self) -> None:
        """Which values live in blocks only, which in the arena and where, which are new in every run."""
        nodes, specs = self.program.nodes, self.program.specs
        moment: dict[int, int] = {}
        group_of: dict[int, int] = {}
        now = 0
        for step in self._steps:
            if step.kernel is not None:
                moment[step.node] = now
                now += 1
            for g in range(step.first, step.last):
                for k in self.groups[g].nodes:
                    moment[k], group_of[k] = now, g
                now += 1
        readers: dict[int, list[int]] = {}
        for k, node in enumerate(nodes):
            for j in reads(node):
                readers.setdefault(j, []).append(k)
        self._outputs = [node.node for node in nodes if isinstance(node, Output)]
        outputs = set(self._outputs)
        self.shown = {j for k in self.reasons for j in reads(nodes[k]) if j in self.compiled and j not in outputs}
        self.scratch: dict[int, list[int]] = {}
        lives = []
        for k in sorted(self.compiled):
            mine = readers.get(k, [])
            if k in outputs:
                continue
            g = group_of[k]
            if all(group_of.get(r) == g for r in mine) and self.groups[g].rows > 1:
                self.scratch.setdefault(g, []).append(k)
            else:
                lives.append(Life(k, specs[k].nbytes, moment[k], max((moment[r] for r in mine), default=moment[k])))
        self.offsets, self.arena_bytes = placed(lives)
        self._fresh = [(k, TORCH[specs[k].dtype], specs[k].dims) for k in sorted(outputs & set(self.compiled))]
        held = {*self.shown, *self.constants}
        self._dropped = [k for k in range(len(nodes)) if k not in held]

    def _c_group(self, group: Group, own: Sequence[int]) -> tuple[CGroup, tuple[Any, ...]]:
        """The structure of a group and what it points to; `own` values live in its blocks only."""
        specs = self.program.specs
        total = sum(specs[k].nbytes for k in group.nodes)
        block = max(1, min(group.rows, _BLOCK_BYTES * group.rows // max(total, 1)))
        if total < _PARALLEL_BYTES and not own:
            block = group.rows
        row_bytes = [specs[k].nbytes // group.rows for k in own]
        lives = [
            Life(k, n * block, group.nodes.index(k), self._last_in(group, k))
            for k, n in zip(own, row_bytes, strict=True)
        ]
        offsets, scratch_bytes = placed(lives)
        ops = (c_void_p * len(group.nodes))(*(ctypes.addressof(self.compiled[k].op) for k in group.nodes))
        per_row = (c_int64 * len(group.nodes))(*(specs[k].numel // group.rows for k in group.nodes))
        numbers = (c_int64 * max(len(own), 1))(*own)
        places = (c_int64 * max(len(own), 1))(*(offsets[k] for k in own))
        sizes = (c_int64 * max(len(own), 1))(*row_bytes)
        made = CGroup(
            n_ops=len(group.nodes),
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
        return made, (ops, per_row, numbers, places, sizes)

    def _last_in(self, group: Group, k: int) -> int:
        """The last place in the group that reads a value (its own when none does)."""
        nodes = self.program.nodes
        return max((n for n, r in enumerate(group.nodes) if k in reads(nodes[r])), default=group.nodes.index(k))


def out_of_memory() -> InvariantError:
    """What is raised when the kernels get no memory."""
    return InvariantError("There is no memory left for a block of rows.", code="OutOfMemory")


def own_memory(t: Tensor) -> Tensor:
    """The tensor, contiguous and at the start of its memory, as readers of strided views need it."""
    return t if t.is_contiguous() and t.storage_offset() == 0 else t.clone(memory_format=torch.contiguous_format)
