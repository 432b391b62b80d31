"""`assay bench multiplier`: CPU of all processes of a run over CPU of its exact steps alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_fields, print_json, talk
from assay.cli.options import DeviceOption, JsonOption

EPILOG = (
    "Example: assay bench multiplier --json  ->  "
    '{"multiplier", "bar", "over_eager", "parts": {"training", "audit", ...}, "duties_drawn", "duties_expected", ...}'
)


def multiplier(
    preset: Annotated[str, typer.Option(help="What is trained: gpt-4x128, demo, or tiny for a quick look.")] = (
        "gpt-4x128"
    ),
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the run.")] = 5,
    seats: Annotated[int, typer.Option(min=2, max=64, help="Solvers, a process each.")] = 8,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep node, store and logs in this folder.")
    ] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a training run of honest processes to its end, and compare its CPU time with the same steps alone.

    The model as it stands takes a quarter of an hour on two cores; other work on the machine disturbs both sides.
    """
    from assay.bench.multiplier import MultiplierTerms, measure

    def say(text: str) -> None:
        talk.print(text, markup=False, soft_wrap=True)

    document = measure(MultiplierTerms(preset=preset, rounds=rounds, seats=seats), say, keep)
    if as_json:
        print_json(document)
    else:
        print_fields(document)
