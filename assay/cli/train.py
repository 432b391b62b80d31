"""`assay train`: training without a chain, by the very programs of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_json, print_table, talk
from assay.cli.options import DeviceOption, JsonOption
from assay.protocol.errors import UsageError

app = typer.Typer(no_args_is_help=True, help="Training without a chain, by the very programs of a run.")

EPILOG = (
    "Example: assay train compare --method int8,sparse --workers 4 --seed 1 --json"
    '  ->  {"rows": [{"method", "workers", "seed", "loss", "loss_dense", "bytes_per_parameter", "tokens", ...}], ...}'
)


@app.callback()
def train() -> None:
    """Each verb trains on this machine; heavy imports happen inside."""


@app.command("compare", epilog=EPILOG)
def compare(
    method: Annotated[
        str, typer.Option("--method", metavar="NAMES", help="Methods, with commas; f32 is always run beside them.")
    ] = "bf16,int8,int4,sparse",
    workers: Annotated[str, typer.Option("--workers", metavar="NUMBERS", help="Workers, with commas.")] = "4",
    seed: Annotated[str, typer.Option("--seed", metavar="NUMBERS", help="Seeds, with commas.")] = "1",
    preset: Annotated[str, typer.Option("--preset", help="What is trained: tiny, demo or gpt-4x128.")] = "tiny",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of each training.")] = 20,
    inner_steps: Annotated[
        int | None, typer.Option("--inner-steps", min=1, help="Steps of a worker in a round; the preset's.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="A text (UTF-8); this Python's documentation.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Finished trainings, one CSV row each.")] = Path(
        "compare.csv"
    ),
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of torch.")] = 1,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train by several methods, same seeds, batches and tokens, and compare loss and bytes.

    Methods are how updates travel (f32, bf16, int8, int4, sparse), and sparse-plain, sparse-carried and
    sparse-carried-int4, which no run can have. What the file holds already is not run again.
    """
    import torch

    from assay.bench.compare import DENSE, METHODS, ComparedRun, read_rows, run_jobs, summary, text_digest
    from assay.training.data import corpus_from_text, pydoc_text, read_text
    from assay.training.presets import preset as preset_of

    torch.set_num_threads(threads)
    chosen, names = preset_of(preset), [name.strip() for name in method.split(",")]
    for name in names:
        if name not in METHODS:
            raise UsageError(
                f"There is no method {name!r}.", code="UnknownMethod", remedy=f"Choose from {', '.join(METHODS)}."
            )
    counts = _numbers("--workers", workers, most=64)
    jobs = [
        ComparedRun(name, chosen.name, count, number, rounds, inner_steps or chosen.inner_steps)
        for count in counts
        for number in _numbers("--seed", seed, most=1 << 31)
        for name in dict.fromkeys([DENSE, *names])
    ]
    text = pydoc_text() if data is None else read_text(data)
    corpus = corpus_from_text(text, min_tokens=max(counts) * (chosen.context + 1))
    for _ in run_jobs(jobs, corpus, out, talk.print):
        pass
    rows = summary(read_rows(out), jobs, text_digest(corpus))
    if as_json:
        print_json({"rows": rows, "file": str(out)})
        return
    columns = ["method", "workers", "seed", "loss", "above f32", "bytes", "carried", "tokens"]
    cells = [
        [
            *(str(row[name]) for name in ("method", "workers", "seed")),
            f"{row['loss']:.4f}",
            f"{row['above']:+.2%}",
            *(f"{row[name]:.3g}" for name in ("bytes_per_parameter", "carried")),
            str(row["tokens"]),
        ]
        for row in rows
    ]
    print_table(f"{chosen.name}, {rounds} rounds of {jobs[0].inner_steps} steps; bytes a parameter", columns, cells)


def _numbers(option: str, words: str, most: int) -> list[int]:
    """The whole numbers from 1 between commas. Raises UsageError: BadNumbers."""
    try:
        found = [int(word) for word in words.split(",")]
    except ValueError:
        found = [0]
    if any(not 0 < number <= most for number in found):
        raise UsageError(
            f"{option} wants numbers from 1 to {most} with commas, not {words!r}.",
            code="BadNumbers",
            remedy=f"Write {option} 2,4, say.",
        )
    return found
