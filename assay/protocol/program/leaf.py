"""What one element of each family is: the definition that contracts, torch executors and kernels must agree with.

The functions mirror `ILeaf.sol` word for word. An element is computed in two phases: its *heads* (exponents, an index,
a map's operands) decide how many *terms* it has; a term reads a few elements more and gives an int256 *part*; `fold`
makes the element of the parts, `combine` makes one part of finer ones. Everything is total: a read outside an
ill-formed source gives 0, int256 sums wrap, and every reader reduces a word to the type that it reads. Nothing raises
for a decoded node.

Words are raw element words (`words`), parts are Python integers in the range of int256.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.protocol.arithmetic import f32, philox, scalar
from assay.protocol.arithmetic.rounding import finish, quantize
from assay.protocol.arithmetic.words import MASK_64, Word, as_f32, as_i32, canonical, sign_extend, signed
from assay.protocol.program.nodes import Dot, Gather, Map, Max, Node, Operand, Random, Rank, RowExp, ScatterSum, Sum
from assay.protocol.program.views import unravel
from assay.protocol.types import DType

ReadValue = Callable[["Read"], Word]
"""The word that a read gives: its fill, or the opened element, or 0 for an address outside the source."""

SUM_PRECISION = 31
_SUM_SHIFT = SUM_PRECISION - 1


@dataclass(frozen=True, slots=True)
class Read:
    """An element of an earlier node; with `is_fill` nothing is opened and the word is `fill`."""

    node: int
    address: int
    is_fill: bool = False
    fill: Word = 0


@dataclass(frozen=True, slots=True)
class Start:
    """What the heads decide: the element's word if `done`, else its number of terms (1 or more)."""

    done: bool
    value: Word
    terms: int


def _done(value: Word) -> Start:
    return Start(True, value, 0)


def head_reads(node: Node, element: int) -> tuple[Read, ...]:
    """The reads that are opened together with the element, in the order in which `start` and the others take them."""
    if node.spec.numel == 0:
        return ()
    match node:
        case Random(key=key, step=step):
            return Read(key, 0), Read(key, 1), Read(step, 0), Read(step, 1)
        case Map(operands=reads):
            operands: tuple[Operand, ...] = reads
        case Dot():
            operands = (node.exponent_a, node.exponent_b)
        case Sum() | ScatterSum():
            operands = (node.exponent,)
        case Gather():
            operands = (node.index,)
        case Rank():
            index = _coordinates(element, node.spec.dims)
            return (_read(node.x, (*index, index[-1])),) if index else ()
        case _:
            return ()
    index = _coordinates(element, node.spec.dims)
    return tuple(_read(o, index) for o in operands) if index is not None else ()


def start(node: Node, element: int, heads: Sequence[Word]) -> Start:
    """Starts the computation of an element; `heads` are as many words as `head_reads` gives."""
    if node.spec.numel == 0:
        return _done(0)
    match node:
        case Map(code=code):
            return _done(canonical(node.spec.dtype, scalar.evaluate(code, [h & MASK_64 for h in heads])))
        case Random(stream=stream):
            key, step = (as_i32(heads[0]), as_i32(heads[1])), (as_i32(heads[2]), as_i32(heads[3]))
            return _done(canonical(node.spec.dtype, sign_extend(philox.random_word(element, stream, step, key), 32)))
        case Gather(size=size):
            return Start(False, 0, 1) if 0 <= as_i32(heads[0]) < size else _done(_missing(node))
        case Dot() | Sum() | ScatterSum() if any(as_i32(h) >= f32.E_NONFINITE for h in heads):
            return _done(canonical(node.spec.dtype, f32.NAN))
        case RowExp() | Max() | Dot() | Sum() | ScatterSum() | Rank():
            return Start(False, 0, node.terms) if node.terms else _done(_nothing(node))
        case _:
            return _done(0)


def _missing(node: Node) -> Word:
    """What stands for a value that is not there."""
    return f32.NAN if node.spec.dtype is DType.F32 else 0


def _nothing(node: Node) -> Word:
    """A reduction over no terms."""
    match node:
        case RowExp():
            return canonical(node.spec.dtype, f32.E_ZERO)
        case Max():
            return _missing(node)
        case _:
            return 0


def fold(node: Node, heads: Sequence[Word], parts: Sequence[int]) -> Word:
    """The canonical word of the element that partial results over all of its terms stand for."""
    part = combine(node, parts)
    match node:
        case Dot(precision_a=p_a, precision_b=p_b):
            part = finish(part, as_i32(heads[0]) + as_i32(heads[1]) - (p_a - 1) - (p_b - 1))
        case Sum() | ScatterSum():
            part = finish(part, as_i32(heads[0]) - _SUM_SHIFT)
        case _:
            pass
    return canonical(node.spec.dtype, part)


def combine(node: Node, parts: Sequence[int]) -> int:
    """The partial result that finer ones stand for; 0 for none."""
    match node:
        case Max() if node.spec.dtype is DType.F32:
            result = as_f32(parts[0]) if parts else 0
            for part in parts:
                result = f32.maximum(result, as_f32(part))
            return result
        case Max() | RowExp():
            return max(parts, default=0)
        case _:
            return signed(sum(parts))


def term_reads(node: Node, element: int, k: int, heads: Sequence[Word]) -> tuple[Read, ...]:
    """The reads of term k, in the order in which `term` takes them."""
    index = _coordinates(element, node.spec.dims)
    if index is None:
        return ()
    if isinstance(node, Gather):
        return (_read(node.table, (as_i32(heads[0]), *index)),)
    match node:
        case RowExp() | Max() | Sum() | Rank():
            operands: tuple[Operand, ...] = (node.x,)
        case Dot():
            operands = (node.a, node.b)
        case ScatterSum():
            operands = (node.index, node.x)
        case _:
            return ()
    reduced = _coordinates(k, node.red)
    return tuple(_read(o, index + reduced) for o in operands) if reduced is not None else ()


def term(node: Node, element: int, k: int, heads: Sequence[Word], values: Sequence[Word]) -> int:
    """One part from the words that `term_reads` names."""
    match node:
        case RowExp():
            return f32.exponent(as_f32(values[0]))
        case Max():
            if node.spec.dtype is DType.F32:
                return combine(node, (values[0],))  # -0 becomes +0
            return signed(canonical(node.spec.dtype, values[0]))
        case Dot(precision_a=p_a, precision_b=p_b):
            e_a, e_b = as_i32(heads[0]), as_i32(heads[1])
            return quantize(as_f32(values[0]), p_a, e_a) * quantize(as_f32(values[1]), p_b, e_b)
        case Sum():
            return quantize(as_f32(values[0]), SUM_PRECISION, as_i32(heads[0]))
        case Gather():
            return signed(canonical(node.spec.dtype, values[0]))
        case ScatterSum():
            index = _coordinates(element, node.spec.dims)
            hit = index is not None and as_i32(values[0]) == index[0]
            return quantize(as_f32(values[1]), SUM_PRECISION, as_i32(heads[0])) if hit else 0
        case Rank():
            index = _coordinates(element, node.spec.dims)
            return int(index is not None and _is_ahead(as_f32(values[0]), k, as_f32(heads[0]), index[-1]))
        case _:
            return 0


def element(node: Node, index: int, value_of: ReadValue) -> Word:
    """The canonical word of one element, reading words through `value_of(Read)`; the whole rule in one place."""
    heads = [value_of(r) for r in head_reads(node, index)]
    begun = start(node, index, heads)
    if begun.done:
        return begun.value
    parts = [part_of(node, index, k, heads, value_of) for k in range(begun.terms)]
    return fold(node, heads, parts)


def part_of(node: Node, index: int, k: int, heads: Sequence[Word], value_of: ReadValue) -> int:
    """Term k of an element, reading words through `value_of(Read)`."""
    return term(node, index, k, heads, [value_of(r) for r in term_reads(node, index, k, heads)])


def _is_ahead(x: int, k: int, s: int, own: int) -> bool:
    """Whether x_k ranks before s, the element at `own`: larger, or equal and earlier; NaN above +inf, +0 = -0."""
    ours, theirs = _order(s), _order(x)
    return theirs > ours or (theirs == ours and k < own)


def _order(x: int) -> int:
    """An integer that orders canonical patterns: -inf .. -0 = +0 .. +inf < NaN."""
    return -(x & ~f32.SIGN) if x >> 31 else x


def _coordinates(index: int, dims: Sequence[int]) -> tuple[int, ...] | None:
    """The coordinates of a linear index; None when there are no elements."""
    return None if 0 in dims else unravel(index, dims)


def _read(operand: Operand, index: Sequence[int]) -> Read:
    """What an operand reads at an index; an address that no u64 holds is a fill of 0."""
    address = operand.view.address(index)
    if address is None:
        return Read(operand.node, 0, True, operand.view.fill)
    if not 0 <= address <= MASK_64:
        return Read(operand.node, 0, True, 0)
    return Read(operand.node, address)
