"""`assay inference pledge`, `covered`, `accuse`: what a gateway answers for, and how a reader has it answer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.asked_model import ContextOption, ModelOption, RecipeOption, TierOption, asked_model, check_source
from assay.cli.bonding import BondsOption, gates_of
from assay.cli.common import check_run_code, confirm, open_round_run, print_fields, print_json, talk, unlock_key
from assay.cli.options import KEY, RUN, STORED_RUN, DeviceOption, JsonOption, YesOption, with_settings
from assay.durations import duration
from assay.protocol.errors import ConfigError, UsageError
from assay.protocol.types import Digest
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.inference.statement import SignedStatement

PLEDGE_EPILOG = (
    "Example: assay inference pledge --bonds 0xabc... --model pulled --for 86400 --key gate --yes --json"
    '  ->  {"model", "until"}'
)
COVERED_EPILOG = (
    'Example: assay inference covered answer.json --bonds 0xabc... --json  ->  {"covered": true, "until", "bond"}'
)
ACCUSE_EPILOG = (
    "Example: assay inference accuse answer.json --bonds 0xabc... --model pulled --key me --yes --json"
    '  ->  {"place", "claim", "game", "convicted"}'
)
POLL_S = 1.0

StatementArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A statement that a gateway gave.")]


@with_settings(*STORED_RUN, *KEY)
def pledge(
    settings: Settings,
    bonds: BondsOption,
    seconds: Annotated[int, typer.Option("--for", min=1, help="Seconds of chain time from now.")],
    model: ModelOption = None,
    recipe: RecipeOption = None,
    context: ContextOption = None,
    tier: TierOption = "fixed14",
    _device: DeviceOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pledge --key to answer truly with this model: until then each of its statements can be presented as a claim."""
    from assay.inference.bonds import pledge_model

    check_source(settings, model)
    the_run = open_round_run(settings)
    gates = gates_of(the_run, bonds)
    own = asked_model(settings, model, recipe, context, tier).model
    keys = unlock_key(settings)
    confirm(f"Answer with the bond for all that {keys.account.address} signs, for {duration(seconds)}?", yes=yes)
    until = pledge_model(gates, own, keys, seconds)
    document = {"model": "0x" + own.root.hex(), "until": until}
    print_json(document) if as_json else print_fields(document)


@with_settings(*RUN)
def covered(settings: Settings, file: StatementArgument, bonds: BondsOption, as_json: JsonOption = False) -> None:
    """Whether a bond answers for a statement, and until when it can be presented: exit code 6 where none does.

    Whether the statement's model is the run's says `assay inference verify --run`.
    """
    from assay.inference.cover import check_covered

    the_run = open_round_run(settings)
    gates, signed = gates_of(the_run, bonds), read_file(file)
    until = check_covered(gates, signed)
    document = {
        "covered": True,
        "gateway": "0x" + signed.signer.hex(),
        "model": "0x" + signed.statement.model.hex(),
        "until": until,
        "bond": gates.terms.bond,
    }
    if as_json:
        print_json(document)
        return
    print_fields(document | {"bond": the_run.currency.show(gates.terms.bond)})


@with_settings(*STORED_RUN, *KEY, "allow_code")
def accuse(
    settings: Settings,
    file: StatementArgument,
    bonds: BondsOption,
    model: ModelOption = None,
    recipe: RecipeOption = None,
    context: ContextOption = None,
    tier: TierOption = "fixed14",
    _device: DeviceOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the first false token of a statement, present it, and play the game to its end; interrupted, go on by the
    same command. Locks the run's challenge bond and deposit until then; who is right gets them back, and a part of
    the gateway's bond. Who does not go on within an hour of the commitment loses the deposit.
    """
    from assay.inference.bonds import AnswerGames
    from assay.inference.cover import check_covered
    from assay.inference.verify import false_place
    from assay.protocol.run.answers import answer_claim

    check_source(settings, model)
    the_run = open_round_run(settings)
    check_run_code(the_run, settings)
    gates, signed = gates_of(the_run, bonds), read_file(file)
    own = asked_model(settings, model, recipe, context, tier).model
    place = false_place(own, signed.statement)
    # Attack: a reader's own model or machine that is wrong. Nobody is accused of what this one finds true.
    if place is None:
        raise UsageError(
            "The answer is what the model says: there is nothing to accuse of.",
            code="AnswerTrue",
            remedy="Keep your tokens; a false accusation costs them.",
        )
    talk.print(f"Token {place} of the answer is false.")
    keys = unlock_key(settings)
    games = AnswerGames(gates, own, keys)
    claim = answer_claim(signed.statement.digest, signed.signer, place)
    # Attack on whoever was interrupted: a second stake for a second game, while the first is lost by silence.
    game = games.game_on(claim)
    if not game:
        late, money = games.is_late(claim), the_run.currency
        if late:
            # Whoever is refused below, since nothing covers the statement any more, has lost it all the same.
            burns = money.both(the_run.charter.economics.challenge_deposit)
            talk.print(f"The challenge was not revealed in time: its deposit, {burns}, burns.")
        if late or not games.has_committed(claim):
            until = check_covered(gates, signed)
            talk.print(f"The pledge lasts until chain time {until}{': it is committed to anew' if late else ''}.")
        confirm(f"Lock {money.both(games.stake())} for the game?", yes=yes)
        games.commit(signed, place)
        games.wait_to_reveal(claim, lambda: time.sleep(POLL_S))
        game = games.present(signed, place)
    convicted = games.play(game) if game else False
    document = {"place": place, "claim": "0x" + Digest(claim).hex(), "game": game, "convicted": convicted}
    if as_json:
        print_json(document)
        return
    print_fields(document)
    if not game:
        talk.print("The gateway had lost its bond before, or its pledge was over; the deposit came back.")


def read_file(file: Path) -> SignedStatement:
    """A statement's file. Raises ConfigError (FileUnreadable), StatementRefused."""
    from assay.inference.statement import MAX_BYTES, read_statement

    try:
        with file.open("rb") as source:
            return read_statement(source.read(MAX_BYTES + 1))
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read ({error.strerror}).", code="FileUnreadable", remedy="Name a statement's file."
        ) from None
