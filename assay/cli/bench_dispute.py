"""`assay bench dispute`: what a dispute costs, played and computed."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from assay.cli.common import print_json, print_table, talk
from assay.cli.options import DeviceOption, JsonOption
from assay.protocol.errors import UsageError

EPILOG: Final = (
    'Example: assay bench dispute --json  ->  {"rows": [{"model", "levels", "transactions", "gas_total", "gas_leaf", '
    '"gas_max_move", "calldata", "seconds_at_2s_blocks", "bytes_kept", "retrace_seconds", ...}], "published": [...]}'
)


def dispute(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="MODEL", help="demo, gpt-10m or gpt2-small; may be repeated.")
    ] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play real disputes about GPTs on a local node, and compute GPT-2 small's from its captured program.

    With `--device cuda` the solver computes on the GPU and the auditor on the CPU. Estimated columns are named as such.
    `--only demo --only gpt2-small` leaves out the GPT of 10 M parameters, whose training, audit and game take most of
    the time.
    """
    from assay.bench.dispute import MODELS, report

    if unknown := sorted(set(only or ()) - set(MODELS)):
        raise UsageError(
            f"There is no model {unknown[0]!r} to measure.",
            code="UnknownModel",
            remedy=f"Choose one of: {', '.join(MODELS)}.",
        )
    found = report(only or (), talk.print)
    if as_json:
        print_json(found)
        return
    columns = [
        *("model", "kind", "levels", "transactions", "gas_total", "gas_leaf", "gas_max_move", "calldata"),
        *("seconds_at_2s_blocks", "bytes_kept", "retrace_seconds", "estimated"),
    ]
    rows = [[", ".join(v) if isinstance(v := row[c], list) else v for c in columns] for row in found["rows"]]
    print_table("Disputes", [c.replace("_", " ") for c in columns], rows)
    for entry in found["published"]:
        typer.echo(f"{entry['system']}: {entry['figure']} ({entry['source']})")
