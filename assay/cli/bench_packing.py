"""`assay bench packing`: what is published, packed without loss."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from assay.cli.common import print_json, print_table
from assay.cli.options import DeviceOption, JsonOption, TextOption, ThreadsOption

EPILOG = (
    "Example: assay bench packing --preset demo --rounds 8 --json"
    '  ->  {"rows": [{"method", "what", "bytes", "packed", "ratio", "pack_rate", "unpack_rate"}, ...]}'
)


def packing(
    preset: Annotated[str, typer.Option("--preset", help="What is trained: tiny, demo or gpt-4x128.")] = "tiny",
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Workers.")] = 4,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds; the last one's lists are packed.")] = 8,
    inner_steps: Annotated[
        int | None, typer.Option("--inner-steps", min=1, help="Steps of a worker in a round; the preset's.")
    ] = None,
    data: TextOption = None,
    threads: ThreadsOption = 1,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train by every update rule, and pack what a worker publishes: its update, and the base, also against the former.

    Byte planes, deflated; what comes out is compared with what went in.
    """
    import torch

    from assay.bench.methods.trained import preset_model
    from assay.bench.packing import packed_rows
    from assay.training.updates import UpdateWire

    torch.set_num_threads(threads)
    model = preset_model(preset, data, workers)
    rows = list(
        packed_rows(
            [wire.value for wire in UpdateWire],
            model,
            workers=workers,
            rounds=rounds,
            inner_steps=inner_steps or model.preset.inner_steps,
        )
    )
    if as_json:
        print_json({"rows": [asdict(row) for row in rows]})
        return
    columns = ["method", "what", "bytes", "packed", "ratio", "MB/s in", "MB/s out"]
    print_table(
        f"{model.name} after {rounds} rounds", columns, [[str(v) for v in asdict(row).values()] for row in rows]
    )
