"""A program in pieces, one after the other on one machine: less memory, the same bits.

A piece is what a rank would do. What pieces hand to each other lies in files between them, so that the memory in use is
that of one piece; sums over pieces are made one tensor at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from assay.engine.runtime.exact.exponents import E_ZERO
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.parallel.executor import finish_node, narrowed, partial_node, result_of, split_products
from assay.engine.runtime.parallel.layout import Division, micro_batch_sums, norm_sums
from assay.engine.runtime.parallel.stages import RankPlan, RankStage
from assay.engine.runtime.parallel.witness import with_witness
from assay.engine.runtime.values.dtypes import bits
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.program.program import Program

_IN_MEMORY = 1 << 12
"""Values of fewer bytes are not worth a file."""


class PieceCache(MutableMapping[int, Tensor]):
    """Values by node; the larger ones lie in files of a folder, where there is one."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._folder, self._name = folder, name
        self._kept: dict[int, Tensor] = {}
        self._filed: dict[int, tuple[Path, torch.dtype, torch.Size]] = {}

    def __setitem__(self, k: int, t: Tensor) -> None:
        self.pop(k, None)
        if self._folder is None or t.numel() * t.element_size() < _IN_MEMORY:
            self._kept[k] = t
            return
        path = self._folder / f"{self._name}-{k}"
        with path.open("wb") as file:
            held = t.contiguous()
            file.write((ctypes.c_char * held.nbytes).from_address(held.data_ptr()))
        self._filed[k] = path, t.dtype, t.shape

    def __getitem__(self, k: int) -> Tensor:
        if k in self._kept:
            return self._kept[k]
        path, dtype, shape = self._filed[k]
        return torch.frombuffer(bytearray(path.read_bytes()), dtype=dtype).view(shape)

    def __delitem__(self, k: int) -> None:
        if k in self._kept:
            del self._kept[k]
        else:
            self._filed.pop(k)[0].unlink()

    def __iter__(self) -> Iterator[int]:
        yield from (*self._kept, *self._filed)

    def __len__(self) -> int:
        return len(self._kept) + len(self._filed)


class PieceExecutor:
    """Runs a program in so many pieces, each of whole micro-batches unless other sums are split.

    folder: for what pieces hand on; without it all of that stays in memory. variant: of the executors of the stages;
    stock by default, since a fused executor keeps its memory for the next run, and all pieces' would stay.
    """

    def __init__(
        self,
        program: Program,
        pieces: int,
        *,
        folder: Path | None = None,
        splits: frozenset[int] | None = None,
        variant: KernelVariant = KernelVariant.STOCK,
    ) -> None:
        lists = frozenset(range(max(len(program.inputs), len(program.outputs))))
        self.program = program
        if splits is None:
            splits = micro_batch_sums(program)
            splits |= norm_sums(program, splits)
        self.layout = with_witness(Division(splits, lists), program, pieces)
        self._folder = folder
        self._plans = [RankPlan(program, self.layout, piece, pieces) for piece in range(pieces)]
        self._last_read = _last_reads(self._plans)
        self._watch = split_products(program, self.layout, f"{pieces} pieces")
        self._executors = [
            [None if s.program is None else Executor(s.program, variant=variant) for s in p.stages] for p in self._plans
        ]

    def run(self, inputs: Lists) -> list[list[Tensor]]:
        """Y for X, both whole."""
        self._watch.begin()
        flat = [t for part in inputs for t in part]
        common = PieceCache(self._folder, "sum")
        caches = [PieceCache(self._folder, f"piece-{plan.rank}") for plan in self._plans]
        held = [_Held(plan, flat, cache, common) for plan, cache in zip(self._plans, caches, strict=True)]
        for level in range(len(self._plans[0].stages)):
            for plan, executors, values in zip(self._plans, self._executors, held, strict=True):
                _run_stage(plan.stages[level], executors[level], values)
            self._exchange(level, held, common)
            for plan, cache in zip(self._plans, caches, strict=True):
                for k in plan.stages[level].drops:
                    cache.pop(k, None)
            for k in self._last_read[level]:
                common.pop(k, None)
        found = [
            [self._joined(number, k, held) for k in slots] for number, slots in enumerate(self.program.output_nodes)
        ]
        for cache in (*caches, common):
            cache.clear()
        return found

    def repeat(self, inputs: Lists, steps: int) -> list[list[Tensor]]:
        """The state after several steps of a program whose Y is its X."""
        state: Lists = inputs
        for _ in range(steps):
            state = self.run(state)
        return [list(part) for part in state]

    def _exchange(self, level: int, held: Sequence[_Held], common: PieceCache) -> None:
        """The maxima and sums over all pieces, one tensor at a time."""
        stages = [plan.stages[level] for plan in self._plans]
        for k in stages[0].exponents:
            largest = torch.full(self.program.specs[k].dims, E_ZERO, dtype=torch.int32)
            for values in held:
                if k in values.own:
                    torch.maximum(largest, values.own.pop(k), out=largest)
            common[k] = largest
        for number, (k, _) in enumerate(stages[0].sums):
            total = torch.zeros(self.program.specs[k].dims, dtype=torch.int64)
            for plan, stage, values in zip(self._plans, stages, held, strict=True):
                node = stage.sums[number][1]
                if node is not None:
                    total += partial_node(plan, k, node, values, self._watch)
            common[k] = finish_node(self._plans[0], k, total, held[0])

    def _joined(self, in_list: int, k: int, held: Sequence[_Held]) -> Tensor:
        """A slot of Y from its pieces."""
        plans = self._plans if self.program.specs[k].dims else self._plans[:1]
        parts = [result_of(plan, in_list, k, values) for plan, values in zip(plans, held, strict=False)]
        # As bits: joined as bools, a byte of 2 would become 1.
        return torch.cat([bits(t) for t in parts]).view(parts[0].dtype) if len(parts) > 1 else parts[0]


class _Held(Mapping[int, Tensor]):
    """What one piece can read: its rows of the inputs, its own values, and what all pieces share."""

    def __init__(self, plan: RankPlan, flat: Sequence[Tensor], own: PieceCache, common: PieceCache) -> None:
        self._plan, self._flat, self.own, self._common = plan, flat, own, common

    def __getitem__(self, k: int) -> Tensor:
        for cache in (self.own, self._common):
            if k in cache:
                return cache[k]
        return narrowed(self._flat[k], *self._plan.need[k])

    def __iter__(self) -> Iterator[int]:
        yield from (*range(len(self._flat)), *self.own, *self._common)

    def __len__(self) -> int:
        return len(self._flat) + len(self.own) + len(self._common)


def _run_stage(stage: RankStage, executor: Executor | None, values: _Held) -> None:
    if executor is None:
        return
    found = executor.run([[values[k] for k in stage.takes]])[0]
    for k in stage.gives:
        values.own[k] = found.pop(0)


def _last_reads(plans: Sequence[RankPlan]) -> list[list[int]]:
    """Per stage, the values that no piece reads after it."""
    last: dict[int, int] = {}
    for plan in plans:
        for level, stage in enumerate(plan.stages):
            for k in stage.drops:
                last[k] = max(last.get(k, 0), level)
    ends = frozenset[int]().union(*(plan.ends for plan in plans))
    return [[k for k in sorted(last) if last[k] == level and k not in ends] for level in range(len(plans[0].stages))]
