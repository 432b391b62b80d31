"""What commands say of a run: its promises, and how far it has come. Amounts in wei, times in s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import typer
from eth_utils.address import to_checksum_address

from assay.amounts import Currency
from assay.cli.common import print_fields, print_table
from assay.planning.outlook import outlook_of_run
from assay.protocol.economics.run_bounds import audit_terms
from assay.protocol.rounds.duty_types import Epoch
from assay.protocol.rounds.terms import NEVER
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round
from assay_ledger.deployment.code import code_of
from assay_ledger.deployment.places import beacon_name
from assay_ledger.rounds import nodes
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView

MONEY = (
    *("price_per_round", "seat_lock", "seat_fee", "ticket_bond", "wage", "merge_pay", "challenge_bond"),
    *("escrow", "reserved", "cost_of_round", "cost_of_run"),
)
"""Fields that are amounts of tokens."""


SHOWN = 100
"""Lines of a table that people read; --json has all of them."""

HEADINGS = {"from_generation": "base", "generation": "makes", "committed": "works", "convicted": "guilty"}
HEADINGS |= {"seated": "seats", "fines": "may fine"}
"""Of columns whose own names are too long for a terminal, or say something else: an epoch of which half of the tickets
on call opened may fine the others, and has fined nobody by that."""


def describe(run: Run) -> dict[str, Any]:
    """What a charter says."""
    c = run.charter
    e, t, w = c.economics, c.training, c.timing
    return {
        "chain_id": run.chain.chain_id,
        "run_id": "0x" + c.run.hex(),
        "sponsor": to_checksum_address(c.sponsor),
        **describe_money(run),
        "rounds": c.rounds,
        "seats": t.seats,
        "units": t.max_units,
        "least_units": t.min_units,
        "steps_per_unit": t.steps_per_unit,
        "programs": {name: "0x" + program.root.hex() for name, program in c.programs.items()},
        "genesis_parameters": "0x" + t.parameters.hex(),
        "data": "0x" + t.data.hex(),
        "beacon": beacon_name(c.beacon),
        "price_per_round": c.price,
        "pays": e.pays,
        "seat_lock": e.seat_lock,
        "seat_fee": e.seat_fee,
        "ticket_bond": e.ticket_bond,
        "wage": e.wage,
        "merge_pay": e.merge_pay,
        "challenge_bond": e.challenge_bond,
        "audit_rate": e.audit_ppm / 1e6,
        "reaudit_rate": e.reaudit_ppm / 1e6,
        "duties_per_call": e.capacity,
        "shifts": e.shifts,
        "least_tickets": c.launch.tickets,
        "unsettled_rounds": audit_terms(c).unsettled,
        "round_seconds": outlook_of_run(c).round_seconds,
        "epoch_seconds": w.epoch,
        "seasoning_seconds": w.seasoning,
        "challenge_seconds": w.challenge,
        "vesting_seconds": w.vesting,
        "exit_seconds": w.exit,
    }


def describe_money(run: Run) -> dict[str, Any]:
    """A run's token and what it says of itself; decimals are None where it says none that a token can have."""
    return {
        "token": "0x" + run.charter.token.hex(),
        "token_decimals": run.currency.decimals,
        "token_symbol": run.currency.symbol,
    }


def money_words(run: Run) -> str:
    """The same in words; a symbol is whatever the issuer chose, so the address comes first."""
    money = run.currency
    says = f"{money.decimals} decimals" if money.is_known else "no decimals that a token can have"
    named = f' and calls itself "{money.symbol}"' if money.symbol else ""
    return f"0x{run.charter.token.hex()} says {says}{named}"


CODE_WORDS = {
    "release": "this release's",
    "allowed": "not this release's, and allowed by you",
    "unknown": "not this release's",
}


def describe_code(run: Run, allowed: Collection[Digest] = ()) -> dict[str, Any]:
    """What is known of the code at a run's addresses, for people and scripts."""
    code = code_of(run)
    return {
        "status": code.status(allowed),
        "digest": "0x" + code.digest.hex(),
        "unknown": [c.name for c in code.unknown],
        "token": code.token_words,
        "contracts": {c.name: {"address": "0x" + c.address.hex(), "code": "0x" + c.code.hex()} for c in code.contracts},
    }


def progress(view: RunView) -> dict[str, Any]:
    """How far a run has come: its phase, rounds, seats, tickets, epochs and money."""
    books, money = view.books, view.state.money
    # Once for all tickets: of a run of 300 seats there are millions of answers and findings.
    opened = Counter(ticket for (_, ticket), answer in books.duties.answers.items() if answer.in_time)
    found = Counter(made.ticket for made in view.state.attestations.values())
    return {
        "phase": money.phase.name.lower(),
        "now": view.now,
        "opened": len(books.commitments.rounds),
        "rounds_opened": [round_entry(view, Round(r)) for r in range(len(books.commitments.rounds))],
        "tenures": [tenure_entry(view, number) for number in sorted(books.tenures.tenures)],
        "tickets": [ticket_entry(view, n, opened[n], found[n]) for n in sorted(books.registry.tickets)],
        "epochs": [epoch_entry(view, number, epoch) for number, epoch in enumerate(view.epochs)],
        "games": len(view.games),
        "accusations": Counter(made.status.name.lower() for made in books.duties.attestations.accusations.values()),
        "escrow": money.balance,
        "reserved": money.reserved_total,
        "pots": {"0x" + lock.hex(): pot.amount for lock, pot in money.pots.items()},
    }


def after_the_end(view: RunView) -> Iterator[str]:
    """What is still to be fetched of a run that has ended: no actor does it for a sponsor."""
    left = view.state.money.balance
    if view.state.money.is_ended and left:
        held = view.facts.currency.show(left)
        yield f"The escrow still holds {held} tokens: whoever paid into it takes its part back by `assay run refund`."


def round_entry(view: RunView, round_: Round) -> dict[str, Any]:
    """A round, and the generation that it made."""
    state, generation = view.round_of(round_), round_ + 1
    works = view.works(round_)
    root = view.votes(generation).root
    return {
        "round": round_,
        "began": state.t0,
        "from_generation": state.parent,
        "seated": state.seated,
        "committed": len(works),
        "units": sum(made.work.units for made in works),
        "counted": None if root is None else _merged(view, round_),
        "generation": generation,
        "status": view.status(generation).name.lower(),
        "root": None if root is None else "0x" + root.hex(),
    }


def _merged(view: RunView, round_: Round) -> int | None:
    """Updates that a generation with a majority is made of; None while that can change."""
    if view.rules.by_seats:
        counted, is_closed = view.counted(round_)
        return len(counted) if is_closed else None
    return sum(nodes.weights(view, round_)) if view.now > nodes.groups_until(view, round_) else None


def tenure_entry(view: RunView, number: int) -> dict[str, Any]:
    """One holder's time in one seat."""
    held = view.books.tenures.tenures[number]
    return {
        "tenure": number,
        "seat": held.seat,
        "holder": to_checksum_address(held.holder),
        "from_round": held.from_,
        "until_round": None if held.until == NEVER else held.until,
        "unsettled": held.unsettled,
        "convicted": bool(held.convicted_at),
    }


def ticket_entry(view: RunView, number: TicketId, opened: int, found: int) -> dict[str, Any]:
    """One stake of an auditor, in how many calls it opened, and how much it found."""
    held = view.books.registry.tickets[number]
    return {
        "ticket": number,
        "owner": to_checksum_address(held.owner),
        "counts_from": held.from_,
        "until": held.until or None,
        "calls_opened": opened,
        "findings": found,
        "convicted": bool(held.convicted_at),
    }


def epoch_entry(view: RunView, number: int, epoch: Epoch) -> dict[str, Any]:
    """One turn of the audits."""
    made = view.attestations_of(number)
    return {
        "epoch": number,
        "began": epoch.start,
        "shift": epoch.shift if epoch.seed is not None else None,
        "on_call": epoch.on_call,
        "opened": epoch.opened,
        "findings": len(made),
        "closed": epoch.closed,
        "fines": epoch.fines,
    }


def show_fields(document: dict[str, Any], money: Currency) -> None:
    """Names and values, amounts as `money` writes them; what belongs together under one name gets a line each."""
    flat: dict[str, object] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            flat |= {f"{name} {part}": x for part, x in value.items()}
        else:
            flat[name] = f"{money.show(value)} tokens" if name in MONEY else value
    print_fields(flat)


def show_progress(document: dict[str, Any], money: Currency) -> None:
    """How far a run has come, as tables."""
    show_fields({n: v for n, v in document.items() if not isinstance(v, list | dict)}, money)
    for title, name in (
        ("Rounds", "rounds_opened"),
        ("Tenures", "tenures"),
        ("Tickets", "tickets"),
        ("Epochs of audits", "epochs"),
    ):
        rows = document[name]
        if rows:
            columns = [c for c in rows[0] if c != "root"]
            print_table(
                title,
                [HEADINGS.get(c, c.replace("_", " ")) for c in columns],
                [[_cell(row[c]) for c in columns] for row in rows[-SHOWN:]],
            )
        if len(rows) > SHOWN:
            typer.echo(f"The newest {SHOWN} of {len(rows):,}: --json has all, the explorer shows each.")
    if document["accusations"]:
        print_fields({"accusations": _counted(document["accusations"].items())})
    for lock, amount in document["pots"].items():
        print_fields({f"bounty {lock[:10]}…": f"{money.show(amount)} tokens"})


def _cell(value: object) -> object:
    if value is None:
        return "-"
    if isinstance(value, str) and value.startswith("0x"):
        return value[:10] + "…"
    return ("no", "yes")[value] if isinstance(value, bool) else value


def _counted(pairs: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {what}" for what, count in pairs)


def code_fields(code: dict[str, Any]) -> dict[str, Any]:
    """What is known of a run's code, a line each."""
    shown = {"code": f"{CODE_WORDS[code['status']]} ({code['digest']})", "token code": code["token"]}
    return shown | {f"unknown {name}": code["contracts"][name]["address"] for name in code["unknown"]}
