"""Write tests/vectors/nodes.json: whole small programs, their inputs and what every executor must make of them.

The file's fields are explained in tests/vectors/README.md. Answers are the reference executor's. `--check` compares
instead of writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.views import fill_bits
from assay.protocol.types import DType
from tests.harness.scalars import FLOAT_EDGES, word
from tools.node_cases import BOOL, F32, I8, I32, I64, U8, U16, CaseInput, bits, entry, f32s, ints, seeded
from tools.opcode_vectors import deepest, opcodes

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "nodes.json"

NAN, INF, ONE, HALF = 0x7FC00000, 0x7F800000, 0x3F800000, 0x3F000000
MINUS = 1 << 31
ROW_MAXIMA = (-149, -127, -126, -114, -113, -98, 0, 127)
EXPONENTS = (-149, -300, 0, 1, 2, 40, 128, 129, 400)
PRECISIONS = ((8, 8), (14, 14), (14, 8), (22, 14), (22, 22), (2, 31))


def extreme_rows(k: int) -> tuple[list[int], int]:
    """Rows of k patterns whose largest is 2^-149 .. 2^127, then zeros, NaN and infinities; and how many rows."""
    rows = []
    for n, e in enumerate(ROW_MAXIMA):
        top = bits(2.0**e)
        small = [
            (top >> s if top < 1 << 23 else max(top - (s << 22), 0)) | (MINUS * ((n + s) & 1)) for s in range(1, k)
        ]
        rows.append([*small[: k // 2], top | MINUS * (n & 1), *small[k // 2 :]])
    rows += [[MINUS] * k, [0, MINUS] * (k // 2) + [0] * (k % 2)]
    rows += [[ONE] * (k - 1) + [last] for last in (NAN, INF, INF | MINUS)]
    return [w for row in rows for w in row], len(rows)


def _maps() -> Iterator[dict[str, object]]:
    def widened(b: ProgramBuilder, refs: list[Ref]) -> list[Ref]:
        out = []
        for ref in refs:
            s = ScalarBuilder([ref.dtype])
            value = s.cast(s.operand(0), I32) if ref.dtype is BOOL else s.operand(0)
            out.append(b.map(s.build(s.add(value, s.i32(1))), [ref], ref.dims, I32))
            if ref.dtype is not BOOL:
                out.append(b.map(s.build(s.add(value, s.i32(1))), [ref], ref.dims, ref.dtype))
        return out

    edges = [0, 1, 2, 127, 128, 254, 255]
    yield entry(
        "map: storage types load as i32 and keep the low bits",
        [ints((7,), edges, U8), ints((7,), edges, I8), ints((7,), [*edges[:-1], 65535], U16), ints((2,), [0, 1], BOOL)],
        widened,
    )

    def product(b: ProgramBuilder, x: Ref, y: Ref, dims: Sequence[int]) -> Ref:
        s = ScalarBuilder([x.dtype, y.dtype])
        return b.map(s.build(s.mul(s.operand(0), s.operand(1))), [x, y], dims)

    words = [w | MINUS * (n & 1) for n, w in enumerate(FLOAT_EDGES[:24])]
    yield entry(
        "map: expanded, permuted, reversed, strided and padded views",
        [f32s((4, 6), [NAN if (w & 0x7FFFFFFF) > INF else w for w in words])],
        lambda b, r: [
            product(b, r[0], r[0].slice(0, 1, 2), (4, 6)),
            product(b, r[0].permute(1, 0), r[0].slice(1, 2, 3).permute(1, 0), (6, 4)),
            product(b, r[0].slice(1, 5, -1, -2), r[0].slice(1, 0, 6, 2), (4, 3)),
            product(b, r[0].pad(0, 2, 1, ONE).pad(1, 1, 3, ONE), r[0].slice(0, 0, 1).slice(1, 0, 1), (7, 10)),
            product(b, r[0].slice(0, 3, 4).slice(1, 4, 5), r[0].slice(1, 4, 5), (4, 1)),
        ],
    )
    s = ScalarBuilder([])
    seven = s.build(s.add(s.f32(3.0), s.f32(4.0)))
    yield entry(
        "map: no operands, no dimensions, no elements",
        [f32s((), [HALF]), f32s((0, 3), [])],
        lambda b, r: [b.map(seven, [], (3, 2)), product(b, r[0], r[0], ()), product(b, r[1], r[0], (0, 3))],
    )


def _rows() -> Iterator[dict[str, object]]:
    words, rows = extreme_rows(5)
    yield entry(
        "rowexp, max and sum: extremes of every row",
        [f32s((rows, 5), words)],
        lambda b, r: [b.rowexp(r[0], 1), b.max(r[0], 1), b.sum(r[0], 1)],
    )
    yield entry(
        "rowexp, max and sum: one term, two reduced dimensions, a padded and a strided view",
        [f32s((rows, 5), words)],
        lambda b, r: [
            out
            for x, reduced in (
                (r[0].unsqueeze(2), 1),
                (r[0], 2),
                (r[0].pad(1, 1, 1, bits(-0.75)), 1),
                (r[0].slice(1, 4, -1, -2).permute(1, 0), 1),
            )
            for out in (b.rowexp(x, reduced), b.max(x, reduced), b.sum(x, reduced))
        ],
    )
    yield entry(
        "max: integers, and zeros of both signs",
        [ints((2, 3), [-(2**31), 2**31 - 1, 0, -5, -7, -(2**31)]), f32s((3, 2), [MINUS, 0, 0, MINUS, MINUS, MINUS])],
        lambda b, r: [b.max(r[0], 1), b.max(r[1], 1)],
    )
    tie = [bits(2.0**24), ONE, bits(2.0**24), bits(-1.0), bits(2.0**24) + 1, ONE, bits(-(2.0**24)), bits(-1.0)]
    yield entry("sum: ties go to even", [f32s((4, 2), tie)], lambda b, r: [b.sum(r[0], 1)])
    yield entry(
        "sum: exponents of their own, too small, too large, out of range",
        [f32s((1, 4), [ONE, bits(-0.375), 1, bits(3.0)]), ints((9,), EXPONENTS)],
        lambda b, r: [b.sum(r[0].expand(9, 4), 1, r[1])],
    )
    yield entry(
        "sum: no terms",
        [f32s((3, 0), []), ints((3,), [0, 128, 129])],
        lambda b, r: [b.sum(r[0], 1, r[1])],
    )
    for k in (65_536, 131_073):
        yield entry(
            f"rowexp, max and sum: {k} terms",
            [seeded((1, k), k, 90, 60)],
            lambda b, r: [b.rowexp(r[0], 1), b.max(r[0], 1), b.sum(r[0], 1)],
        )


def _dots() -> Iterator[dict[str, object]]:
    words, rows = extreme_rows(5)
    ramp = [bits((n * 37 % 61 - 30) / 16) for n in range(15)]
    for pa, pb in PRECISIONS:
        yield entry(
            f"dot: extremes of every row at {pa} and {pb} bits",
            [f32s((rows, 5), words), f32s((3, 5), ramp)],
            lambda b, r, pa=pa, pb=pb: [b.matmul(r[0], r[1], pa, pb), b.matmul(r[0], r[0], pa, pb)],  # type: ignore[misc]
        )
        for k, seed in ((1, 11), (7, 12), (65_536, 13), (131_073, 14)):
            if k > 7 and (pa, pb) not in ((8, 8), (14, 14)):
                continue
            yield entry(
                f"dot: {k} terms at {pa} and {pb} bits",
                [seeded((1, k), seed, 110, 18), seeded((1, k), seed + 100, 110, 18)],
                lambda b, r, pa=pa, pb=pb: [b.matmul(r[0], r[1], pa, pb)],  # type: ignore[misc]
            )
    largest = [bits(1.0)] * 7
    yield entry(
        "dot: every quantized value at its limit",
        [f32s((2, 7), [*largest, *(w | MINUS for w in largest)]), ints((1,), [-3])],
        lambda b, r: [
            b.dot(r[0].unsqueeze(1), r[0].unsqueeze(0), r[1].expand(2, 2), r[1].expand(2, 2), (2, 2), (7,), pa, pb)
            for pa, pb in PRECISIONS
        ],
    )
    yield entry(
        "dot: no terms",
        [f32s((2, 0), []), f32s((3, 0), []), ints((2, 1), [5, 129]), ints((3,), [0, -149, 200])],
        lambda b, r: [b.dot(r[0].unsqueeze(1), r[1].unsqueeze(0), r[2], r[3], (2, 3), (0,))],
    )
    yield entry("dot: sums at and around midpoints up to 2^62", list(_midpoints()), _midpoint_dot)
    yield entry(
        "dot: exponents of their own",
        [
            f32s((2, 3), [ONE, bits(-0.375), bits(3.0), 1, MINUS | 2, NAN]),
            ints((9,), EXPONENTS),
        ],
        lambda b, r: [
            b.dot(r[0].unsqueeze(1), r[0].slice(0, 0, 1).unsqueeze(0), r[1].slice(0, e, e + 1), r[1], (2, 9), (3,))
            for e in (3, 6, 8)
        ],
    )

    def convolved(b: ProgramBuilder, r: list[Ref]) -> list[Ref]:
        x = r[0].pad(0, 1, 1, bits(0.5))
        windows = [x.slice(0, n, n + 4, 1) for n in range(3)]
        e = b.rowexp(r[0], 1)
        return [
            b.dot(w.unsqueeze(1), r[1].unsqueeze(0), e.unsqueeze(1), b.rowexp(r[1], 1), (4, 2), (2,)) for w in windows
        ]

    yield entry(
        "dot: padded and strided views, batches, one operand for all",
        [f32s((4, 2), ramp[:8]), f32s((2, 2), ramp[8:12]), seeded((3, 2, 6), 5, 120, 9), seeded((3, 5, 6), 6, 120, 9)],
        lambda b, r: [*convolved(b, r), *_batched(b, r[2], r[3])],
    )


def _batched(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    ex, ey = b.rowexp(x, 1).unsqueeze(2), b.rowexp(y, 1).unsqueeze(1)
    whole = b.dot(x.unsqueeze(2), y.unsqueeze(1), ex, ey, (3, 2, 5), (6,))
    one = y.slice(0, 1, 2)
    shared = b.dot(x.unsqueeze(2), one.unsqueeze(1), ex, b.rowexp(one, 1).unsqueeze(1), (3, 2, 5), (6,))
    turned, other = x.permute(0, 2, 1).slice(1, 5, -1, -2), y.permute(0, 2, 1).slice(1, 0, 6, 2)
    et, eo = b.rowexp(turned, 1).unsqueeze(2), b.rowexp(other, 1).unsqueeze(1)
    crossed = b.dot(
        turned.unsqueeze(2).slice(3, 0, 2), other.unsqueeze(1).slice(3, 0, 2), et, eo, (3, 3, 3), (2,), 14, 22
    )
    return [whole, shared, crossed]


def _midpoints() -> Iterator[CaseInput]:
    """Rows (2^a 2^b, 2^c, 1) by (2^24.., 1, +-1): sums half way between binary32 numbers, one below and one above."""
    left, right = [], []
    for total in range(53, 62):
        for sign in (1, -1):
            for nudge in (0, 1, -1):
                # 2^total + 2^(total - 24) + nudge, from terms of at most 2^60
                high = total - (1 if total == 61 else 0)
                first = min(high, 30)
                left += [2.0**first, 2.0**first if total == 61 else 0.0, 2.0 ** min(total - 24, 30), 1.0]
                second = 2.0 ** (high - first)
                right += [sign * second, sign * second, sign * 2.0 ** (total - 24 - min(total - 24, 30)), sign * nudge]
    count = len(left) // 4
    yield f32s((count, 4), [bits(v) for v in left])
    yield f32s((count, 4), [bits(v) for v in right])
    yield ints((1,), [30])
    yield f32s((1, 4), [bits(2.0**30)] * 4)


def _midpoint_dot(b: ProgramBuilder, r: list[Ref]) -> list[Ref]:
    count = r[0].dims[0]
    e = r[2].expand(count)
    top = b.dot(r[3], r[3], r[2], r[2], (1,), (4,), 31, 31)
    return [b.dot(r[0], r[1], e, e, (count,), (4,), 31, 31), top]


def _indexed() -> Iterator[dict[str, object]]:
    table = [ONE, MINUS, NAN, 1, INF, bits(-2.5)]
    yield entry(
        "gather: indices in and out of range, of several types",
        [f32s((3, 2), table), ints((7, 1), [0, 2, 1, 3, -1, 2**31 - 1, -(2**31)]), ints((5,), [0, 1, 2, 3, 255], U8)],
        lambda b, r: [b.gather(r[0], r[1], (7, 2)), b.gather(r[0].select(1, 1), r[2], (5,))],
    )
    yield entry(
        "gather: an integer table, a padded table, a padded index, no rows",
        [ints((4,), [-(2**31), 7, 0, -1]), ints((6,), [0, 1, 2, 3, 4, 5]), f32s((0, 2), []), ints((2, 1), [0, -1])],
        lambda b, r: [
            b.gather(r[0], r[1], (6,)),
            b.gather(r[0].pad(0, 1, 1, fill_bits(I32, -9)), r[1], (6,)),
            b.gather(r[0], r[1].pad(0, 2, 0, fill_bits(I32, 3)), (8,)),
            b.gather(r[2], r[3], (2, 2)),
        ],
    )
    x = [ONE, bits(-0.375), 1, MINUS, bits(3.0), bits(2.0**-30), bits(1e8), NAN]
    index = ints((8,), [0, 2, 0, 3, -1, 0, 5, 2])
    yield entry(
        "scatter_sum: repeated, missing and impossible indices; one exponent for all",
        [f32s((8,), x), index, ints((3,), [2, 28, 129]), f32s((8, 2), [*x, *reversed(x)])],
        lambda b, r: [
            *(b.scatter_sum(r[0], r[1], r[2].slice(0, e, e + 1).expand(4), (4,), (8,)) for e in range(3)),
            b.scatter_sum(
                r[3].permute(1, 0).unsqueeze(0),
                r[1].unsqueeze(0).unsqueeze(0),
                r[2].slice(0, 1, 2).expand(4, 2),
                (4, 2),
                (8,),
            ),
            b.scatter_sum(r[0].slice(0, 0, 0), r[1].slice(0, 0, 0), r[2].slice(0, 0, 1).expand(4), (4,), (0,)),
        ],
    )
    yield entry(
        "scatter_sum: 65,536 terms",
        [seeded((65_536,), 21, 100, 40), seeded((65_536,), 22, -1, 6, I32)],
        lambda b, r: [b.scatter_sum(r[0], r[1], b.rowexp(r[0], 1).expand(4), (4,), (65_536,))],
    )
    row = [0, MINUS, ONE, NAN, INF, bits(-1.0), ONE, INF | MINUS, NAN, 1, MINUS | 1]
    yield entry(
        "rank: ties by index, NaN above infinity, zeros equal",
        [f32s((2, 11), [*row, *reversed(row)]), f32s((3, 1), [NAN, 0, ONE]), f32s((2, 0), [])],
        lambda b, r: [b.rank(r[0]), b.rank(r[1]), b.rank(r[0].slice(1, 10, -1, -3)), b.rank(r[2])],
    )


def _others() -> Iterator[dict[str, object]]:
    yield entry(
        "random: several streams, numbers of elements that four does not divide",
        [ints((2,), [0x243F6A88, -0x7A5CF72D]), ints((2,), [-1, 3]), ints((2,), [0, 0])],
        lambda b, r: [
            b.random(0, r[0], r[1], (5,)),
            b.random(0xFFFFFFFF, r[0], r[1], (2, 3)),
            b.random(7, r[2], r[2], (1,)),
            b.random(7, r[2], r[2], (0,)),
        ],
    )

    def consts(b: ProgramBuilder, r: list[Ref]) -> list[Ref]:
        found = []
        for n, dtype in enumerate(DType):
            source = Random(f"const {dtype.name}")
            kind = dtype if dtype in (F32, I64, BOOL) else I32
            words = [word(source, kind) for _ in range(3 + n)]
            if dtype is F32:
                words = [NAN if (w & 0x7FFFFFFF) > INF else w for w in words]
            slot = ints((3 + n,), words, dtype)
            assert isinstance(slot.data, bytes)
            found.append(b.const(slot.spec, slot.data))
        return [*found, r[0], found[0]]

    yield entry("const, input and output: every type, a value twice", [f32s((2,), [MINUS, NAN])], consts)


def cases() -> Iterator[dict[str, object]]:
    """Every case of the file."""
    for group in (_maps, _rows, _dots, _indexed, _others, opcodes, deepest):
        yield from group()


def text() -> str:
    """The document as it stands in the file: one line per case."""
    return '{"cases": [\n' + ",\n".join(json.dumps(case) for case in cases()) + "\n]}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.node_vectors`")
    PATH.write_text(text())
    print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
