"""`assay bench links`: what of a worker's time is training over slow links."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from assay.cli.common import print_json, print_table
from assay.cli.options import DeviceOption, JsonOption, TextOption, ThreadsOption
from assay.protocol.errors import UsageError

EPILOG = (
    "Example: assay bench links --method f32,int4 --mbps 50,1000 --json"
    '  ->  {"rows": [{"method", "mbps", "bytes", "step_s", "up_s", "down_s", "used": {"1", "8", ...}}, ...]}'
)


def links(
    preset: Annotated[str, typer.Option("--preset", help="What is trained: tiny, demo or gpt-4x128.")] = "gpt-4x128",
    method: Annotated[str, typer.Option("--method", help="Rules of updates, by commas.")] = "f32,int8,int4,sparse",
    mbps: Annotated[str, typer.Option("--mbps", help="Megabits a second each way, by commas.")] = "50,200,1000",
    workers: Annotated[int, typer.Option("--workers", min=2, max=64, help="Workers; each gets all updates.")] = 2,
    data: TextOption = None,
    threads: ThreadsOption = 1,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time steps, and real updates through links in user space; say how much of a round is training.

    A round of 1, 8, 32 or 128 steps, then a worker's update up and the others' down. Latency is not counted.
    """
    import torch

    from assay.bench.compare import METHODS
    from assay.bench.links import link_rows
    from assay.bench.methods.trained import preset_model
    from assay.training.updates import UpdateWire

    torch.set_num_threads(threads)
    rates, methods = [_rate(word) for word in mbps.split(",")], method.split(",")
    rules = {wire.value for wire in UpdateWire}
    if unknown := [name for name in methods if name not in rules]:
        named = ", ".join(name for name in METHODS if name in rules)
        raise UsageError(f"There is no rule {unknown[0]!r}.", code="UnknownMethod", remedy=f"Choose from {named}.")
    model = preset_model(preset, data, workers)
    rows = list(link_rows(methods, rates, model, workers=workers))
    if as_json:
        print_json({"rows": [asdict(row) for row in rows]})
        return
    columns = ["rule", "Mb/s", "bytes", "step s", "up s", "down s", *(f"{n} steps" for n in rows[0].used)]
    lines = [
        [row.method, f"{row.mbps:g}", f"{row.bytes:,}", *(f"{s:.3f}" for s in (row.step_s, row.up_s, row.down_s))]
        + [f"{used:.1%}" for used in row.used.values()]
        for row in rows
    ]
    print_table(f"{model.name}, {workers} workers: training, of a round", columns, lines)


def _rate(word: str) -> float:
    try:
        rate = float(word)
    except ValueError:
        rate = 0.0
    if not 0.1 <= rate <= 100_000:
        raise UsageError(f"{word!r} is no rate.", code="BadRate", remedy="Name megabits a second, 0.1 to 100000.")
    return rate
