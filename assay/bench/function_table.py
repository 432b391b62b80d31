"""The table of docs/functions.md from docs/functions.json, which `assay bench ulp --table docs/functions.json` writes.

Stale when a function's code is not the one that was measured. Imports no torch: the documents are checked without it.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from assay.checkout import ROOT
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.types import DType

RECORDS = ROOT / "docs" / "functions.json"
FULL = 1 << 32
_CHAINED = frozenset({"gelu", "gelu_grad"})
COLUMNS = (
    *("function", "code", "inputs", "largest error", "at"),
    *("not the nearest", "by mpmath", "by series", "NaN or infinite", "wrong"),
)


def maps_of(name: str) -> list[ScalarProgram]:
    """The maps of a function: one, or `gauss` and then the function of the operand and its value."""
    b = ScalarBuilder([DType.F32])
    if name not in _CHAINED:
        return [b.build(getattr(functions, name)(b, b.operand(0)))]
    return [*maps_of("gauss"), b.build(getattr(functions, name)(b, b.operand(0), b.add_operand(DType.F32)))]


def code_digest(name: str) -> str:
    """What names the measured code: the digest of the bytes of its scalar programs."""
    return sha256(
        b"".join(len(code).to_bytes(2, "big") + code for code in (m.encode() for m in maps_of(name)))
    ).hexdigest()


def stale() -> list[str]:
    """The functions whose code is no longer the one that was measured."""
    return [
        f"the errors of {row['function']} are those of other code: run `assay bench ulp` and write the table anew"
        for row in _rows()
        if row["code"] != code_digest(row["function"])
    ]


def table() -> str:
    """The measured errors as a Markdown table."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in _rows():
        found = row["found"]
        share = "all 2^32" if row["covered"] == FULL else f"{row['covered']:,} ({row['covered'] / FULL:.1%})"
        size = f"{found['worst']:.4g} {row['unit']}"
        counts = [found[k] for k in ("misrounded", "settled", "by_series", "special", "wrong")]
        cells = [
            row["function"],
            f"`{row['code'][:12]}`",
            share,
            size,
            f"0x{found['at']:08x}",
            *(f"{n:,}" for n in counts),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _rows() -> list[dict[str, Any]]:
    return list(json.loads(RECORDS.read_text(encoding="utf-8"))["functions"])
