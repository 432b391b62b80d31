"""`assay economics`: the table that locks follow from, and what a run's own numbers come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from assay.amounts import tokens
from assay.cli import simulate
from assay.cli.common import open_run, print_fields, print_json, print_table
from assay.cli.options import RUN, JsonOption, with_settings
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.protocol.run.charter import Charter

app = typer.Typer(no_args_is_help=True, help="Why cheating does not pay, in numbers.")


@app.callback()
def _group() -> None:
    """Why cheating does not pay, in numbers."""


app.command("simulate", epilog=simulate.EPILOG)(simulate.simulate)


@app.command(
    "table", epilog='Example: assay economics table --json  ->  {"claim_lock_over_price": {...}, "run": {...}}'
)
@with_settings(*RUN)
def table(settings: Settings, as_json: JsonOption = False) -> None:
    """The least claim lock S in units of a round's pay W, and with --run the bounds that the run keeps."""
    from assay.protocol.economics import formulas

    rates = formulas.RATES_OF_TABLE
    rows = formulas.claim_lock_table()
    bounds = None if settings.run is None else bounds_of(open_run(settings).charter)
    if as_json:
        multiples = {
            str(n): {f"{p:g}": round(v, 6) for p, v in zip(rates, row, strict=True)} for n, row in rows.items()
        }
        overheads = {f"{p:g}": round(formulas.overhead(p), 6) for p in rates}
        print_json({"claim_lock_over_price": multiples, "overhead": overheads, "run": bounds})
        return
    cells: list[list[object]] = [[n, *(f"{v:.2f}" for v in row)] for n, row in rows.items()]
    cells.append(["cost", *(f"{formulas.overhead(p):.3f}" for p in rates)])
    print_table(
        "S over W by intervals n and replay rate p (beta 0.5, v 1/3)", ["n", *(f"p = {p:g}" for p in rates)], cells
    )
    typer.echo("cost: of the whole run over its training alone, with q2 = 0.1 and phi = 0.01, before bytes and gas.")
    if bounds is not None:
        typer.echo("")
        print_fields({name: _shown(value) for name, value in bounds.items()})


def bounds_of(charter: Charter) -> dict[str, Any]:
    """What a charter names and the least it may name; amounts in wei."""
    from assay.protocol.economics import chain_profile, formulas

    e, n, chain, arity = charter.economics, charter.training.intervals, charter.chain, charter.clocks.arity
    delay = chain.inclusion_delay
    return {
        "price W": {"is": e.price},
        "claim lock S": {"is": e.claim_lock, "at_least": formulas.min_claim_lock(e, n)},
        "verifier bond B": {"is": e.verifier_bond, "at_least": formulas.min_bond(e)},
        "challenge bond C": {
            "is": e.challenge_bond,
            "at_least": chain_profile.min_challenge_bond(chain, arity),
        },
        "half a bounty": {"is": chain_profile.kept(e), "at_least": chain_profile.min_kept(chain, arity)},
        "wage w": {"is": e.wage, "by_formula": formulas.duty_wage(e.price, n)},
        "seat fee": {"is": e.seat_fee, "at_most": e.price},
        "price of one false update": {"is": formulas.update_price(e)},
        "exit delay (s)": {"is": charter.windows.exit, "more_than": formulas.min_exit(charter.windows, delay)},
        "vesting delay (s)": {"is": formulas.vesting_delay(charter.windows, delay)},
    }


def _shown(value: dict[str, int]) -> str:
    words = {"at_least": "at least", "at_most": "at most", "more_than": "more than", "by_formula": "1.3 W / n is"}
    unit = tokens if max(value.values()) > 10**12 else str
    limits = [f"{words[name]} {unit(limit)}" for name, limit in value.items() if name in words]
    return unit(value["is"]) + (f"  ({', '.join(limits)})" if limits else "")
