"""`assay run can-join`: whether an address can take part in a run, and what speaks against it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from eth_utils.address import to_checksum_address

from assay.amounts import COIN, FEES, SHARES
from assay.cli.common import address_named, archive_of, open_blobs, open_round_run, print_json
from assay.cli.options import STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.cli.progress import moved, progress
from assay.cli.seeing import sight
from assay.cli.sponsors import unknown_sponsor
from assay.cli.terms_checks import unfit_terms
from assay.cli.this_machine import income_lines, income_of, machine_lines, this_machine
from assay.counts import count
from assay.durations import duration
from assay.planning.outlook import RoleOutlook, away_words, outlook_of_role, outlook_of_run
from assay.protocol.errors import AssayError, ExitCode, UsageError
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import NEVER
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay_ledger.chain.fees import Market
    from assay_ledger.rounds.run import Run
    from assay_ledger.rounds.view import RunView
    from assay_ledger.store.blobs import BlobStore

EPILOG = (
    'Example: assay run can-join --role solver --address 0xabc... --json  ->  {"can_join", "reasons", "locks", ...}; '
    "with --store also whether what the run starts from is there and fits, and whether this machine can do the role's "
    "work in time: about 10 s of the run's own programs on it; exit code 12 for a no."
)
ROLES = ("solver", "verifier", "whistleblower")


@with_settings(*STORED_RUN, "allow_code", "sponsor", "keys_dir", "data_dir")
def can_join(
    settings: Settings,
    address: Annotated[str, typer.Option("--address", metavar="KEY|ADDRESS", help="Whose case is looked at.")],
    role: Annotated[str, typer.Option(help="solver, verifier or whistleblower.")] = "solver",
    tickets: Annotated[int, typer.Option(min=1, help="Tickets that an auditor wants to hold.")] = 1,
    measure: Annotated[
        bool, typer.Option(help="Run some of the run's real work here, with --store: about 10 s, nothing is sent.")
    ] = True,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Whether an address can take part, with every reason why not and what it would take."""
    from assay.cli.run_documents import CODE_WORDS, describe_code, describe_money, money_words
    from assay_ledger.chain.nonces import market_of

    if role not in ROLES:
        raise UsageError(f"There is no role {role!r}.", code="UnknownRole", remedy=f"Choose one of {', '.join(ROLES)}.")
    who, the_run = address_named(address, settings.keys_dir), open_round_run(settings)
    code, needed = describe_code(the_run, settings.allowed_code), what_it_locks(the_run, role, tickets)
    view = sight(the_run, settings)
    machine = None
    reasons = joining_reasons(the_run, view, who, role, needed) + unknown_sponsor(the_run, settings)
    if settings.store is not None:
        faults = start_faults(the_run, open_blobs(settings))
        if measure and not faults:
            machine, faults = this_machine(the_run, settings, role)
        reasons += faults
    if code["status"] == "unknown":
        names = ", ".join(code["unknown"])
        reasons.insert(0, f"not created from this release's code: {names} (--allow-code {code['digest']})")
    if not the_run.currency.is_known:
        reasons.insert(0, "its token does not say its decimals, so nobody can say what amounts of it are")
    fees = market_of(the_run.chain, settings.tip_floor)
    reasons += dear_gas(the_run, fees) + unfit_terms(the_run)
    about = outlook_now(view, role, tickets)
    facts: dict[str, Any] = {"can_join": not reasons, "reasons": reasons, "locks": needed}
    facts |= {"locks_again": about.locks_again, "challenge": about.challenge, "advised": about.advised}
    facts |= {"leaving_seconds": about.leaving_seconds, "away_seconds": about.away_seconds}
    facts |= {"pay": about.pay, "merge_pay": about.merge_pay, "shares": about.shares, "gas": about.gas}
    facts |= {"gas_coins": about.gas * fees.price, "fees_now": asdict(fees)}
    facts |= outlook_of_run(the_run.charter).to_document() | {"code": code}
    income = income_of(view, role, tickets)
    facts |= {"income_per_day": income.to_document() | {"gas_coins": income.gas * fees.price}}
    facts |= {"sponsor": to_checksum_address(the_run.charter.sponsor)} | describe_money(the_run)
    facts |= {"machine": None if machine is None else machine.to_document()}
    if as_json:
        print_json(facts)
    else:
        typer.echo("yes" if not reasons else "no: " + "; ".join(reasons))
        if settings.store is None:
            typer.echo("What the run starts from was not looked at: give --store.")
        typer.echo(f"The contracts' code is {CODE_WORDS[code['status']]}; the token is {code['token']}.")
        typer.echo(f"The token {money_words(the_run)}.")
        day = income_lines(income, the_run.currency, fees)
        for line in (*outlook_lines(the_run, view, role, tickets, fees), *day, *machine_lines(machine)):
            typer.echo(line)
    if reasons:
        raise typer.Exit(int(ExitCode.NO))


def outlook_now(view: RunView, role: str, tickets: int) -> RoleOutlook:
    """A seat or so many tickets, at the price that holds now."""
    held = 0 if role == "solver" else tickets
    return outlook_of_role(view.charter, tickets=held, price_ppm=view.books.price_ppm)


def outlook_lines(run: Run, view: RunView, role: str, tickets: int, fees: Market) -> list[str]:
    """What taking part takes and gives over the whole run, in sentences."""
    charter = run.charter
    about, whole = outlook_now(view, role, tickets), outlook_of_run(charter)
    what = "a seat" if role == "solver" else "a ticket" if tickets == 1 else f"{tickets} tickets"
    money = run.currency
    again = f", {money.show(about.locks_again)} more if it is lost and taken again" if about.locks_again else ""
    work = "a whole commitment" if role == "solver" else "a replay"
    span = "round" if role == "solver" else "epoch"
    merge = f"; {money.show(about.merge_pay)} tokens for a merge that it opens" if about.merge_pay else ""
    lines = [
        f"Taking {what} locks {money.show(about.locks)} tokens for all rounds{again}; a challenge locks "
        f"{money.show(about.challenge)} while it lasts: {money.show(about.advised)} are enough for all of it.",
        f"For {work}: {money.show(about.pay)} tokens and {SHARES.show(about.shares)} shares, which vest after "
        f"{duration(whole.vesting_seconds)}{merge}; gas of {about.gas:,} a{'n' if span == 'epoch' else ''} {span}, "
        f"{COIN.about(about.gas * fees.price, 6)} coins at the fees of now.",
        f"{count(charter.rounds, 'round')}, each of at most {duration(whole.round_at_most_seconds)} of chain time, and "
        f"shorter where all are done sooner; tickets count after {duration(whole.before_seconds)}, "
        f"leaving takes {duration(about.leaving_seconds)}, the last {duration(whole.exit_seconds)} in the vault.",
    ]
    return lines if role == "solver" else [*lines, away_words(charter)]


def what_it_locks(run: Run, role: str, tickets: int) -> int:
    """Wei behind a seat with its fee, or behind so many tickets."""
    from assay.sponsor.launching import stake_of

    return stake_of(run.charter, seats=1) if role == "solver" else stake_of(run.charter, tickets=tickets)


def closed_because(view: RunView) -> str:
    """Why nobody joins a run any more; empty while one can."""
    phase = view.state.money.phase
    if phase.has_ended:
        return f"the run is {phase.words}"
    if view.never_opened:
        return "nobody opened the run while a round could begin"
    return "the run opens no further round" if phase is RunPhase.RUNNING and view.is_over else ""


def joining_reasons(run: Run, view: RunView, who: Address, role: str, needed: int) -> list[str]:
    """Why an address cannot take a role now that locks `needed` wei; empty when it can."""
    from assay_solver.seats import barred, full

    phase, closed = view.state.money.phase, closed_because(view)
    reasons = [closed] if closed else []
    if role == "solver":
        if any(held.until == NEVER for _, held in view.tenures_of(who)):
            reasons.append("it has a seat already")
        elif not phase.has_ended:
            reasons += [why for why in (barred(view, who), full(view)) if why]
    free = run.chain.ask(run.vault.free(who))
    # Into a run that has ended nobody can stake what is missing.
    if free < needed and not phase.has_ended:
        missing = run.currency.show(needed - free)
        reasons.append(f"{missing} tokens of stake are missing (assay ledger stake {missing})")
    if run.chain.read(lambda: int(run.chain.w3.eth.get_balance(to_checksum_address(who)))) == 0:
        reasons.append("it has no coins to pay for gas")
    return reasons


def dear_gas(run: Run, fees: Market) -> list[str]:
    """Why nobody should join while gas costs what it does; empty where it costs no more than the charter's cap."""
    cap = run.charter.chain.fee_cap
    if fees.base <= cap:
        return []
    # Attack: a cap below every fee, at which no reply of a game is paid for and whatever can wait does.
    now, most = FEES.about(fees.base, 9), FEES.about(cap, 9)
    return [f"gas costs {now} gwei now, above the run's cap of {most}, up to which games pay for it"]


def start_faults(run: Run, store: BlobStore) -> list[str]:
    """Why a run is not worth a stake: what it starts from, as an actor checks it before it joins."""
    try:
        with progress("reading what the run starts from", measure=moved(store)):
            archive_of(run, store).check()
    except AssayError as error:
        return [error.message.rstrip(".")]
    return []
