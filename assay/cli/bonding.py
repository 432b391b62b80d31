"""`assay gateway bond`, `unbond`, `list`, `defend`: what a gateway has at stake for its answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.asked_model import ContextOption, ModelOption, RecipeOption, TierOption, asked_model, check_source
from assay.cli.common import (
    check_money,
    check_run_code,
    confirm,
    digest_typed,
    open_round_run,
    parse_address,
    print_fields,
    print_json,
    print_table,
    send_unless_done,
    talk,
    unlock_key,
)
from assay.cli.options import (
    KEY,
    RUN,
    STORED_RUN,
    DeviceOption,
    JsonOption,
    YesOption,
    typed_amount,
    with_settings,
)
from assay.durations import duration
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Address, Wei
from assay.settings import Settings

if TYPE_CHECKING:
    from assay_ledger.deployment.answers import AnswerGates
    from assay_ledger.rounds.run import Run

BondsOption = Annotated[
    str, typer.Option("--bonds", metavar="ADDRESS", help="Contract of bonded gateways, as `gateway bond` printed it.")
]
EVERY_S = 1.0

BOND_EPILOG = 'Example: assay gateway bond --model pulled --key gate --yes --json  ->  {"bonds", "bond", "deposited"}'
UNBOND_EPILOG = (
    'Example: assay gateway unbond --bonds 0xabc... --key gate --yes --json  ->  {"released", "exiting", "withdrawn"}'
)
LIST_EPILOG = 'Example: assay gateway list --bonds 0xabc... --json  ->  {"bond", "gateways": [{"gateway", ...}]}'
DEFEND_EPILOG = (
    "Example: assay gateway defend --bonds 0xabc... --model pulled --key gate --once --json"
    '  ->  {"games": [...], "won", "lost"}'
)


def gates_of(run: Run, named: str) -> AnswerGates:
    """The contracts of gateways at an address. Raises RejectedError (GatewaysMissing), UnknownCode."""
    from assay_ledger.deployment.answers import check_answers

    return check_answers(run, Address(parse_address(named)))


@with_settings(*STORED_RUN, *KEY, "allow_code")
def bond(
    settings: Settings,
    model: ModelOption = None,
    recipe: RecipeOption = None,
    context: ContextOption = None,
    tier: TierOption = "fixed14",
    size: Annotated[
        str | None,
        typer.Option(
            "--bond",
            metavar="AMOUNT",
            help="Of each gateway of these contracts; what a ticket stakes unless given.",
            callback=typed_amount,
        ),
    ] = None,
    _device: DeviceOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put up the bond of a gateway, and create the contracts of bonded gateways of this model where they are missing.

    Whoever answers falsely under a pledge loses it; `assay inference pledge` pledges.
    """
    from assay.inference import bonds
    from assay.inference.claims import answer_terms
    from assay_ledger.deployment.answers import deploy_answers

    check_source(settings, model)
    the_run = open_round_run(settings)
    check_run_code(the_run, settings)
    check_money(the_run, the_run.charter.token)
    money = the_run.currency
    wei = the_run.charter.economics.ticket_bond if size is None else Wei(money.parse(size))
    own = asked_model(settings, model, recipe, context, tier).model
    keys = unlock_key(settings)
    talk.print(
        f"Bonds {money.both(wei)} of {keys.account.address} for the answers of program 0x{own.program.root.hex()}. A "
        "false answer under a pledge costs all of it."
    )
    confirm(f"Bond {money.both(wei)}?", yes=yes)
    gates = deploy_answers(the_run, keys.account, answer_terms(own, wei))
    deposited = bonds.bond(gates, keys)
    document: dict[str, Any] = {"bonds": gates.gateways.address, "bond": wei, "deposited": deposited}
    _print(document, the_run, as_json=as_json)


@with_settings(*RUN, *KEY)
def unbond(settings: Settings, bonds: BondsOption, yes: YesOption = False, as_json: JsonOption = False) -> None:
    """Take the bond back once nothing that was signed can be presented any more; pays out what is free, too.

    Call it again after the vault's delay: what an accuser staked and won is paid out by the same command. What is ripe
    is paid out first; what is asked for while something waits starts the delay of both.
    """
    from assay.status.account import withdraw_at
    from assay.status.locks import when

    the_run = open_round_run(settings)
    gates, keys, chain = gates_of(the_run, bonds), unlock_key(settings), the_run.chain
    money = the_run.currency
    released = chain.ask(gates.gateways.bond_of(keys.address)).is_bonded
    waits, after = chain.ask(gates.vault.exiting(keys.address))
    now = chain.head().timestamp
    is_ripe = withdraw_at(after) <= now
    if waits and not is_ripe and (released or chain.ask(gates.vault.free(keys.address))):
        talk.print(f"{money.both(waits)} can be withdrawn {when(withdraw_at(after), now)}.")
        talk.print("To ask for more before then starts the delay of all of it anew.")
    confirm("Take the bond back, and all that is free in the vault of gateways?", yes=yes)
    withdrawn = waits if is_ripe else Wei(0)
    if withdrawn:
        send_unless_done(chain, keys.account, gates.vault.withdraw(), "NothingExiting")
    if released:
        chain.send(keys.account, gates.gateways.unbond())
    if free := chain.ask(gates.vault.free(keys.address)):
        chain.send(keys.account, gates.vault.request_exit(free))
    exiting, after = chain.ask(gates.vault.exiting(keys.address))
    if exiting:
        due = when(withdraw_at(after), chain.head().timestamp)
        talk.print(f"{money.both(exiting)} can be withdrawn {due}, by the same command.")
    not_before = withdraw_at(after) if exiting else None
    document = {"released": released, "exiting": exiting, "not_before": not_before, "withdrawn": withdrawn}
    _print(document, the_run, as_json=as_json)


@with_settings(*RUN)
def list_(
    settings: Settings,
    bonds: BondsOption,
    model: Annotated[
        str | None, typer.Option("--root", metavar="ROOT", help="Only pledges of the model with this root.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Every gateway that bonded itself at a contract: its bond, and until when it is pledged."""
    from assay.inference.bonds import standings

    root = (
        None
        if model is None
        else digest_typed(
            model, "--root", "RootInvalid", "`assay model verify` and `assay inference verify` say a model's root."
        )
    )
    the_run = open_round_run(settings)
    gates = gates_of(the_run, bonds)
    now = the_run.chain.head().timestamp
    found: list[dict[str, Any]] = [
        {
            "gateway": "0x" + s.gateway.hex(),
            "bonded": s.is_bonded,
            "convicted": s.is_convicted,
            "games": s.disputes,
            "pledged_until": s.until,
            "covers": s.is_bonded and s.until >= now,
        }
        for s in standings(gates, root)
    ]
    if as_json:
        print_json({"bond": gates.terms.bond, "program": "0x" + gates.terms.forward.hex(), "gateways": found})
        return
    talk.print(f"The bond of each is {the_run.currency.both(gates.terms.bond)}.")
    rows = [[s["gateway"], _state(s), s["games"], duration(max(0, s["pledged_until"] - now))] for s in found]
    print_table("", ["gateway", "bond", "games", "pledged for"], rows)


def _state(standing: dict[str, Any]) -> str:
    return "lost" if standing["convicted"] else "put up" if standing["bonded"] else "taken back"


@with_settings(*STORED_RUN, *KEY)
def defend(
    settings: Settings,
    bonds: BondsOption,
    model: ModelOption = None,
    recipe: RecipeOption = None,
    context: ContextOption = None,
    tier: TierOption = "fixed14",
    once: Annotated[bool, typer.Option("--once", help="Play what is open, then end; else watch until Ctrl-C.")] = False,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer every game on a statement of --key. A gateway that is silent loses its bond, however true its answers.

    Run it beside `assay gateway start` as long as a pledge and the challenge window beyond it last.
    """
    from web3.exceptions import Web3Exception

    from assay.inference.bonds import AnswerGames

    check_source(settings, model)
    the_run = open_round_run(settings)
    gates, keys = gates_of(the_run, bonds), unlock_key(settings)
    games = AnswerGames(gates, asked_model(settings, model, recipe, context, tier).model, keys)
    played: dict[int, bool] = {}
    under_way: set[int] = set()
    while True:
        try:
            found, moved = games.step_all(lambda game, error: talk.print(f"Game {game}: {error}"))
            for game in sorted(found - under_way):
                talk.print(f"Plays game {game}.")
            for game in sorted(under_way - found):
                if (won := games.has_won(game)) is not None:
                    played[game] = won
                    talk.print(f"Game {game} is {'won' if won else 'lost'}.")
            under_way = found
        except (UnavailableError, Web3Exception) as error:
            # Whoever ends here loses its bond by silence: the node is asked again.
            talk.print(f"The node did not answer: {error}")
            moved = False
        else:
            if once and not under_way:
                break
        if not moved:
            time.sleep(EVERY_S)
    if as_json:
        print_json({"games": sorted(played), "won": sum(played.values()), "lost": len(played) - sum(played.values())})


def _print(document: dict[str, Any], run: Run, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    amounts = ("bond", "deposited", "exiting", "withdrawn")
    print_fields(
        {
            n: run.currency.show(v) if n in amounts else "0x" + v.hex() if isinstance(v, bytes) else v
            for n, v in document.items()
        }
    )
