"""`assay run`: post a run, look at it, see whether you can join, and what its sponsor does with it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from assay.cli import bringing, joining, new_run, plan, posting, sponsor
from assay.cli.common import open_blobs, open_chain, open_round_run, print_json, print_table
from assay.cli.options import CHAIN, RUN, JsonOption, with_settings
from assay.cli.run_waits import patient_run, until_ended
from assay.cli.seeing import sight
from assay.planning.outlook import outlook_of_run
from assay.protocol.errors import AssayError
from assay.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Training runs.")

app.command("new", epilog=new_run.EPILOG)(new_run.new)
app.command("post", epilog=posting.EPILOG)(posting.post)
sponsor.add_to(app)
app.command("can-join", epilog=joining.EPILOG)(joining.can_join)
app.command("bring-beacon", epilog=bringing.EPILOG)(bringing.bring_beacon)
app.command("plan", epilog=plan.EPILOG)(plan.plan)


@app.command(
    "show",
    epilog='Example: assay run show --json  ->  {"run", "rounds", "price_per_round", "phase", "waits", ...}; '
    "assay run show --wait",
)
@with_settings(*RUN)
def show(
    settings: Settings,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended, in whatever way, first.")] = False,
    as_json: JsonOption = False,
) -> None:
    """What a run promises, and how far it has come."""
    from assay.cli import run_documents as documents
    from assay_ledger.agents.waiting import waits
    from assay_ledger.chain.nonces import market_of

    the_run = patient_run(settings) if wait else open_round_run(settings)
    if wait:
        until_ended(the_run)
    promised: dict[str, Any] = {"run": "0x" + the_run.address.hex()} | documents.describe(the_run)
    promised |= outlook_of_run(the_run.charter).to_document()
    view = sight(the_run, settings)
    code, done = documents.describe_code(the_run, settings.allowed_code), documents.progress(view)
    waiting = waits(view)
    if as_json:
        print_json(promised | {"code": code, "waits": [asdict(each) for each in waiting]} | done)
        return
    documents.show_fields(promised | documents.code_fields(code), the_run.currency)
    if closed := joining.closed_because(view):
        typer.echo(f"Nobody joins it any more: {closed}.")
    else:
        fees = market_of(the_run.chain, settings.tip_floor)
        for role in ("solver", "verifier"):
            for line in joining.outlook_lines(the_run, view, role, 1, fees)[:2]:
                typer.echo(line)
    documents.show_progress(done, the_run.currency)
    for each in waiting:
        typer.echo(f"{'It stands still: ' if each.stands else ''}{each.text} {each.remedy}".rstrip())
    for line in documents.after_the_end(view):
        typer.echo(line)


@app.command("list", epilog='Example: assay run list --json  ->  [{"run", "model", "rounds", "block"}, ...]')
@with_settings(*CHAIN, "store")
def list_(settings: Settings, as_json: JsonOption = False) -> None:
    """The runs whose cards lie in the store and whose contracts are on the chain, the oldest first."""
    from assay.sponsor.cards import listed_runs, read_card
    from assay_ledger.rounds.run import Run

    blobs, chain = open_blobs(settings), open_chain(settings)
    found: list[dict[str, Any]] = []
    for address in listed_runs(blobs):
        try:
            run = Run(chain, address)
            card = read_card(blobs, run.address)
        except AssayError:
            continue
        entry = {
            "run": "0x" + address.hex(),
            "model": card.model,
            "rounds": run.charter.rounds,
            "block": card.first_block,
        }
        found.append(entry)
    found.sort(key=lambda entry: (entry["block"], entry["run"]))
    if as_json:
        print_json(found)
    else:
        print_table("", ["run", "model", "rounds", "block"], [list(entry.values()) for entry in found])
