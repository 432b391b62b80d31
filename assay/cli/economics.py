"""`assay economics`: the table that locks and stakes follow from, and what a run's own numbers come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from assay.amounts import Currency
from assay.cli import simulate
from assay.cli.common import open_round_run, print_fields, print_json, print_table
from assay.cli.options import RUN, JsonOption, with_settings
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.protocol.run.run_charter import RunCharter

app = typer.Typer(no_args_is_help=True, help="Why cheating does not pay, in numbers.")


@app.callback()
def _group() -> None:
    """Why cheating does not pay, in numbers."""


app.command("simulate", epilog=simulate.EPILOG)(simulate.simulate)


@app.command(
    "table",
    epilog='Example: assay economics table --json  ->  {"rates": [{"audit_rate", "lock", "stake", ...}], "run": {...}}',
)
@with_settings(*RUN)
def table(settings: Settings, as_json: JsonOption = False) -> None:
    """The least lock S and stake B in units of a round's pay W, and with --run the bounds that the run keeps."""
    from assay.protocol.economics import price_table

    run = None if settings.run is None else open_round_run(settings)
    bounds = None if run is None else bounds_of(run.charter)
    rows = [
        {
            "audit_rate": row.audit_ppm / 1e6,
            "reaudit_rate": row.reaudit_ppm / 1e6,
            "lock": round(float(row.lock), 6),
            "stake": None if row.stake is None else round(float(row.stake), 6),
            "overhead": round(float(row.overhead), 6),
            "update_price": round(float(row.update), 6),
        }
        for row in price_table.price_rows()
    ]
    if as_json:
        print_json({"rates": rows, "run": bounds})
        return
    cells: list[list[object]] = [
        [
            f"{row['audit_rate']:.0%}",
            f"{row['reaudit_rate']:.0%}",
            f"{row['lock']:.1f}",
            "none suffices" if row["stake"] is None else f"{row['stake']:.1f}",
            f"{row['overhead']:.3f}",
            f"{row['update_price']:.1f}",
        ]
        for row in rows
    ]
    print_table(
        f"Lock S and stake B over W (U = {price_table.UNSETTLED}, m = {price_table.OPEN_DUTIES}, v = 1/3)",
        ["p", "q", "S", "B", "cost", "one arbitrary update"],
        cells,
    )
    typer.echo("cost: of the whole run over its training alone, before bytes and gas. docs/economics.md explains all.")
    if run is not None and bounds is not None:
        typer.echo("")
        print_fields({name: _shown(name, value, run.currency) for name, value in bounds.items()})


def bounds_of(charter: RunCharter) -> dict[str, Any]:
    """What a charter names and the least or most that it may name; amounts in wei, times in seconds."""
    from assay.protocol.economics.audit_prices import update_price_net
    from assay.protocol.economics.run_bounds import audit_terms, most_unsettled
    from assay.protocol.economics.run_times import last_verdict, min_challenge_bond
    from assay.protocol.economics.stake_bounds import min_lock, min_stake

    e, w, chain, t = charter.economics, charter.timing, charter.chain, audit_terms(charter)
    return {
        "pay W": {"is": charter.price},
        "lock S": {"is": e.seat_lock, "at_least": min_lock(t)},
        "stake B": {"is": e.ticket_bond, "at_least": min_stake(t, e.seat_lock)},
        "challenge bond": {"is": e.challenge_bond, "at_least": min_challenge_bond(chain, charter.clocks.arity)},
        "wage w": {"is": e.wage},
        "seat fee": {"is": e.seat_fee, "at_most": charter.price},
        "price of one false update": {"is": int(update_price_net(t, e.seat_lock, 1 - t.lost))},
        "open duties m": {"is": t.open_duties},
        "unsettled rounds U": {"is": t.unsettled, "at_most": most_unsettled(charter)},
        "exit delay (s)": {"is": w.exit},
        "vesting delay (s)": {"is": w.vesting, "at_least": last_verdict(w, chain.inclusion_delay)},
    }


PLAIN = ("open duties m", "unsettled rounds U", "exit delay (s)", "vesting delay (s)")
"""What is no amount of tokens."""


def _shown(name: str, value: dict[str, int], money: Currency) -> str:
    words = {"at_least": "at least", "at_most": "at most"}
    unit = str if name in PLAIN else money.show
    limits = [f"{words[limit]} {unit(amount)}" for limit, amount in value.items() if limit in words]
    return unit(value["is"]) + (f"  ({', '.join(limits)})" if limits else "")
