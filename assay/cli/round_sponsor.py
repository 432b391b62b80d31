"""`assay run post-second|fund|open|cancel|refund`: a run of the second round, as its sponsor and its funders see it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.amounts import parse_amount, tokens
from assay.cli.common import (
    check_run_code,
    confirm,
    open_blobs,
    open_chain,
    open_round_run,
    print_fields,
    print_json,
    talk,
    unlock_key,
)
from assay.cli.options import CHAIN, KEY, RUN, JsonOption, YesOption, with_settings
from assay.protocol.errors import FundsError, UserError
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.sponsor.round_charters import Pace
    from assay.training.presets import Preset

POST_EPILOG = (
    "Example: assay run post-second --preset demo --seats 8 --rounds 20 --yes --json  ->  "
    '{"run", "store", "token", "escrow", ...}; then solvers and auditors start, and `assay run open` begins round 0.'
)


class RunLacks(UserError):
    """A run that cannot open its first round yet."""

    remedy = "Wait until enough solvers and auditors take part, or fund the escrow with `assay run fund`."


@with_settings(*CHAIN, "store", *KEY)
def post(
    settings: Settings,
    preset: Annotated[str, typer.Option(help="What is trained: demo, tiny or gpt-4x128.")] = "demo",
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="UTF-8 text; pydoc's topics unless given.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the run.")] = 20,
    seats: Annotated[int, typer.Option(min=1, max=64, help="Seats, each with its own piece of the data.")] = 8,
    units: Annotated[int, typer.Option(min=1, help="Units of a whole commitment; the preset's steps are cut so.")] = 5,
    least: Annotated[int, typer.Option(min=1, help="Units that a commitment has at least.")] = 2,
    commit: Annotated[int, typer.Option(min=60, help="Seconds of chain time C for a round's training.")] = 600,
    audit: Annotated[float, typer.Option(min=0.000001, max=1.0, help="Replays p expected of a commitment.")] = 0.1,
    reaudit: Annotated[float, typer.Option(min=0.000001, max=0.99, help="Replays q expected of a finding.")] = 0.2,
    capacity: Annotated[int, typer.Option(min=1, max=16, help="Duties c that a ticket answers at a call.")] = 4,
    shifts: Annotated[int, typer.Option(min=1, help="Shifts of tickets; an epoch calls one of them.")] = 1,
    bounty: Annotated[
        float, typer.Option(min=0.5, max=1.0, help="Share of a lock that goes to accusers who were drawn.")
    ] = 0.97,
    tickets: Annotated[int, typer.Option(min=5, help="Tickets that must count before a round opens.")] = 5,
    profile: Annotated[str, typer.Option("--profile", help="The chain: l1, op, arbitrum or local.")] = "local",
    beacon: Annotated[
        str, typer.Option("--beacon", help="What draws: chain (its own randomness), drand, or local (for tests).")
    ] = "chain",
    escrow: Annotated[
        str | None, typer.Option(help="Tokens for pay and wages; what all rounds can cost unless given.")
    ] = None,
    pays: Annotated[bool, typer.Option("--pay", help="Pay solvers as well as crediting shares.")] = False,
    name: Annotated[str, typer.Option(help="Free text that names the run.")] = "assay",
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Capture four programs, publish them, deploy a run of the second round (in a fresh test token), fund it."""
    from assay.protocol.economics.chain_profiles import CHAINS
    from assay.sponsor.round_charters import AuditRates
    from assay.sponsor.round_launching import escrow_of, fund_run, mint_tokens
    from assay.sponsor.round_posting import post_round_run
    from assay.sponsor.round_preparing import prepare_rounds
    from assay.training import data as texts
    from assay.training.presets import preset as preset_of
    from assay_ledger.chain.client import address_of

    if profile not in CHAINS:
        raise UserError(
            f"There is no chain profile {profile!r}.",
            code="UnknownProfile",
            remedy=f"Choose one of: {', '.join(sorted(CHAINS))}.",
        )
    network, asked = _network(beacon), None if escrow is None else parse_amount(escrow)
    blobs, chain = open_blobs(settings), open_chain(settings)
    sponsor = unlock_key(settings).account
    chosen = preset_of(preset)
    pace = pace_of(chosen, units, least, commit)
    talk.print(f"capturing the programs of preset {chosen.name}: step, update, merge of {seats} seats, witnessed step")
    prepared = prepare_rounds(chosen, texts.pydoc_text() if data is None else texts.read_text(data), seats)
    confirm(f"Deploy a run of {rounds} rounds and {seats} seats from {sponsor.address}, and fund it?", yes=yes)
    run = post_round_run(
        chain,
        sponsor,
        blobs,
        prepared,
        name=name,
        rounds=rounds,
        seats=seats,
        pace=pace,
        rates=AuditRates(
            audit_ppm=round(audit * 1e6),
            reaudit_ppm=round(reaudit * 1e6),
            capacity=capacity,
            shifts=shifts,
            tickets=tickets,
            drawn_bounty_ppm=round(bounty * 1e6),
        ),
        kind=profile,
        network=network,
        pays=pays,
        talk=talk.print,
    )
    check_run_code(run, settings)
    wei = escrow_of(run.charter) if asked is None else asked
    talk.print(f"funding the escrow with {tokens(wei)} tokens")
    mint_tokens(chain, sponsor, run.token, address_of(sponsor), wei)
    fund_run(chain, sponsor, run, wei)
    from assay.cli.round_show import describe, show_fields

    document = {"run": "0x" + run.address.hex(), "store": blobs.location, "token": "0x" + run.charter.token.hex()}
    document |= {"escrow": wei} | describe(run)
    if as_json:
        print_json(document)
    else:
        show_fields(document)


@with_settings(*RUN, *KEY, "allow_code")
def fund(
    settings: Settings,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="Amount of tokens, such as 250 or 12.5.")],
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Add tokens to a run's escrow; what is left when it ends goes back to its funders in proportion."""
    from assay.sponsor.round_launching import fund_run

    wei, run = parse_amount(amount), open_round_run(settings)
    check_run_code(run, settings)
    keys = unlock_key(settings)
    held = run.chain.ask(run.token.balance_of(keys.address))
    if held < wei:
        raise FundsError(
            f"{keys.account.address} holds {tokens(held)} tokens, {tokens(wei)} are to be paid in.",
            code="TokensShort",
            remedy="Fund with less, or get tokens first.",
        )
    confirm(f"Pay {tokens(wei)} tokens into the run's escrow?", yes=yes)
    fund_run(run.chain, keys.account, run, wei)
    _print({"funded": wei, "escrow": run.chain.ask(run.escrow.balance())}, as_json=as_json)


@with_settings(*RUN, *KEY)
def open_(settings: Settings, as_json: JsonOption = False) -> None:
    """Open the first round, as the run's sponsor: enough tickets count, a seat is held, and the escrow pays for it."""
    from assay.sponsor.round_launching import launch_lacks, launch_run

    run = open_round_run(settings)
    lacks, all_seats = launch_lacks(run), run.charter.launch.seats
    if lacks.tickets or lacks.escrow or lacks.seats == all_seats:
        missing = [
            f"{lacks.tickets} tickets that count (one counts {run.charter.timing.seasoning} s after it is registered)"
            if lacks.tickets
            else "",
            "a seat that is held" if lacks.seats == all_seats else "",
            f"{tokens(lacks.escrow)} tokens of escrow" if lacks.escrow else "",
        ]
        raise RunLacks(
            f"The run still lacks {' and '.join(filter(None, missing))}.",
            tickets=lacks.tickets,
            seats=lacks.seats,
            escrow=lacks.escrow,
        )
    if lacks.seats:
        talk.print(f"Opening with {lacks.seats} of {all_seats} seats free; they can be taken later.")
    launch_run(run.chain, unlock_key(settings).account, run)
    _print({"opened": run.chain.head().timestamp}, as_json=as_json)


@with_settings(*RUN, *KEY)
def cancel(settings: Settings, yes: YesOption = False, as_json: JsonOption = False) -> None:
    """Give a run up before its first round, as its sponsor: stakes are free, and funders get everything back."""
    run = open_round_run(settings)
    confirm("Cancel the run? It can never open afterwards.", yes=yes)
    run.chain.send(unlock_key(settings).account, run.escrow.cancel())
    _print({"phase": run.chain.ask(run.escrow.phase()).name.lower()}, as_json=as_json)


@with_settings(*RUN, *KEY)
def refund(settings: Settings, as_json: JsonOption = False) -> None:
    """Take back what is left of what you paid into the escrow of a run that has ended."""
    from assay.sponsor.round_launching import refund_all

    run, keys = open_round_run(settings), unlock_key(settings)
    before = run.chain.ask(run.vault.free(keys.address))
    refund_all(run.chain, keys.account, run)
    back = run.chain.ask(run.vault.free(keys.address)) - before
    _print({"refunded": back}, as_json=as_json)


def add_to(app: typer.Typer) -> None:
    """Puts these verbs under `assay run`."""
    app.command("post-second", epilog=POST_EPILOG)(post)
    app.command("fund", epilog='Example: assay run fund 5000 --yes --json  ->  {"funded", "escrow"}')(fund)
    app.command("open", epilog='Example: assay run open --key sponsor --json  ->  {"opened"}')(open_)
    app.command("cancel", epilog='Example: assay run cancel --key sponsor --yes --json  ->  {"phase"}')(cancel)
    app.command("refund", epilog='Example: assay run refund --key sponsor --json  ->  {"refunded"}')(refund)


def pace_of(preset: Preset, units: int, least: int, commit: int) -> Pace:
    """A round's units of a preset's steps. Raises UserError (UnitsDoNotDivide, TooFewUnits)."""
    from assay.sponsor.round_charters import Pace

    if preset.inner_steps % units:
        raise UserError(
            f"The {preset.inner_steps} steps of preset {preset.name} are no {units} units of equal length.",
            code="UnitsDoNotDivide",
            remedy=f"Give --units a divisor of {preset.inner_steps}.",
        )
    if least > units:
        raise UserError(
            f"A commitment of {least} units at least cannot have {units}.",
            code="TooFewUnits",
            remedy="Give a --least of at most --units.",
        )
    return Pace(units=units, least=least, steps=preset.inner_steps // units, commit=commit)


def _network(name: str) -> Any:
    from assay.protocol.run.beacon import EVMNET, LOCAL

    found = {"chain": None, "drand": EVMNET, "local": LOCAL}
    if name not in found:
        raise UserError(f"There is no beacon {name!r}.", code="UnknownBeacon", remedy="Choose chain, drand or local.")
    return found[name]


def _print(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    amounts = ("funded", "escrow", "refunded")
    print_fields({n: f"{tokens(v)} tokens" if n in amounts else v for n, v in document.items()})
