"""What a compiler makes of the kernels, for devices that need not be there: integer tensor cores, no rounding added.

`python -m assay.engine.runtime.triton.assembly 80 90 gfx942` prints, per target (compute capability, or AMD's name) and
kernel, what of its text matters, as JSON; `--only NAME`, also several times, for kernels of these names. Without the
interpreter: kernels are compiled, none is run.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from assay.engine.runtime.products.freivalds import ProductWatch
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import backend, nodes, products, reductions, sha256, words
from assay.engine.runtime.triton.checks import ProductChecks
from assay.engine.runtime.triton.groups import MapGroups
from assay.engine.runtime.triton.routes import Carrier, route
from assay.engine.runtime.triton.row_kernels import row_kernel
from assay.engine.runtime.triton.rows import LONGEST, row_groups
from assay.engine.runtime.triton.tails import CausalRows
from assay.engine.runtime.triton.tiles import VirtualKernels
from assay.engine.runtime.triton.triangles import Triangles
from assay.engine.runtime.triton.virtual import virtual_nodes
from assay.engine.runtime.values.dtypes import TORCH
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import SIGNATURES, Instruction, Op, ScalarProgram
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Dot, Output
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

INTEGER_PRODUCT = re.compile(r"mma\S*\.s32\.s8\.s8|tcgen05\.mma\S*kind::i8|v_mfma_i32_\S+_i8")
"""Products of i8 with i32 accumulators on tensor cores: mma.sync, wgmma, tcgen05; AMD's."""

FORBIDDEN = re.compile(r"\bfma\.\S+|\bmad\.\S*f\d+\S*|\S+\.ftz\S*|\S+\.approx\S*|\bdiv\.full\S*|\S+\.f64\b")
"""What rounds once for two operations, flushes, approximates, or is slow on most devices: binary64."""

FORBIDDEN_AMD = re.compile(
    r"\bv_\S+_f64\S*|denorm_mode_32 [012]\b|\bv_mad_\S*f\d+\S*|\bv_mac_\S+|\bv_(?:exp|log|sin|cos)_\S+"
)
"""The same on AMD, fused operations apart: there they are also how a division is rounded correctly (`fused_amd`)."""

_TYPES = {
    torch.float32: "*fp32",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.int16: "*i16",
    torch.int8: "*i8",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.uint8: "*u8",
}


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """One kernel for one target: how many integer products its text has, what it must not have, and the bytes that its
    warps share.
    """

    target: str
    kernel: str
    integer_products: int
    forbidden: list[str]
    lines: int
    shared: int


def findings(target: str, only: Collection[str] = ()) -> Iterator[CompiledKernel]:
    """Every kind of kernel, compiled for a compute capability (80, 90, ...) or a device of AMD (gfx942, ...).

    only: names of those that are compiled; all without any.
    """
    for name, launch in launches():
        if only and name not in only:
            continue
        made = compiled(launch, target)
        text = str(made.asm["amdgcn" if is_amd(target) else "ptx"])
        found = sorted(_forbidden_amd(text) if is_amd(target) else set(FORBIDDEN.findall(text)))
        counts = len(INTEGER_PRODUCT.findall(text)), found, len(text.splitlines())
        yield CompiledKernel(target, name, *counts, made.metadata.shared)


def is_amd(target: str) -> bool:
    """Whether a target is a device of AMD."""
    return target.startswith("gfx")


def _forbidden_amd(text: str) -> set[str]:
    return set(FORBIDDEN_AMD.findall(text)) | fused_amd(text)


def fused_amd(text: str) -> set[str]:
    """Fused multiply-adds beyond those by which AMD's compiler rounds correctly: five refine a quotient, two a square
    root. A factor of 2^32 or -2^32 is exact: by them a quotient of i64 begins, and an f32 gives an integer's low half.
    """
    fused = re.findall(r"^\s+(v_fmac?_f32\S*) (?!.*(?:0x[4c]f800000|, s\d+, \|v\d+\|$))", text, re.MULTILINE)
    meant = 5 * len(re.findall(r"\bv_div_fixup_f32", text)) + 2 * len(re.findall(r"\bv_sqrt_f32", text))
    return set(fused) if len(fused) > meant else set()


def launches() -> Iterator[tuple[str, backend.Launch]]:
    """Products of a usual shape in both tiers and by every carrier, and a kernel of each other kind."""
    for p, carrier in ((14, Carrier.I8), (8, Carrier.I8), (14, Carrier.F16), (8, Carrier.BF16)):
        found = route(p, p, carrier)
        assert found is not None
        program, node, values = _matrices(1024, 768, 768, p, p)
        for packed in (False, True):
            with backend.recorded() as seen:
                check = ProductChecks(program, ProductWatch((len(program.nodes) - 2,))), len(program.nodes) - 2
                products.by_digits(program, node, found, ((), (0,), (1,)), packed=packed, check=check)(values)
            yield f"{found.name} of {p} bits{', packed' if packed else ''}", seen[-1]
            first = "planes of B's, and weighed rows," if packed else "weighed rows"
            second = "planes of A's, and weighed terms," if packed else "weighed terms"
            yield f"{first} of {p} bits for {found.name}", seen[0]
            yield f"{second} of {p} bits for {found.name}", seen[1]
    yield from _causal_launches()
    yield from _grouped_launches()
    yield "causal rows", _causal_rows()
    yield from _tile_launches()
    program, node, values = _matrices(64, 64, 96, 24, 24)
    with backend.recorded() as seen:
        reductions.dot(program, node)(values)
    yield "dot by element", seen[-1]
    with backend.recorded() as seen:
        sha256.tree_roots(torch.zeros(5000, dtype=torch.uint8), sha256.tables([(0, 5000)]))
    yield "sha256 of leaves", seen[0]
    yield "sha256 of a level", seen[1]
    with backend.recorded() as seen:
        words.words(torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int32), 7, 5000)
    yield "words of a draw", seen[0]
    program, values = _others()
    for each in program.nodes:
        with backend.recorded() as seen:
            made = nodes.kernel(program, each)
            if made is not None:
                made[0](values)
        for launch in seen:
            yield each.family.name.lower(), launch


def _causal_launches() -> Iterator[tuple[str, backend.Launch]]:
    """Products that leave out what is above a diagonal: scores that a mask of numbers drops, what they multiply."""
    size, width = 512, 64
    b = ProgramBuilder([[TensorSpec(DType.F32, (size, width))]])
    x, mask = b.input(0, 0), b.const(TensorSpec(DType.F32, (size, size)), _ones_below(size))
    scores = b.matmul(x, x, 14, 14)
    s = ScalarBuilder([DType.F32, DType.F32])
    kept = b.map(s.build(s.mul(s.operand(0), s.operand(1))), [scores, mask], (size, size))
    turned = x.permute(1, 0)
    ends = [
        b.matmul(kept, turned, 14, 14),
        b.matmul(kept.permute(1, 0), turned, 14, 14),
        b.sum(kept, 1, b.rowexp(kept, 1)),
    ]
    program = b.build([ends])
    values = [torch.zeros(n.spec.dims, dtype=TORCH[n.spec.dtype]) for n in program.nodes]
    above, found = Triangles(program), route(14, 14)
    assert found is not None
    for k, node in enumerate(program.nodes):
        if isinstance(node, Dot):
            check = ProductChecks(program, ProductWatch((k,))), k
            for packed in (False, True):
                with backend.recorded() as seen:
                    products.by_digits(
                        program, node, found, ((), (0,), (1,)), packed=packed, check=check, above=(above, k)
                    )(values)
                made = seen[-1].constants
                what = f"gap {made['GAP']}, cut {made['CUT_A']}"
                yield f"{found.name} of 14 bits, {what}{', packed' if packed else ''}", seen[-1]


def _grouped_launches() -> Iterator[tuple[str, backend.Launch]]:
    """A softmax by rows that a kernel holds, the same of rows that none does, and maps that share a kernel."""
    for name, rows, columns in (("rows together", 512, 1024), ("maps computed again", 64, 2 * LONGEST)):
        dims = rows, columns
        b = ProgramBuilder([[TensorSpec(DType.F32, dims)]])
        x = b.input(0, 0)
        most = b.max(x, 1).unsqueeze(1).expand(*dims)
        e = b.map(_of_two(lambda s, v, m: functions.exp(s, s.sub(v, m))), [x, most], dims)
        total = b.sum(e, 1).unsqueeze(1).expand(*dims)
        p = b.map(_of_two(lambda s, v, t: s.div(v, t)), [e, total], dims)
        program = b.build([[b.rowexp(p, 1)]])
        yield from ((name, launch) for launch in _of_groups(program))
    b = ProgramBuilder([[TensorSpec(DType.F32, (4096,))] * 2])
    w, g = b.input(0, 0), b.input(0, 1)
    v = b.map(_of_two(lambda s, w, g: s.add(s.mul(w, s.f32(0.9)), s.mul(g, g))), [w, g], (4096,))
    step = b.map(_of_two(lambda s, v, g: s.div(g, s.add(s.sqrt(v), s.f32(1e-8)))), [v, g], (4096,))
    yield from (("maps together", launch) for launch in _of_groups(b.build([[v, step]])))


def _causal_rows() -> backend.Launch:
    """A softmax of scores that are dropped above the diagonal, with exponents of its rows and columns."""
    dims = 512, 512
    b = ProgramBuilder([[TensorSpec(DType.F32, dims)]])
    mask = b.const(TensorSpec(DType.F32, dims), _ones_below(dims[0]))
    drop = _of_two(lambda s, v, m: s.select(s.lt(m, s.f32(0.5)), s.f32(-math.inf), v))
    scores = b.map(drop, [b.input(0, 0), mask], dims)
    most = b.max(scores, 1).unsqueeze(1).expand(*dims)
    e = b.map(_of_two(lambda s, v, m: functions.exp(s, s.sub(v, m))), [scores, most], dims)
    p = b.map(_of_two(lambda s, v, t: s.div(v, t)), [e, b.sum(e, 1).unsqueeze(1).expand(*dims)], dims)
    program = b.build([[p, b.rowexp(p, 1), b.rowexp(p.permute(1, 0), 1)]])
    (group,) = row_groups(program, range(len(program.nodes)), 1).values()
    tails = CausalRows(program, Triangles(program)).tails_of(group)
    values = [torch.zeros(n.spec.dims, dtype=TORCH[n.spec.dtype]) for n in program.nodes]
    with backend.recorded() as seen:
        row_kernel(program, group, group.members, tails=tails)(values)
    return seen[0]


def _tile_launches() -> Iterator[tuple[str, backend.Launch]]:
    """Readers of scores that are not stored: reductions of rows and of columns, products of both sides."""
    heads, size, width = 2, 256, 64
    specs = [TensorSpec(DType.F32, (heads, size, width))] * 2
    b = ProgramBuilder([specs])
    q, k = b.input(0, 0), b.input(0, 1)
    sides = [b.rowexp(x, 1) for x in (q, k)]
    dims = heads, size, size
    scores = b.dot(q.unsqueeze(2), k.unsqueeze(1), sides[0].unsqueeze(2), sides[1].unsqueeze(1), dims, (width,), 14, 14)
    s = ScalarBuilder([DType.F32])
    weights = b.map(s.build(functions.exp(s, s.operand(0))), [scores], dims)
    turned, columns = k.permute(0, 2, 1), weights.permute(0, 2, 1)
    e, down, across = b.rowexp(weights, 1), b.rowexp(columns, 1), b.rowexp(turned, 1)
    both, own = (heads, size, width), (heads, width, size)
    ends = {
        "a product by rows": b.dot(
            weights.unsqueeze(2), turned.unsqueeze(1), e.unsqueeze(2), across.unsqueeze(1), both, (size,), 22, 14
        ),
        "a product by columns": b.dot(
            turned.unsqueeze(2), columns.unsqueeze(1), across.unsqueeze(2), down.unsqueeze(1), own, (size,), 14, 22
        ),
        "a sum": b.sum(weights, 1, e),
        "exponents of columns": down,
    }
    program = b.build([list(ends.values())])
    virtual = virtual_nodes(program)
    made = VirtualKernels(program, virtual, route, ProductChecks(program, ProductWatch(tuple(virtual.readers))))
    values = [torch.zeros(n.spec.dims, dtype=TORCH[n.spec.dtype]) for n in program.nodes]
    for name, end in ends.items():
        with backend.recorded() as seen:
            made.of(end.node)(values)
        yield f"{name} of tiles of 14 bits", seen[-1]


def _of_groups(program: Program) -> list[backend.Launch]:
    """What a whole run launches, of maps of any size."""

    def single(k: int) -> Kernel:
        node = program.nodes[k]
        if isinstance(node, Output):
            return lambda values: values[node.node]
        made = nodes.kernel(program, node)
        assert made is not None
        return made[0]

    groups = MapGroups(program, single, least=1)
    slots = [program.specs[k] for part in program.input_nodes for k in part]
    with backend.recorded() as seen:
        groups.run([torch.zeros(spec.dims, dtype=TORCH[spec.dtype]) for spec in slots])
    return seen


def _of_two(make: Callable[[ScalarBuilder, Reg, Reg], Reg]) -> ScalarProgram:
    s = ScalarBuilder([DType.F32, DType.F32])
    return s.build(make(s, s.operand(0), s.operand(1)))


def _ones_below(size: int) -> bytes:
    """A mask of ones on and below the diagonal, zeros above."""
    return b"".join(struct.pack("<f", float(c <= r)) for r in range(size) for c in range(size))


def compiled(launch: backend.Launch, target: str) -> Any:
    """What Triton makes of a launch (its `asm`: PTX, or AMD's), specialised as a run would specialise it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = launch.kernel.arg_names
    given = dict(zip(names, launch.arguments, strict=False))
    constants = {**launch.constants, **{k: v for k, v in given.items() if v is None or (isinstance(v, int) and v == 1)}}
    signature = {k: "constexpr" if k in constants else _type(given[k]) for k in names}
    aligned = [k for k, v in given.items() if k not in constants and (isinstance(v, Tensor) or v % 16 == 0)]
    attributes = {(names.index(k),): [["tt.divisibility", 16]] for k in aligned}
    source = ASTSource(launch.kernel, signature=signature, constexprs=constants, attrs=attributes)
    options = backend.compiled_as(launch.warps, launch.stages)
    device = GPUTarget("hip", target, 64) if is_amd(target) else GPUTarget("cuda", int(target), 32)
    return triton.compile(source, target=device, options=options)


def _type(value: Tensor | int) -> str:
    return _TYPES[value.dtype] if isinstance(value, Tensor) else "i32" if abs(value) < 1 << 31 else "i64"


def _matrices(m: int, n: int, k: int, pa: int, pb: int) -> tuple[Program, Dot, list[Tensor]]:
    b = ProgramBuilder([[TensorSpec(DType.F32, (m, k)), TensorSpec(DType.F32, (n, k))]])
    program = b.build([[b.matmul(b.input(0, 0), b.input(0, 1), pa, pb)]])
    node = program.nodes[-2]
    assert isinstance(node, Dot)
    exponents = [torch.zeros(size, dtype=torch.int32) for size in (m, n)]
    return program, node, [torch.zeros(m, k), torch.zeros(n, k), *exponents]


def _others() -> tuple[Program, list[Tensor]]:
    """A program with a node of every family, and values for all of its nodes."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (64, 96)), TensorSpec(DType.I32, (64,)), TensorSpec(DType.I32, (2,))]])
    x, index, key = (b.input(0, k) for k in range(3))
    e = b.rowexp(x, 1)
    scattered = (x.permute(1, 0).unsqueeze(0), index.unsqueeze(0).unsqueeze(0))
    every = [
        b.map(_roundings(), [x, index.unsqueeze(1)], (64, 96)),
        b.map(_gelu(), [x], (64, 96)),
        b.max(x, 1),
        b.sum(x, 1, e),
        b.gather(x, index.unsqueeze(1), (64, 96)),
        b.scatter_sum(*scattered, e.unsqueeze(1), (64, 96), (64,)),
        b.rank(x),
        b.random(1, key, key, (64, 96)),
    ]
    program = b.build([every])
    return program, [torch.zeros(n.spec.dims, dtype=TORCH[n.spec.dtype]) for n in program.nodes]


def _roundings() -> ScalarProgram:
    """Every operation that gives an f32, of an f32 and an i32; their patterns are added up, so that none is dropped."""
    first = {DType.F32: 0, DType.I32: 1, DType.I64: 2}
    code = [Instruction(Op.I32_TO_I64, 1), Instruction(Op.CONST_I32)]
    total = 3
    for op, (types, result) in SIGNATURES.items():
        if result is DType.F32 and op is not Op.CONST_F32:
            at = 2 + len(code)
            code.append(Instruction(op, *(first[t] for t in types)))
            code += [Instruction(Op.F32_BITS, at), Instruction(Op.I32_ADD, total, at + 1)]
            total = at + 2
    return ScalarProgram((DType.F32, DType.I32), tuple(code))


def _gelu() -> ScalarProgram:
    s = ScalarBuilder([DType.F32])
    return s.build(functions.gelu_tanh(s, s.operand(0)))


def main() -> int:
    """Print the findings for these targets; 1 where a kernel has what it must not have."""
    parser = argparse.ArgumentParser(description="What a compiler makes of the kernels for GPUs.")
    parser.add_argument(
        "targets", nargs="+", metavar="TARGET", help="a compute capability (90), or AMD's name (gfx942)"
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="kernels of this name alone")
    asked = parser.parse_args()
    found = [finding for target in asked.targets for finding in findings(target, asked.only)]
    sys.stdout.write(json.dumps([asdict(finding) for finding in found], indent=1) + "\n")
    return int(any(finding.forbidden for finding in found))


if __name__ == "__main__":
    sys.exit(main())
