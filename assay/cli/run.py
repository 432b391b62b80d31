"""`assay run`: post a run, look at it, and see whether you can join."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from eth_utils.address import to_checksum_address

from assay.amounts import parse_amount, tokens
from assay.cli import plan, round_sponsor
from assay.cli.common import (
    check_run_code,
    confirm,
    open_any_run,
    open_blobs,
    open_chain,
    open_run,
    parse_address,
    print_fields,
    print_json,
    print_table,
    talk,
    unlock_key,
)
from assay.cli.options import CHAIN, KEY, RUN, STORED_RUN, JsonOption, YesOption, with_settings
from assay.protocol.economics import formulas
from assay.protocol.errors import AssayError, UsageError
from assay.protocol.types import Address, Digest
from assay.settings import Settings
from assay_ledger.chain.client import address_of
from assay_ledger.deployment.code import code_of
from assay_ledger.index.records import RunState
from assay_ledger.index.run import Run
from assay_ledger.rounds.run import AnyRun, RoundRun, run_at

if TYPE_CHECKING:
    from assay.sponsor.preparing import Prepared
    from assay_ledger.store.blobs import BlobStore

app = typer.Typer(no_args_is_help=True, help="Training runs.")

DEFAULT_PRESET = "demo"
DEFAULT_STEPS = 25
DEFAULT_TIER = "fixed14"


@app.command(
    "post",
    epilog='Example: assay run post --preset demo --escrow 5000 --yes --json  ->  {"run", "store", ...}; a model of '
    "your own: assay run post --recipe examples.own_run:factory --steps 50 --yes",
)
@with_settings(*CHAIN, "store", *KEY)
def post(
    settings: Settings,
    preset: Annotated[
        str | None, typer.Option(help="What is trained: demo or tiny; demo unless a recipe is given.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="UTF-8 text for a preset; pydoc's topics unless given."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe", metavar="PACKAGE.MODULE:FACTORY", help="Train a model of your own, with its own data."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Optimizer steps per seat and round of a recipe; 25.")
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option("--tier", metavar="TIER", help="A recipe's precision: fixed8, fixed14 or fixed22; fixed14."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the run.")] = 3,
    escrow: Annotated[str, typer.Option(help="Tokens for pay and wages; the sponsor must hold them.")] = "100000",
    pays: Annotated[bool, typer.Option("--pay", help="Pay solvers as well as crediting shares.")] = False,
    whistle: Annotated[
        float, typer.Option(min=0.000001, max=1.0, help="Rate q2 of whistleblowers over attested duties.")
    ] = 0.2,
    audit: Annotated[float, typer.Option(min=0.000001, max=5.0, help="Expected replays p per duty.")] = 2.0,
    name: Annotated[str, typer.Option(help="Free text that names the run.")] = "assay",
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Capture the programs, publish them, deploy the contracts and fill the escrow (in a fresh test token)."""
    from assay.sponsor.posting import post_run

    blobs, chain = open_blobs(settings), open_chain(settings)
    sponsor = unlock_key(settings).account
    wei = parse_amount(escrow)
    prepared = _prepared(preset, data, recipe, steps, tier)
    confirm(f"Deploy a run of {rounds} rounds from {sponsor.address} with an escrow of {escrow} tokens?", yes=yes)
    address = post_run(
        chain,
        sponsor,
        blobs,
        prepared,
        name=name,
        rounds=rounds,
        pays=pays,
        whistle_ppm=round(whistle * 1e6),
        audit_ppm=round(audit * 1e6),
        talk=talk.print,
    )
    run = Run(chain, address)
    check_run_code(run, settings)
    talk.print("filling the escrow")
    for call in (
        run.token.mint(address_of(sponsor), wei),
        run.token.approve(run.vault.address, wei),
        run.vault.deposit(wei),
        run.settlement.fund(wei),
    ):
        chain.send(sponsor, call)
    token = to_checksum_address(run.token.address)
    document = {"run": "0x" + address.hex(), "store": blobs.location, "token": token} | describe(run)
    _show(document, as_json=as_json)


def _prepared(
    preset: str | None, data: Path | None, recipe: str | None, steps: int | None, tier: str | None
) -> Prepared:
    """What a run starts from, of a preset or of a recipe. Raises UsageError (OptionsClash) and what capture raises."""
    from assay.programs.capture import tier_of
    from assay.programs.factory import load_recipe
    from assay.sponsor.preparing import prepare, prepare_recipe
    from assay.training import data as texts
    from assay.training.presets import preset as preset_of

    foreign = {"--preset": preset, "--data": data} if recipe is not None else {"--steps": steps, "--tier": tier}
    given = [option for option, value in foreign.items() if value is not None]
    if given:
        whose = "a preset's, and a recipe brings its own" if recipe is not None else "a recipe's"
        raise UsageError(
            f"{' and '.join(given)} cannot be given here: {'it is' if len(given) == 1 else 'they are'} {whose}.",
            code="OptionsClash",
            remedy="Leave it out, or name a --recipe." if recipe is None else "Leave it out.",
        )
    if recipe is None:
        chosen = preset_of(preset or DEFAULT_PRESET)
        talk.print(f"capturing the programs of preset {chosen.name}")
        return prepare(chosen, texts.pydoc_text() if data is None else texts.read_text(data))
    tier_of(tier or DEFAULT_TIER)
    made = load_recipe(recipe)
    talk.print(f"capturing the programs of {recipe}")
    found = prepare_recipe(made, recipe, tier=tier or DEFAULT_TIER, inner_steps=steps or DEFAULT_STEPS)
    talk.print(
        f"one exact step took {found.step_seconds:.2g} s here: "
        f"a round of {found.genesis.inner_steps} steps {found.step_seconds * found.genesis.inner_steps:.0f} s"
    )
    return found


app.command("plan", epilog=plan.EPILOG)(plan.plan)
round_sponsor.add_to(app)


@app.command(
    "show", epilog='Example: assay run show --json  ->  {"run", "rounds", "programs", "prices", "windows", ...}'
)
@with_settings(*RUN)
def show(settings: Settings, as_json: JsonOption = False) -> None:
    """What a run promises, and how far it has come."""
    the_run = open_any_run(settings)
    if isinstance(the_run, RoundRun):
        _show_rounds(the_run, settings, as_json=as_json)
        return
    state = _state(the_run)
    progress: dict[str, Any] = {
        "opened": len(state.rounds),
        "seated": {str(seat): "0x" + who.hex() for seat, who in sorted(state.holders.items())},
        "attesters": {"0x" + a.who.hex(): a.role.name.lower() for a in state.attesters.values()},
        "games": len(state.games),
    }
    code = describe_code(the_run, settings.allowed_code)
    _show({"run": "0x" + the_run.address.hex()} | describe(the_run) | {"code": code} | progress, as_json=as_json)


@app.command("list", epilog='Example: assay run list --json  ->  [{"run", "block"}, ...]')
@with_settings(*CHAIN, "store")
def list_(settings: Settings, as_json: JsonOption = False) -> None:
    """The runs whose cards lie in the store and whose contracts are on the chain."""
    from assay.sponsor.cards import listed_runs, read_card

    blobs, chain = open_blobs(settings), open_chain(settings)
    found: list[dict[str, Any]] = []
    for address in listed_runs(blobs):
        try:
            run = run_at(chain, address)
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


@app.command(
    "can-join",
    epilog='Example: assay run can-join --role solver --address 0xabc... --json  ->  {"can_join", "reasons"}',
)
@with_settings(*STORED_RUN, "allow_code")
def can_join(
    settings: Settings,
    address: Annotated[str, typer.Option("--address", metavar="ADDRESS", help="Whose case is looked at.")],
    role: Annotated[str, typer.Option(help="solver, verifier or whistleblower.")] = "solver",
    as_json: JsonOption = False,
) -> None:
    """Whether an address can take part, with every reason why not and what each would take."""
    the_run = open_run(settings)
    code = describe_code(the_run, settings.allowed_code)
    reasons = joining_reasons(the_run, _state(the_run), Address(parse_address(address)), role)
    if settings.store is not None:
        reasons += start_faults(the_run, open_blobs(settings))
    if code["status"] == "unknown":
        names = ", ".join(code["unknown"])
        reasons.insert(0, f"not created from this release's code: {names} (--allow-code {code['digest']})")
    e = the_run.charter.economics
    lock = e.claim_lock + e.seat_fee if role == "solver" else e.verifier_bond
    facts: dict[str, Any] = {"can_join": not reasons, "reasons": reasons, "locks": lock}
    facts |= {"exit_seconds": the_run.charter.windows.exit, "code": code}
    if as_json:
        print_json(facts)
    else:
        typer.echo("yes" if not reasons else "no: " + "; ".join(reasons))
        if settings.store is None:
            typer.echo("What the run starts from was not looked at: give --store.")
        typer.echo(f"The contracts' code is {CODE_WORDS[code['status']]}; the token is {code['token']}.")
        typer.echo(f"Taking part locks {tokens(lock)} tokens at a time; leaving takes {facts['exit_seconds']} s.")


def joining_reasons(run: Run, state: RunState, who: Address, role: str) -> list[str]:
    """Why an address cannot take a role now; empty when it can."""
    e, reasons = run.charter.economics, []
    free = run.chain.ask(run.vault.free(who))
    needed = e.claim_lock + e.seat_fee if role == "solver" else e.verifier_bond
    if len(state.rounds) >= run.charter.rounds:
        reasons.append("the run has opened its last round")
    if role == "solver":
        if who in state.holders.values():
            reasons.append("it has a seat already")
        elif len(state.holders) >= 8:
            reasons.append("all 8 seats are taken")
    elif who in state.attesters:
        reasons.append(f"it is registered as {state.attesters[who].role.name.lower()} already")
    if free < needed:
        reasons.append(f"{tokens(needed - free)} tokens of stake are missing (assay ledger stake)")
    if int(run.chain.read(lambda: run.chain.w3.eth.get_balance(to_checksum_address(who)))) == 0:
        reasons.append("it has no coins to pay for gas")
    return reasons


def start_faults(run: Run, blobs: BlobStore) -> list[str]:
    """Why a run is not worth a stake: what it starts from, as an actor checks it before it joins."""
    from assay_ledger.index.archive import Archive
    from assay_ledger.index.publications import Publications
    from assay_ledger.index.view import Facts
    from assay_ledger.store.objects import Objects

    objects, facts = Objects(blobs), Facts(run.chain.chain_id, run.address, run.run_id, run.charter)
    archive = Archive(facts, objects, Publications(run.chain, objects))
    try:
        archive.check_programs()
        archive.check_genesis()
    except AssayError as error:
        return [error.message.rstrip(".")]
    return []


CODE_WORDS = {
    "release": "this release's",
    "allowed": "not this release's, and allowed by you",
    "unknown": "not this release's",
}


def describe_code(run: AnyRun, allowed: Collection[Digest] = ()) -> dict[str, Any]:
    """What is known of the code at a run's addresses, for people and scripts."""
    code = code_of(run)
    return {
        "status": code.status(allowed),
        "digest": "0x" + code.digest.hex(),
        "unknown": [c.name for c in code.unknown],
        "token": code.token_words,
        "contracts": {c.name: {"address": "0x" + c.address.hex(), "code": "0x" + c.code.hex()} for c in code.contracts},
    }


def describe(run: Run) -> dict[str, Any]:
    """What a charter says, for people and scripts; amounts in wei."""
    c = run.charter
    e, t, w = c.economics, c.training, c.windows
    return {
        "chain_id": run.chain.chain_id,
        "sponsor": "0x" + c.sponsor.hex(),
        "rounds": c.rounds,
        "intervals": t.intervals,
        "steps_per_interval": t.steps_per_interval,
        "programs": {name: "0x" + program.root.hex() for name, program in c.programs.items()},
        "genesis_parameters": "0x" + t.parameters.hex(),
        "data": "0x" + t.data.hex(),
        "price_per_round": e.price,
        "pays": e.pays,
        "claim_lock": e.claim_lock,
        "verifier_bond": e.verifier_bond,
        "wage": e.wage,
        "seat_fee": e.seat_fee,
        "audit_rate": e.audit_ppm / 1e6,
        "whistle_rate": e.whistle_ppm / 1e6,
        "price_of_one_false_update": formulas.update_price(e),
        "round_seconds": w.round_length,
        "challenge_seconds": w.challenge,
        "vesting_seconds": formulas.vesting_delay(w, c.chain.inclusion_delay),
        "exit_seconds": w.exit,
    }


def _state(run: Run) -> RunState:
    from assay_ledger.index.indexer import Index

    return Index(run).sync()


def _show_rounds(run: RoundRun, settings: Settings, *, as_json: bool) -> None:
    """The same for a run of the second round."""
    from assay.cli import round_show

    promised = {"run": "0x" + run.address.hex()} | round_show.describe(run)
    code, done = describe_code(run, settings.allowed_code), round_show.progress(round_show.sight(run))
    if as_json:
        print_json(promised | {"code": code} | done)
        return
    round_show.show_fields(promised | _code_fields(code))
    round_show.show_progress(done)


def _code_fields(code: dict[str, Any]) -> dict[str, Any]:
    """What is known of a run's code, a line each."""
    shown = {"code": f"{CODE_WORDS[code['status']]} ({code['digest']})", "token": code["token"]}
    return shown | {f"unknown {name}": code["contracts"][name]["address"] for name in code["unknown"]}


def _show(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    money = ("price_per_round", "claim_lock", "verifier_bond", "wage", "seat_fee", "price_of_one_false_update")
    shown = {n: f"{tokens(v)} tokens" if n in money else v for n, v in document.items()}
    if "code" in document:
        shown |= _code_fields(document["code"])
    print_fields(shown)
