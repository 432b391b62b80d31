"""What is known above the diagonal of square matrices, as a causal mask leaves it, and what need not be computed there.

Pure Python. Elements (row, column) of the T x T matrices of a node, column > row. A constant is looked at, and a map's
scalar program is run on the few words that its operands can have there; any other operand may have any word. So it is
known for every input that scores are dropped there and that weights are zeros, or NaN where a row has one: both are
the integer 0 once quantized, and add nothing to a product.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import product
from math import prod
from typing import Final

from assay.engine.runtime.values.views import is_inside
from assay.protocol.arithmetic import words
from assay.protocol.arithmetic.scalar import CONSTANTS, SIGNATURES, Instruction, Op, ScalarProgram, evaluate
from assay.protocol.program.nodes import Const, Dot, Map, Max, Operand, RowExp, Sum, reads
from assay.protocol.program.program import Program
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.types import DType

Few = frozenset[int]
"""All words of the scalar machine that a value can have."""

NAN = 0x7FC00000
ZEROS = frozenset({0, 0x80000000})
NOTHING = ZEROS | {NAN, 0x7F800000, 0xFF800000}
"""What quantizes to 0 under any exponent."""

_INFINITE = frozenset({0x7F800000, 0xFF800000})

FINITE: Final = -1 << 70
"""Any finite f32, in the place of a word."""

_MOST = 64
"""Cases that are kept apart."""

_MOST_LOOKS = 200_000
"""Instructions of one program that are looked at, each in one case: some seconds. GPT-2 small's step takes 2,400."""

_MOST_SIZES = 4
"""Of squares in one program, the largest."""


class Gap(IntEnum):
    """Why a product need not be computed above the diagonal; equal to GAP in `kernels.product`."""

    NONE = 0
    UNREAD = 1
    """Whoever reads it there gives the same whatever it is."""
    FINITE = 2
    """Whoever reads it there gives the same whatever finite number it is, but for the sign of a zero that none sees."""


class Cut(IntEnum):
    """Which terms of an operand's rows are nothing; equal to CUT in `kernels.product`."""

    NONE = 0
    AFTER = 1
    """Those after the row's own number."""
    BEFORE = 2
    """Those before it."""


@dataclass(frozen=True, slots=True)
class Triangle:
    """What is known of a node above the diagonal of its matrices of `size` rows."""

    size: int
    words: Few


class Triangles:
    """Of one program: what is known of constants and maps, and of products through those who read them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.known: dict[int, Triangle] = {}
        """Nodes of which few words are possible above the diagonal."""
        self._left = _MOST_LOOKS
        self._gaps: dict[int, Gap] = {}
        sizes = {node.spec.dims[-1] for node in program.nodes if isinstance(node, Const) and _is_square(node.spec.dims)}
        self.sizes = sorted(sizes)[-_MOST_SIZES:]
        """Rows of the matrices that are looked at."""
        for size in self.sizes:
            for k, node in enumerate(program.nodes):
                found = self._words(k, size) if node.spec.numel and node.spec.numel % size**2 == 0 else None
                if found is not None:
                    self.known.setdefault(k, Triangle(size, found))
        self._readers: dict[int, list[int]] = {k: [] for k in range(len(program.nodes))}
        for k, node in enumerate(program.nodes):
            for j in reads(node):
                self._readers[j].append(k)

    def cut(self, node: int, offset: int, strides: Sequence[int], rows: int, terms: int) -> Cut:
        """Which terms of a product's operand are nothing. strides: of the batch's two dims, the rows, the terms."""
        known = self.known.get(node)
        is_f32 = self._program.specs[node].dtype is DType.F32
        if known is None or not is_f32 or not known.words <= NOTHING or (rows, terms) != (known.size, known.size):
            return Cut.NONE
        if any(n % known.size**2 for n in (offset, *strides[:2])):
            return Cut.NONE
        return {(known.size, 1): Cut.AFTER, (1, known.size): Cut.BEFORE}.get((strides[2], strides[3]), Cut.NONE)

    def word(self, k: int, size: int) -> int | None:
        """The one word that node k, of matrices with so many rows, has above the diagonal; None for several."""
        known = self.known.get(k)
        return next(iter(known.words)) if known and known.size == size and len(known.words) == 1 else None

    def word_read(self, operand: Operand, dims: Sequence[int], size: int) -> int | None:
        """The same of what is read through a view over dims."""
        words = self._operand(operand, dims, size)
        return next(iter(words)) if words is not None and len(words) == 1 else None

    def is_the_same_for_any(self, node: Map, free: Collection[Operand], size: int) -> bool:
        """Whether a map has one value above the diagonal, for each of its other operands', whatever these are."""
        own = [None if o in free else self._operand(o, node.spec.dims, size) for o in node.operands]
        code = self._code(node)
        if not self._may_look(code, own):
            return False
        ends = [
            result(code, [None if w is None else {w} for w in case]) for case in product(*(w or (None,) for w in own))
        ]
        return all(end is not None and len(end) == 1 for end in ends)

    def gap(self, k: int) -> Gap:
        """Of node k, most often a product, whose last two dims are its rows and columns."""
        # Attack: a node that many groups read, for each of which all its readers would be looked at again.
        if k not in self._gaps:
            self._gaps[k] = self._gap(k)
        return self._gaps[k]

    def _gap(self, k: int) -> Gap:
        dims, readers = self._program.specs[k].dims, self._readers[k]
        if not readers or not _is_square(dims):
            return Gap.NONE
        size = dims[-1]
        if all(self._is_blind(j, k, size) for j in readers):
            return Gap.UNREAD
        return Gap.FINITE if all(self._is_blind_to_finite(j, k, size) for j in readers) else Gap.NONE

    def _is_blind(self, j: int, k: int, size: int) -> bool:
        """Whether map j, which reads node k element by element, is one word there whatever k is."""
        known = self.known.get(j)
        return known is not None and known.size == size and len(known.words) == 1 and self._is_alike(j, k, size)

    def _is_blind_to_finite(self, j: int, k: int, size: int) -> bool:
        """Whether map j is the same there for all finite numbers in k's place; or a zero, and nobody tells its signs
        apart.
        """
        node = self._program.nodes[j]
        if not isinstance(node, Map) or not self._is_alike(j, k, size):
            return False
        own = [frozenset({FINITE}) if o.node == k else self._operand(o, node.spec.dims, size) for o in node.operands]
        code = self._code(node)
        if not self._may_look(code, own):
            return False
        ends = [result(code, [{word} for word in case]) for case in product(*(w or (None,) for w in own))]
        # Of an i64 the word of -0 is a number.
        zeros = ZEROS if node.spec.dtype is DType.F32 else frozenset[int]()
        if any(end is None or not (len(end) == 1 or end <= zeros) for end in ends):
            return False
        return all(len(end) == 1 for end in ends if end) or self._is_unsigned(j, size)

    def _is_unsigned(self, j: int, size: int) -> bool:
        """Whether nobody can tell which sign a zero of node j has, who reads it or what is made of it."""
        seen, left = {j}, [j]
        while left:
            of = left.pop()
            readers = set(self._readers[of])
            self._left -= len(readers)
            if self._left < 0:
                return False
            for i in readers:
                node = self._program.nodes[i]
                if isinstance(node, RowExp | Max | Sum | Dot) or self._is_blind(i, of, size):
                    continue
                if not isinstance(node, Map) or node.spec.dtype is not DType.F32:
                    return False
                code = self._code(node)
                if not self._may_look(code, ()):
                    return False
                tells = tells_signs(code, [o.node == of for o in node.operands])
                if tells:
                    return False
                if tells is None and i not in seen:
                    seen.add(i)
                    left.append(i)
        return True

    def _may_look(self, code: ScalarProgram, given: Sequence[Few | None]) -> bool:
        """Whether a program's cases are few, and not too much was looked at; then it counts as looked at.

        Attack: a program that somebody posts so that whoever runs it looks for ever.
        """
        cases = prod(len(words) for words in given if words)
        self._left -= (len(code.instructions) + 1) * cases if cases <= _MOST else 0
        return cases <= _MOST and self._left >= 0

    def _is_alike(self, j: int, k: int, size: int) -> bool:
        """Whether map j reads node k at its own elements alone."""
        node = self._program.nodes[j]
        return isinstance(node, Map) and all(
            _is_periodic(o.view, node.spec.dims, node.spec.numel) for o in node.operands if o.node == k
        )

    def _code(self, node: Map) -> ScalarProgram:
        return ScalarProgram.decode(node.code, [self._program.specs[o.node].dtype for o in node.operands])

    def _words(self, k: int, size: int) -> Few | None:
        """What a node can be above the diagonal; None for more than a few words, or where nobody has looked."""
        node = self._program.nodes[k]
        if isinstance(node, Const):
            return self._of_constant(node, size)
        if not isinstance(node, Map) or node.spec.dtype.is_storage:
            return None
        given = [self._operand(o, node.spec.dims, size) for o in node.operands]
        if all(words is None for words in given):
            return None
        code = self._code(node)
        # What is stored in a narrower type is another word.
        is_looked_at = code.result_type is node.spec.dtype and self._may_look(code, given)
        return result(code, given) if is_looked_at else None

    def _of_constant(self, node: Const, size: int) -> Few | None:
        dtype, data = node.spec.dtype, self._program.consts.get(node.root, b"")
        if node.spec.numel != size**2 or len(data) != node.spec.nbytes:
            return None
        width = node.spec.nbytes // size**2
        above = {data[width * (r * size + r + 1) : width * (r + 1) * size] for r in range(size - 1)}
        first = data[width : 2 * width]
        if not first or any(row != first * (len(row) // width) for row in above):
            return None
        word = words.canonical(dtype, words.from_bytes(dtype, first)[0])
        return frozenset({word if dtype in (DType.F32, DType.BOOL) else words.signed(word, 64)})

    def _operand(self, operand: Operand, dims: Sequence[int], size: int) -> Few | None:
        """Of a node that is read element by element, or of one matrix that is read for every one."""
        known = self.known.get(operand.node)
        if known is None or known.size != size:
            return None
        return known.words if _is_periodic(operand.view, dims, self._program.specs[operand.node].numel) else None


def result(code: ScalarProgram, given: Sequence[Collection[int | None] | None]) -> Few | None:
    """What a scalar program can give; None for any word. given: its operands' words, None for any.

    Every case is run by itself, with a word in every register, or FINITE, or None for any word: registers of one case
    belong together, as a difference that is NaN and what is made of it do.
    """
    if prod(len(words) for words in given if words) > _MOST:
        return None
    cases: list[list[int | None]] = [list(case) for case in product(*(w or (None,) for w in given))]
    for i in code.instructions:
        cases = [[*case, word] for case in cases for word in _step(i, case)]
        if len(cases) > _MOST:
            return None
    ends = {case[-1] for case in cases}
    return None if ends & {None, FINITE} else frozenset(ends)  # type: ignore[arg-type]


def _step(i: Instruction, registers: Sequence[int | None]) -> Iterable[int | None]:
    """What one instruction can give in one case."""
    op = Op(i.op)
    if op in CONSTANTS:
        return (evaluate(i.encode(), ()),)
    a, b, c = (registers[r] if r < len(registers) else None for r in (i.a, i.b, i.c))
    if op is Op.SELECT:
        return (b, c) if a in _UNKNOWN else (b if a else c,)
    if op is Op.F32_SCALE2 and a in NOTHING:
        return (a,)  # by any power
    read = (a,) if len(SIGNATURES[op][0]) == 1 else (a, b)
    if not any(word in _UNKNOWN for word in read):
        return (evaluate(Instruction(i.op, 0, 1).encode(), read),)  # type: ignore[arg-type]
    if op in _DECIDED and _DECIDED[op] in read:
        return (_DECIDED[op],)
    return _with_unknown(op, *read) if len(read) == 2 else (None,)


_UNKNOWN = frozenset({None, FINITE})

_DECIDED = {Op.BOOL_OR: 1, Op.BOOL_AND: 0}
"""What one operand decides alone, and by which word."""


def _with_unknown(op: Op, a: int | None, b: int | None) -> Iterable[int | None]:
    """An operation of two f32, one of which at least is any word, or any finite one."""
    one, other = (a, b) if a not in _UNKNOWN else (b, a)
    more = () if other == FINITE else (NAN,)
    is_left = one is a
    if op is Op.F32_MUL or (op is Op.F32_DIV and is_left):
        if one in ZEROS:
            return (*ZEROS, NAN) if op is Op.F32_DIV else (*ZEROS, *more)
        return (NAN,) if one == NAN else (FINITE,) if _is_small(one) and op is Op.F32_MUL and not more else (None,)
    if op is Op.F32_ADD or op is Op.F32_SUB:
        if one in _INFINITE and (op is Op.F32_ADD or is_left):
            return (one, *more)
        return (NAN,) if one == NAN else (None,)
    return (None,)


def _is_small(word: int | None) -> bool:
    """Whether this f32 is 1 at most in magnitude, so that what it is multiplied by stays finite."""
    return word is not None and word >= 0 and word & 0x7FFFFFFF <= 0x3F800000


def tells_signs(code: ScalarProgram, unsigned: Sequence[bool]) -> bool | None:
    """Whether a scalar program tells the signs of zeros apart that these operands may have either of: True, or False,
    or None where a zero of its own has one sign or the other by them, and nothing else.
    """
    found = list(unsigned)
    for i in code.instructions:
        op = Op(i.op)
        read = [] if op in CONSTANTS else (i.a, i.b, i.c) if op is Op.SELECT else (i.a, i.b)[: len(SIGNATURES[op][0])]
        of = [found[r] for r in read]
        if any(of) and (op is Op.F32_BITS or (op is Op.F32_DIV and of[1])):
            return True
        found.append(any(of) and (op is Op.SELECT or SIGNATURES[op][1] is DType.F32))
    return None if found[-1] else False


def _is_square(dims: Sequence[int]) -> bool:
    return len(dims) >= 2 and dims[-1] == dims[-2] > 1


def _is_periodic(view: View, dims: Sequence[int], period: int) -> bool:
    """Whether element i of the index space is element i mod period of the source."""
    cut = next((c for c in range(len(dims) + 1) if prod(dims[c:]) == period), None)
    if cut is None or view.offset or not is_inside(view, dims):
        return False
    strides = (0,) * cut + contiguous_strides(dims[cut:])
    return all(n == 1 or s == wanted for n, s, wanted in zip(dims, view.strides, strides, strict=True))
