"""Build programs by hand: nodes over windows of earlier nodes, exponents and layout taken care of.

    b = ProgramBuilder([[TensorSpec(DType.F32, (4, 3))]])
    x = b.input(0, 0)
    total = b.sum(x, 1)                       # over the last dimension, exponents from a rowexp node
    program = b.build([[total]])

A `Ref` is a node read through a window; its methods reshape the window and cost nothing in the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import (
    Const,
    Dot,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Operand,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
)
from assay.protocol.program.program import Program
from assay.protocol.program.views import Window
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType


@dataclass(frozen=True, slots=True)
class Ref:
    """A node's value, of type and dims `spec`, read through a window."""

    node: int
    spec: TensorSpec
    window: Window

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.spec.dtype

    @property
    def dims(self) -> tuple[int, ...]:
        """The index space it is read over."""
        return self.window.dims

    @property
    def is_whole(self) -> bool:
        """Whether it reads the node as it is."""
        return self.window == Window.whole(self.spec.dims)

    def permute(self, *order: int) -> Ref:
        """See `Window.permute`."""
        return replace(self, window=self.window.permute(order))

    def unsqueeze(self, at: int) -> Ref:
        """See `Window.unsqueeze`."""
        return replace(self, window=self.window.unsqueeze(at))

    def expand(self, *dims: int) -> Ref:
        """See `Window.expand`."""
        return replace(self, window=self.window.expand(dims))

    def slice(self, dim: int, start: int, stop: int, step: int = 1) -> Ref:
        """See `Window.slice`."""
        return replace(self, window=self.window.slice(dim, start, stop, step))

    def select(self, dim: int, index: int) -> Ref:
        """See `Window.select`."""
        return replace(self, window=self.window.select(dim, index))

    def pad(self, dim: int, before: int, after: int, fill: int = 0) -> Ref:
        """See `Window.pad`."""
        return replace(self, window=self.window.pad(dim, before, after, fill))

    def split(self, dim: int, *sizes: int) -> Ref:
        """See `Window.split`."""
        return replace(self, window=self.window.split(dim, sizes))

    def over(self, dims: Sequence[int]) -> Operand:
        """The operand that reads it over this index space, expanded where needed."""
        return Operand(self.node, self.window.expand(dims).view)


class ProgramBuilder:
    """A program under construction: inputs first, then nodes in the order of the calls, outputs at `build`.

    Raises InvariantError where a call cannot be expressed; `build` checks the whole program.
    """

    def __init__(self, inputs: Sequence[Sequence[TensorSpec]]) -> None:
        self.nodes: list[Node] = []
        self.consts: dict[Digest, bytes] = {}
        self._inputs = [
            [self.add(Input(spec, number, index)) for index, spec in enumerate(specs)]
            for number, specs in enumerate(inputs)
        ]

    def add(self, node: Node) -> Ref:
        """Append any node."""
        self.nodes.append(node)
        return Ref(len(self.nodes) - 1, node.spec, Window.whole(node.spec.dims))

    def input(self, list_index: int, index: int) -> Ref:
        """The value of a slot of X."""
        return self._inputs[list_index][index]

    def const(self, spec: TensorSpec, data: bytes) -> Ref:
        """A tensor that travels with the program."""
        root = tensor_root(spec, data)
        self.consts[root] = bytes(data)
        return self.add(Const(spec, root))

    def map(self, scalar: ScalarProgram, reads: Sequence[Ref], dims: Sequence[int], dtype: DType | None = None) -> Ref:
        """The scalar program on these values, each expanded to `dims`; of its own result type unless given."""
        spec = TensorSpec(scalar.result_type if dtype is None else dtype, tuple(dims))
        return self.add(Map(spec, tuple(r.over(spec.dims) for r in reads), scalar.encode()))

    def rowexp(self, x: Ref, reduced: int) -> Ref:
        """The largest exponent over the last `reduced` dimensions of x."""
        out, red = _cut(x.dims, reduced)
        return self.add(RowExp(TensorSpec(DType.I32, out), red, x.over(x.dims)))

    def max(self, x: Ref, reduced: int) -> Ref:
        """The largest over the last `reduced` dimensions of x, f32 or i32."""
        out, red = _cut(x.dims, reduced)
        return self.add(Max(TensorSpec(x.dtype.value_type, out), red, x.over(x.dims)))

    def dot(
        self,
        a: Ref,
        b: Ref,
        exponent_a: Ref,
        exponent_b: Ref,
        dims: Sequence[int],
        red: Sequence[int],
        p_a: int = 14,
        p_b: int = 14,
    ) -> Ref:
        """The exact dot of a and b over `red`, each expanded to dims + red; exponents expanded to dims."""
        out, red = tuple(dims), tuple(red)
        operands = a.over(out + red), b.over(out + red), exponent_a.over(out), exponent_b.over(out)
        return self.add(Dot(TensorSpec(DType.F32, out), red, p_a, p_b, *operands))

    def matmul(self, a: Ref, b: Ref, p_a: int = 14, p_b: int = 14) -> Ref:
        """a [M, K] times b [N, K] transposed, to [M, N]; one exponent per row of each."""
        (m, k), (n, _) = a.dims, b.dims
        exponent_a, exponent_b = self.rowexp(a, 1).unsqueeze(1), self.rowexp(b, 1)
        return self.dot(a.unsqueeze(1), b.unsqueeze(0), exponent_a, exponent_b, (m, n), (k,), p_a, p_b)

    def sum(self, x: Ref, reduced: int, exponent: Ref | None = None) -> Ref:
        """The exact sum over the last `reduced` dimensions of x; exponents from a rowexp node unless given."""
        out, red = _cut(x.dims, reduced)
        e = self.rowexp(x, reduced) if exponent is None else exponent
        return self.add(Sum(TensorSpec(DType.F32, out), red, x.over(x.dims), e.over(out)))

    def gather(self, table: Ref, index: Ref, dims: Sequence[int]) -> Ref:
        """table[index[o], o]: the table's first dimension is picked, its others and the index expand to `dims`."""
        out = tuple(dims)
        size = table.dims[0]
        rest = len(table.dims) - 1
        while rest < len(out):
            table, rest = table.unsqueeze(1), rest + 1
        operands = table.over((size, *out)), index.over(out)
        return self.add(Gather(TensorSpec(table.dtype, out), size, *operands))

    def scatter_sum(self, x: Ref, index: Ref, exponent: Ref, dims: Sequence[int], red: Sequence[int]) -> Ref:
        """Sum of those x over `red` whose index is the first coordinate; x and index expand to dims + red."""
        out, red = tuple(dims), tuple(red)
        operands = x.over(out + red), index.over(out + red), exponent.over(out)
        return self.add(ScatterSum(TensorSpec(DType.F32, out), red, *operands))

    def rank(self, x: Ref) -> Ref:
        """The rank of every element among the last dimension of x, 0 for the largest."""
        *rows, n = x.dims
        return self.add(Rank(TensorSpec(DType.I32, x.dims), (n,), x.unsqueeze(len(rows)).over((*rows, n, n))))

    def random(self, stream: int, key: Ref, step: Ref, dims: Sequence[int]) -> Ref:
        """Random i32 words; key and step are whole i32[2] nodes."""
        if not (key.is_whole and step.is_whole):
            raise InvariantError("Key and step of a random node are nodes, not windows.")
        return self.add(Random(TensorSpec(DType.I32, tuple(dims)), stream, key.node, step.node))

    def build(self, outputs: Sequence[Sequence[Ref]]) -> Program:
        """The program with these lists as Y; each slot is a whole node.

        Raises:
            InvariantError: an output is a window, or the program is ill-formed (all violations in the message).
        """
        nodes = list(self.nodes)
        for number, refs in enumerate(outputs):
            for index, ref in enumerate(refs):
                if not ref.is_whole:
                    raise InvariantError("An output is a node, not a window of one.")
                nodes.append(Output(ref.spec, number, index, ref.node))
        inputs = tuple(len(refs) for refs in self._inputs)
        program = Program(tuple(nodes), inputs, tuple(len(refs) for refs in outputs), dict(self.consts))
        found = violations(program)
        if found:
            raise InvariantError("; ".join(str(v) for v in found[:10]), code="IllFormedProgram")
        return program


def _cut(dims: tuple[int, ...], reduced: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leading dims and the last `reduced` ones."""
    return dims[: len(dims) - reduced], dims[len(dims) - reduced :]
