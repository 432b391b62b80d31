"""People and money of a run as JSON documents. Units as in `work_documents`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from assay.explorer.audit_documents import owner_of, ticket_document, ticket_numbers
from assay.explorer.documents import Document, hexed, wei
from assay.explorer.reader import RunReader
from assay.explorer.work_documents import tenure_document
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.ticket_types import ticket_lock
from assay.protocol.types import Address

# --- people


def actor_document(reader: RunReader, who: Address) -> Document:
    """An address: what it is in this run, has, earned, lost and owns."""
    figures = {name: wei(amount) for name, amount in asdict(reader.money.of(who)).items()}
    return {
        "address": hexed(who),
        "name": reader.names.get(who),
        "role": " and ".join(roles_of(reader, who)) or "-",
        **figures,
    }


def roles_of(reader: RunReader, who: Address) -> list[str]:
    """What an address is in this run: it may be several things at once."""
    state = reader.state
    found = []
    if any(t.holder == who for t in state.books.tenures.tenures.values()):
        found.append("solver")
    if who in reader.money.ticket_owners.values():
        found.append("auditor")
    if who == reader.run.charter.sponsor:
        found.append("sponsor")
    elif who in state.money.funded:
        found.append("funder")
    if not found and any(who == g.challenger for g in state.games.values()):
        found.append("challenger")
    return found or (["owner"] if reader.money.of(who).shares else [])


def actors(reader: RunReader) -> list[Document]:
    """Everybody who has or had money in the run: solvers, auditors, then the rest."""
    found = [actor_document(reader, who) for who in reader.money.people]
    order = ("solver", "auditor", "sponsor")
    first = {d["address"]: next((k for k, role in enumerate(order) if role in d["role"]), 3) for d in found}
    return sorted(found, key=lambda d: (first[d["address"]], d["name"] or "", d["address"]))


def tickets(reader: RunReader) -> Iterator[Document]:
    """Every ticket of the run."""
    return (ticket_document(reader, number) for number in ticket_numbers(reader))


def stakes_of(reader: RunReader, who: Address) -> Document:
    """The seats and tickets of an address."""
    held = sorted(n for n, t in reader.state.books.tenures.tenures.items() if t.holder == who)
    mine = [n for n in ticket_numbers(reader) if owner_of(reader, n) == who]
    return {
        "tenures": [tenure_document(reader, n) for n in held],
        "tickets": [ticket_document(reader, n) for n in mine],
    }


# --- money


def money_document(reader: RunReader) -> Document:
    """Where the run's money is and went: escrow, payments, pots of convictions, shares that vest, revenue."""
    money, books = reader.state.money, reader.money
    whose = {tenure_lock(number): ("tenure", number) for number in reader.state.books.tenures.tenures}
    whose |= {ticket_lock(number): ("ticket", int(number)) for number in ticket_numbers(reader)}
    return {
        "phase": money.phase.name.lower().replace("_", " "),
        "launched_at": money.launched_at or None,
        "escrow": wei(money.balance),
        "reserved": {str(round_): wei(amount) for round_, amount in sorted(money.reserved.items())},
        "unreserved": wei(money.balance - sum(money.reserved.values())),
        "funded": [{"who": hexed(who), "amount": wei(amount)} for who, amount in sorted(money.funded.items())],
        "paid": {
            "work": wei(sum(books.work_pay.values())),
            "findings": wei(sum(books.finding_pay.values())),
            "merges": wei(sum(books.opening_pay.values())),
        },
        "bounties": [
            {
                "lock": hexed(lock),
                "of": whose[lock][0],
                "number": whose[lock][1],
                "filled_at": pot.filled_at,
                "amount": wei(pot.amount),
                "entered": pot.entered,
                "epoch": pot.epoch if pot.entered else None,
                "closed": pot.closed,
            }
            for lock, pot in money.pots.items()
        ],
        "grants": [
            {"id": hexed(name), "owner": hexed(g.owner), "amount": wei(g.amount), "vests_at": g.vests_at}
            for name, g in money.vesting.items()
        ],
        "burned": wei(books.burned),
        "revenue": wei(books.revenue),
    }
