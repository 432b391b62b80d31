"""`assay run plan`: what a run of a model over some solvers would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.common import print_fields, print_json, print_table
from assay.cli.options import JsonOption

if TYPE_CHECKING:
    from assay.planning.plan import RunPlan

EPILOG = (
    "Example: assay run plan --parameters 1e9 --tokens 2e10 --solvers 100 --json  ->  "
    '{"wall_seconds", "goodput", "path_seconds": {...}, "roles": [...], "security": {...}, "multiplier", ...}'
)


def plan(
    parameters: Annotated[float, typer.Option("--parameters", help="Of the model.")],
    tokens: Annotated[float, typer.Option("--tokens", help="To train on.")],
    solvers: Annotated[int, typer.Option("--solvers", help="Seats.")],
    up: Annotated[float, typer.Option("--up", help="Mb/s that a participant sends.")] = 100.0,
    down: Annotated[float, typer.Option("--down", help="Mb/s that a participant receives.")] = 500.0,
    positions: Annotated[
        float | None,
        typer.Option("--positions", help="Mb/s of a merging position, both ways; as others' unless given."),
    ] = None,
    flops: Annotated[float, typer.Option("--flops", help="Sustained operations a second of one solver.")] = 4e13,
    inner_steps: Annotated[int, typer.Option("--inner-steps", help="H: optimizer steps of a seat and round.")] = 100,
    batch: Annotated[float, typer.Option("--batch", help="Tokens of a seat and optimizer step.")] = 262_144.0,
    update: Annotated[
        str, typer.Option("--update", help="How updates travel, as docs/updates.md names it, or sparse-carried.")
    ] = "int8",
    sums: Annotated[
        str, typer.Option("--sums", help="How sums of groups travel, above 64 seats: f32, bf16 or int8.")
    ] = "f32",
    audit: Annotated[float, typer.Option("--audit", help="p: expected replays of a commitment.")] = 0.10,
    reaudit: Annotated[float, typer.Option("--reaudit", help="q: expected replays of an attestation.")] = 0.20,
    chain: Annotated[str, typer.Option("--chain", help="local, l1, op or arbitrum.")] = "l1",
    group: Annotated[
        int | None, typer.Option("--group", min=1, help="Seats of a partial sum; their square root above 64 seats.")
    ] = None,
    capacity: Annotated[int, typer.Option("--capacity", min=1, help="c: duties of a ticket and epoch.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Plan a run: time, goodput, bytes, gas, stake, income, and what lies would cost.

    Nothing is asked of a chain. Times and bytes follow from the figures given; gas is that of
    measured calls; amounts are in W, the pay of one commitment.
    """
    from assay.planning.inputs import PlanInputs
    from assay.planning.plan import plan_run

    found = plan_run(
        PlanInputs(
            parameters=parameters,
            tokens=tokens,
            solvers=solvers,
            up=up * 1e6,
            down=down * 1e6,
            positions=None if positions is None else positions * 1e6,
            flops=flops,
            inner_steps=inner_steps,
            batch=batch,
            update=update,
            sums=sums,
            audit=audit,
            reaudit=reaudit,
            chain=chain,
            group=group,
            capacity=capacity,
        )
    )
    if as_json:
        print_json(found.to_document())
        return
    _show(found)


def _show(found: RunPlan) -> None:
    t, s = found.timing, found.security
    document = found.to_document()
    print_fields(
        {
            "wall time": f"{t.wall / 86_400:.1f} days in {t.rounds} rounds of {t.round / 60:.0f} minutes",
            "naive data parallelism": f"{document['data_parallel_years']:.3g} years of exchanging gradients",
            "goodput": f"{t.goodput:.3f}, and {t.worst_goodput:.3f} with every delay spent in full",
            "path": ", ".join(f"{name} {seconds:.0f} s" for name, seconds in document["path_seconds"].items()),
            "multiplier": f"{document['multiplier']:.3f} over the exact steps alone: "
            + ", ".join(f"{name} {part:.3f}" for name, part in found.multiplier.items()),
            "cost of audits": f"{found.overhead:.3f} of the pay for training",
            "gas of a round": f"{found.gas_of_round / 1e6:.1f} M",
            "lock of a seat": f"{s.lock:.1f} W",
            "stake of a ticket": "none suffices" if s.stake is None else f"{s.stake:.1f} W",
            "tickets": f"{s.tickets}, with {s.open_duties} open duties each and {t.unsettled} rounds unsettled; "
            f"at least {document['least_tickets_of_others']} of other owners than a seat's",
            "invented work": f"found with {s.detection:.3f} a commitment, after {s.rounds_until_caught:.0f} rounds",
            "one arbitrary update": f"{s.update_price:.2f} W, net",
            "one hardware error": f"{s.hardware_error:.1f} W",
            "one epoch of silence": f"{s.silence:.1f} W",
        }
    )
    rows = [[b.role, b.per, _bytes(b.up), _bytes(b.down), f"{b.gas:,.0f}"] for b in found.burdens]
    print_table("", ["role", "per", "up", "down", "gas"], rows)
    incomes = [[who, *(f"{amount:.3f}" for amount in x.values())] for who, x in found.incomes.items()]
    print_table("", ["income in W", "paid", "left after work"], incomes)
    for warning in found.warnings:
        typer.echo(f"Warning: {warning}")


def _bytes(count: float) -> str:
    """Decimal units."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
