"""Nodes whose elements are computed one by one: maps, gathers and random words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import arena, backend, scalar_text
from assay.engine.runtime.triton.reading import (
    LOADED,
    NARROW,
    STORED,
    Span,
    constant_text,
    fill_text,
    is_narrow,
    load_lines,
    place,
)
from assay.engine.runtime.values.dtypes import TORCH
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.program.nodes import Gather, Map, Random
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.types import DType

_NAN = 0x7FC00000

FromTensors = Callable[[Sequence[Tensor]], Tensor]
"""Computes a node's value from the tensors that its kernel reads."""


def functions() -> dict[str, Any]:
    """What generated kernels call, by name."""
    from assay.engine.runtime.triton.kernels import arith, scalar

    names = {
        arith: ("bits_of", "from_bits", "canonical", "exponent_of_bits", "quantized", "finished", "finished_or_nan"),
        scalar: (
            *("smaller", "larger", "nearest", "nearest_small", "below", "scale2", "scale2_near"),
            *("to_i32", "to_i32_small", "to_i32_whole", "to_i64", "order_of", "philox_word"),
        ),
    }
    return {name: getattr(module, name) for module, listed in names.items() for name in listed}


def block() -> int:
    """Elements of one program: the interpreter takes a block at a time, a GPU's threads share one."""
    return 1 << 14 if backend.is_interpreted() else 1 << 10


def memory(t: Tensor) -> Tensor:
    """The same memory in a type that kernels load and store."""
    if t.dtype is torch.bool:
        return t.view(torch.uint8)
    return t.view(torch.int16) if t.dtype is torch.uint16 else t


def empty(dims: Sequence[int], dtype: DType) -> Tensor:
    """Memory for a node's value, where kernels leave it."""
    return arena.take(dims, TORCH[dtype])


def over(number: str, dims: Sequence[int], narrow: bool) -> list[str]:
    """Lines that number the elements of a program's block and say which there are."""
    start = "tl.program_id(0)" if narrow else "tl.program_id(0).to(tl.int64)"
    return [f"{number} = {start} * BLOCK + tl.arange(0, BLOCK)", f"live = {number} < {prod(dims)}"]


def text_of(arguments: str, body: Sequence[str], name: str = "kernel") -> str:
    """A kernel, or a part of one, with these arguments."""
    return "\n    ".join([f"def {name}({arguments}):", *body]) + "\n"


def map_text(
    dims: Sequence[int], dtype: DType, reads: Sequence[tuple[DType, View]], program: ScalarProgram | None
) -> str:
    """The kernel of a map, or of a copy through a view where there is no scalar program."""
    span = Span("o", tuple(dims))
    narrow = all(is_narrow(view, dims) for _, view in reads) and prod(dims) < NARROW
    body = over("o", dims, narrow)
    registers = [f"x{i}" for i in range(len(reads))]
    for i, (element, view) in enumerate(reads):
        body += load_lines(f"x{i}", f"p{i}", element, view, "live", span)
    if program is not None:
        body += scalar_text.lines(program, registers, "r")
    body.append(f"tl.store(out + o, {STORED[dtype].format(registers[-1])}, mask=live)")
    pointers = "".join(f"p{i}, " for i in range(len(reads)))
    return text_of(f"{pointers}out, BLOCK: tl.constexpr", body)


def launcher(text: str, dims: tuple[int, ...], dtype: DType) -> FromTensors:
    """Runs a kernel of `map_text`'s kind over all elements of dims."""
    kernel, count = backend.kernel_of(text, "kernel", functions()), prod(dims)
    size = block()

    def run(sources: Sequence[Tensor]) -> Tensor:
        out = empty(dims, dtype)
        if count:
            backend.launch(kernel, (-(-count // size),), *map(memory, sources), memory(out), BLOCK=size)
        return out

    return run


def scalar_map(program: Program, node: Map) -> Kernel:
    """The scalar program of the node on its operands."""
    types = [program.specs[o.node].dtype for o in node.operands]
    scalar = ScalarProgram.decode(node.code, types)
    reads = [(t, o.view) for t, o in zip(types, node.operands, strict=True)]
    run = launcher(map_text(node.spec.dims, node.spec.dtype, reads, scalar), node.spec.dims, node.spec.dtype)
    sources = [o.node for o in node.operands]
    return lambda values: run([values[j] for j in sources])


def copy(dtype: DType, view: View, dims: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """What a view reads, element by element, in memory of its own and in the type of a register."""
    run = launcher(map_text(dims, dtype.value_type, [(dtype, view)], None), tuple(dims), dtype.value_type)
    return lambda source: run([source])


def gather(program: Program, node: Gather) -> Kernel:
    """table[index[o], o]; an index outside [0, size) gives NaN (f32) or 0, an element outside the view its fill."""
    dims, dtype, table = node.spec.dims, node.spec.dtype, node.table
    index_type = program.specs[node.index.node].dtype
    span, size = Span("o", dims), min(node.size, 1 << 31)
    narrow = is_narrow(table.view, (size, *dims)) and is_narrow(node.index.view, dims)
    body = over("o", dims, narrow)
    body += load_lines("at", "index", index_type, node.index.view, "live", span)
    body.append(f"row = (at + tl.zeros([BLOCK], {'tl.int32' if narrow else 'tl.int64'}))")
    body.append(f"known = (row >= 0) & (row < {size})")
    found = place(table.view, Span("row", (size,)), span)
    fill = fill_text(dtype, table.view.fill)
    if found.address is None:
        body.append(f"x = {fill}")
    else:
        inside = "known" if found.inside is None else f"known & {found.inside}"
        loaded = f"tl.load(table + ({found.address}), mask=live & {inside}, other=0)"
        body += [f"inside = {inside}", f"x = tl.where(inside, {LOADED[dtype].format(loaded)}, {fill})"]
    missing = constant_text(dtype.value_type, _NAN if dtype is DType.F32 else 0)
    body.append(f"x = tl.where(known, x, {missing})")
    body.append(f"tl.store(out + o, {STORED[dtype].format('x')}, mask=live)")
    run = launcher(text_of("table, index, out, BLOCK: tl.constexpr", body), dims, dtype)
    return lambda values: run([values[table.node], values[node.index.node]])


def seed_lines() -> list[str]:
    """Lines that load what Philox words are drawn under: both words of the key and of the step."""
    return [
        f"{name} = tl.load({source} + {i} + tl.arange(0, 1)).to(tl.uint32, bitcast=True)"
        for source, names in (("key", ("k0", "k1")), ("step", ("low", "high")))
        for i, name in enumerate(names)
    ]


def random(node: Random) -> Kernel:
    """Philox words under key and step, both i32 [2]."""
    dims = node.spec.dims
    stream = (node.stream & 0xFFFFFFFF) - (1 << 32) * (node.stream >> 31 & 1)
    body = [
        *over("o", dims, False),
        f"stream = tl.full([1], {stream}, tl.int32).to(tl.uint32, bitcast=True)",
        *seed_lines(),
        "tl.store(out + o, philox_word(o, stream, low, high, k0, k1), mask=live)",
    ]
    run = launcher(text_of("key, step, out, BLOCK: tl.constexpr", body), dims, DType.I32)
    return lambda values: run([values[node.key], values[node.step]])
