"""`assay status`: what a key has in a run, when it gets it back, and what it must do by when."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer
from eth_utils.address import to_checksum_address

from assay.amounts import COIN, SHARES, Currency
from assay.cli.common import address_asked, open_blobs, open_round_run, print_json
from assay.cli.options import STORED_RUN, JsonOption, WhoOption, with_settings
from assay.cli.seeing import read_run
from assay.durations import duration
from assay.explorer.documents import Document, hexed, wei
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.explorer.reader import RunReader
    from assay_ledger.rounds.run import Run

EPILOG = (
    'Example: assay status --address 0xabc... --json  ->  {"stake", "locks", "leaving", "withdrawal_address", "seats", '
    '"tickets", "next_deadline", "earned", "income", ...}; amounts are wei as strings, times seconds of chain time.'
)

IN_SHARES: Final = ("shares", "pending")

ALWAYS_SHOWN: Final = ("pay", "wages", "shares", "pending")
"""What was earned is said of these though it be nothing."""


@with_settings(*STORED_RUN, "key", "keys_dir")
def status(
    settings: Settings,
    who: WhoOption = None,
    watching: Annotated[
        bool, typer.Option("--watch", help="Go on showing it as it changes; with --store also what its actor does now.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """All that a key has in a run: stake, locks and when they end, duties, pay, shares; needs no password."""
    address = address_asked(settings, who)
    if watching:
        from assay.cli.watching import watch

        slots = None if settings.store is None else open_blobs(settings)
        run = open_round_run(settings)
        look = partial(document_at, run=run, who=address)
        watch(run, address, slots, threading.Event(), look, lines, as_json=as_json)
        return
    document = document_of(open_round_run(settings), address)
    if as_json:
        print_json(document)
        return
    for line in lines(document):
        typer.echo(line)


def document_of(run: Run, who: Address) -> Document:
    """What an address has, owes and earns in a run, at its newest block."""
    return document_at(read_run(run), run, who)


def document_at(reader: RunReader, run: Run, who: Address) -> Document:
    """The same by a reader that has followed the run so far."""
    from assay.status.account import money_of, status_of
    from assay_ledger.rounds.view import RunView

    ask = run.chain.ask
    with reader.reading():
        claimable = {"0x" + token.hex(): ask(run.revenue.claimable(token, who)) for token in run.charter.revenue_tokens}
        view = RunView(run.charter, run.facts, who, reader.state)
        found = status_of(view, money_of(reader, who, claimable))
    coins = int(run.chain.read(lambda: run.chain.w3.eth.get_balance(to_checksum_address(who))))
    found |= {"token": hexed(run.charter.token), "decimals": decimals_of(run)}
    return found | {"wallet": {"coins": wei(coins), "tokens": wei(ask(run.token.balance_of(who)))}}


def decimals_of(run: Run) -> dict[str, int | None]:
    """How amounts of the run's token, and of its revenue tokens, are written; None where a token does not say."""
    listed = dict.fromkeys((run.charter.token, *run.charter.revenue_tokens))
    return {hexed(token): run.currency_of(token).decimals for token in listed}


def lines(document: Document) -> Iterator[str]:
    """The same for people, amounts in tokens."""
    now, money = document["now"], _money(document)
    who = to_checksum_address(document["address"])
    yield f"{who} in run {document['run']} ({document['phase']}), chain time {now}"
    if not document["known"]:
        yield f"It has no part in this run; `assay run can-join --address {who}` says what one would take."
    due = document["next_deadline"]
    yield f"Next deadline: {_deadline(due, now)}" if due else "Next deadline: none"
    yield from _section("Stake", list(_stake(document, now)))
    yield from _section("Locks", [_lock(lock, now, money) for lock in document["locks"]])
    yield from _section("Seats", [_seat(seat, document["phase"]) for seat in document["seats"]])
    yield from _section("Tickets", [_ticket(ticket, now, money) for ticket in document["tickets"]])
    yield from _section("Earned", list(_earned(document, now)))
    yield from _section("Income", list(_income(document["income"] or {}, money)))
    yield from _section("Then", [(_deadline(later, now),) for later in document["deadlines"][1:]])


def _section(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned rows under a title; nothing where there are none."""
    if not rows:
        return
    yield title
    widths = [max(len(row[k]) for row in rows if k < len(row)) for k in range(max(map(len, rows)))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()


def _money(document: Document, token: str | None = None) -> Currency:
    """How amounts of a token are written, of the run's own unless one is named."""
    return Currency(document["decimals"][token or document["token"]])


def _amount(wei_text: str, money: Currency) -> str:
    return money.show(int(wei_text))


def _deadline(due: Document, now: int) -> str:
    left = due["until"] - now
    return f"{due['text']} (within {duration(left)}, until chain time {due['until']})"


def _stake(document: Document, now: int) -> Iterator[tuple[str, ...]]:
    from assay.protocol.rounds.escrow import RunPhase
    from assay.status.locks import when

    money = _money(document)
    has_ended = any(phase.has_ended and phase.words == document["phase"] for phase in RunPhase)
    for name, amount in document["stake"].items():
        # Its actor has ended, and what it said then is on another screen.
        is_left = name == "free" and amount != "0" and has_ended
        shown = _amount(amount, money)
        yield name, shown, *([f"can be asked out: `assay ledger unstake {shown}`"] if is_left else [])
    leaving = document["leaving"]
    if leaving is not None:
        due = when(leaving["ends_at"], now)
        yield "asked out", _amount(leaving["amount"], money), f"can be withdrawn {due}: `assay ledger withdraw`"
    if document["withdrawal_address"] != document["address"]:
        yield "paid out to", "", to_checksum_address(document["withdrawal_address"])
    yield (
        "in the wallet",
        _amount(document["wallet"]["tokens"], money),
        f"and {COIN.about(int(document['wallet']['coins']), 6)} coins",
    )


def _lock(lock: Document, now: int, money: Currency) -> tuple[str, ...]:
    from assay.status.locks import LockEnd

    end = LockEnd(**{name: lock[name] for name in ("ends_at", "not_before", "lost_after", "waits_for")})
    return lock["what"], _amount(lock["amount"], money), end.words(now)


def _seat(seat: Document, phase: str) -> tuple[str, ...]:
    from assay.counts import count
    from assay.protocol.rounds.escrow import RunPhase

    until = "" if seat["until"] is None else f" to {seat['until'] - 1}"
    since = "" if seat["since"] is None else f" (began at chain time {seat['since']})"
    is_lost = seat["unsettled"] and phase == RunPhase.WOUND_DOWN.words
    kind = "never settled, and unpaid for good" if is_lost else "not settled"
    owes = f"{count(seat['commitments'], 'commitment')}, {seat['unsettled']} {kind}"
    for name, word in (("open_games", "games"), ("open_accusations", "accusations")):
        owes += f", {seat[name]} open {word}" if seat[name] else ""
    kept = f"seat {seat['seat']}, tenure {seat['tenure']}", seat["status"]
    return *kept, f"rounds from {seat['from']}{until}{since}", owes


def _ticket(ticket: Document, now: int, money: Currency) -> tuple[str, ...]:
    from assay.counts import count
    from assay.status.locks import when

    if ticket["until"] is not None:
        span = f"counts until chain time {ticket['until']}" if ticket["until"] > now else "counts no more"
    else:
        span = f"counts {when(ticket['since'], now)}" if ticket["since"] > now else f"counts since {ticket['since']}"
    owes = f"{count(ticket['findings'], 'finding')}, {count(ticket['obligations'], 'obligation')}"
    owes += f", {count(ticket['secrets_owed'], 'secret')} owed" if ticket["secrets_owed"] else ""
    owes += f", short of {_amount(ticket['missing'], money)}" if ticket["missing"] != "0" else ""
    return f"ticket {ticket['ticket']}", ticket["status"], span, owes


def _earned(document: Document, now: int) -> Iterator[tuple[str, ...]]:
    from assay.status.locks import when

    earned, money = document["earned"], _money(document)
    for name in ("pay", "wages", "merges", "won", "lost", "shares", "pending", "claimed"):
        if earned[name] != "0" or name in ALWAYS_SHOWN:
            yield name, _amount(earned[name], SHARES if name in IN_SHARES else money)
    for grant in earned["vesting"]:
        yield "vesting", _amount(grant["amount"], SHARES), f"shares vest {when(grant['ends_at'], now)}"
    for token, amount in earned["claimable"].items():
        yield "claimable", _amount(amount, _money(document, token)), f"of {token}: `assay ledger claim`"
    unpaid = earned["unpaid"]
    for name, most, what in (
        ("commitments", "pay_at_most", "if they stand"),
        ("findings", "wages_at_most", "once they are settled"),
    ):
        if unpaid[name]:
            yield "not paid yet", _amount(unpaid[most], money), f"at most, for {unpaid[name]} {name}, {what}"


def _income(income: Document, money: Currency) -> Iterator[tuple[str, ...]]:
    if "per_round_at_most" in income:
        shares = _amount(income["shares_per_round_at_most"], SHARES)
        yield (
            "a round",
            _amount(income["per_round_at_most"], money),
            f"tokens and {shares} shares at most, for whole commitments",
        )
    if "per_finding" in income:
        shares = _amount(income["shares_per_finding"], SHARES)
        yield "a finding", _amount(income["per_finding"], money), f"tokens and {shares} shares"
    if "per_merge" in income:
        yield "a merge", _amount(income["per_merge"], money), "tokens for each root that it opens, once it is final"
