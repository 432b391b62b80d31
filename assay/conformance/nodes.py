"""Whole programs with known answers, on every executor that this machine has or can be made to use.

The file nodes.json of tests/vectors; its fields are explained in the README beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from assay.conformance.by_triton import ByTriton
from assay.conformance.rules import Case
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import DType

if TYPE_CHECKING:
    from assay.engine.runtime.executor import Natives

BY_TRITON: Final = "triton"
"""The executor that is absent where there is no Triton; where it is, its name says on what it runs."""

ROOT_FROM: Final = 256
"""Answers of more bytes are given by their tensor root."""

_MASK: Final = (1 << 64) - 1

RunNodes = Callable[[Program, Sequence[Sequence[bytes]]], list[list[bytes]]]
"""A program on the bytes of X: the bytes of Y."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """Elements by SplitMix64: element i comes from word i of the seed.

    f32: sign and mantissa are the word's low bits, the exponent field is low + (word >> 32) mod span. i32: that sum.
    """

    seed: int
    low: int
    span: int

    def document(self) -> dict[str, int]:
        """As it stands in the file."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Absent:
    """An executor that cannot be run here, and why."""

    name: str
    reason: str


def slot_bytes(slot: Any, spec: TensorSpec) -> bytes:
    """The bytes of a slot of X as the file has it: hexadecimal digits, or a seed."""
    if isinstance(slot, str):
        return bytes.fromhex(slot)
    drawn = Seeded(slot["seed"], slot["low"], slot["span"])
    make = _f32_element if spec.dtype is DType.F32 else _i32_element
    return b"".join(make(drawn, split_mix(drawn.seed, i)) for i in range(spec.numel))


def split_mix(seed: int, i: int) -> int:
    """Word i of SplitMix64."""
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
    return z ^ z >> 31


def _f32_element(drawn: Seeded, z: int) -> bytes:
    return (z & 0x807FFFFF | (drawn.low + (z >> 32) % drawn.span) << 23).to_bytes(4, "little")


def _i32_element(drawn: Seeded, z: int) -> bytes:
    return ((drawn.low + (z >> 32) % drawn.span) & 0xFFFFFFFF).to_bytes(4, "little")


@dataclass(frozen=True, slots=True)
class Vector:
    """One case, read: the program, the bytes of X, and the known answers."""

    name: str
    program: Program
    x: Sequence[Sequence[bytes]]
    y: Sequence[Sequence[Any]]


def read(document: Any) -> list[Vector]:
    """The cases of the file, drawn elements included."""
    found = []
    for case in document["cases"]:
        program = decode_program(bytes.fromhex(case["program"]))
        x = [
            [slot_bytes(slot, program.specs[k]) for slot, k in zip(slots, nodes, strict=True)]
            for slots, nodes in zip(case["x"], program.input_nodes, strict=True)
        ]
        found.append(Vector(case["name"], program, x, case["y"]))
    return found


def check(vectors: Sequence[Vector], run: RunNodes) -> Iterator[Case]:
    """Every slot of Y of every case."""
    for vector in vectors:
        program = vector.program
        found = run(program, vector.x)
        for got, known, nodes in zip(found, vector.y, program.output_nodes, strict=True):
            for n, (data, answer, k) in enumerate(zip(got, known, nodes, strict=True)):
                ours = data.hex() if isinstance(answer, str) else {"root": tensor_root(program.specs[k], data).hex()}
                yield f"{vector.name}, output {n}", ours, answer


def executors() -> Iterator[tuple[str, RunNodes] | Absent]:
    """Every executor by name: those that are here as functions, the others with the reason why not."""
    yield "reference", _by_reference
    if find_spec("torch") is None:
        yield Absent("torch", "torch is not installed")
        return
    yield "torch", _by_torch
    yield "torch, cross-check", partial(_by_torch, cross_check=True)
    yield from _natives()
    yield _triton()


def is_on_gpu(name: str) -> bool:
    """Whether an executor is one that runs on a GPU."""
    return name == "triton, cuda"


def _by_reference(program: Program, x: Sequence[Sequence[bytes]]) -> list[list[bytes]]:
    values = ReferenceExecutor(program).run(x)
    return [[values[k] for k in nodes] for nodes in program.output_nodes]


def _by_torch(
    program: Program,
    x: Sequence[Sequence[bytes]],
    *,
    cross_check: bool = False,
    natives: Natives | None = None,
) -> list[list[bytes]]:
    from assay.engine.runtime.executor import Executor, KernelVariant
    from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs, to_lists_of_bytes

    variant = KernelVariant.STOCK if natives is None else KernelVariant.FUSED
    executor = Executor(program, cross_check=cross_check, variant=variant, natives=natives)
    ends = executor.run(from_lists_of_bytes(input_specs(program), x))
    return [list(part) for part in to_lists_of_bytes(ends)]


def _natives() -> Iterator[tuple[str, RunNodes] | Absent]:
    """The native kernels of each instruction set, and of tiles (AMX) where the processor has them."""
    from assay.engine.runtime.native.build import INSTRUCTION_SETS
    from assay.engine.runtime.native.library import allowed_instruction_sets, processor_flags

    present = allowed_instruction_sets({}, processor_flags())
    for instruction_set in INSTRUCTION_SETS:
        if instruction_set not in present:
            yield Absent(f"native {instruction_set}", "the processor does not have these instructions")
            continue
        yield from _native(instruction_set, tiles=False)
    if "amx_int8" in processor_flags() and present[:1] == ["vnni"]:
        yield from _native("vnni", tiles=True)
    else:
        yield Absent("native vnni, amx", "the processor does not have these instructions")


def _native(instruction_set: str, *, tiles: bool) -> Iterator[tuple[str, RunNodes] | Absent]:
    from assay.engine.runtime.second_kernels import natives_of

    name = f"native {instruction_set}" + (", amx" if tiles else "")
    try:
        yield name, partial(_by_torch, natives=natives_of(instruction_set, tiles=tiles))
    except OSError as error:
        yield Absent(name, str(error))


def _triton() -> tuple[str, RunNodes] | Absent:
    """Triton's kernels: on a GPU, or by its interpreter where there is none."""
    from assay.engine.runtime.triton import backend

    backend.interpret_without_gpu()
    if reason := backend.absence():
        return Absent(BY_TRITON, reason)
    return backend.name(), ByTriton()
