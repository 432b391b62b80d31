"""Fusing chains of elementwise values into maps, before commitment: fewer nodes to hash and to dispute.

Values are visited from the last to the first. One whose readers all lie in the same map joins it, as long as the map
keeps at most 5 different operands and 64 instructions (the contract's gas per move limits both).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.engine.compiler.ir.pointwise import EMIT
from assay.engine.compiler.ir.value import Axis, Literal, Value, ValueRead
from assay.engine.compiler.ir.values import GraphValues, literal
from assay.engine.runtime.exact.affine import coordinates, steps
from assay.protocol.arithmetic.scalar import MAX_INSTRUCTIONS, ScalarProgram
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder

MAX_FUSED_OPERANDS = 5

_COPIED_FREELY = frozenset({"cast", "copy", "neg"})
"""Operations that are repeated in several maps rather than stored."""


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

    def build(self, values: GraphValues) -> tuple[ScalarBuilder, Reg, list[ValueRead]] | None:
        """The scalar program so far and the operands it reads; None when some read has no form here."""
        b = ScalarBuilder(())
        operands: list[ValueRead] = []
        registers: dict[ValueRead, Reg] = {}
        done: dict[int, Reg] = {}

        def argument(slot: int | Literal, value: Value, place: Placement) -> Reg | None:
            if isinstance(slot, Literal):
                return literal(b, slot)
            read = value.reads[slot]
            if read.value.number in self.members and read.value is not self.root:
                return emit(read.value)
            composed = self.compose(read, place)
            if composed is None:
                return None
            if composed not in registers:
                registers[composed] = b.add_operand(read.value.dtype)
                operands.append(composed)
            return registers[composed]

        def emit(value: Value) -> Reg | None:
            if value.number not in done:
                op, parameters, slots = value.attributes
                place = self.members[value.number]
                arguments = [argument(slot, value, place) for slot in slots]
                if any(a is None for a in arguments):
                    return None
                done[value.number] = b.cast(EMIT[op](b, arguments, *parameters), value.dtype.value_type)
            return done[value.number]

        result = emit(self.root)
        return None if result is None else (b, result, operands)

    def fits(self, values: GraphValues) -> bool:
        """Whether the map stays within the limits."""
        built = self.build(values)
        if built is None:
            return False
        b, result, _ = built
        return b.size(result) <= MAX_INSTRUCTIONS and len(b.used_operands(result)) <= MAX_FUSED_OPERANDS

    def joined(self, value: Value, place: Placement, values: GraphValues) -> bool:
        """Take a value into the map if it still fits; otherwise leave the map as it was."""
        known = self.members.get(value.number)
        if known is not None:
            return known == place
        self.members[value.number] = place
        if self.fits(values):
            return True
        del self.members[value.number]
        return False


def fuse(values: GraphValues, live: Sequence[Value], outputs: Sequence[Value]) -> dict[int, OpenMap]:
    """The maps of the live pointwise values, by the number of their last value.

    live: all values that outputs depend on, readers after what they read.
    """
    readers: dict[int, list[tuple[Value, ValueRead]]] = {v.number: [] for v in live}
    for value in live:
        for read in value.reads:
            readers[read.value.number].append((value, read))
    kept = {v.number for v in outputs}
    maps: dict[int, OpenMap] = {}
    homes: dict[int, list[OpenMap]] = {}
    for value in reversed(live):
        if value.kind != "pointwise":
            continue
        if value.number in kept or not _join(value, readers[value.number], homes, values):
            maps[value.number] = OpenMap(value)
            homes[value.number] = [maps[value.number]]
    return maps


def _join(
    value: Value, readers: Sequence[tuple[Value, ValueRead]], homes: dict[int, list[OpenMap]], values: GraphValues
) -> bool:
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
        if place is None or target.root.numel != value.numel or not target.joined(value, place, values):
            for other in taken:
                del other.members[value.number]
            return False
        taken.append(target)
    homes[value.number] = taken
    return True


def scalar_program(built: tuple[ScalarBuilder, Reg, list[ValueRead]]) -> tuple[ScalarProgram, list[ValueRead]]:
    """The program of a map and the reads that it uses, in operand order."""
    b, result, operands = built
    program, used = b.build_compact(result)
    return program, [operands[k] for k in used]
