"""The grid of docs/adr/0076: every method, 2 to 16 workers, three seeds, four tasks; and the page made of its rows.

python -m tools.grid documentation                              trains what docs/grid.csv lacks of a task
python -m tools.grid shakespeare --data tinyshakespeare.txt
python -m tools.grid digits                                     wants scikit-learn, and mnist1d its own package
python -m tools.grid                                            writes docs/grid.md and its plots
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

import torch

from assay.bench.compare import DENSE, METHODS, ComparedRow, ComparedRun, read_rows, run_jobs
from assay.bench.methods.own_model import RecipeModel
from assay.bench.methods.trained import preset_model
from assay.bench.plot import PlotLine, draw
from tools.markdown import table

_DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
ROWS, PAGE, PLOTS = _DOCS / "grid.csv", _DOCS / "grid.md", _DOCS / "img"

TASKS: Final = {
    "documentation": "demo",
    "shakespeare": "gpt-4x128",
    "digits": "examples.digits:factory",
    "mnist1d": "examples.mnist1d:factory",
}
LEFT_OUT: Final = {"mnist1d": ("muloco", "muloco-int4")}
"""Methods that a task's model is not for: no convolution is a matrix that Muon turns."""

WORKERS: Final = (2, 4, 8, 16)
SEEDS: Final = (1, 2, 3)
STEPS: Final = 2000
"""Of all workers together."""
INNER_STEPS: Final = 25
BOUND: Final = math.log(1.005)

_T95: Final = (6.3138, 2.92, 2.3534, 2.1318, 2.015, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959)
"""95 % quantiles of Student's t with 1 to 11 degrees of freedom, from any table of it."""


@dataclass(frozen=True, slots=True)
class GridVerdict:
    """A method on a task. low, high: the 90 % interval of the mean of d, of so many pairs; NaN of fewer than two."""

    method: str
    pairs: int
    mean: float
    low: float
    high: float

    @property
    def span(self) -> str:
        """The interval, as shares."""
        ends = [f"{math.expm1(v):+.2%}" for v in (self.low, self.high)] if math.isfinite(self.mean) else []
        return " to ".join(ends)

    @property
    def word(self) -> str:
        """What the two one-sided tests say."""
        if math.isinf(self.mean):
            return "diverged"
        if self.pairs < len(WORKERS) * len(SEEDS):
            return f"{self.pairs} of {len(WORKERS) * len(SEEDS)} run"
        if self.low > -BOUND and self.high < BOUND:
            return "equal"
        if self.high < -BOUND:
            return "below"
        return "above" if self.low > BOUND else "not decided"


def jobs_of(task: str, methods: Sequence[str] = tuple(METHODS)) -> list[ComparedRun]:
    """The trainings of a task: method after method, so that a stop leaves whole methods behind."""
    return [
        ComparedRun(method, TASKS[task], workers, seed, STEPS // (INNER_STEPS * workers), INNER_STEPS)
        for method in (DENSE, *(m for m in methods if m != DENSE and m not in LEFT_OUT.get(task, ())))
        for workers in WORKERS
        for seed in SEEDS
    ]


def _of(task: str, method: str) -> list[ComparedRun]:
    """A method's own trainings of a task."""
    return [job for job in jobs_of(task, [method]) if job.method == method]


def verdict(method: str, task: str, rows: dict[ComparedRun, ComparedRow]) -> GridVerdict:
    """TOST of what has been run of a method on a task."""
    pairs = [(rows[job], rows[job.dense]) for job in _of(task, method) if job in rows and job.dense in rows]
    # Texts differ between versions of Python: a pair is of one.
    pairs = [(row, dense) for row, dense in pairs if row.text == dense.text]
    d = [math.log(row.loss / dense.loss) for row, dense in pairs]
    if not all(map(math.isfinite, d)):
        return GridVerdict(method, len(d), math.inf, math.inf, math.inf)
    if len(d) < 2:
        return GridVerdict(method, len(d), *[math.nan] * 3)
    half = _T95[len(d) - 2] * stdev(d) / math.sqrt(len(d))
    return GridVerdict(method, len(d), fmean(d), fmean(d) - half, fmean(d) + half)


def task_table(task: str, rows: dict[ComparedRun, ComparedRow]) -> str:
    """A line per method: losses by workers, means of the seeds; the interval, and the verdict."""
    lines = []
    for method in METHODS:
        found = [[rows[j] for j in _of(task, method) if j in rows and j.workers == n] for n in WORKERS]
        some = next((part[0] for part in found if part), None)
        if some is None:
            continue
        judged = verdict(method, task, rows)
        span = (
            "" if math.isnan(judged.mean) else " to ".join(f"{math.expm1(v):+.2%}" for v in (judged.low, judged.high))
        )
        losses = [f"{fmean(row.loss for row in part):.4f}" if part else "" for part in found]
        word = "" if method == DENSE else judged.word
        lines.append([f"`{method}`", f"{some.bytes_per_parameter:.3g}", *losses, "" if method == DENSE else span, word])
    return table(["method", "bytes", *[f"{n} workers" for n in WORKERS], "beside f32", "verdict"], lines)


def plot(task: str, rows: dict[ComparedRun, ComparedRow], methods: Sequence[str]) -> bytes | None:
    """Loss by workers of some methods, as a PNG; None before any has two numbers of workers."""
    lines = []
    for method in methods:
        points = []
        for n in WORKERS:
            part = [rows[j].loss for j in _of(task, method) if j in rows and j.workers == n]
            points += [(math.log2(n), fmean(part))] if part else []
        lines += [PlotLine(method, points)] if len(points) > 1 else []
    return draw(f"validation loss, nats: {task}", "log2 of workers", lines) if lines else None


SHOWN: Final = ("f32", "int4", "sparse-carried", "muloco", "streaming-overlap", "demo-ranks")
"""On the plots: one of each family."""

HEAD: Final = """# Methods beside each other

Made by `python -m tools.grid` of [grid.csv](grid.csv), one row a training; jobs and tests were
fixed before they ran ([ADR 76](adr/0076-a-grid-planned-before.md)): 2,000 steps of all workers
together, in rounds of 25 a worker, so as many tokens in each row; means of seeds 1 to 3, nats a
token of the validation split, or an example held out. *beside f32*: the 90 % interval of the loss
over that of f32 updates, same workers and seed, less 1. *equal*: within half a per cent; *above*,
*below*: wholly outside of that; what the methods are: [updates.md](updates.md). *bytes*: a
parameter and round, of two workers.
"""


def page(rows: dict[ComparedRun, ComparedRow]) -> str:
    """docs/grid.md."""
    parts = [HEAD]
    for task, name in TASKS.items():
        done = sum(job in rows for job in jobs_of(task))
        head = f"## {task}: `{name}`, {done} of {len(jobs_of(task))} trainings"
        parts.append(f"{head}\n\n{task_table(task, rows)}\n![{task}](img/grid-{task}.png)\n")
    return "\n".join(parts)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", choices=TASKS)
    parser.add_argument("--data", type=Path, help="a preset's text; this Python's documentation")
    parser.add_argument("--methods", help="with commas; all")
    parser.add_argument("--rows", type=Path, default=ROWS)
    given = parser.parse_args()
    if given.task is not None:
        torch.set_num_threads(1)
        name, most = TASKS[given.task], max(WORKERS)
        model = RecipeModel(name, most) if ":" in name else preset_model(name, given.data, most)
        methods = list(METHODS) if given.methods is None else given.methods.split(",")
        for job in jobs_of(given.task, methods):
            for _ in run_jobs([job], model, given.rows, print):
                pass
        return 0
    rows = {row.run: row for row in read_rows(given.rows)}
    PAGE.write_text(page(rows), encoding="utf-8")
    for task in TASKS:
        if (picture := plot(task, rows, SHOWN)) is not None:
            (PLOTS / f"grid-{task}.png").write_bytes(picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
