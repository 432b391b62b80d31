"""`assay run new`: asks what a run needs, checks what it takes before anything is captured, and posts it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from assay.cli.common import talk
from assay.cli.options import CHAIN, KEY, RELAYS, DeviceOption, JsonOption, YesOption, with_settings
from assay.cli.posting import RESUMES, STARTS, TOKENS
from assay.cli.posting_steps import DEFAULT_PRESET, DEFAULT_STEPS, PostWanted, check_wanted, post_as_wanted
from assay.protocol.errors import UsageError
from assay.settings import Settings

EPILOG: Final = (
    "Examples: assay run new --key sponsor; assay run new --recipe examples.own_run:factory --steps 50 --seats 2 "
    '--rounds 3 --pay --key sponsor --yes --json  ->  {"run", "store", "token", "escrow", ...}. '
    "`assay run post` takes every term of a run."
)
USUAL_SEATS: Final = 2
USUAL_ROUNDS: Final = 3

T = TypeVar("T", int, str, bool)


@with_settings(*CHAIN, "store", *KEY, *RELAYS)
def new(
    settings: Settings,
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", metavar="PACKAGE.MODULE:FACTORY", help="What is trained: a model of your own."),
    ] = None,
    preset: Annotated[str | None, typer.Option(help=f"Or a preset; {DEFAULT_PRESET} unless a recipe is given.")] = None,
    data: Annotated[Path | None, typer.Option("--data", metavar="FILE", help="UTF-8 text for a preset.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="A recipe's optimizer steps of a seat and round.")] = None,
    seats: Annotated[int | None, typer.Option(min=1, max=1024, help="Solvers that train at once.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of the run.")] = None,
    pays: Annotated[bool | None, typer.Option("--pay/--no-pay", help="Pay solvers beside crediting shares.")] = None,
    profile: Annotated[
        str, typer.Option("--profile", help="The chain: l1, op (an OP stack), arbitrum or local.")
    ] = "local",
    name: Annotated[str | None, typer.Option(help="Free text that names the run.")] = None,
    start_from: Annotated[
        str | None,
        typer.Option("--start-from", metavar="FILE|DIR|RUN[@GENERATION]", help=STARTS),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN[@GENERATION]", help=RESUMES),
    ] = None,
    token: Annotated[str | None, typer.Option("--token", metavar="ADDRESS", help=TOKENS)] = None,
    yes: YesOption = False,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Post a run step by step: it asks for what is not given, and takes what is usual without a terminal."""
    guide = Guide(asks=not yes and sys.stdin.isatty() and sys.stderr.isatty())
    if recipe is None and preset is None and data is None:
        talk.print("What is trained: a recipe of your own (docs/own-models.md), or nothing for a preset.")
        recipe = guide.ask("Recipe, as PACKAGE.MODULE:FACTORY", "") or None
    if recipe is not None and steps is None:
        steps = guide.ask("Optimizer steps of a seat and round", DEFAULT_STEPS)
    wanted = PostWanted(
        preset=preset,
        data=data,
        recipe=recipe,
        steps=steps,
        seats=guide.ask("Seats: solvers that train at once", USUAL_SEATS) if seats is None else seats,
        rounds=guide.ask("Rounds", USUAL_ROUNDS) if rounds is None else rounds,
        pays=guide.ask("Pay tokens for work that stood, beside shares", False) if pays is None else pays,
        profile=profile,
        name=guide.ask("A name for the run", "assay") if name is None else name,
        start_from=start_from,
        resume=resume,
        token=token,
    )
    post_as_wanted(settings, fit_units(wanted), yes=yes, as_json=as_json)


def fit_units(wanted: PostWanted) -> PostWanted:
    """The same with the most units, up to the usual five, that divide a round's steps: nobody is asked for them.

    Raises what `check_wanted` does of everything else.
    """
    inner_steps = check_wanted(replace(wanted, units=1, least=1))
    units = max(n for n in range(1, wanted.units + 1) if inner_steps % n == 0)
    return replace(wanted, units=units, least=min(wanted.least, units))


class Guide:
    """Asks on a terminal, and takes the usual answer where there is none."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks

    def ask(self, question: str, usual: T) -> T:
        """An answer of the usual one's type; a number is at least 1. Raises UsageError (AnswerInvalid)."""
        if not self._asks:
            return usual
        if isinstance(usual, bool):
            return typer.confirm(question, default=usual, err=True)
        answer: T = typer.prompt(question, default=usual, show_default=usual != "", err=True)
        if isinstance(answer, int) and answer < 1:
            raise UsageError(f"{answer} is too few.", code="AnswerInvalid", remedy="Give a number of at least 1.")
        return answer
