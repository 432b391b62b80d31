"""The dot nodes on the native kernels: quantize, pack, multiply and round once in one call, on torch's own threads.

A node becomes a plan: tables of element offsets per batch, row, column and term. Every view turns into such tables: its
bounds belong to single dimensions, so an index outside one is outside whatever the others are. The kernels read f32
values through the tables and write f32 results in the node's own order.

Exact by the inequalities of `limits`, which decides what is multiplied here, and how; the plan carries what follows for
the C files. Each kind of product is run on its extremes, and at its last K, before it is used.

Shapes, each of several dims multiplied out: B batch, M rows, N columns, K terms; flipped products have M and N
exchanged. `values` are the program's, each in its node's own dims.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from assay.engine.runtime.exact import limits
from assay.engine.runtime.exact.limits import Digits, NativeVariant
from assay.engine.runtime.native.build import INSTRUCTION_SETS
from assay.engine.runtime.native.library import load, native
from assay.engine.runtime.products import native_selftest
from assay.engine.runtime.products.native_plan import (
    INTEGER,
    POINTER,
    DotPlan,
    DotSide,
    checker,
    is_readable,
    runs,
    sums_memory,
    table,
)
from assay.engine.runtime.products.packed_pool import PackedPool
from assay.engine.runtime.values.dtypes import fill_tensor
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Dot, Operand
from assay.protocol.program.program import Program
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.types import DType

UNIT = "dot"

_AMX = "amx"

_PANEL, _RED_BLOCK = 16, 32
"""Rows, and terms, that the kernels look at together; equal to `dot.h`."""

_LINE = 64
"""Bytes: what is packed begins at a multiple."""
_ONE_THREAD = 1 << 19
"""Products of fewer multiplications (about 10 us) are not worth a second thread."""

_CHECKED_AT_ONCE = 1 << 19
"""Sums (f64) that a check holds at a time: all those of a large product would be 5 % of the memory of a step."""

Dims = tuple[int, ...]
ProductValues = tuple[Tensor, Tensor, Tensor, Tensor]
Own = tuple[bool, bool]


class DotKernels:
    """The kernels for one instruction set. tiles: whether AMX is used where it fits; pairs: nothing but pairs is.

    On ARM tiles are made of vectors, and always used where they fit.
    """

    def __init__(self, handle: ctypes.CDLL, instruction_set: str, *, tiles: bool, pairs: bool = False) -> None:
        self.instruction_set, self.tiles, self.pairs = instruction_set, tiles, pairs
        self._handle = handle
        self.run = handle.assay_dot
        self.run.argtypes, self.run.restype = [POINTER] * 7 + [INTEGER], INTEGER
        self.prepare = handle.assay_dot_prepare
        self.prepare.argtypes, self.prepare.restype = [POINTER], None
        self.keep, has = handle.assay_dot_keep, handle.assay_dot_has
        self.keep.argtypes, self.keep.restype = [POINTER] * 4, INTEGER
        has.argtypes, has.restype = [INTEGER], INTEGER
        self.variants = tuple(
            variant
            for variant in NativeVariant
            if variant is NativeVariant.PAIRS or (not pairs and (tiles or self._unit(variant) != _AMX) and has(variant))
        )
        runtime = Path(torch.__file__).parent / "lib" / "libgomp.so.1"
        if runtime.exists():
            handle.assay_set_team.argtypes, handle.assay_set_team.restype = [POINTER], None
            handle.assay_set_team(ctypes.cast(ctypes.CDLL(str(runtime)).GOMP_parallel, POINTER))

    def product_variant(self, pa: int, pb: int, terms: int) -> str:
        """The name of the product for these precisions: how many products of digits, and what instructions."""
        variant = self.variant(pa, pb, terms)
        count = limits.digits(variant, pa).count * limits.digits(variant, pb).count
        kind = "int16" if variant is NativeVariant.PAIRS else "int8"
        return f"{kind}x{count}/{self._unit(variant)}"

    def _unit(self, variant: NativeVariant) -> str:
        """Whose instructions multiply: of tiles on x86 AMX's."""
        is_amx = variant is NativeVariant.TILES and INSTRUCTION_SETS[self.instruction_set].machine == "x86_64"
        return _AMX if is_amx else self.instruction_set

    def named(self, product_variant: str) -> NativeVariant:
        """How a product variant of that name multiplies."""
        kind, _, unit = product_variant.partition("/")
        if kind.startswith("int16"):
            return NativeVariant.PAIRS
        of_bytes = (NativeVariant.BYTES, NativeVariant.TILES)
        return next(v for v in of_bytes if v in self.variants and self._unit(v) == unit)

    def on(self, product_variant: str) -> DotKernels:
        """The same where all products that fit a product variant are computed by it, the others by pairs of i16."""
        return DotKernels(
            self._handle,
            self.instruction_set,
            tiles=product_variant.endswith(_AMX),
            pairs=product_variant.startswith("int16"),
        )

    def refuses(self, pa: int, pb: int, terms: int) -> bool:
        """Whether no variant of these kernels is exact for so many terms of these precisions."""
        return terms < 1 or limits.fastest_variant(pa, pb, terms, self.variants) is None

    def most_terms(self, pa: int, pb: int) -> int:
        """The most terms of any product of these precisions; 0 where there is none."""
        return max(limits.native_terms(variant, pa, pb) for variant in self.variants)

    def variant(self, pa: int, pb: int, terms: int) -> NativeVariant:
        """How digits of these precisions are multiplied. Raises InvariantError for what these kernels refuse."""
        found = limits.fastest_variant(pa, pb, terms, self.variants)
        if found is None:
            raise InvariantError(f"No native product of {terms} terms of {pa} by {pb} bits is exact.")
        return found


@cache
def kernels() -> DotKernels | None:
    """The kernels for this machine; None where they are not built (`native("dot").reason`). `ASSAY_AMX=off`: no AMX."""
    found = native(UNIT)
    if found.handle is None:
        return None
    return DotKernels(
        found.handle, found.instruction_set, tiles=os.environ.get("ASSAY_AMX", "").lower() not in ("off", "0", "no")
    )


def kernels_of(instruction_set: str, *, tiles: bool = False) -> DotKernels:
    """The kernels for a named instruction set, for tests and conformance. Raises OSError when they are not built."""
    return DotKernels(load(UNIT, instruction_set), instruction_set, tiles=tiles)


class NativeDot:
    """One dot node as a plan of the kernels; `name` is its product variant.

    groups: the dims that both operands, only A, and only B depend on. own: whether the exponents of A, and of B, are
    those of the very rows, by a rowexp node that no hook replaces. threaded: whether threads share it; by its size
    unless given.
    """

    def __init__(
        self,
        found: DotKernels,
        program: Program,
        node: Dot,
        groups: Sequence[Sequence[int]],
        own: Own = (False, False),
        *,
        threaded: bool | None = None,
    ) -> None:
        dims, red = node.spec.dims, node.red
        batch, rows, columns = (tuple(g) for g in groups)
        a, ea, pa = node.a, node.exponent_a, node.precision_a
        b, eb, pb = node.b, node.exponent_b, node.precision_b
        # The kernels store runs of columns: a result whose rows lie closer together is computed the other way round.
        self._flipped = bool(rows) and (not columns or rows[-1] > columns[-1])
        if self._flipped:
            rows, columns, own, a, ea, pa, b, eb, pb = columns, rows, own[::-1], b, eb, pb, a, ea, pa
        self.name = found.product_variant(node.precision_a, node.precision_b, prod(red))
        self._kernels, self._dims = found, dims
        self._sizes = tuple(prod(dims[d] for d in g) for g in (batch, rows, columns))
        self._sources = a.node, ea.node, b.node, eb.node
        self._threaded = prod(self._sizes) * prod(red) >= _ONE_THREAD if threaded is None else threaded
        self._kept: list[Tensor] = []
        out = View(0, contiguous_strides(dims), (0,) * len(dims), dims)
        variant = found.variant(pa, pb, prod(red))
        digits = limits.digits(variant, pa), limits.digits(variant, pb)
        self._plan = DotPlan(
            *self._sizes,
            prod(red),
            self._side(program, a, ea, pa, digits[0], (batch, rows), node),
            self._side(program, b, eb, pb, digits[1], (batch, columns), node),
            *(self._keep(table(out, dims, g)) for g in (batch, rows, columns)),
            self._keep(torch.zeros(-(-self._sizes[2] // _PANEL), dtype=torch.uint8)),
            variant,
            (INTEGER * 4)(*runs(*digits)) if variant is NativeVariant.PAIRS else (INTEGER * 4)(),
            limits.ROOM,
            variant is NativeVariant.TILES and prod(red) <= limits.tiles_joined(pa, pb),
        )
        self._plan.a.own_exponents, self._plan.b.own_exponents = own
        self._address = ctypes.addressof(self._plan)
        found.prepare(self._address)

    def for_c(self) -> tuple[int, int, tuple[int, ...], bool]:
        """What a caller in C needs: function, plan, the nodes of a, eA, b, eB, and whether threads are worth it."""
        function = ctypes.cast(self._kernels.run, POINTER).value
        assert function is not None
        return function, self._address, self._sources, self._threaded

    @property
    def columns(self) -> tuple[int, int]:
        """The nodes of the operand that is packed whole, and of its exponents."""
        return self._sources[2:]

    def keep_columns(self, x: Tensor, e: Tensor, pool: PackedPool) -> bool:
        """Pack that operand, x f32 with exponents e, which all later calls give; False where it has several batches.
        Of equal bytes a pool keeps one copy.
        """
        if self._sizes[0] != 1:
            return False
        exponents = e.to(torch.int32)
        count = self._kernels.keep(self._address, x.data_ptr(), exponents.data_ptr(), 0)
        memory = torch.zeros(count + _LINE, dtype=torch.uint8)  # what lies between, too, is the same for all
        place = memory.data_ptr() + -memory.data_ptr() % _LINE
        self._kernels.keep(self._address, x.data_ptr(), exponents.data_ptr(), place)
        memory = pool.one_of(memory, place - memory.data_ptr(), count)
        self._plan.kept = -memory.data_ptr() % _LINE + self._keep(memory)
        return True

    def run(self, values: list[Tensor], out: Tensor | None = None) -> Tensor:
        """The node's value; in `out` (f32 of the node's dims, contiguous) if given."""
        out = torch.empty(self._dims) if out is None else out
        self._call(values, out.data_ptr(), 0)
        return out

    def sums(self, values: list[Tensor]) -> Tensor:
        """The exact sums of the same products, f64 [B, M, N] unflipped; anything where a row is not finite."""
        raw_BMN = torch.empty(self._sizes, dtype=torch.float64)
        self._call(values, 0, raw_BMN.data_ptr())
        return raw_BMN.transpose(1, 2) if self._flipped else raw_BMN

    def checked(self, values: list[Tensor], key: tuple[int, int], out: Tensor | None = None) -> Tensor | None:
        """The node's value from sums that pass Freivalds' check, piece by piece; None when they do not.

        key: of the random numbers that weigh the sums, two words. out: as in `run`; anything after a failure.

        Raises:
            LookupError: the kernels of the check are not built.
        """
        check = checker()
        if check is None:
            raise LookupError(native("check").reason)
        out = torch.empty(self._dims) if out is None else out
        held = self._operands(values)  # exponents of storage types are copies, which must outlive the calls
        operands = [t.data_ptr() for t in held]
        words = (ctypes.c_uint32 * 2)(*key)
        for piece in self._pieces:
            raw = sums_memory(piece.batches * piece.m * piece.n)  # f64 of at least so many, row-major
            self._call(values, 0, raw.data_ptr(), piece)
            found = check(ctypes.addressof(piece), *operands, raw.data_ptr(), ctypes.addressof(words), out.data_ptr())
            if found == 2:
                raise MemoryError("There is no memory for the check of a product.")
            if found:
                return None
        return out

    @cached_property
    def _pieces(self) -> list[DotPlan]:
        """The product as products of some batches, or of some rows of one batch."""
        batches, m, n = self._sizes
        parts = -(-m * n // _CHECKED_AT_ONCE)
        rows = m if parts == 1 else -(-m // parts // _PANEL) * _PANEL
        together = max(1, _CHECKED_AT_ONCE // (m * n))
        return [
            self._piece(batch, min(together, batches - batch), row, min(rows, m - row))
            for batch in range(0, batches, together)
            for row in range(0, m, rows)
        ]

    def _piece(self, batch: int, batches: int, row: int, rows: int) -> DotPlan:
        """The plan of some batches and rows: the same tables from another place on; row is a multiple of 16."""
        part = DotPlan.from_buffer_copy(self._plan)
        word = ctypes.sizeof(INTEGER)
        part.batches, part.m = batches, rows
        part.c_batch += batch * word
        part.c_row += row * word
        for side in (part.a, part.b):
            side.batch += batch * word
            side.e_batch += batch * word
        part.a.own += row * word
        part.a.e_own += row * word
        part.a.own_kind += row // _PANEL
        return part

    def _operands(self, values: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        a, ea, b, eb = (values[j] for j in self._sources)
        return a, ea.to(torch.int32), b, eb.to(torch.int32)

    def _call(self, values: list[Tensor], out: int, raw: int, piece: DotPlan | None = None) -> None:
        a, ea, b, eb = self._operands(values)
        plan = self._address if piece is None else ctypes.addressof(piece)
        threads = torch.get_num_threads() if self._threaded else 1
        failed = self._kernels.run(plan, a.data_ptr(), ea.data_ptr(), b.data_ptr(), eb.data_ptr(), out, raw, threads)
        if failed:
            raise MemoryError("There is no memory for the packed operands of a product.")

    def _side(
        self, program: Program, x: Operand, e: Operand, p: int, digits: Digits, groups: tuple[Dims, ...], node: Dot
    ) -> DotSide:
        """One operand: offsets i64 [B], [M] (or [N]) and [K] of its elements, [B] and [M] of its exponents, and flags.

        The flags, u8 per panel of rows and per block of terms, are for the kernels to write.
        """
        batch, own = groups
        dims, over = node.spec.dims, node.spec.dims + node.red
        terms = tuple(range(len(dims), len(over)))
        exponent_type = program.specs[e.node].dtype
        return DotSide(
            self._keep(table(x.view, over, batch, x.view.offset)),
            self._keep(table(x.view, over, own)),
            self._keep(table(x.view, over, terms)),
            self._keep(table(e.view, dims, batch, e.view.offset)),
            self._keep(table(e.view, dims, own)),
            self._keep(torch.zeros(-(-prod(dims[d] for d in own) // _PANEL), dtype=torch.uint8)),
            self._keep(torch.zeros(-(-prod(node.red) // _RED_BLOCK), dtype=torch.uint8)),
            int(fill_tensor(DType.F32, x.view.fill).view(torch.int32)),
            int(fill_tensor(exponent_type, e.view.fill).to(torch.int32)),
            p,
            digits.count,
            digits.shift,
            False,
        )

    def _keep(self, t: Tensor) -> int:
        """The address of a table, which lives as long as the plan."""
        self._kept.append(t)
        return t.data_ptr()


def native_dot(
    found: DotKernels, program: Program, node: Dot, groups: Sequence[Sequence[int]], own: Own = (False, False)
) -> NativeDot | None:
    """The node on these kernels; None where they do not fit or failed their self-test."""
    if not is_readable(program, node):
        return None
    pa, pb, terms = node.precision_a, node.precision_b, prod(node.red)
    if found.refuses(pa, pb, terms) or failure(found, pa, pb, found.product_variant(pa, pb, terms)):
        return None
    return NativeDot(found, program, node, groups, own)


@cache
def failure(found: DotKernels, pa: int, pb: int, product_variant: str) -> str:
    """What this product gets wrong on this machine; empty when it passes its self-test."""
    found, most = found.on(product_variant), found.most_terms(pa, pb)
    for own, cases in ((False, native_selftest.cases), (True, native_selftest.own_cases)):
        for name, operands in cases(pa, pb, most):
            sums, rounded = native_selftest.expected(operands, pa, pb)
            wrong = _wrong(found, operands, (None if own else sums, rounded), (pa, pb), own)
            if wrong:
                return f"{wrong} of {product_variant} is wrong for {name}"
    # In a thread of its own, whose memory for packed operands goes with it.
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(_failure_at_the_limits, found, pa, pb, product_variant).result()


def _failure_at_the_limits(found: DotKernels, pa: int, pb: int, product_variant: str) -> str:
    variant = found.named(product_variant)
    for terms in limits.edges(variant, pa, pb):
        wrong = wrong_at_the_limit(found, variant, pa, pb, terms)
        if wrong:
            return f"{wrong} of {product_variant} is wrong at {terms} terms"
    return ""


def wrong_at_the_limit(found: DotKernels, variant: NativeVariant, pa: int, pb: int, terms: int) -> str:
    """What is wrong of the sums of so many of the largest operands; empty when nothing is."""
    operands, sums = native_selftest.at_the_limit(variant, pa, pb, terms)
    return _wrong(found, operands, (sums, None), (pa, pb), False)


def _wrong(
    found: DotKernels, operands: ProductValues, results: Sequence[Tensor | None], p: tuple[int, int], own: bool
) -> str:
    """What of a product differs from the expected sums and results. own: exponents are those of the very rows."""
    shape = (*operands[0].shape[:2], operands[2].shape[1], operands[0].shape[2])
    program, node = native_selftest.matrix_program(shape, *p)
    product = NativeDot(found, program, node, ((0,), (1,), (2,)), (own, own), threaded=False)
    values, (sums, rounded) = list(operands), results
    if sums is not None and not torch.equal(product.sums(values).to(torch.int64), sums):
        return "the product"
    if rounded is None or torch.equal(product.run(values).view(torch.int32), rounded.view(torch.int32)):
        return ""
    return "the rounding"
