"""`assay govern`: what the owners of a run's shares decide together, and its guardian without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.amounts import SHARES
from assay.cli.common import (
    address_asked,
    check_run_code,
    confirm,
    open_round_run,
    parse_address,
    print_batch,
    print_fields,
    print_json,
    print_table,
    talk,
    unlock_key,
)
from assay.cli.options import KEY, RUN, JsonOption, MultisigOption, WhoOption, YesOption, with_settings
from assay.durations import duration, parse_duration
from assay.protocol.errors import UsageError
from assay.protocol.rounds.decisions import (
    VOTED,
    Decision,
    ProposalState,
    Verb,
    described,
    proposal_name,
    proposed,
    reason_of,
)
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.protocol.rounds.escrow import RunPhase
    from assay.sponsor.governing import ProposalMade
    from assay_ledger.contract import Call
    from assay_ledger.rounds.run import Run

app = typer.Typer(no_args_is_help=True, help="Votes of a run's owners: pause, resume, sunset, price, gateways.")

WORDS = {
    "pause": (Verb.PAUSE, "a LENGTH of chain time for which no new round opens, 86400 or 1d"),
    "resume": (Verb.RESUME, "no value: ends a pause"),
    "sunset": (Verb.SUNSET, "no value: no new rounds and fees, for good"),
    "price": (Verb.PRICE, "PERCENT of the charter's price of a unit, in later rounds"),
    "delist": (Verb.LIST, "ADDRESS of a gateway for which no deposit is taken any more"),
    "relist": (Verb.LIST, "ADDRESS of a gateway that takes deposits again"),
    "dismiss-guardian": (Verb.DISMISS, "no value: nobody pauses without a vote, for good"),
    "successor": (Verb.SUCCESSOR, "ADDRESS of the charter that follows a run that has ended"),
}
"""What `propose` is typed with, and what its value is."""

Named = Annotated[str, typer.Argument(metavar="PROPOSAL", help="First hex digits of a proposal's number.")]


@app.command("status", epilog='Example: assay govern status --json  ->  {"paused", "price", "votes", "proposals"}')
@with_settings(*RUN, "key", "keys_dir")
def status(settings: Settings, who: WhoOption = None, as_json: JsonOption = False) -> None:
    """What was decided, what is voted about, and what an address votes with."""
    from assay.sponsor.governing import proposals_of

    run = _governed(settings)
    ask, governor, now = run.chain.ask, run.governor, run.chain.head().timestamp
    until = ask(governor.paused_until())
    document: dict[str, Any] = {
        "paused": max(until - now, 0),
        "sunset": ask(governor.is_sunset()),
        "price": ask(governor.price_ppm()) / 1e6,
        "guardian": "0x" + ask(governor.guardian()).hex(),
        "guardian_pauses_left": ask(governor.guardian_pauses_left()),
        "mature": ask(governor.is_mature()),
        "vested": ask(run.shares.total_supply()),
        "least_vested": ask(governor.least_vested()),
    }
    if who is not None or settings.key is not None:
        account = address_asked(settings, who)
        document |= {"address": "0x" + account.hex(), "shares": ask(run.shares.balance_of(account))}
        document |= {"votes": ask(run.shares.get_votes(account))}
    made, phase = list(proposals_of(run)), ask(run.escrow.phase())
    if as_json:
        print_json(document | {"proposals": [_document(proposal, phase, now) for proposal in made]})
        return
    shown = {name: SHARES.show(value) for name, value in document.items() if name in _SHARES}
    shown["price"] = f"{document['price'] * 100:g} % of the charter's"
    print_fields(document | shown | {"paused": f"for {duration(document['paused'])}" if document["paused"] else "no"})
    rows = [
        (
            _short(proposal.number),
            proposal.decision.words,
            proposal.state.name.lower(),
            *(SHARES.brief(votes) for votes in (proposal.in_favour, proposal.against, proposal.abstained)),
            SHARES.brief(proposal.quorum) if proposal.quorum else "-",
        )
        for proposal in made
    ]
    print_table("", ("proposal", "decision", "state", "for", "against", "abstained", "quorum"), rows)
    for proposal in made:
        text, at = _next(proposal, phase, now)
        if text and at is None:
            typer.echo(f"{_short(proposal.number)}: {text}")
        if at is not None:
            typer.echo(f"{_short(proposal.number)}: in {duration(max(at - now, 0))} (chain time {at}). {text}")


@app.command("delegate", epilog='Example: assay govern delegate --key owner --json  ->  {"to", "votes", "tx"}')
@with_settings(*RUN, *KEY)
def delegate(
    settings: Settings,
    to: Annotated[str | None, typer.Option("--to", metavar="ADDRESS", help="Who votes; yourself unless given.")] = None,
    multisig: MultisigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say who votes with your shares: nobody does until you have, and what you say counts from the next proposal on."""
    run = _governed(settings)
    if multisig is not None:
        voter = Address(parse_address(to or multisig))
        print_batch(run, multisig, "Delegate the votes of shares", [run.shares.delegate(voter)])
        return
    keys = unlock_key(settings)
    voter = keys.address if to is None else Address(parse_address(to))
    receipt = run.chain.send(keys.account, run.shares.delegate(voter))
    votes = run.chain.ask(run.shares.get_votes(voter))
    _done({"to": "0x" + voter.hex(), "votes": votes}, receipt, as_json=as_json)


@app.command("mature", epilog='Example: assay govern mature --key owner --json  ->  {"generation", "tx"}')
@with_settings(*RUN, *KEY)
def mature(settings: Settings, as_json: JsonOption = False) -> None:
    """Show that the charter's number of rounds is final, once for the run: before it nobody proposes."""
    from assay.sponsor.governing import shown_final

    run = _governed(settings)
    generation = shown_final(run)
    receipt = run.chain.send(unlock_key(settings).account, run.governor.mature(generation))
    _done({"generation": generation}, receipt, as_json=as_json)


@app.command("propose", epilog='Example: assay govern propose pause 86400 --why "a bug" --json  ->  {"proposal", "tx"}')
@with_settings(*RUN, *KEY, "allow_code")
def propose(
    settings: Settings,
    what: Annotated[str, typer.Argument(metavar="DECISION", help=f"One of: {', '.join(WORDS)}.")],
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="What the decision needs.")] = None,
    why: Annotated[str, typer.Option("--why", help="The reason, which voters read; it is public.")] = "",
    multisig: MultisigOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Propose a decision to the owners of shares."""
    from assay.sponsor.governing import check_admitted, check_in_time, check_new

    decision = decision_typed(what, value)
    run = _governed(settings)
    check_run_code(run, settings)
    g = run.charter.governance
    check_in_time(decision.verb, run.chain.ask(run.escrow.phase()))
    check_admitted(decision, g)
    talk.print(
        f"Votes are what is held now and {duration(g.voting_delay)} from now; the vote ends "
        f"{duration(g.voting_delay + g.voting_period)} from now."
    )
    keys = unlock_key(settings) if multisig is None else None
    proposer = keys.address if keys is not None else Address(parse_address(multisig or ""))
    description = described(why, proposer)
    number = check_new(run, decision, description)
    call = run.governor.propose(*proposed(run.modules.governor, decision), description)
    if keys is None:
        print_batch(run, multisig or "", f"Propose to {decision.words}", [call])
        return
    confirm(f"Propose to {decision.words}?", yes=yes)
    receipt = run.chain.send(keys.account, call)
    _done({"proposal": proposal_name(number)}, receipt, as_json=as_json)


@app.command("vote", epilog='Example: assay govern vote 3fa0 for --key owner --yes --json  ->  {"weight", "tx"}')
@with_settings(*RUN, *KEY, "allow_code")
def vote(
    settings: Settings,
    name: Named,
    how: Annotated[str, typer.Argument(metavar="for|against|abstain", help="What you say.")],
    multisig: MultisigOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Vote about a proposal, once, with what you held at its making and at its snapshot."""
    from assay.sponsor.governing import check_state

    if how not in VOTED:
        raise UsageError(f"{how!r} is no vote.", code="VoteInvalid", remedy="Say for, against or abstain.")
    run, made = _proposal(settings, name)
    call = run.governor.cast_vote(made.number, VOTED.index(how))
    if multisig is not None:
        print_batch(run, multisig, f"Vote {how} the proposal to {made.decision.words}", [call])
        return
    keys, now = unlock_key(settings), run.chain.head().timestamp
    check_state(made, ProposalState.ACTIVE, now)
    weight = run.chain.ask(run.governor.get_votes(keys.address, made.snapshot)) if now > made.snapshot else 0
    confirm(f"Vote {how} with {SHARES.show(weight)} shares: {made.decision.words}?", yes=yes)
    _done({"weight": weight}, run.chain.send(keys.account, call), as_json=as_json)


@app.command("queue", epilog='Example: assay govern queue 3fa0 --key owner --json  ->  {"executable_at", "tx"}')
@with_settings(*RUN, *KEY, "allow_code")
def queue(settings: Settings, name: Named, multisig: MultisigOption = None, as_json: JsonOption = False) -> None:
    """Begin the time lock of a proposal that was carried. Anybody may."""
    from assay.sponsor.governing import check_state

    run, made = _proposal(settings, name)
    if _as_batch(run, multisig, "Queue", made, call := run.governor.queue(*_arguments(run, made))):
        return
    check_state(made, ProposalState.SUCCEEDED, run.chain.head().timestamp)
    receipt = run.chain.send(unlock_key(settings).account, call)
    _done({"executable_at": run.chain.ask(run.governor.proposal_eta(made.number))}, receipt, as_json=as_json)


@app.command("execute", epilog='Example: assay govern execute 3fa0 --key owner --yes --json  ->  {"proposal", "tx"}')
@with_settings(*RUN, *KEY, "allow_code")
def execute(
    settings: Settings,
    name: Named,
    multisig: MultisigOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Carry a decision out once its time lock is over. Anybody may."""
    from assay.sponsor.governing import check_state

    run, made = _proposal(settings, name)
    if _as_batch(run, multisig, "Execute", made, call := run.governor.execute(*_arguments(run, made))):
        return
    check_state(made, ProposalState.QUEUED, run.chain.head().timestamp)
    confirm(f"Carry it out: {made.decision.words}?", yes=yes)
    receipt = run.chain.send(unlock_key(settings).account, call)
    _done({"proposal": proposal_name(made.number)}, receipt, as_json=as_json)


@app.command("cancel", epilog='Example: assay govern cancel 3fa0 --key owner --json  ->  {"proposal", "tx"}')
@with_settings(*RUN, *KEY)
def cancel(settings: Settings, name: Named, multisig: MultisigOption = None, as_json: JsonOption = False) -> None:
    """Take your own proposal back before its vote begins."""
    run, made = _proposal(settings, name, checked=False)
    if _as_batch(run, multisig, "Take back", made, call := run.governor.cancel(*_arguments(run, made))):
        return
    receipt = run.chain.send(unlock_key(settings).account, call)
    _done({"proposal": proposal_name(made.number)}, receipt, as_json=as_json)


@app.command("pause", epilog='Example: assay govern pause --key guardian --yes --json  ->  {"until", "left", "tx"}')
@with_settings(*RUN, *KEY, "allow_code")
def pause(
    settings: Settings, multisig: MultisigOption = None, yes: YesOption = False, as_json: JsonOption = False
) -> None:
    """As the run's guardian: pause new rounds for the charter's length, without a vote."""
    from assay.sponsor.governing import check_in_time

    run = _governed(settings)
    check_run_code(run, settings)
    check_in_time(Verb.PAUSE, run.chain.ask(run.escrow.phase()))
    call, length = run.governor.guardian_pause(), duration(run.charter.governance.guardian_pause)
    if multisig is not None:
        print_batch(run, multisig, f"Pause new rounds for {length}", [call])
        return
    left = run.chain.ask(run.governor.guardian_pauses_left())
    confirm(f"Pause new rounds for {length}? {left} pauses are left, this one among them.", yes=yes)
    receipt = run.chain.send(unlock_key(settings).account, call)
    ask = run.chain.ask
    document = {"until": ask(run.governor.paused_until()), "left": ask(run.governor.guardian_pauses_left())}
    _done(document, receipt, as_json=as_json)


def decision_typed(what: str, value: str | None) -> Decision:
    """A decision as typed. Raises UsageError (DecisionUnknown, ValueInvalid, AddressInvalid)."""
    if what not in WORDS:
        raise UsageError(
            f"Nobody can decide {what!r}.", code="DecisionUnknown", remedy=f"Choose one of: {', '.join(WORDS)}."
        )
    verb, needs = WORDS[what]
    if (value is None) != (not verb.types):
        raise UsageError(f"`{what}` takes {needs}.", code="ValueInvalid", remedy="Type the value, or leave it out.")
    if value is None:
        return Decision(verb)
    if "address" in verb.types:
        account = Address(parse_address(value))
        return Decision(verb, (account, what == "delist") if verb is Verb.LIST else (account,))
    try:
        number = parse_duration(value) if verb is Verb.PAUSE else round(float(value) * 10_000)
    except (UsageError, ValueError, OverflowError):
        number = -1
    if not 0 <= number < 1 << 32:
        raise UsageError(f"`{what}` takes {needs}, not {value!r}.", code="ValueInvalid", remedy="Type such a number.")
    return Decision(verb, (number,))


_SHARES = ("vested", "least_vested", "shares", "votes", "weight")


def _governed(settings: Settings) -> Run:
    from assay.sponsor.governing import check_governed

    run = open_round_run(settings)
    check_governed(run)
    return run


def _proposal(settings: Settings, name: str, *, checked: bool = True) -> tuple[Run, ProposalMade]:
    from assay.sponsor.governing import check_in_time, proposal_named

    run = _governed(settings)
    if checked:
        check_run_code(run, settings)
    made = proposal_named(run, name)
    if checked:  # whoever proposed it may take it back
        check_in_time(made.decision.verb, run.chain.ask(run.escrow.phase()))
    return run, made


def _arguments(run: Run, made: ProposalMade) -> Any:
    from assay.protocol.digests import keccak

    return *proposed(run.modules.governor, made.decision), keccak(made.description.encode())


def _as_batch(run: Run, multisig: str | None, what: str, made: ProposalMade, call: Call) -> bool:
    if multisig is None:
        return False
    print_batch(run, multisig, f"{what} the proposal to {made.decision.words}", [call])
    return True


def _document(made: ProposalMade, phase: RunPhase, now: int) -> dict[str, Any]:
    text, until = _next(made, phase, now)
    return {
        "proposal": proposal_name(made.number),
        "decision": made.decision.words,
        "why": reason_of(made.description),
        "by": "0x" + made.proposer.hex(),
        "state": made.state.name.lower(),
        "snapshot": made.snapshot,
        "ends": made.deadline,
        "executable_at": made.eta,
        "next": text or None,
        "until": until,
        "for": made.in_favour,
        "against": made.against,
        "abstained": made.abstained,
        "quorum": made.quorum,
    }


def _next(made: ProposalMade, phase: RunPhase, now: int) -> tuple[str, int | None]:
    from assay.sponsor.governing import is_in_vain, next_of

    in_vain = is_in_vain(made.decision.verb, phase)
    return next_of(made.state, made.number, (made.snapshot, made.deadline, made.eta), now, in_vain=in_vain)


def _short(number: int) -> str:
    return f"{number:064x}"[:12]


def _done(document: dict[str, Any], receipt: Any, *, as_json: bool) -> None:
    tx = receipt["transactionHash"].to_0x_hex()
    if as_json:
        print_json(document | {"tx": tx})
        return
    print_fields({n: SHARES.show(v) if n in _SHARES else v for n, v in document.items()} | {"transaction": tx})
