"""The program of one rank: stages between exchanges, each an ordinary program for any executor.

The level of a value is how many exchanges come before it; it is the same on every rank. The exponent of a split sum is
one exchange (maximum), its integers are the next (sum).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from assay.engine.runtime.parallel.layout import Division
from assay.engine.runtime.parallel.rows import RowRange, TermRange, read_rows, rows_of, sliced
from assay.protocol.program.nodes import Const, Input, Node, Output, RowExp, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType


def levels(program: Program, splits: frozenset[int]) -> list[int]:
    """Per node: how many exchanges come before its value is there."""
    found: list[int] = []
    for k, node in enumerate(program.nodes):
        level = max((found[j] for j in reads(node)), default=0)
        found.append(level + (k in splits))
    return found


def _zero_const(dtype: DType) -> int:
    """The number of an operand of which a partial sum reads no element: minus one minus the type's code."""
    return -1 - dtype


@dataclass(frozen=True)
class RankStage:
    """What one rank does before an exchange.

    program: takes the values of `takes` in one list and gives those of `gives`; None where there is nothing to run.
    exponents: split rowexps whose largest is exchanged then. sums: split sums and dots, as sliced nodes whose operands
    count as the whole program's do, whose integers are exchanged then; None where the rank has no terms of one.
    drops: values that no later stage reads.
    """

    program: Program | None
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    exponents: tuple[int, ...]
    sums: tuple[tuple[int, Node | None], ...]
    drops: tuple[int, ...]


@dataclass(frozen=True)
class RankPlan:
    """All stages of one rank, and the rows that it holds of every value that it needs."""

    program: Program
    layout: Division
    rank: int
    size: int

    @cached_property
    def need(self) -> dict[int, RowRange]:
        """The rows of every value that this rank needs."""
        return self.layout.needs(self.program, self.rank, self.size)

    @cached_property
    def terms(self) -> dict[int, TermRange]:
        """This rank's terms of every split node."""
        return self.layout.terms(self.program, self.rank, self.size)

    def spec(self, k: int) -> TensorSpec:
        """Type and dims of a value as this rank holds it."""
        spec = self.program.specs[k]
        if not spec.dims:
            return spec
        first, last = self.need[k]
        return TensorSpec(spec.dtype, (last - first, *spec.dims[1:]))

    def held_spec(self, k: int) -> TensorSpec:
        """Type and dims of a value that is there to be read."""
        if k < 0:
            return TensorSpec(DType(-1 - k), ())
        return self.program.specs[k] if isinstance(self.program.nodes[k], Const) else self.spec(k)

    def finishing(self, k: int) -> Node:
        """Split node k with its exponents read where they stand here; its terms are those of all ranks."""

        def place(j: int) -> tuple[int, RowRange]:
            return j, self.held(j) if j in self.need else (0, 0)

        return sliced(self.program, k, rows_of(self.program.specs[k]), None, place, _zero_const)

    @cached_property
    def ends(self) -> frozenset[int]:
        """The values of which this rank keeps rows as results."""
        outputs = ((k, node) for k, node in enumerate(self.program.nodes) if isinstance(node, Output))
        return frozenset(node.node for k, node in outputs if k in self.need)

    @cached_property
    def stages(self) -> tuple[RankStage, ...]:
        """The stages in order."""
        nodes, at = self.program.nodes, levels(self.program, self.layout.splits)
        last = max((at[k] for k in range(len(nodes))), default=0)
        runs: list[list[int]] = [[] for _ in range(last + 1)]
        splits: list[list[int]] = [[] for _ in range(last + 1)]
        for k, node in enumerate(nodes):
            if k in self.layout.splits:
                splits[at[k] - 1].append(k)
            elif k in self.need and not isinstance(node, Input | Const | Output):
                runs[at[k]].append(k)
        # What later stages, or the results, read of each value; constants belong to every stage that reads them.
        read_at: dict[int, int] = dict.fromkeys(self.ends, last + 1)
        for level in range(last + 1):
            for k in (*runs[level], *splits[level]):
                for j in self._reads(k):
                    read_at[j] = max(read_at.get(j, 0), level)
        return tuple(self._stage(level, runs[level], splits[level], read_at) for level in range(last + 1))

    def _reads(self, k: int) -> list[int]:
        rows = rows_of(self.program.specs[k]) if k in self.layout.splits else self.need[k]
        return sorted(read_rows(self.program, k, rows, self.terms.get(k)))

    def _stage(self, level: int, run: list[int], split: list[int], read_at: dict[int, int]) -> RankStage:
        nodes = self.program.nodes
        here = set(run)
        exponents = [k for k in split if isinstance(nodes[k], RowExp)]
        sums = [k for k in split if not isinstance(nodes[k], RowExp)]
        with_terms = [k for k in exponents if self.terms[k].first < self.terms[k].last]
        inside = sorted((*run, *with_terms))
        at_once = {j for k in sums for j in self._reads(k)}
        gives = [k for k in run if read_at.get(k, -1) > level or k in at_once] + with_terms
        outside = {j for k in inside for j in self._reads(k)} - here
        takes = sorted(j for j in outside if not isinstance(nodes[j], Const))
        program = self._program(takes, inside, gives) if gives else None
        drops = sorted(j for j, until in read_at.items() if until == level)
        return RankStage(
            program,
            tuple(takes) if program else (),
            tuple(gives),
            tuple(exponents),
            tuple((k, self._partial(k)) for k in sums),
            tuple(drops),
        )

    def _partial(self, k: int) -> Node | None:
        terms = self.terms[k]
        if terms.first == terms.last:
            return None

        def place(j: int) -> tuple[int, RowRange]:
            return j, self.held(j)

        return sliced(self.program, k, rows_of(self.program.specs[k]), terms, place, _zero_const)

    def held(self, k: int) -> RowRange:
        """The rows of a value that are there to be read; constants are whole everywhere."""
        return rows_of(self.program.specs[k]) if isinstance(self.program.nodes[k], Const) else self.need[k]

    def _program(self, takes: list[int], inside: list[int], gives: list[int]) -> Program:
        whole = self.program
        made: list[Node] = []
        consts: dict[Digest, bytes] = {}
        numbers: dict[int, int] = {}
        zero_consts: dict[DType, int] = {}

        def zero_const(dtype: DType) -> int:
            if dtype not in zero_consts:
                spec = TensorSpec(dtype, ())
                root = tensor_root(spec, spec.zeros())
                consts[root] = spec.zeros()
                zero_consts[dtype] = len(made)
                made.append(Const(spec, root))
            return zero_consts[dtype]

        def place(j: int) -> tuple[int, RowRange]:
            node = whole.nodes[j]
            if isinstance(node, Const) and j not in numbers:
                consts[node.root] = whole.consts[node.root]
                numbers[j] = len(made)
                made.append(node)
            return numbers[j], self.held(j)

        for j in takes:
            numbers[j] = len(made)
            made.append(Input(self.spec(j), 0, len(numbers) - 1))
        for k in inside:
            node = sliced(whole, k, self.need[k], self.terms.get(k), place, zero_const)
            numbers[k] = len(made)
            made.append(node)
        made += [Output(self.spec(k), 0, number, numbers[k]) for number, k in enumerate(gives)]
        return Program(tuple(made), (len(takes),), (len(gives),), consts)
