"""`assay run`: post a run, look at it, see whether you can join, and what its sponsor does with it."""

from __future__ import annotations

from typing import Any

import typer

from assay.cli import bringing, joining, plan, posting, sponsor
from assay.cli.common import open_blobs, open_chain, open_round_run, print_json, print_table, sight
from assay.cli.options import CHAIN, RUN, JsonOption, with_settings
from assay.protocol.errors import AssayError
from assay.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Training runs.")

app.command("post", epilog=posting.EPILOG)(posting.post)
sponsor.add_to(app)
app.command("can-join", epilog=joining.EPILOG)(joining.can_join)
app.command("bring-beacon", epilog=bringing.EPILOG)(bringing.bring_beacon)
app.command("plan", epilog=plan.EPILOG)(plan.plan)


@app.command(
    "show", epilog='Example: assay run show --json  ->  {"run", "rounds", "programs", "price_per_round", "phase", ...}'
)
@with_settings(*RUN)
def show(settings: Settings, as_json: JsonOption = False) -> None:
    """What a run promises, and how far it has come."""
    from assay.cli import run_documents as documents

    the_run = open_round_run(settings)
    promised: dict[str, Any] = {"run": "0x" + the_run.address.hex()} | documents.describe(the_run)
    code, done = documents.describe_code(the_run, settings.allowed_code), documents.progress(sight(the_run))
    if as_json:
        print_json(promised | {"code": code} | done)
        return
    documents.show_fields(promised | documents.code_fields(code))
    documents.show_progress(done)


@app.command("list", epilog='Example: assay run list --json  ->  [{"run", "model", "rounds", "block"}, ...]')
@with_settings(*CHAIN, "store")
def list_(settings: Settings, as_json: JsonOption = False) -> None:
    """The runs whose cards lie in the store and whose contracts are on the chain."""
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
    if as_json:
        print_json(found)
    else:
        print_table("", ["run", "model", "rounds", "block"], [list(entry.values()) for entry in found])
