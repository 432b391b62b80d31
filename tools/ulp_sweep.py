"""Measure the error of the scalar functions over all 2^32 binary32 inputs.

Writes the function's scalar program as C without contraction, compares every result with libm's double in units of the
last place of the true value and prints the worst input. `python tools/ulp_sweep.py exp tanh` takes about a minute each.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import Op, ScalarProgram, infer_types
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

ORACLES: dict[str, str] = {
    "exp": "exp(x)",
    "log": "log(x)",
    "tanh": "tanh(x)",
    "sigmoid": "x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x))",
    "rsqrt": "1 / sqrt(x)",
    "erf": "erf(x)",
    "gauss": "exp(-0.5 * x * x)",
    "gelu": "x < -40 ? 0 : 0.5 * x * erfc(-x * 0.70710678118654752440)",
    "gelu_grad": "fabs(x) > 40 ? x > 0 : 0.5 * erfc(-x * 0.70710678118654752440)"
    " + x * exp(-0.5 * x * x) * 0.39894228040143267794",
    "gelu_tanh": "x / (1 + exp(-1.5957691216057307117 * (x + 0.044715 * x * x * x)))",
    "sin": "sin(x)",
    "cos": "cos(x)",
}
FLOORED = ("erf", "gelu")
CHAINED = ("gelu", "gelu_grad")
ABSOLUTE = ("sin", "cos", "gelu_grad")

_BINARY = {Op.F32_ADD: "+", Op.F32_SUB: "-", Op.F32_MUL: "*", Op.F32_DIV: "/"}
_COMPARE = {Op.F32_EQ: "==", Op.F32_LT: "<", Op.F32_LE: "<=", Op.I32_EQ: "==", Op.I32_LT: "<"}
_INTEGER = {Op.I32_ADD: "+", Op.I32_SUB: "-", Op.I32_MUL: "*", Op.I32_AND: "&", Op.I32_OR: "|", Op.I32_XOR: "^"}
_CALLS = {
    Op.F32_SQRT: "sqrtf", Op.F32_NEG: "-", Op.F32_ABS: "fabsf", Op.F32_RINT: "rintf", Op.F32_FLOOR: "floorf",
    Op.F32_MIN: "min32", Op.F32_MAX: "max32", Op.F32_SCALE2: "scale2", Op.F32_EXPONENT: "exponent",
    Op.F32_BITS: "bits", Op.BITS_F32: "unbits", Op.F32_TO_I32: "to_i32", Op.I32_TO_F32: "(float)",
    Op.BOOL_TO_I32: "(int32_t)", Op.I32_TO_BOOL: "0 != ",
}  # fmt: skip
_C_TYPE = {DType.F32: "float", DType.I32: "int32_t", DType.I64: "int64_t", DType.BOOL: "int"}

_PRELUDE = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline int32_t bits(float x) { int32_t r; if (x != x) return 0x7fc00000; memcpy(&r, &x, 4); return r; }
static inline float unbits(int32_t x) { float r; memcpy(&r, &x, 4); return r; }
static inline float min32(float a, float b) { return a != a || b != b ? NAN : (a < b ? a : b) + 0.0f; }
static inline float max32(float a, float b) { return a != a || b != b ? NAN : (a < b ? b : a) + 0.0f; }
static inline int32_t exponent(float x) {
    int e; if (x != x || isinf(x)) return 129; if (x == 0) return -149; frexpf(x, &e); return e; }
static inline float scale2(float x, int32_t n) {
    n = n > 500 ? 500 : n < -500 ? -500 : n;
    union { uint64_t u; double d; } p; p.u = (uint64_t)(1023 + n) << 52; return (float)((double)x * p.d); }
static inline int32_t to_i32(float x) {
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x <= -2147483648.0f ? (int32_t)0x80000000 : (int32_t)x; }
"""

_MAIN = r"""
static inline double oracle(double x) { return ORACLE; }
int main(int argc, char **argv) {
    uint64_t lo = strtoull(argv[1], 0, 0), hi = strtoull(argv[2], 0, 0), every = strtoull(argv[3], 0, 0);
    double worst = -1; uint32_t at = 0; uint64_t special = 0; uint32_t special_at = 0;
    for (uint64_t i = lo; i < hi; i += every) {
        float x = unbits((int32_t)(uint32_t)i);
        if (LIMIT > 0 && !(fabsf(x) <= LIMIT)) continue;
        float y = f(x);
        double t = oracle((double)x);
        if (t != t || fabs(t) >= 0x1.ffffffp127) {
            if (!((t != t && y != y) || (t == t && isinf(y) && (y > 0) == (t > 0)))) { special++; special_at = i; }
            continue;
        }
        if (y != y || isinf(y)) { special++; special_at = i; continue; }
        double size = fabs(t), unit;
        if (FLOOR && size < ldexp(fabs(x), -24)) size = ldexp(fabs(x), -24);
        int e; frexp(size, &e); if (size == 0 || e < -125) e = -125;
        unit = ABSOLUTE ? 1.0 : ldexp(1.0, e - 24);
        double error = fabs((double)y - t) / unit;
        if (error > worst) { worst = error; at = (uint32_t)i; }
    }
    printf("%.17g %u %llu %u\n", worst, at, (unsigned long long)special, special_at);
    return 0;
}
"""


def emit_c(program: ScalarProgram, name: str) -> str:
    """The C function of floats that computes a scalar program."""
    types = infer_types(program.operands, program.instructions)
    lines = []
    for k, i in enumerate(program.instructions, start=len(program.operands)):
        op, a, b, c = Op(i.op), f"x{i.a}", f"x{i.b}", f"x{i.c}"
        if op is Op.CONST_F32:
            value = f"unbits((int32_t){i.imm}u)"
        elif op in (Op.CONST_I32, Op.CONST_BOOL):
            value = f"(int32_t){i.imm}u"
        elif op is Op.SELECT:
            value = f"{a} ? {b} : {c}"
        elif op in _BINARY or op in _COMPARE:
            value = f"{a} {(_BINARY | _COMPARE)[op]} {b}"
        elif op in _INTEGER:
            value = f"(int32_t)((uint32_t){a} {_INTEGER[op]} (uint32_t){b})"
        elif op is Op.BOOL_AND:
            value = f"{a} & {b}"
        elif op is Op.BOOL_NOT:
            value = f"!{a}"
        elif op in (Op.I32_MIN, Op.I32_MAX):
            value = f"{a} {'<' if op is Op.I32_MIN else '>'} {b} ? {a} : {b}"
        elif op in (Op.F32_MIN, Op.F32_MAX, Op.F32_SCALE2):
            value = f"{_CALLS[op]}({a}, {b})"
        else:
            value = f"{_CALLS[op]}({a})"
        lines.append(f"    {_C_TYPE[types[k]]} x{k} = {value};")
    arguments = ", ".join(f"float x{k}" for k in range(len(program.operands)))
    return f"static inline float {name}({arguments}) {{\n" + "\n".join(lines) + f"\n    return x{len(types) - 1};\n}}\n"


def sweep(name: str, limit: float, jobs: int, every: int, low: int, high: int) -> tuple[int, float, int, int, int]:
    """Instructions, largest error, where, and the number and an instance of wrong special results."""
    b = ScalarBuilder([DType.F32])
    function: Callable[..., Reg] = getattr(functions, name)
    if name in CHAINED:  # the second map of two
        program = b.build(function(b, b.operand(0), b.add_operand(DType.F32)))
        first = ScalarBuilder([DType.F32])
        body = emit_c(first.build(functions.gauss(first, first.operand(0))), "g") + emit_c(program, "h")
        body += "static inline float f(float x) { return h(x, g(x)); }\n"
    else:
        program = b.build(function(b, b.operand(0)))
        body = emit_c(program, "f")
    main = (
        _MAIN.replace("ORACLE", ORACLES[name])
        .replace("LIMIT", repr(limit))
        .replace("FLOOR", str(int(name in FLOORED)))
        .replace("ABSOLUTE", str(int(name in ABSOLUTE)))
    )
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "f.c"), Path(folder, "f")
        source.write_text(_PRELUDE + body + main)
        flags = ["-O2", "-ffp-contract=off", "-march=native", "-w"]
        subprocess.run(["gcc", *flags, str(source), "-o", str(binary), "-lm"], check=True)
        cuts = [low + (high - low) * k // jobs for k in range(jobs + 1)]
        children = [
            subprocess.Popen([binary, str(lo), str(hi), str(every)], stdout=subprocess.PIPE, text=True)
            for lo, hi in pairwise(cuts)
        ]
        found = [child.communicate()[0].split() for child in children]
    worst, at = max((float(w), int(a)) for w, a, _, _ in found)
    wrong = sum(int(s) for _, _, s, _ in found)
    example = next((int(e) for _, _, s, e in found if int(s)), 0)
    return len(program.instructions), worst, at, wrong, example


def main() -> None:
    """Sweep the functions named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *ORACLES], default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only every n-th pattern")
    parser.add_argument("--low", type=lambda s: int(s, 0), default=0, help="first pattern")
    parser.add_argument("--high", type=lambda s: int(s, 0), default=1 << 32, help="pattern behind the last")
    arguments = parser.parse_args()
    for name in arguments.names or ORACLES:
        limit = 32768.0 if name in ("sin", "cos") else 0.0
        size, worst, at, wrong, example = sweep(
            name, limit, arguments.jobs, arguments.every, arguments.low, arguments.high
        )
        unit = "absolute" if name in ABSOLUTE else "ulp"
        print(f"{name:10} {size:3} instructions, error {worst:.4g} {unit} at 0x{at:08x}", flush=True)
        if wrong:
            print(f"  {wrong} wrong special results, for instance at 0x{example:08x}")


if __name__ == "__main__":
    main()
