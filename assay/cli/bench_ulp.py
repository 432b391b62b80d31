"""`assay bench ulp`: the largest error of every scalar function over all 2^32 inputs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_json, print_table, talk
from assay.cli.options import DeviceOption, JsonOption

EPILOG = (
    "Example: assay bench ulp exp log --minutes 10 --json"
    '  ->  [{"function", "code", "covered", "unit", "found": {"worst", "at", "misrounded", "settled", ...}}, ...]'
)


def ulp(
    names: Annotated[list[str] | None, typer.Argument(metavar="[FUNCTION]...", help="All of them.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Finished blocks, one JSON line each.")] = Path(
        "ulp.jsonl"
    ),
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.0, help="Stop after so long; run again to go on.")
    ] = None,
    table: Annotated[Path | None, typer.Option("--table", metavar="FILE", help="Write the rows there as JSON.")] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every result with the true value, in blocks of 2^24 inputs, and print the largest errors so far.

    A function takes minutes on one thread; blocks that the file holds already are not measured again.
    """
    import torch

    from assay.bench.quality import known
    from assay.bench.ulp import ABSOLUTE, NAMES, read_records, rows, sweep

    torch.set_num_threads(1)
    chosen = known("function", names, NAMES)
    for record in sweep(chosen, out, seconds=None if minutes is None else minutes * 60):
        if not (record.low + record.high) % (1 << 28):
            talk.print(f"{record.function}: {record.high / (1 << 32):.0%}")
    found = [
        asdict(row) | {"unit": "absolute" if row.function in ABSOLUTE else "ulp"} for row in rows(read_records(out))
    ]
    if table is not None:
        lines = ",\n".join("  " + json.dumps(row) for row in found)
        table.write_text('{"functions": [\n' + lines + "\n]}\n", encoding="utf-8")
    if as_json:
        print_json(found)
        return
    counts = ("misrounded", "settled", "by_series", "wrong")
    cells = [
        [
            r["function"],
            f"{r['covered'] / (1 << 32):.1%}",
            f"{r['found']['worst']:.4g} {r['unit']}",
            f"0x{r['found']['at']:08x}",
            *(r["found"][k] for k in counts),
        ]
        for r in found
    ]
    columns = ["function", "covered", "error", "at", "not nearest", "by mpmath", "by series", "wrong"]
    print_table("Largest errors", columns, cells)
