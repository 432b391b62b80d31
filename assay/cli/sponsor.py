"""`assay run fund|open|cancel|refund`: a run as its sponsor and its funders see it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.amounts import Currency
from assay.cli.common import (
    check_money,
    check_run_code,
    confirm,
    open_round_run,
    parse_address,
    print_batch,
    print_fields,
    print_json,
    talk,
    unlock_key,
)
from assay.cli.options import KEY, RUN, Amount, JsonOption, MultisigOption, YesOption, with_settings
from assay.cli.run_waits import patient_run, patiently
from assay.protocol.errors import FundsError, RejectedError, UsageError, UserError
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.types import Address, Wei
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.sponsor.launching import LaunchLacks
    from assay_ledger.keys.keystore import ActorKeys
    from assay_ledger.rounds.run import Run


class RunLacks(UserError):
    """A run that cannot open its first round yet."""

    remedy = "Wait until enough solvers and auditors take part, or fund the escrow with `assay run fund`."


class NeverOpened(RejectedError):
    """A run that nobody opened while a round could begin."""

    remedy = "Anybody types `assay run cancel`: stakes are free, and funders get theirs back with `assay run refund`."


def _check_can_begin(run: Run) -> None:
    """Raises NeverOpened for a run in which no round can begin any more: it takes no money, and opens for nobody."""
    if run.chain.ask(run.escrow.phase()) is RunPhase.FUNDING and run.chain.ask(run.commitments.is_over()):
        raise NeverOpened("Nobody opened the run while a round could begin.")


def _expect(run: Run, can: Callable[[RunPhase], bool], when: str) -> RunPhase:
    """The run's phase, which a command needs to be such, before anything is asked. Raises RejectedError."""
    phase = run.chain.ask(run.escrow.phase())
    if not can(phase):
        raise RejectedError(
            f"The run is {phase.words}; this can be done {when}.",
            code="WrongPhase",
            remedy="`assay run show` says how far the run is.",
        )
    return phase


@with_settings(*RUN, *KEY, "allow_code")
def fund(
    settings: Settings,
    amount: Amount,
    multisig: MultisigOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Add tokens to a run's escrow: the payer's free stake in the run's vault first, then tokens that it holds. What
    came first is spent first; what is left goes back to its funders."""
    from assay.sponsor.launching import free_for, fund_calls, fund_run

    run = open_round_run(settings)
    _expect(run, lambda phase: not phase.has_ended, "before it ends")
    _check_can_begin(run)
    check_money(run)
    money = run.currency
    wei = money.parse(amount)
    check_run_code(run, settings)
    if multisig is not None:
        free = free_for(run, Address(parse_address(multisig)), wei)
        _say_parts(money, multisig, wei, free)
        print_batch(run, multisig, f"Pay {money.both(wei)} into a run's escrow", fund_calls(run, wei, free))
        return
    keys = unlock_key(settings)
    free = free_for(run, keys.address, wei)
    held = run.chain.ask(run.token.balance_of(keys.address))
    if held < wei - free:
        also = f" and {money.show(free)} of free stake" if free else ""
        raise FundsError(
            f"{keys.account.address} holds {money.show(held)} tokens{also}, {money.show(wei)} are to be paid in.",
            code="TokensShort",
            remedy="Fund with less, or get tokens first.",
        )
    _say_parts(money, keys.account.address, wei, free)
    confirm(f"Pay {money.both(wei)} into the run's escrow?", yes=yes)
    fund_run(run.chain, keys.account, run, wei, free)
    document = {"funded": wei, "from_stake": free, "escrow": run.chain.ask(run.escrow.balance())}
    _print(document, money, as_json=as_json)


def _say_parts(money: Currency, who: str, amount: Wei, free: Wei) -> None:
    """Where an amount comes from, where it is not from a wallet alone."""
    if free:
        talk.print(
            f"{money.both(free)} of it come from the free stake of {who} in the run's vault, where a payment that was "
            f"broken off leaves its tokens, and {money.both(Wei(amount - free))} from the tokens that it holds.",
            markup=False,
        )


@with_settings(*RUN, *KEY)
def open_(
    settings: Settings,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until enough take part; ends with an error where the run ends first.")
    ] = False,
    multisig: MultisigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the first round: as the run's sponsor, or as anybody from the charter's day on, if enough take part. Whoever
    finds it opened already has nothing left to do."""
    run = patient_run(settings) if wait else open_round_run(settings)
    if multisig is not None:
        if wait:
            raise UsageError(
                "--wait waits to send, and --multisig sends nothing.",
                code="OptionsClash",
                remedy="Give --multisig alone once `assay run show` names nothing that is lacking.",
            )
        # A multisig is refused where others were first: what it executed would be.
        _expect(run, lambda phase: phase is RunPhase.FUNDING, "before its first round")
        _check_can_begin(run)
        _say_launch(run, _check_launch(run))
        print_batch(run, multisig, "Open a run's first round", [run.escrow.launch()])
        return
    unlocked = cache(lambda: unlock_key(settings))
    opened = patiently(lambda: _open(run, unlocked, wait=wait)) if wait else _open(run, unlocked, wait=wait)
    if opened is None:
        _say_open(as_json=as_json)
    else:
        _print({"opened": opened}, run.currency, as_json=as_json)


def _open(run: Run, unlocked: Callable[[], ActorKeys], *, wait: bool) -> int | None:
    """Chain time at which a run was opened by this; None: it is open already. Raises RunLacks, RejectedError."""
    from assay.sponsor.launching import launch_run

    phase = _expect(run, lambda phase: not phase.has_ended, "before its first round")
    if phase is RunPhase.RUNNING:
        return None
    _check_can_begin(run)
    if wait:
        unlocked()  # who waits is asked for a password in the beginning
    lacks = _check_launch(run)
    try:
        if wait:
            run.chain.simulate(run.escrow.launch(), sender=unlocked().address)
        _say_launch(run, lacks)
        launch_run(run.chain, unlocked().account, run)
    except RejectedError as error:
        if error.code != "WrongPhase" or run.chain.ask(run.escrow.phase()) is not RunPhase.RUNNING:
            raise
        return None
    return run.chain.head().timestamp


def _check_launch(run: Run) -> LaunchLacks:
    """What a run opens without. Raises RunLacks where it cannot."""
    from assay.sponsor.launching import launch_lacks

    lacks, all_seats = launch_lacks(run), run.charter.launch.seats
    if lacks.tickets or lacks.escrow or lacks.seats == all_seats:
        missing = [
            f"{lacks.tickets} tickets that count (one counts {run.charter.timing.seasoning} s after it is registered)"
            if lacks.tickets
            else "",
            "a seat that is held" if lacks.seats == all_seats else "",
            f"{run.currency.show(lacks.escrow)} tokens of escrow" if lacks.escrow else "",
        ]
        raise RunLacks(
            f"The run still lacks {' and '.join(filter(None, missing))}.",
            tickets=lacks.tickets,
            seats=lacks.seats,
            escrow=lacks.escrow,
        )
    return lacks


def _say_launch(run: Run, lacks: LaunchLacks) -> None:
    """What opening means."""
    ask, money, all_seats = run.chain.ask, run.currency, run.charter.launch.seats
    if lacks.seats:
        talk.print(f"Opening with {lacks.seats} of {all_seats} seats free; they can be taken later.")
    talk.print(
        f"The escrow holds {money.show(ask(run.escrow.balance()))} tokens; "
        f"the first round sets {money.show(ask(run.escrow.cost_of(all_seats - lacks.seats)))} aside."
    )


def _say_open(*, as_json: bool) -> None:
    """What a command says that found nothing to open."""
    if as_json:
        print_json({"opened": None})
    else:
        typer.echo("the run is open already")


@with_settings(*RUN, *KEY)
def cancel(
    settings: Settings, multisig: MultisigOption = None, yes: YesOption = False, as_json: JsonOption = False
) -> None:
    """Give a run up before its first round, as its sponsor, or as anybody once no round can begin: stakes are free, and
    funders get everything back."""
    run = open_round_run(settings)
    _expect(run, lambda phase: phase is RunPhase.FUNDING, "before its first round")
    held = run.currency.both(run.chain.ask(run.escrow.balance()))
    then = f"It can never open afterwards; {held} go back to its funders."
    if multisig is not None:
        talk.print(f"This cancels the run. {then}")
        print_batch(run, multisig, "Cancel a run before its first round", [run.escrow.cancel()])
        return
    confirm(f"Cancel the run? {then}", yes=yes)
    run.chain.send(unlock_key(settings).account, run.escrow.cancel())
    talk.print("Funders get their tokens back with `assay run refund`.")
    _print({"phase": run.chain.ask(run.escrow.phase()).name.lower()}, run.currency, as_json=as_json)


@with_settings(*RUN, *KEY)
def refund(settings: Settings, multisig: MultisigOption = None, as_json: JsonOption = False) -> None:
    """Take back what is left of what you paid into the escrow of a run that has ended."""
    from assay.sponsor.launching import refund_all

    run = open_round_run(settings)
    _expect(run, lambda phase: phase.has_ended, "once it has ended")
    if multisig is not None:
        calls = [run.escrow.refund(Address(parse_address(multisig)))]
        print_batch(run, multisig, "Take back a payment into a run's escrow; again for each", calls)
        return
    keys = unlock_key(settings)
    before, paid = run.chain.ask(run.vault.free(keys.address)), run.chain.ask(run.escrow.funded_of(keys.address))
    talk.print(
        f"You paid {run.currency.show(paid)} tokens in that did not come back yet; "
        f"the escrow holds {run.currency.show(run.chain.ask(run.escrow.balance()))} of all funders."
    )
    refund_all(run.chain, keys.account, run)
    back = run.chain.ask(run.vault.free(keys.address)) - before
    talk.print("What came back is free stake in the run's vault: `assay ledger unstake` and `withdraw` pay it out.")
    _print({"refunded": back}, run.currency, as_json=as_json)


def add_to(app: typer.Typer) -> None:
    """Puts these verbs under `assay run`."""
    app.command("fund", epilog='Example: assay run fund 5000 --yes --json  ->  {"funded", "from_stake", "escrow"}')(
        fund
    )
    app.command(
        "open",
        epilog='Example: assay run open --key sponsor --json  ->  {"opened"}, null where it was before; '
        "assay run open --wait --key sponsor",
    )(open_)
    app.command("cancel", epilog='Example: assay run cancel --key sponsor --yes --json  ->  {"phase"}')(cancel)
    app.command("refund", epilog='Example: assay run refund --key sponsor --json  ->  {"refunded"}')(refund)


def _print(document: dict[str, Any], money: Currency, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    amounts = ("funded", "from_stake", "escrow", "refunded")
    print_fields({n: f"{money.show(v)} tokens" if n in amounts else v for n, v in document.items()})
