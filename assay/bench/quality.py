"""How well each tier trains: the same model, seeds and batches in stock eager f32 and by exact programs.

Losses are evaluated in eager f32 on the whole validation split. Every finished run is one JSON line of a file, and is
not run again; an unfinished one continues from its last state.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import torch

from assay.bench.sides import CPU
from assay.bench.tasks import ALL_TIERS, EAGER, LARGE_TASKS, QualityRun, Text, Trainer, loss_on, text_of
from assay.engine.compiler.cache import source_digest
from assay.protocol.errors import UsageError
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program

BARS: Final = {"fixed14": 0.01, "fixed8": 0.03}
"""How far above f32 a tier's loss may be, nats."""

EVERY = 250
"""Steps between the points of a curve, each evaluated on every eighth window."""


def known(what: str, wanted: Sequence[str] | None, choices: Sequence[str]) -> list[str]:
    """The wanted names, or all choices.

    Raises:
        UsageError: UnknownTask or UnknownTier.
    """
    for name in wanted or ():
        if name not in choices:
            raise UsageError(
                f"There is no {what} {name!r}.",
                code=f"Unknown{what.capitalize()}",
                remedy=f"Choose from {', '.join(choices)}.",
            )
    return list(wanted or choices)


def train(
    trainer: Trainer, text: Text, kept: Path, ends: float, say: Callable[[str], None], start: float
) -> dict[str, Any] | None:
    """The record of one run, or None if `ends` (monotonic seconds) came first and the state lies in `kept`.

    start: processor seconds when it began.
    """
    job, step, program, executor = trainer.job, trainer.step, trainer.program, trainer.executor
    done, curve, spent, training, waited = 0, [[0, loss_on(step, trainer.state[0], text.validation, 8)]], 0.0, 0.0, 0.0
    if kept.exists():
        saved = torch.load(kept, weights_only=True)
        trainer.put(saved["state"])
        done, curve = saved["done"], saved["curve"]
        spent, training, waited = saved["spent"], saved["training"], saved["waited"]
    while done < job.steps:
        before, at = time.process_time(), time.perf_counter()
        steps = min(trainer.at_once, EVERY - done % EVERY, job.steps - done)
        trainer(steps)
        training, waited = training + time.process_time() - before, waited + time.perf_counter() - at
        state = trainer.state
        done += steps
        if done % EVERY == 0 and done < job.steps:
            curve.append([done, loss_on(step, state[0], text.validation, 8)])
            say(f"{job.task} {job.tier} seed {job.seed}: step {done}, loss {curve[-1][1]:.4f}, {training:.0f} CPU s")
        is_late = time.monotonic() > ends
        if (done % EVERY == 0 or is_late) and done < job.steps:
            own = [part.clone() for part in state[0]], list(state[1]), list(state[2])
            total = spent + time.process_time() - start
            saved = {"state": own, "done": done, "curve": curve, "spent": total, "training": training, "waited": waited}
            torch.save(saved, kept.with_suffix(".new"))
            kept.with_suffix(".new").replace(kept)
        if is_late and done < job.steps:
            return None
    loss = loss_on(step, trainer.state[0], text.validation)
    curve.append([done, loss_on(step, trainer.state[0], text.validation, 8)])
    kept.unlink(missing_ok=True)
    return asdict(job) | {
        "loss": loss,
        "nats_per_character": loss / text.characters,
        "curve": curve,
        "training_cpu_s": round(training, 1),
        "training_s": round(waited, 1),
        "device": trainer.device.type,
        "cpu_s": round(spent + time.process_time() - start, 1),
        "executor": "eager" if executor is None else executor.variant.value,
        "bits": {} if program is None else bits_of(program),
        "vocabulary": text.vocabulary,
        "text": text.digest,
        "code": source_digest()[:16],
        "torch": torch.__version__,
    }


def bits_of(program: Program) -> dict[str, int]:
    """How many products have which bits, as "A x B"."""
    found = Counter(f"{n.precision_a}x{n.precision_b}" for n in program.nodes if isinstance(n, Dot))
    return dict(sorted(found.items()))


def read_records(file: Path) -> list[dict[str, Any]]:
    """The finished runs of a file; a line cut short by a crash is passed over."""
    records = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def run_jobs(
    jobs: Sequence[QualityRun],
    text: str,
    file: Path,
    *,
    seconds: float | None,
    say: Callable[[str], None],
    device: torch.device = CPU,
    ready: Sequence[Trainer] = (),
) -> Iterator[dict[str, Any]]:
    """Run what the file does not hold yet, one after another, and append each; ends early after `seconds`.

    ready: trainers of some of the jobs on this text and device, which need not be made again.
    """
    ends = float("inf") if seconds is None else time.monotonic() + seconds
    texts: dict[str, Text] = {}
    digest = sha256(text.encode()).hexdigest()[:16]
    finished = {identity(r) for r in read_records(file)}
    for job in jobs:
        if identity(asdict(job) | {"text": digest}) in finished:
            continue
        kind = job.task if job.task in ("bytepairs", *LARGE_TASKS) else "characters"
        if kind not in texts:
            texts[kind] = text_of(kind, text)
        kept = file.with_name(f"{file.stem}.{job.task}-{job.tier}-{job.seed}-{job.steps}-{digest}.partial")
        start = time.process_time()
        trainer = next((t for t in ready if t.job == job), None) or Trainer(job, texts[kind], device)
        record = train(trainer, texts[kind], kept, ends, say, start)
        if record is None:
            say(f"Time is up; {job.task} {job.tier} seed {job.seed} continues where it stopped when run again.")
            return
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")
        yield record


def identity(record: dict[str, Any]) -> tuple[Any, ...]:
    """What makes two runs the same run."""
    return tuple(record[name] for name in ("task", "tier", "seed", "steps", "text"))


def summary(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per task, length and tier: mean loss, mean and worst difference to f32 of the same seeds, and the bar."""
    rows = []
    eager = {(r["task"], r["steps"], r["text"], r["seed"]): r["loss"] for r in records if r["tier"] == EAGER}
    for task, steps, text, tier in sorted({(r["task"], r["steps"], r["text"], r["tier"]) for r in records}):
        own = [r for r in records if (r["task"], r["steps"], r["text"], r["tier"]) == (task, steps, text, tier)]
        differences = [
            r["loss"] - eager[task, steps, text, r["seed"]] for r in own if (task, steps, text, r["seed"]) in eager
        ]
        mean = sum(differences) / len(differences) if differences else None
        bar = BARS.get(tier)
        rows.append(
            {
                "task": task,
                "steps": steps,
                "tier": tier,
                "text": text,
                "seeds": len(own),
                "loss": sum(r["loss"] for r in own) / len(own),
                "difference": mean,
                "worst": max(differences, default=None),
                "bar": bar,
                "met": None if mean is None or bar is None else mean <= bar,
                "training_cpu_s": sorted(r["training_cpu_s"] for r in own)[len(own) // 2],
            }
        )
    return rows


def pictures(records: Sequence[dict[str, Any]]) -> dict[str, bytes]:
    """PNG files by name: per task the losses of each tier, mean over seeds, and their differences to f32."""
    from assay.bench.plot import PlotLine, draw  # by NumPy, which a machine that only measures may lack

    files = {}
    longest = {task: max(r["steps"] for r in records if r["task"] == task) for task in {r["task"] for r in records}}
    for task in sorted(longest):
        own = [r for r in records if r["task"] == task and r["steps"] == longest[task]]
        curves = [PlotLine(t, _mean_curve([r for r in own if r["tier"] == t]), k) for k, t in enumerate(ALL_TIERS)]
        curves = [c for c in curves if c.points]
        files[f"quality-{task}.png"] = draw(f"validation loss, nats: {task}", "step", curves)
        eager = {r["seed"]: dict(r["curve"]) for r in own if r["tier"] == EAGER}
        apart = []
        for style, tier in enumerate(ALL_TIERS[1:], 1):
            paired = [r for r in own if r["tier"] == tier and r["seed"] in eager]
            moved = [{"curve": [[x, y - eager[r["seed"]][x]] for x, y in r["curve"]]} for r in paired]
            if moved:
                apart.append(PlotLine(tier, _mean_curve(moved), style))
        if apart:
            title = f"validation loss above f32 of the same seeds, nats: {task}"
            files[f"quality-{task}-difference.png"] = draw(title, "step", apart)
    return files


def _mean_curve(records: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """The mean over runs at the steps that all of them have."""
    curves = [dict(r["curve"]) for r in records]
    steps = sorted(set.intersection(*(set(c) for c in curves))) if curves else []
    return [(step, sum(c[step] for c in curves) / len(curves)) for step in steps]
