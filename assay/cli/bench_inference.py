"""`assay bench inference`: what exactness costs a token."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.common import print_json, print_table
from assay.cli.options import JsonOption, ThreadsOption

EPILOG = (
    "Example: assay bench inference --rows 1 --rows 8 --json"
    '  ->  {"rows": [{"model", "rows", "prompt_ratio", "token_ratio", "token_ms", "eager_token_ms", ...}], ...}'
)


def inference(
    model: Annotated[str, typer.Option("--model", help="gpt-4x384, gpt-4x128 or gpt-2x96.")] = "gpt-4x384",
    tier: Annotated[str, typer.Option("--tier", help="fixed8, fixed14 or fixed22.")] = "fixed14",
    rows: Annotated[list[int] | None, typer.Option("--rows", min=1, max=32, help="Texts at once; 1 and 8.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, help="For each number of rows.")] = 20.0,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Continue texts exactly and in stock eager f32, in one alternating run, and compare the time a token takes."""
    from assay.bench.inference import document, measure

    found = measure(model, tier, rows or [1, 8], seconds, threads=threads)
    if as_json:
        print_json(document(found))
        return
    cells = [
        (r.model, r.tier, r.rows, f"{r.prompt_ratio:.2f}", f"{r.token_ratio:.2f}", r.token_ms, r.eager_token_ms)
        for r in found
    ]
    columns = ("model", "tier", "rows", "prompts", "tokens", "ms a token", "eager ms")
    print_table("Exact over stock eager f32", columns, cells)
