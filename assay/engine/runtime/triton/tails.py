"""What is behind the diagonal of causal rows: in all that a group of common rows computes, one value a row, its tail.

Pure Python. A softmax drops scores there, so their exponentials are zeros, or NaN in a row that has one: whatever it is
follows from the row. A kernel that holds whole rows computes a tail once, and columns up to the diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from assay.engine.runtime.triton.rows import RowGroup, WholeOperand, is_linear, whole_operand
from assay.engine.runtime.triton.triangles import Gap, Triangles
from assay.engine.runtime.values.views import is_inside
from assay.protocol.program.nodes import Map, Max, Operand, RowExp, Sum
from assay.protocol.program.program import Program
from assay.protocol.types import DType


@dataclass
class Tails:
    """Whence a group's kernel has tails, beside what it computes of others: else memory holds it, at the row's end.

    words: of what the one word is known that it has there. finite: nodes, most often products, for which any finite
    number may stand where all of them are finite there. same: operands of few words, to be looked at: most often a row
    has one of them.
    """

    words: dict[WholeOperand, int] = field(default_factory=dict)
    finite: set[int] = field(default_factory=set)
    same: set[int] = field(default_factory=set)
    free: set[tuple[int, WholeOperand]] = field(default_factory=set)


class CausalRows:
    """Of one program: which nodes have one value a row behind the diagonal, whatever its inputs are."""

    def __init__(self, program: Program, triangles: Triangles) -> None:
        self._program, self._triangles = program, triangles
        self._alike: dict[int, set[int]] = {}

    def tails_of(self, group: RowGroup) -> Tails | None:
        """Those of a group; None where some whole member may have several values in a row there."""
        size, found = group.columns, Tails()
        if group.rows % size or size not in self._triangles.sizes:
            return None
        for k, is_whole in group.is_whole.items():
            node = self._program.nodes[k]
            assert isinstance(node, Map | RowExp | Max | Sum)
            word = self._triangles.word(k, size) if is_whole else None
            if word is not None:
                found.words[k] = word
            elif isinstance(node, Map):
                if is_whole and not self._take_map(found, group, k, node):
                    return None
            elif not self._take(found, group, node.x, (*node.spec.dims, *node.red)):
                return None
        return found

    def _take_map(self, found: Tails, group: RowGroup, k: int, node: Map) -> bool:
        """Says whence the tails of all operands of whole member k come; False where it may have none itself."""
        dims = node.spec.dims
        loose = [o for o in node.operands if not self._take(found, group, o, dims)]
        found.free |= {(k, whole_operand(o, dims)) for o in loose}
        return not loose or self._triangles.is_the_same_for_any(node, loose, group.columns)

    def _take(self, found: Tails, group: RowGroup, operand: Operand, dims: Sequence[int]) -> bool:
        """Says whence the tail of an operand comes; False where it has none."""
        k, size = operand.node, group.columns
        if k in group.is_whole or _is_by_row(operand, dims, size):
            return True
        word = self._triangles.word_read(operand, dims, size)
        if word is not None:
            found.words[whole_operand(operand, dims)] = word
            return True
        if not is_linear(operand.view, dims):
            return False
        if k in self._alike_of(size):
            return True
        if self._program.specs[k].dtype is not DType.F32:
            return False
        if self._triangles.gap(k) is Gap.FINITE:
            found.finite.add(k)
            return True
        known = self._triangles.known.get(k)
        if known is None or known.size != size:
            return False
        found.same.add(k)
        return True

    def _alike_of(self, size: int) -> set[int]:
        """Nodes of matrices with so many rows, each row of which is one word behind the diagonal."""
        if size in self._alike:
            return self._alike[size]
        alike = self._alike[size] = set[int]()
        for k, node in enumerate(self._program.nodes):
            if not isinstance(node, Map) or node.spec.numel % size**2:
                continue
            if all(
                _is_by_row(o, node.spec.dims, size)
                or self._triangles.word_read(o, node.spec.dims, size) is not None
                or (o.node in alike and is_linear(o.view, node.spec.dims))
                for o in node.operands
            ):
                alike.add(k)
        return alike


def _is_by_row(operand: Operand, dims: Sequence[int], columns: int) -> bool:
    """Whether all elements of a row read one element."""
    cut = next((c for c in range(len(dims) + 1) if prod(dims[c:]) == columns), None)
    if cut is None or not is_inside(operand.view, dims):
        return False
    return all(n == 1 or s == 0 for n, s in zip(dims[cut:], operand.view.strides[cut:], strict=True))
