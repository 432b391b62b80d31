"""Write tests/vectors/arithmetic.json: cases of every scalar operation and rounding for other implementations to run.

Words are 64-bit two's complement in hexadecimal: f32 as its pattern, i32 and i64 sign-extended, bool 0 or 1. An entry
of `operations` has the code, the number of operands and the rows (operands, then result) one after the other; an entry
of `functions` the code of its maps (the second of two takes the operand and the first one's value) and rows of operand
and result. `finish` has rows (S, n, result), `quantize` rows (x, p, e, result), `random` rows (element, stream, step
low, step high, key 0, key 1, result). The contract tests read this file. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from assay.protocol.arithmetic import functions, philox, rounding
from assay.protocol.arithmetic.scalar import CONSTANTS, Instruction, Op, ScalarProgram, evaluate
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.arithmetic.words import sign_extend
from assay.protocol.types import DType
from tests.harness.scalars import FLOAT_EDGES, I64, float_pattern, i64_word, operation, word

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "arithmetic.json"
ROWS = 48
FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "rsqrt", "erf", "gelu", "gelu_grad", "gelu_tanh", "sin", "cos")


def _hex(number: int) -> str:
    return f"0x{number & 0xFFFFFFFFFFFFFFFF:x}"


def _operation(op: Op) -> dict[str, object]:
    source = Random(f"vectors {op.name}")
    if op in CONSTANTS:
        immediates = [0, 1, 0x7FC00000, 0xFFC00001, 0xFFFFFFFF, 0x80000000]
        return {
            "codes": ["0x" + Instruction(op, imm=i).encode().hex() for i in immediates],
            "results": [_hex(evaluate(Instruction(op, imm=i).encode(), ())) for i in immediates],
        }
    program = operation(op, (DType.BOOL, I64, I64) if op is Op.SELECT else None)
    code, words = program.encode(), []
    for _ in range(ROWS):
        row = [word(source, d) for d in program.operands]
        words += [*row, evaluate(code, row)]
    return {"code": "0x" + code.hex(), "operands": len(program.operands), "words": [_hex(w) for w in words]}


def maps_of(name: str) -> list[ScalarProgram]:
    """The maps of a function: one, or `gauss` and then the function of the operand and its value."""
    b = ScalarBuilder([DType.F32])
    if name not in ("gelu", "gelu_grad"):
        return [b.build(getattr(functions, name)(b, b.operand(0)))]
    return [*maps_of("gauss"), b.build(getattr(functions, name)(b, b.operand(0), b.add_operand(DType.F32)))]


def _function(name: str) -> dict[str, object]:
    source = Random(f"vectors {name}")
    codes, words = [m.encode() for m in maps_of(name)], []
    patterns = [e | s << 31 for e in FLOAT_EDGES for s in (0, 1)]
    patterns += [source.getrandbits(1) << 31 | source.randrange(0x3A000000, 0x42C00000) for _ in range(ROWS)]
    for x in patterns:
        row = [x]
        for code in codes:
            row.append(evaluate(code, row))
        words += [x, row[-1]]
    return {"codes": ["0x" + c.hex() for c in codes], "words": [_hex(w) for w in words]}


def compute() -> dict[str, object]:
    """The whole document."""
    source = Random("vectors roundings")
    finish, quantize, random = [], [], []
    for _ in range(4 * ROWS):
        total, n = i64_word(source), source.randrange(-260, 130)
        finish += [total, n, rounding.finish(total, n)]
        x, p = float_pattern(source), source.randrange(2, 32)
        e = source.choice((rounding.E(x), rounding.E(x) + source.randrange(3), source.randrange(-160, 130)))
        quantize += [x, p, e, rounding.quantize(x, p, e)]
        element, stream = source.getrandbits(34), source.getrandbits(32)
        state = [source.getrandbits(32) for _ in range(4)]
        answer = philox.random_word(element, stream, (state[0], state[1]), (state[2], state[3]))
        random += [element, stream, *state, sign_extend(answer, 32)]
    return {
        "operations": {op.name: _operation(op) for op in Op},
        "functions": {name: _function(name) for name in FUNCTIONS},
        "finish": [_hex(w) for w in finish],
        "quantize": [_hex(w) for w in quantize],
        "random": [_hex(w) for w in random],
    }


def text() -> str:
    """The document as it stands in the file: one line per entry."""
    document = compute()
    return "{\n " + ",\n ".join(f'"{key}": {_lines(group)}' for key, group in document.items()) + "\n}\n"


def _lines(group: object) -> str:
    if not isinstance(group, dict):
        return json.dumps(group)
    return "{\n" + ",\n".join(f'  "{name}": {json.dumps(entry)}' for name, entry in group.items()) + "\n }"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.vectors`")
    PATH.write_text(text())
    print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
