"""`assay bench moments`: tokens to a target loss when moments start at zero in each round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_json, print_table, talk
from assay.cli.options import DeviceOption, JsonOption, TextOption, ThreadsOption

EPILOG = (
    "Example: assay bench moments --task demo --inner-steps 25 --rounds 20 --json"
    '  ->  {"summary": [{"task", "inner_steps", "rule", "tokens", "each", "chain_time", "met", ...}], "runs": [...]}'
)


def moments(
    data: TextOption = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Finished runs, one JSON line each.")] = Path(
        "moments.jsonl"
    ),
    task: Annotated[list[str] | None, typer.Option("--task", help="demo, nanogpt or tiny; demo and nanogpt.")] = None,
    rule: Annotated[list[str] | None, typer.Option("--rule", help="zero, cold or int8, beside kept; zero.")] = None,
    inner_steps: Annotated[int, typer.Option("--inner-steps", min=10, help="Steps of a seat in a round.")] = 25,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of plain DiLoCo.")] = 20,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Seeds 1 to this.")] = 3,
    stride: Annotated[int, typer.Option("--stride", min=1, help="Evaluate on every so manieth window.")] = 4,
    threads: ThreadsOption = 1,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train with kept moments and with zero ones, same seeds and batches, and compare tokens to the same loss.

    Takes minutes per run; what the file holds already is not run again, and is in the summary.
    """
    import torch

    from assay.bench.moments import CHOICES, RULES, TASKS, ZERO, MomentsRun, run_jobs, summary
    from assay.bench.quality import known, read_records
    from assay.training.data import corpus_from_text, given_text

    torch.set_num_threads(threads)
    rules = [RULES[0], *known("rule", rule or [ZERO], RULES[1:])]
    jobs = [
        MomentsRun(t, inner_steps, rounds, r, s)
        for t in known("task", task or TASKS, CHOICES)
        for r in rules
        for s in range(1, seeds + 1)
    ]
    corpus = corpus_from_text(given_text(data), min_tokens=65)
    for _ in run_jobs(jobs, corpus, out, stride=stride, say=talk.print):
        pass
    records = read_records(out)
    rows = summary(records)
    if as_json:
        print_json({"summary": rows, "runs": records, "file": str(out)})
        return
    names = ("task", "inner_steps", "rounds", "rule", "seeds", "tokens", "each", "loss_above_kept", "chain_time")
    cells = [[*(str(r[n]) for n in names), "met" if r["met"] else "missed"] for r in rows]
    columns = ["task", "H", "rounds", "rule", "seeds", "tokens", "each", "loss above", "chain time", "bar 1.05"]
    print_table("Tokens to plain DiLoCo's last loss, over its own", columns, cells)
