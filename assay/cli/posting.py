"""`assay run post`: a run of a preset or of a model of one's own, published, deployed and funded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import CHAIN, KEY, RELAYS, DeviceOption, JsonOption, YesOption, with_settings
from assay.cli.posting_steps import DEFAULT_PRESET, DEFAULT_STEPS, DEFAULT_TIER, PostWanted, post_as_wanted
from assay.settings import Settings
from assay.training.presets import PRESETS

EPILOG = (
    "Example: assay run post --preset demo --seats 8 --rounds 20 --yes --json  ->  "
    '{"run", "store", "token", "escrow", ...}; a model of your own: assay run post --recipe examples.own_run:factory '
    "--steps 50 --yes. Then solvers and auditors start, and `assay run open` begins round 0."
)
STARTS = (
    "First weights: a safetensors file or a folder with one, or another run's: its newest final generation unless one "
    "is named."
)
RESUMES = "As --start-from a run, with its outer momentum: its training goes on."
TOKENS = "The run's money: an ERC-20 token that you hold, of any decimals; a fresh test token unless given."
SPONSORS = (
    "The run's sponsor: a Safe or another contract, which opens, cancels and pays. The key only deploys; what the "
    "multisig is to execute is printed."
)
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
        str,
        typer.Option(
            help="How updates travel: f32, bf16, int8, int4, sparse (one parameter in 64), sign (a bit each), powersgd"
            " (two thin factors) or cocktail (the largest of a random eighth)."
        ),
    ] = "f32",
    merge: Annotated[
        str,
        typer.Option(
            help="What becomes of a group's updates: mean, or against poison median-norm, median, centered-clip or "
            "bucketed-clip."
        ),
    ] = "mean",
    sums: Annotated[
        str,
        typer.Option(help="How sums of groups travel, above 64 seats: f32, bf16 or int8."),
    ] = "f32",
    guard: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            help="A preset's base stays where a merge raises the loss on held-out text by more than this share.",
        ),
    ] = None,
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
    profile: Annotated[
        str, typer.Option("--profile", help="The chain: l1, op (an OP stack), arbitrum or local.")
    ] = "local",
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
    data_card: Annotated[
        Path | None,
        typer.Option(
            "--data-card",
            metavar="FOLDER|FILE",
            help="Folder of `assay data convert`, or JSON of your own, whose licence, creator and sources the run's "
            "card names.",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence", metavar="SPDX", help="The trained weights' licence, as the run's card says it: Apache-2.0."
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option("--start-from", metavar="FILE|DIR|RUN[@GENERATION]", help=STARTS),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN[@GENERATION]", help=RESUMES),
    ] = None,
    token: Annotated[str | None, typer.Option("--token", metavar="ADDRESS", help=TOKENS)] = None,
    sponsor_multisig: Annotated[
        str | None, typer.Option("--sponsor-multisig", metavar="ADDRESS", help=SPONSORS)
    ] = None,
    governed: Annotated[
        bool, typer.Option("--governed", help="Owners of shares may pause new rounds, end the run, lower its price.")
    ] = False,
    guardian: Annotated[
        str | None,
        typer.Option("--guardian", metavar="ADDRESS", help="Who may pause a governed run for a while, without a vote."),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
    _device: DeviceOption = None,
) -> None:
    """Capture four programs, publish them, deploy the contracts and fill the escrow, in a fresh test token or yours."""
    wanted = PostWanted(
        preset=preset,
        data=data,
        recipe=recipe,
        steps=steps,
        tier=tier,
        update=update,
        merge=merge,
        sums=sums,
        guard=guard,
        rounds=rounds,
        seats=seats,
        group_size=group_size,
        positions=positions,
        top_positions=top_positions,
        units=units,
        least=least,
        commit=commit,
        audit=audit,
        reaudit=reaudit,
        capacity=capacity,
        shifts=shifts,
        bounty=bounty,
        tickets=tickets,
        profile=profile,
        beacon=beacon,
        escrow=escrow,
        pays=pays,
        name=name,
        data_card=data_card,
        licence=licence,
        start_from=start_from,
        resume=resume,
        token=token,
        sponsor_multisig=sponsor_multisig,
        governed=governed,
        guardian=guardian,
    )
    post_as_wanted(settings, wanted, yes=yes, as_json=as_json)
