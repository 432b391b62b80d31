"""`assay bench`: what exactness costs, what it does to training, what a dispute costs, measured on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli import (
    bench_explorer,
    bench_goodput,
    bench_index,
    bench_inference,
    bench_links,
    bench_moments,
    bench_multiplier,
    bench_packing,
    bench_serving,
    bench_ulp,
    bench_vouchers,
)
from assay.cli.common import print_json, print_table, talk
from assay.cli.options import DeviceOption, JsonOption, TextOption, ThreadsOption
from assay.engine.runtime import devices

_MODELS = "gpt-4x384, gpt-4x128, llama-4x256, cnn-28x28, gpt-2x96"
_LARGE = "gpt2-12x768, gpt2-12x768-short"

app = typer.Typer(no_args_is_help=True, help="Measurements on this machine: speed, quality of training, disputes.")


@app.callback()
def bench() -> None:
    """Each verb measures one thing; heavy imports happen inside."""


app.command("explorer", epilog=bench_explorer.EPILOG)(bench_explorer.explorer)
app.command("ulp", epilog=bench_ulp.EPILOG)(bench_ulp.ulp)
app.command("goodput", epilog=bench_goodput.EPILOG)(bench_goodput.goodput)
app.command("index", epilog=bench_index.EPILOG)(bench_index.index)
app.command("inference", epilog=bench_inference.EPILOG)(bench_inference.inference)
app.command("links", epilog=bench_links.EPILOG)(bench_links.links)
app.command("moments", epilog=bench_moments.EPILOG)(bench_moments.moments)
app.command("packing", epilog=bench_packing.EPILOG)(bench_packing.packing)
app.command("multiplier", epilog=bench_multiplier.EPILOG)(bench_multiplier.multiplier)
app.command("serving", epilog=bench_serving.EPILOG)(bench_serving.serving)
app.command("vouchers", epilog=bench_vouchers.EPILOG)(bench_vouchers.vouchers)


@app.command(
    "quality",
    epilog="Example: assay bench quality --seeds 1 --steps 200 --json"
    '  ->  {"summary": [{"task", "tier", "seeds", "loss", "difference", "bar", "met", ...}], "runs": [...], ...}',
)
def quality(
    data: TextOption = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Finished runs, one JSON line each.")] = Path(
        "quality.jsonl"
    ),
    task: Annotated[
        list[str] | None, typer.Option("--task", help="characters, bytepairs, outliers or gpu; the first three.")
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option("--tier", help="f32, fixed8, fixed14, fixed22, uniform8 or uniform14; f32, fixed14, fixed8."),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Seeds 1 to this.")] = 3,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Optimizer steps of each run.")] = 2000,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.0, help="Stop after so long; run again to go on.")
    ] = None,
    threads: ThreadsOption = 1,
    device: DeviceOption = None,
    plots: Annotated[Path | None, typer.Option("--plots", metavar="DIR", help="Write curves there as PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train nanoGPT's configurations in eager f32 and in each tier, same seeds, and compare validation losses.

    Takes minutes per run; what the file holds already is not run again.
    """
    import torch

    from assay.bench.quality import known, pictures, read_records, run_jobs, summary
    from assay.bench.sides import device_of
    from assay.bench.tasks import ALL_TIERS, EAGER, LARGE_TASKS, TASKS, QualityRun
    from assay.training.data import given_text

    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
    place = device_of(device or devices.asked())
    torch.set_num_threads(threads)
    tasks = known("task", task or TASKS, [*TASKS, *LARGE_TASKS])
    tiers = known("tier", tier or [EAGER, "fixed14", "fixed8"], ALL_TIERS)
    jobs = [QualityRun(a, b, seed, steps) for a in tasks for seed in range(1, seeds + 1) for b in tiers]
    text = given_text(data)
    seconds = None if minutes is None else minutes * 60
    for record in run_jobs(jobs, text, out, seconds=seconds, say=talk.print, device=place):
        talk.print(
            f"{record['task']} {record['tier']} seed {record['seed']}: loss {record['loss']:.4f} after"
            f" {record['steps']} steps, {record['training_cpu_s']:.0f} CPU s"
        )
    records = read_records(out)
    if plots is not None and records:
        for name, picture in pictures(records).items():
            (plots / name).write_bytes(picture)
    rows = summary(records)
    if as_json:
        print_json({"summary": rows, "runs": records, "file": str(out)})
        return
    cells = [
        [r["task"], r["steps"], r["tier"], r["seeds"], f"{r['loss']:.4f}"]
        + ["" if r[name] is None else f"{r[name]:+.4f}" for name in ("difference", "worst")]
        + [r["bar"] or "", {None: "", True: "met", False: "missed"}[r["met"]], r["training_cpu_s"]]
        for r in rows
    ]
    columns = ["task", "steps", "tier", "seeds", "loss", "above f32", "worst", "bar", "", "CPU s"]
    print_table("Validation loss in nats per token", columns, cells)


@app.command(
    "step",
    epilog="Example: assay bench step --model gpt-4x128 --json  ->  "
    '{"rows": [{"model", "tier", "executor", "time_ratio", "compile_ratio", "compile_bf16_ratio", ...}], ...}',
)
def step(
    model: Annotated[list[str] | None, typer.Option("--model", help=f"{_MODELS}, {_LARGE}; the first five.")] = None,
    tier: Annotated[list[str] | None, typer.Option("--tier", help="fixed8, fixed14, fixed22; fixed8, fixed14.")] = None,
    executor: Annotated[
        list[str] | None, typer.Option("--executor", help="fused or stock; the fastest that is there.")
    ] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Also eager with torch.use_deterministic_algorithms.")
    ] = False,
    witnessed: Annotated[
        bool, typer.Option("--witnessed", help="Also each tier's witnessed step, and what it costs over the plain one.")
    ] = False,
    memory: Annotated[bool, typer.Option(help="Measure memory too, in processes of their own.")] = True,
    compile_: Annotated[
        bool,
        typer.Option("--compile/--no-compile", help="Measure torch.compile too, in f32 and bf16: minutes to build."),
    ] = True,
    device: DeviceOption = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, help="Processor time per model.")] = 20.0,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of each side.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Time whole training steps by exact programs over PyTorch's, eager and compiled, turn about in one run a model."""
    from assay.bench.models import LARGE, MODELS, SHORT
    from assay.bench.quality import known
    from assay.bench.sides import DETERMINISTIC, Contender, default_variant, device_of
    from assay.bench.step import StepTerms, document, measure, refusals
    from assay.engine.runtime.executor import KernelVariant
    from assay.programs.capture import TIERS

    place = device_of(device or devices.asked())
    variants = known("executor", executor or [default_variant(place)], [k.value for k in KernelVariant])
    tiers = known("tier", tier or ["fixed8", "fixed14"], list(TIERS))
    sides = [Contender(t, k, w) for t in tiers for k in variants for w in ((False, True) if witnessed else (False,))]
    sides += [Contender("f32", DETERMINISTIC)] if deterministic else []
    terms = StepTerms(seconds, threads, place, with_memory=memory, with_compile=compile_)
    rows = []
    for name in known("model", model or list(MODELS), [*MODELS, *LARGE, *SHORT]):
        talk.print(f"{name}: {len(sides)} against eager f32 ...")
        rows += measure(name, sides, terms)
    for sentence in refusals(rows) if compile_ else ():
        talk.print(sentence, markup=False)
    if as_json:
        print_json(document(rows))
        return
    both = len({(r.executor, r.witnessed) for r in rows}) > 1
    columns = {
        "model": [r.model for r in rows],
        "tier": [r.tier for r in rows],
        "by": [r.executor + " witnessed" * r.witnessed if both else "" for r in rows],
        "eager": [f"{r.time_ratio:.2f}" for r in rows],
        "compile": ["" if r.compile_ratio is None else f"{r.compile_ratio:.2f}" for r in rows],
        "bf16": ["" if r.compile_bf16_ratio is None else f"{r.compile_bf16_ratio:.2f}" for r in rows],
        "plain": ["" if r.over_plain is None else f"{r.over_plain:.3f}" for r in rows],
        "memory": ["" if r.memory_ratio is None else f"{r.memory_ratio:.2f}" for r in rows],
        "root": ["" if r.hash_share is None else f"{r.hash_share:.2%}" for r in rows],
        "ms": [f"{r.step_ms:,.2f}" for r in rows],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    title = "A step's time over PyTorch's, eager and compiled (f32, bf16); memory over eager's; a root every 25 steps"
    print_table(title, list(shown), list(zip(*shown.values(), strict=True)))


@app.command(
    "witness",
    epilog="Example: assay bench witness --model gpt-4x128 --json  ->  "
    '{"rows": [{"model", "tier", "products", "words", "saved_products", "zeros", "bits", "worst": [...], ...}]}',
)
def witness(
    model: Annotated[list[str] | None, typer.Option("--model", help=f"{_MODELS}; all.")] = None,
    tier: Annotated[list[str] | None, typer.Option("--tier", help="fixed8, fixed14, fixed22; fixed14.")] = None,
    at: Annotated[list[int] | None, typer.Option("--at", min=1, help="Steps to look at; 1, 20 and 100.")] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what witnessed steps sample, how well a training's samples are guessed, and what could be skipped."""
    from dataclasses import asdict

    from assay.bench.models import MODELS
    from assay.bench.quality import known
    from assay.bench.witness import report_of
    from assay.programs.capture import TIERS

    tiers = known("tier", tier or ["fixed14"], list(TIERS))
    reports = [report_of(m, t, at or (1, 20, 100)) for m in known("model", model, list(MODELS)) for t in tiers]
    if as_json:
        print_json({"rows": [asdict(r) for r in reports]})
        return
    columns = ["model", "tier", "products", "words", "nodes", "skipped", "zeros", "bits", "worst", "bits a step"]
    cells = [
        [
            *(r.model, r.tier, r.products, r.words, f"{r.nodes} + {r.added}"),
            f"{r.saved_products:.1%} of products, {r.saved_others:.1%} of the rest",
            *(f"{r.zeros:.2%}", r.bits, r.bits_least, r.bits_of_a_step),
        ]
        for r in reports
    ]
    print_table("Samples of a step, what they do not need of it, and how well they are guessed", columns, cells)
