"""What a program takes of a machine's memory, estimated before anything of it is allocated.

A program of a few kilobytes may be well-formed and ask for terabytes: an actor that finds that out while running it has
staked already. The estimate is of the values that live at once, and of what the node that is running needs beside them;
it is made to be above the truth, and leaves out what the allocator of C keeps between its blocks. `ASSAY_MEMORY` says
how much may be used (bytes, or with MiB or GiB behind); by default it is what the machine, or the control group of the
process and each one above it, has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path, PurePosixPath

from assay.engine.runtime.stock.reduce import ranks_by_sorting, scatters_by_comparison
from assay.protocol.errors import UserError
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
    operands,
    reads,
)
from assay.protocol.program.program import Program

MOST_INDICES = 1 << 59
"""Of an index space with its zeros left out: torch counts bytes and strides in 63 bits, also those of nothing."""

UNBOUNDED = 1 << 62
"""Bytes that no machine has."""

_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

_TERM = 40
"""Bytes per term where stock torch writes terms down: as they are, quantized in f64, as i64, multiplied, masked."""

_WORD = 8
"""Bytes of an offset, an i64, an f64."""


def limit(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> int:
    """Bytes that programs may take here. root: the folder of the machine's /proc and /sys.

    Raises:
        UserError: BadMemoryLimit.
    """
    named = (os.environ if environment is None else environment).get("ASSAY_MEMORY", "")
    if named:
        found = re.fullmatch(r"(\d{1,18}) ?(|KiB|MiB|GiB|TiB)", named)
        if found is None:
            raise UserError(
                f"ASSAY_MEMORY is {named!r}, which is no amount of memory.",
                code="BadMemoryLimit",
                remedy="Give bytes, or a number with MiB or GiB behind it, such as 16GiB.",
            )
        return int(found[1]) * _UNITS[found[2]]
    return min((os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_of_groups(root)))


def _of_groups(root: Path) -> Iterator[int]:
    """The limits of the control groups that this process is in, up to the root, where there are any.

    A container may be told the path that its group has on the machine, and see that group as the root.
    """
    groups = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    # A line is NUMBER:CONTROLLERS:PATH, and of version 2 the one without controllers.
    own = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1)}
    of_1 = next((path for controllers, path in own.items() if "memory" in controllers.split(",")), "")
    for base, path, name in (
        (groups, own.get("", ""), "memory.max"),
        (groups / "memory", of_1, "memory.limit_in_bytes"),
    ):
        group = PurePosixPath(path.lstrip("/"))
        for above in (group, *group.parents):
            try:
                yield int((base / above / name).read_text(encoding="ascii"))
            except (OSError, ValueError):
                continue  # no such file, or "max"


def check(program: Program, *, stock: Collection[int] | None = None, most: int | None = None) -> int:
    """The bytes that a well-formed program takes. stock: the nodes that stock torch computes; all unless given.

    Raises:
        UserError: ProgramTooLarge, before anything is allocated.
    """
    most = limit() if most is None else most
    for k, node in enumerate(program.nodes):
        for dims in (node.spec.dims, *(over for _, over in operands(node) if not isinstance(node, Gather))):
            if prod(d for d in dims if d) > MOST_INDICES:
                raise UserError(
                    f"Node {k} is read over {list(dims)}, more than any machine counts.",
                    code="ProgramTooLarge",
                    remedy="Refuse the run that names it.",
                )
    peak, at = needed(program, stock)
    if peak > most:
        raise UserError(
            f"The program takes about {_as_text(peak)} of memory at node {at}; {_as_text(most)} may be used here.",
            code="ProgramTooLarge",
            remedy="Refuse the run that names it, use a larger machine, or raise ASSAY_MEMORY if it is set.",
            needed=peak,
            most=most,
        )
    return peak


def needed(program: Program, stock: Collection[int] | None = None) -> tuple[int, int]:
    """An upper estimate of the bytes that are in use at once, and the node at which they are."""
    nodes, specs = program.nodes, program.specs
    last = list(range(len(nodes)))
    for k, node in enumerate(nodes):
        for j in reads(node):
            last[j] = k
    ends: dict[int, int] = {}
    # Inputs belong to the caller; constants stay as bytes and as a tensor; outputs stay to the end.
    live = sum(n.spec.nbytes * (2 if isinstance(n, Const) else 1) for n in nodes if isinstance(n, Input | Const))
    peak, where = live, 0
    for k, node in enumerate(nodes):
        if isinstance(node, Input | Const | Output):
            continue
        live += specs[k].nbytes
        work = _stock_work(node) if stock is None or k in stock else _native_work(node)
        if live + work > peak:
            peak, where = live + work, k
        ends[last[k]] = ends.get(last[k], 0) + (0 if isinstance(nodes[last[k]], Output) else specs[k].nbytes)
        live -= ends.pop(k, 0)
    return peak, where


def left_to_stock(program: Program) -> frozenset[int]:
    """The nodes that stock torch computes beside native kernels, as far as that matters here."""
    return frozenset(k for k, n in enumerate(program.nodes) if isinstance(n, Rank | Gather) or _writes_all(n))


def _writes_all(node: Node) -> bool:
    """Whether stock torch writes down every term of every element of a sum by index."""
    return isinstance(node, ScatterSum) and scatters_by_comparison(node)


def _depends(operand: Operand, d: int, size: int) -> bool:
    view = operand.view
    return (size > 1 and view.strides[d] != 0) or view.lo[d] > 0 or view.hi[d] < size


def _stock_work(node: Node) -> int:
    """Bytes beside the value: what is read through bounds or backwards is copied, reductions write their terms down."""
    numel = node.spec.numel
    match node:
        case Map():
            return _WORD * numel * (1 + sum(_is_copied(o, node.spec.dims) for o in node.operands))
        case Dot() | ScatterSum() if not _writes_all(node):
            return _TERM * _read(node) + 4 * _WORD * numel
        case RowExp() | Max():
            return 2 * _WORD * numel * node.terms
        case Rank() if ranks_by_sorting(node):
            return 6 * _WORD * numel
        case Sum() | Dot() | ScatterSum() | Rank():
            return _TERM * numel * node.terms + 4 * _WORD * numel
        case Random() | Gather():
            return 6 * _WORD * numel
        case _:
            return 0


def _native_work(node: Node) -> int:
    """Bytes beside the value: tiles are small; products are packed, scattered terms are put in order."""
    match node:
        case Dot():
            # Packed digits and the tables of offsets, per element that is read; a panel is 16 rows at least.
            return 10 * _WORD * _read(node) + 32 * _WORD * node.terms
        case ScatterSum():
            return _WORD * (2 * node.terms + 4 * node.spec.numel + node.spec.dims[0])
        case _:
            return 0


def _read(node: Dot | ScatterSum) -> int:
    """Elements of the operands as they are kept: each over what itself or its exponent depends on."""
    dims, terms = node.spec.dims, node.terms
    if isinstance(node, ScatterSum):
        return terms * prod(dims[1:])
    sides = [
        [any(_depends(o, d, n) for o in pair) for d, n in enumerate(dims)]
        for pair in ((node.a, node.exponent_a), (node.b, node.exponent_b))
    ]
    return sum(terms * prod(n for n, s in zip(dims, side, strict=True) if s) for side in sides)


def _is_copied(operand: Operand, dims: Sequence[int]) -> bool:
    """Whether stock torch reads an operand into memory of its own."""
    view = operand.view
    return min(view.strides, default=0) < 0 or any(
        lo > 0 or hi < n for n, lo, hi in zip(dims, view.lo, view.hi, strict=True)
    )


def _as_text(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GiB"
