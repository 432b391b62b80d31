"""Fusing chains of elementwise values into maps, before commitment: fewer nodes to hash and to dispute.

Values are visited from the last to the first. One whose readers all lie in the same map joins it, as long as the map
keeps at most 5 different operands and 64 instructions (the contract's gas per move limits both).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from assay.engine.compiler.ir.pointwise import EMIT
from assay.engine.compiler.ir.value import Axis, Literal, Value, ValueRead
from assay.engine.compiler.ir.values import literal
from assay.engine.runtime.exact.affine import coordinates, steps
from assay.protocol.arithmetic.scalar import MAX_INSTRUCTIONS
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

MAX_FUSED_OPERANDS = 5

_COPIED_FREELY = frozenset({"cast", "copy", "neg"})
"""Operations that are repeated in several maps rather than stored."""


_MapStep = Literal | int | tuple[int, DType] | tuple[str, tuple[Any, ...], int, DType]
"""Of a map, each after its arguments: a constant, a value that is there by its number, an operand by its number with
its type, or an operation by its name with its parameters, how many arguments it takes and its type."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a value's index lies in its map's index space: per dimension an offset and a factor per map dimension."""

    offsets: tuple[int, ...]
    factors: tuple[tuple[int, ...], ...]


@dataclass
class OpenMap:
    """A map under construction: its last value and those computed inside it."""

    root: Value
    members: dict[int, Placement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rank = len(self.root.dims)
        unit = tuple(tuple(int(r == d) for r in range(rank)) for d in range(rank))
        self.members[self.root.number] = Placement((0,) * rank, unit)

    def compose(self, read: ValueRead, place: Placement) -> ValueRead | None:
        """What a member reads, over the map's index space; None when a bound is no bound there."""
        dims = self.root.dims
        offset, strides = read.offset, [0] * len(dims)
        lows, highs = [0] * len(dims), list(dims)
        for axis, start, factors in zip(read.axes, place.offsets, place.factors, strict=True):
            offset += start * axis.stride
            for r, factor in enumerate(factors):
                strides[r] += factor * axis.stride
            if not axis.is_full:
                along = [r for r, factor in enumerate(factors) if factor and dims[r] > 1]
                if len(along) != 1 or factors[along[0]] != 1:
                    return None
                lows[along[0]] = max(lows[along[0]], axis.lo - start)
                highs[along[0]] = min(highs[along[0]], axis.hi - start)
        axes = tuple(Axis(n, s, lo, hi) for n, s, lo, hi in zip(dims, strides, lows, highs, strict=True))
        return ValueRead(read.value, axes, offset, read.fill)

    def place(self, read: ValueRead, place: Placement) -> Placement | None:
        """Where the value that a member reads would lie in this map; None when it cannot be computed in place."""
        composed = self.compose(read, place)
        if composed is None or not all(a.is_full for a in composed.axes):
            return None
        dims = read.value.dims
        start = coordinates(composed.offset, dims)
        moves = steps([a.size for a in composed.axes], [a.stride for a in composed.axes], composed.offset, dims)
        if start is None or moves is None:
            return None
        factors = tuple(tuple(count if axis == d else 0 for axis, count in moves) for d in range(len(dims)))
        return Placement(start, factors)

    def build(self) -> tuple[WrittenMap, list[ValueRead]] | None:
        """What the map is so far, and the operands that it reads; None when some read has no form here."""
        found = _MapSteps(self)
        return (_written(tuple(found.steps)), list(found.operands)) if found.take(self.root) else None

    def fits(self) -> bool:
        """Whether the map stays within the limits."""
        built = self.build()
        return built is not None and built[0].fits

    def joined(self, value: Value, place: Placement) -> bool:
        """Take a value into the map if it still fits; otherwise leave the map as it was."""
        known = self.members.get(value.number)
        if known is not None:
            return known == place
        self.members[value.number] = place
        if self.fits():
            return True
        del self.members[value.number]
        return False


class _MapSteps:
    """A map's computation step by step.

    No functions inside `build`: two that call each other hold all that they see until the collector finds them.
    """

    __slots__ = ("_done", "_map", "operands", "steps")

    def __init__(self, of: OpenMap) -> None:
        self._map = of
        self._done: dict[int, int] = {}
        self.operands: dict[ValueRead, int] = {}
        """What is read, with its number, in the order of numbers."""
        self.steps: list[_MapStep] = []

    def take(self, value: Value) -> bool:
        """Append a member's steps; False when some read has no form in the map."""
        if value.number in self._done:
            self.steps.append(self._done[value.number])
            return True
        op, parameters, slots = value.attributes
        place = self._map.members[value.number]
        for slot in slots:
            if not self._take_argument(slot, value, place):
                return False
        self._done[value.number] = len(self._done)
        self.steps.append((op, parameters, len(slots), value.dtype.value_type))
        return True

    def _take_argument(self, slot: int | Literal, value: Value, place: Placement) -> bool:
        if isinstance(slot, Literal):
            self.steps.append(slot)
            return True
        read = value.reads[slot]
        if read.value.number in self._map.members and read.value is not self._map.root:
            return self.take(read.value)
        composed = self._map.compose(read, place)
        if composed is None:
            return False
        number = self.operands.setdefault(composed, len(self.operands))
        self.steps.append((number, read.value.dtype))
        return True


def fuse(live: Sequence[Value], outputs: Sequence[Value]) -> dict[int, OpenMap]:
    """The maps of the live pointwise values, by the number of their last value.

    live: all values that outputs depend on, readers after what they read.
    """
    readers: dict[int, list[tuple[Value, ValueRead]]] = {v.number: [] for v in live}
    for value in live:
        for read in value.reads:
            readers[read.value.number].append((value, read))
    # Random words read their key and step as whole nodes, beside whatever map reads these too.
    kept = {v.number for v in outputs} | {n for v in live if v.kind == "random" for n in v.attributes[1:]}
    maps: dict[int, OpenMap] = {}
    homes: dict[int, list[OpenMap]] = {}
    for value in reversed(live):
        if value.kind != "pointwise":
            continue
        if value.number in kept or not _join(value, readers[value.number], homes):
            maps[value.number] = OpenMap(value)
            homes[value.number] = [maps[value.number]]
    return maps


def _join(value: Value, readers: Sequence[tuple[Value, ValueRead]], homes: dict[int, list[OpenMap]]) -> bool:
    """Compute a value inside the maps of its readers, if all of them are maps that can take it."""
    if not readers or value.dtype.is_storage or any(user.kind != "pointwise" for user, _ in readers):
        return False
    targets: list[OpenMap] = []
    for user, _ in readers:
        targets += [m for m in homes[user.number] if m not in targets]
    if len(targets) > 1 and value.attributes[0] not in _COPIED_FREELY:
        return False
    taken: list[OpenMap] = []
    for target in targets:
        places = {
            target.place(read, target.members[user.number]) for user, read in readers if user.number in target.members
        }
        place = places.pop() if len(places) == 1 else None
        if place is None or target.root.numel != value.numel or not target.joined(value, place):
            for other in taken:
                del other.members[value.number]
            return False
        taken.append(target)
    homes[value.number] = taken
    return True


class WrittenMap:
    """A map in the scalar machine."""

    def __init__(self, builder: ScalarBuilder, result: Reg) -> None:
        self._builder, self._result = builder, result
        self.fits = (
            builder.size(result) <= MAX_INSTRUCTIONS and len(builder.used_operands(result)) <= MAX_FUSED_OPERANDS
        )

    @cached_property
    def code(self) -> tuple[bytes, tuple[int, ...]]:
        """The encoded program over the operands that it uses, and their numbers."""
        program, used = self._builder.build_compact(self._result)
        return program.encode(), tuple(used)


@lru_cache(maxsize=1 << 12)
def _written(steps: tuple[_MapStep, ...]) -> WrittenMap:
    """What these steps are in the scalar machine: layers and steps of loops that are alike are written once."""
    b = ScalarBuilder(())
    stack: list[Reg] = []
    done: list[Reg] = []
    operands: list[Reg] = []
    for step in steps:
        match step:
            case Literal():
                stack.append(literal(b, step))
            case int():
                stack.append(done[step])
            case (int() as number, dtype):
                if number == len(operands):
                    operands.append(b.add_operand(dtype))
                stack.append(operands[number])
            case (op, parameters, count, dtype):
                first = len(stack) - count
                result = b.cast(EMIT[op](b, stack[first:], *parameters), dtype)
                del stack[first:]
                done.append(result)
                stack.append(result)
    return WrittenMap(b, stack[0])
