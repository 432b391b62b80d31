"""Write tests/vectors/witness.json: step programs, and the witnessed program that follows from each, or why none does.

The file's fields are explained in tests/vectors/README.md. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import encode_program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.witness import check_witness, witness_lists, witnessed_program
from assay.protocol.program.witness_rows import NoWitness
from assay.protocol.trees.state import ListBytes
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.programs import every_family, mlp_step

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "witness.json"
KEY = (0x12345678, 0x9ABCDEF0)
PAIR = TensorSpec(DType.I32, (2,))

MakeStep = Callable[[ProgramBuilder, list[Ref], list[Ref]], tuple[Sequence[Ref], Sequence[Ref]]]
"""From a builder, the slots of the first list and those of the second to what the step makes of both."""


def step_program(parameters: Sequence[TensorSpec], others: Sequence[TensorSpec], make: MakeStep) -> Program:
    """A program on (parameters), (others), (step): the step counter stays."""
    b = ProgramBuilder([list(parameters), list(others), [PAIR]])
    ends = make(b, [b.input(0, k) for k in range(len(parameters))], [b.input(1, k) for k in range(len(others))])
    return b.build([*map(list, ends), [b.input(2, 0)]])


def f32(*dims: int) -> TensorSpec:
    """An f32 tensor of these dims."""
    return TensorSpec(DType.F32, dims)


def product(b: ProgramBuilder, a: Ref, c: Ref, exponent: Ref) -> Ref:
    """a [M, K] times c [N, K] transposed; one exponent for all rows."""
    (m, k), (n, _) = a.dims, c.dims
    return b.dot(a.unsqueeze(1), c.unsqueeze(0), exponent, exponent, (m, n), (k,))


def two(b: ProgramBuilder) -> Ref:
    """The exponent 2."""
    return b.const(TensorSpec(DType.I32, ()), (2).to_bytes(4, "little"))


def chain(count: int) -> Program:
    """So many products of f32[2, 2], each of the one before."""

    def make(b: ProgramBuilder, own: list[Ref], _: list[Ref]) -> tuple[Sequence[Ref], Sequence[Ref]]:
        x, exponent = own[0], two(b)
        for _ in range(count):
            x = product(b, x, own[0], exponent)
        return [x], []

    return step_program([f32(2, 2)], [], make)


def outer_products(count: int, rows: int, columns: int) -> Program:
    """So many products f32[rows, columns] of single terms, of which the step keeps none but the first element."""

    def make(b: ProgramBuilder, own: list[Ref], _: list[Ref]) -> tuple[Sequence[Ref], Sequence[Ref]]:
        a, c, exponent = own[0].slice(0, 0, rows), own[0].slice(0, 0, columns), two(b)
        last = [product(b, a, c, exponent) for _ in range(count)][-1].slice(0, 0, 1).slice(1, 0, 1)
        return [b.sum(last.expand(max(rows, columns), 1).unsqueeze(2), 1)], []

    return step_program([f32(max(rows, columns), 1)], [], make)


def partly_still() -> Program:
    """Products of what moves, of what is passed through, of an i32's, and one without elements."""

    def make(b: ProgramBuilder, own: list[Ref], others: list[Ref]) -> tuple[Sequence[Ref], Sequence[Ref]]:
        still = b.matmul(others[0], others[0])
        moving = b.matmul(own[0], still)
        b.matmul(own[0].slice(0, 0, 0), own[0])
        return [moving], [others[0], b.rowexp(own[0], 1)]

    return step_program([f32(3, 3)], [f32(3, 3), TensorSpec(DType.I32, (3,))], make)


def still(count: int = 1) -> Program:
    """A product of what is passed through, and nothing that moves."""

    def make(b: ProgramBuilder, own: list[Ref], others: list[Ref]) -> tuple[Sequence[Ref], Sequence[Ref]]:
        b.matmul(own[0], own[0])
        return own, others

    return step_program([f32(3, 3)], [], make)


def growing() -> Program:
    """A step that ends in other dims than it begins in."""

    def make(b: ProgramBuilder, own: list[Ref], _: list[Ref]) -> tuple[Sequence[Ref], Sequence[Ref]]:
        return [b.matmul(own[0], own[0].slice(0, 0, 1))], []

    return step_program([f32(3, 3)], [], make)


def two_lists() -> Program:
    """A program without a list of scalars."""
    b = ProgramBuilder([[f32(3, 3)], [PAIR]])
    return b.build([[b.matmul(b.input(0, 0), b.input(0, 0))], [b.input(1, 0)]])


def other_step(specs: Sequence[TensorSpec]) -> Program:
    """A program whose third list holds these slots."""
    b = ProgramBuilder([[f32(3, 3)], [], list(specs)])
    return b.build([[b.matmul(b.input(0, 0), b.input(0, 0))], [], [b.input(2, k) for k in range(len(specs))]])


def ill_formed() -> Program:
    """A product that reads a fill which no f32 is (WF-9)."""
    program = chain(8)
    k = next(k for k, node in enumerate(program.nodes) if isinstance(node, Dot))
    node = program.nodes[k]
    assert isinstance(node, Dot)
    wrong = replace(node, a=replace(node.a, view=replace(node.a.view, fill=1 << 40)))
    return replace(program, nodes=(*program.nodes[:k], wrong, *program.nodes[k + 1 :]))


def cases() -> Iterator[dict[str, object]]:
    """Every case of the file."""
    mlp, families = mlp_step(), every_family()
    yield good("a perceptron: five products, ten rows, two groups", mlp.program, mlp.state)
    yield good("every family: one product, eight rows", families.program, families.state)
    second = (*mlp.state, *witness_lists((1, 2)))
    yield good("a second witness of a witnessed program", witnessed_program(mlp.program), second)
    yield good("what does not move and what has no elements is not sampled", partly_still())
    for count in (8, 57):
        yield good(f"{count} products", chain(count))
    yield good("a product of 2^30 elements", outer_products(1, 1 << 15, 1 << 15))
    yield good("a product of 2^30 elements and 2^15 more", outer_products(1, 1 << 15, (1 << 15) + 1))
    yield bad("WT-1", "an ill-formed program", ill_formed())
    yield bad("WT-1", "two lists", two_lists())
    yield bad("WT-1", "Y has other dims than X", growing())
    yield bad("WT-1", "an empty third list", other_step([]))
    yield bad("WT-1", "a step of three words", other_step([TensorSpec(DType.I32, (3,))]))
    yield bad("WT-1", "the step in the second slot", other_step([TensorSpec(DType.I32, ()), PAIR]))
    yield bad("WT-2", "nothing moves", still())
    yield bad("WT-3", "65 products of 1,024 pieces", outer_products(65, 1 << 20, 1 << 20))


def good(what: str, plain: Program, state: ListBytes | None = None) -> dict[str, object]:
    """A program with the root of its witnessed one and, where a state is given, what a step ends in."""
    found = witnessed_program(plain)
    check_witness(plain, found)
    case: dict[str, object] = {
        "rule": None,
        "what": what,
        "program": encode_program(plain).hex(),
        "root": found.root.hex(),
    }
    if state is not None:
        values = ReferenceExecutor(found).run([*state, *witness_lists(KEY)])
        case["x"] = [[slot.hex() for slot in part] for part in state]
        case["key"] = [hex(word) for word in KEY]
        case["accumulator"] = values[-1].hex()
    return case


def bad(rule: str, what: str, plain: Program) -> dict[str, object]:
    """A program that has no witnessed one, and the rule that it breaks."""
    try:
        check_witness(plain, plain)
    except NoWitness as error:
        assert error.rule == rule, (error.rule, what)
    return {"rule": rule, "what": what, "program": encode_program(plain).hex()}


def text() -> str:
    """The document as it stands in the file: one line per case."""
    return '{"cases": [\n' + ",\n".join(json.dumps(case) for case in cases()) + "\n]}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.witness_vectors`")
    PATH.write_text(text())


if __name__ == "__main__":
    main()
