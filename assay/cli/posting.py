"""`assay run post`: a run of a preset or of a model of one's own, published, deployed and funded."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.amounts import parse_amount, tokens
from assay.cli.beacons import check_relays, network_named
from assay.cli.common import (
    check_run_code,
    confirm,
    open_blobs,
    open_chain,
    print_json,
    talk,
    unlock_key,
)
from assay.cli.options import CHAIN, KEY, RELAYS, DeviceOption, JsonOption, YesOption, with_settings
from assay.protocol.errors import UsageError, UserError
from assay.protocol.types import Address, Wei
from assay.settings import Settings
from assay.sponsor.charters import TOKEN
from assay.training.presets import PRESETS

if TYPE_CHECKING:
    from assay.protocol.run.run_charter import RunCharter
    from assay.sponsor.preparing import PreparedRounds

EPILOG = (
    "Example: assay run post --preset demo --seats 8 --rounds 20 --yes --json  ->  "
    '{"run", "store", "token", "escrow", ...}; a model of your own: assay run post --recipe examples.own_run:factory '
    "--steps 50 --yes. Then solvers and auditors start, and `assay run open` begins round 0."
)
DEFAULT_PRESET = "demo"
DEFAULT_STEPS = 25
DEFAULT_TIER = "fixed14"
RECIPE_PANEL = "For a model of your own"
AUDIT_PANEL = "Audits"


@with_settings(*CHAIN, "store", *KEY, *RELAYS)
def post(
    settings: Settings,
    preset: Annotated[
        str | None,
        typer.Option(help=f"What is trained: {', '.join(PRESETS)}; {DEFAULT_PRESET} unless a recipe is given."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="UTF-8 text for a preset; pydoc's topics unless given."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="PACKAGE.MODULE:FACTORY",
            help="Train a model of your own, with its own data.",
            rich_help_panel=RECIPE_PANEL,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            min=1,
            help=f"Optimizer steps of a seat and round; {DEFAULT_STEPS}.",
            rich_help_panel=RECIPE_PANEL,
        ),
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option(
            "--tier",
            metavar="TIER",
            help=f"Precision: fixed8, fixed14 or fixed22; {DEFAULT_TIER}.",
            rich_help_panel=RECIPE_PANEL,
        ),
    ] = None,
    update: Annotated[
        str, typer.Option(help="How updates travel: f32, or int8 with a quarter of the bytes and some rounding.")
    ] = "f32",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the run.")] = 20,
    seats: Annotated[int, typer.Option(min=1, max=1024, help="Seats, each with its own piece of the data.")] = 8,
    group_size: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Above 64 seats: seats of a partial sum; the square root of all."),
    ] = None,
    positions: Annotated[int, typer.Option(min=1, max=63, help="Above 64 seats: positions of a group's sum.")] = 15,
    top_positions: Annotated[int, typer.Option(min=1, max=63, help="Above 64 seats: positions of a generation.")] = 63,
    units: Annotated[int, typer.Option(min=1, help="Units of a whole commitment; a round's steps are cut so.")] = 5,
    least: Annotated[int, typer.Option(min=1, help="Units that a commitment has at least.")] = 2,
    commit: Annotated[
        int | None,
        typer.Option(min=60, help="Seconds of chain time C for a round's training; 600, more for a slow recipe."),
    ] = None,
    audit: Annotated[
        float,
        typer.Option(min=0.000001, max=1.0, help="Replays p expected of a commitment.", rich_help_panel=AUDIT_PANEL),
    ] = 0.1,
    reaudit: Annotated[
        float,
        typer.Option(min=0.000001, max=0.99, help="Replays q expected of a finding.", rich_help_panel=AUDIT_PANEL),
    ] = 0.2,
    capacity: Annotated[
        int,
        typer.Option(min=1, max=16, help="Duties c that a ticket answers at a call.", rich_help_panel=AUDIT_PANEL),
    ] = 4,
    shifts: Annotated[
        int, typer.Option(min=1, help="Shifts of tickets; an epoch calls one of them.", rich_help_panel=AUDIT_PANEL)
    ] = 1,
    bounty: Annotated[
        float,
        typer.Option(
            min=0.5, max=1.0, help="Share of a lock that goes to accusers who were drawn.", rich_help_panel=AUDIT_PANEL
        ),
    ] = 0.97,
    tickets: Annotated[
        int, typer.Option(min=5, help="Tickets that must count before a round opens.", rich_help_panel=AUDIT_PANEL)
    ] = 5,
    profile: Annotated[str, typer.Option("--profile", help="The chain: l1, op, arbitrum or local.")] = "local",
    beacon: Annotated[
        str | None,
        typer.Option(
            "--beacon",
            help="What draws: drand, chain (its own randomness) or local (for tests); drand unless the chain is local.",
        ),
    ] = None,
    escrow: Annotated[
        str | None, typer.Option(help="Tokens for pay and wages; what all rounds can cost unless given.")
    ] = None,
    pays: Annotated[bool, typer.Option("--pay", help="Pay solvers as well as crediting shares.")] = False,
    name: Annotated[str, typer.Option(help="Free text that names the run.")] = "assay",
    yes: YesOption = False,
    as_json: JsonOption = False,
    _device: DeviceOption = None,
) -> None:
    """Capture four programs, publish them, deploy the contracts and fill the escrow (in a fresh test token)."""
    from assay.cli.run_documents import describe, show_fields
    from assay.protocol.economics.chain_profiles import CHAINS
    from assay.sponsor.charters import AuditRates, Committee, pace_of
    from assay.sponsor.launching import escrow_of, fund_run, mint_tokens
    from assay.sponsor.posting import post_run
    from assay_ledger.chain.client import address_of

    if profile not in CHAINS:
        raise UserError(
            f"There is no chain profile {profile!r}.",
            code="UnknownProfile",
            remedy=f"Choose one of: {', '.join(sorted(CHAINS))}.",
        )
    drawn_by = beacon or ("chain" if profile == "local" else "drand")
    network, asked = network_named(drawn_by, profile), None if escrow is None else parse_amount(escrow)
    _refuse_foreign(preset, data, recipe, steps, tier)
    inner_steps = _inner_steps(preset, recipe, steps)
    pace_of(inner_steps, units, least)
    blobs, chain = open_blobs(settings), open_chain(settings)
    if drawn_by == "drand":
        talk.print(f"drand's evmnet: {check_relays(chain, settings.relays)}", markup=False)
    sponsor = unlock_key(settings).account
    prepared = _prepared(preset, data, recipe, tier, inner_steps, seats, group_size, update)
    pace = pace_of(inner_steps, units, least, commit, prepared.step_seconds)

    def wanted(charter: RunCharter) -> Wei:
        return escrow_of(charter) if asked is None else asked

    def ask(charter: RunCharter) -> None:
        for line in _terms(charter, wanted(charter)):
            talk.print(line, markup=False, soft_wrap=True)
        confirm(
            f"Deploy this run from {sponsor.address} and pay {tokens(wanted(charter))} tokens into its escrow?", yes=yes
        )

    run = post_run(
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
        committee=Committee(positions, top_positions),
        talk=talk.print,
        confirm=ask,
    )
    check_run_code(run, settings)
    wei = wanted(run.charter)
    talk.print(f"funding the escrow with {tokens(wei)} tokens")
    mint_tokens(chain, sponsor, run.token, address_of(sponsor), wei)
    fund_run(chain, sponsor, run, wei)
    document = {"run": "0x" + run.address.hex(), "store": blobs.location, "token": "0x" + run.charter.token.hex()}
    document |= {"escrow": wei} | describe(run)
    if as_json:
        print_json(document)
        return
    show_fields(document)
    for line in _next_steps(run.charter, run.address):
        talk.print(line, markup=False)


def _next_steps(charter: RunCharter, address: Address) -> list[str]:
    """What has to happen before the first round, as commands."""
    from assay.sponsor.launching import stake_of

    seat, ticket = (math.ceil(stake_of(charter, **{what: 1}) / TOKEN) for what in ("seats", "tickets"))
    return [
        "Next, in everybody's shell: export ASSAY_RUN=0x" + address.hex(),
        f"  auditors:  assay verifier start --key NAME --tickets 1 --deposit {ticket}",
        f"  solvers:   assay solver start --key NAME --deposit {seat}",
        f"  sponsor:   assay run open --key NAME   (once {charter.launch.tickets} tickets count, "
        f"{charter.timing.seasoning} s of chain time after they are registered)",
        "Test tokens and coins for them: assay ledger faucet ADDRESS... --tokens AMOUNT --key NAME",
    ]


def _terms(charter: RunCharter, escrow: Wei) -> list[str]:
    """What the sponsor is about to promise, in sentences."""
    t, e, w = charter.training, charter.economics, charter.timing
    shares = f"{tokens(e.shares_per_unit * t.max_units)} shares"
    paid = f"{tokens(charter.price)} tokens and {shares}" if e.pays else f"{shares} and no tokens"
    return [
        f"{charter.rounds} rounds of {w.commit} s for {t.seats} seats, up to {t.max_units} units of {t.steps_per_unit} "
        f"steps each",
        f"a whole commitment earns {paid}, a replay {tokens(e.wage)} tokens; the escrow gets {tokens(escrow)}, and "
        f"what is left in the end goes back to its funders",
        f"a seat locks {tokens(e.seat_lock)} tokens and a fee of {tokens(e.seat_fee)}, a ticket of an auditor "
        f"{tokens(e.ticket_bond)}; {charter.launch.tickets} tickets must count before a round opens",
    ]


def _refuse_foreign(
    preset: str | None, data: Path | None, recipe: str | None, steps: int | None, tier: str | None
) -> None:
    """Options that belong to the other kind of model are refused, not passed over. Raises UsageError (OptionsClash)."""
    foreign = {"--preset": preset, "--data": data} if recipe is not None else {"--steps": steps, "--tier": tier}
    given = [option for option, value in foreign.items() if value is not None]
    if given:
        whose = "a preset's, and a recipe brings its own" if recipe is not None else "a recipe's"
        raise UsageError(
            f"{' and '.join(given)} cannot be given here: {'it is' if len(given) == 1 else 'they are'} {whose}.",
            code="OptionsClash",
            remedy="Leave it out, or name a --recipe." if recipe is None else "Leave it out.",
        )


def _inner_steps(preset: str | None, recipe: str | None, steps: int | None) -> int:
    """H, the steps of a whole commitment. Raises UserError (UnknownPreset)."""
    from assay.training.presets import preset as preset_of

    return preset_of(preset or DEFAULT_PRESET).inner_steps if recipe is None else steps or DEFAULT_STEPS


def _prepared(
    preset: str | None,
    data: Path | None,
    recipe: str | None,
    tier: str | None,
    inner_steps: int,
    seats: int,
    group_size: int | None,
    update: str,
) -> PreparedRounds:
    """What the run starts from. Raises UserError (UnknownCarrier) and what capture raises."""
    from assay.programs.capture import tier_of
    from assay.programs.factory import load_recipe
    from assay.sponsor.preparing import prepare_recipe_rounds, prepare_rounds
    from assay.training import data as texts
    from assay.training.presets import preset as preset_of
    from assay.training.updates import UpdateWire

    carriers = {wire.value: wire for wire in UpdateWire}
    if update not in carriers:
        raise UserError(
            f"Updates do not travel as {update!r}.",
            code="UnknownCarrier",
            remedy=f"Choose one of: {', '.join(carriers)}.",
        )
    wire, four = carriers[update], f"step, update ({update}), merge of {seats} seats, witnessed step"
    if recipe is None:
        chosen = preset_of(preset or DEFAULT_PRESET)
        text = texts.pydoc_text() if data is None else texts.read_text(data)
        talk.print(f"capturing the programs of preset {chosen.name}: {four}")
        return prepare_rounds(chosen, text, seats, wire=wire, group_size=group_size)
    tier_of(tier or DEFAULT_TIER)
    made = load_recipe(recipe)
    talk.print(f"capturing the programs of {recipe}: {four}")
    found = prepare_recipe_rounds(
        made, recipe, seats, inner_steps=inner_steps, tier=tier or DEFAULT_TIER, wire=wire, group_size=group_size
    )
    talk.print(
        f"one exact step took {found.step_seconds:.2g} s here: "
        f"a round of {inner_steps} steps {found.step_seconds * inner_steps:.0f} s"
    )
    return found
