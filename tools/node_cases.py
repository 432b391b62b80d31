"""How cases of whole programs are put together for tests/vectors/nodes.json: slots, and the reference's answers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.conformance.nodes import ROOT_FROM, Seeded, slot_bytes
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.programfile import encode_program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import DType

F32, I32, I64, BOOL, U8, I8, U16 = DType


@dataclass(frozen=True, slots=True)
class CaseInput:
    """An input: its type and dims, and its bytes or how they are drawn."""

    spec: TensorSpec
    data: bytes | Seeded


Make = Callable[[ProgramBuilder, list[Ref]], Sequence[Ref]]


def f32s(dims: Sequence[int], words: Sequence[int]) -> CaseInput:
    """Patterns of binary32."""
    return CaseInput(TensorSpec(F32, tuple(dims)), struct.pack(f"<{len(words)}I", *words))


def ints(dims: Sequence[int], values: Sequence[int], dtype: DType = I32) -> CaseInput:
    """Integers of any type."""
    mask = (1 << 8 * dtype.size) - 1
    return CaseInput(
        TensorSpec(dtype, tuple(dims)), b"".join((v & mask).to_bytes(dtype.size, "little") for v in values)
    )


def seeded(dims: Sequence[int], seed: int, low: int, span: int, dtype: DType = F32) -> CaseInput:
    """Drawn elements: exponent fields (f32) or values (i32) from low on, `span` of them."""
    return CaseInput(TensorSpec(dtype, tuple(dims)), Seeded(seed, low, span))


def bits(value: float) -> int:
    """The pattern of a number that binary32 has."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def entry(name: str, slots: Sequence[CaseInput], make: Make) -> dict[str, object]:
    """One case: program, X, and Y from the reference."""
    b = ProgramBuilder([[s.spec for s in slots]])
    outputs = list(make(b, [b.input(0, k) for k in range(len(slots))]))
    program = b.build([outputs])
    x = [s.data if isinstance(s.data, bytes) else slot_bytes(s.data.document(), s.spec) for s in slots]
    values = ReferenceExecutor(program).run([x])
    y: list[object] = []
    for ref in outputs:
        data = values[ref.node]
        y.append({"root": tensor_root(ref.spec, data).hex()} if len(data) > ROOT_FROM else data.hex())
    return {
        "name": name,
        "program": encode_program(program).hex(),
        "x": [[s.data.hex() if isinstance(s.data, bytes) else s.data.document() for s in slots]],
        "y": [y],
    }
