"""People and money of a run as JSON documents. Units as in `work_documents`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Final

from assay.explorer.audit_documents import accusation_document, finding_document, ticket_document, ticket_numbers
from assay.explorer.documents import Document, hexed, wei
from assay.explorer.games import game_document
from assay.explorer.reader import RunReader
from assay.explorer.revenue_documents import account_document
from assay.explorer.work_documents import tenure_document, work_document
from assay.protocol.rounds.escrow import cost_of
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.ticket_types import ticket_lock
from assay.protocol.types import Address, Digest
from assay_ledger.agents.money_keeper import seated_next
from assay_ledger.chain.client import Head
from assay_ledger.rounds.money_records import GrantRecord
from assay_ledger.rounds.run import Run

# --- people


def actor_document(reader: RunReader, who: Address) -> Document:
    """An address: what it is in this run, has, earned, lost and owns."""
    figures = {name: wei(amount) for name, amount in asdict(reader.money.of(who)).items()}
    return {
        "address": hexed(who),
        "name": reader.names.get(who),
        "role": " and ".join(roles_of(reader, who)) or "-",
        **figures,
        "pending": wei(reader.state.money.pending[who]),
        "earned": wei(reader.money.of(who).earned),
        "leaving_after": reader.money.leaving_after.get(who) if reader.money.of(who).leaving else None,
        "withdrawal_address": hexed(reader.money.payee_of(who)),
    }


def roles_of(reader: RunReader, who: Address) -> list[str]:
    """What an address is in this run: it may be several things at once."""
    state = reader.state
    found = []
    if who in reader.shelves.tenures_of:
        found.append("solver")
    if who in reader.shelves.tickets_of:
        found.append("auditor")
    if who == reader.run.charter.sponsor:
        found.append("sponsor")
    elif who in state.money.funded:
        found.append("funder")
    if who in reader.earnings.gateways.tills_of:
        found.append("gateway")
    if who in reader.earnings.gateways.accounts_of:
        found.append("payer")
    if not found and any(who == game.challenger for game in reader.shelves.games_of.get(who, ())):
        found.append("challenger")
    return found or (["owner"] if reader.money.of(who).shares else [])


def actors(reader: RunReader, most: int | None = None) -> list[Document]:
    """Everybody who has or had money in the run, or those who came first: solvers, auditors, then the rest."""
    found = [actor_document(reader, who) for who in reader.money.people[:most]]
    order = ("solver", "auditor", "sponsor")
    first = {d["address"]: next((k for k, role in enumerate(order) if role in d["role"]), 3) for d in found}
    return sorted(found, key=lambda d: (first[d["address"]], d["name"] or "", d["address"]))


def stakes_of(reader: RunReader, who: Address) -> Document:
    """The seats and tickets of an address."""
    shelves = reader.shelves
    return {
        "tenures": [tenure_document(reader, n) for n in sorted(shelves.tenures_of.get(who, ()))],
        "tickets": [ticket_document(reader, n) for n in sorted(shelves.tickets_of.get(who, ()))],
    }


LATEST: Final = 50
"""So many of each are shown of a member; the lists have all."""


def member_document(reader: RunReader, who: Address) -> Document:
    """Everything that a page shows of a member: what it staked, did, earned and lost, the newest of each."""
    shelves, state = reader.shelves, reader.state
    tenures, tickets = shelves.tenures_of[who], shelves.tickets_of[who]
    works = [work for number in tenures for work in shelves.works_of_tenure[number]]
    findings = [found for number in tickets for found in shelves.findings_of_ticket[number]]
    made = [name for number in tickets for name in shelves.accusations_by_ticket[number]]
    accused = [name for work in works for name in shelves.accusations_against[work.digest]]
    accused += [name for number in tickets for name in shelves.accused_tickets[number]]
    games = shelves.games_of[who]
    vesting = [(name, state.money.vesting[name]) for name in shelves.grants_of[who] if name in state.money.vesting]
    deposits = reader.earnings.gateways.accounts_of[who]
    lost = [game for game in games if game.verdict is not None and game.verdict.loser == who]
    return {
        "rounds": len({work.round for work in works}),
        "works": len(works),
        "commitments": [work_document(reader, work) for work in works[-LATEST:]][::-1],
        "findings": [finding_document(reader, found) for found in findings[-LATEST:]][::-1],
        "found": len(findings),
        "accusations": [accusation_document(reader, name) for name in [*made, *accused][-LATEST:]],
        "games": [game_document(reader, game) for game in games[-LATEST:]],
        # Attack: whoever loses thousands of games has a page that nobody can read, or make.
        "convictions": [game_document(reader, game) for game in lost[-LATEST:]],
        "grants": [grant_document(name, grant) for name, grant in vesting[-LATEST:]],
        "claimable": claimable(reader, who),
        "locks": len(reader.money.locks_of(who)),
        "deposits": [account_document(one) for one in deposits[-LATEST:]],
        "counts": {
            "accusations": len(made) + len(accused),
            "games": len(games),
            "convictions": len(lost),
            "grants": len(vesting),
            "deposits": len(deposits),
        },
    }


CLAIMS_EVERY_S: Final = 60
"""Of chain time, between two questions what an owner may claim: it grows by the second."""


def claimable(reader: RunReader, who: Address) -> list[Document]:
    """Revenue that an owner of shares may claim, by token, as of the block in which the contract was asked; `amount` is
    null while it is being asked. Of who never had a share nothing is asked."""
    figures, head, run = reader.money.of(who), reader.state.head, reader.run
    if not (figures.shares or figures.claimed):
        return []
    found = []
    for token in run.charter.revenue_tokens:
        key = ("claimable", who, token, head.timestamp // CLAIMS_EVERY_S)
        asked = reader.node.find(key, partial(_claimable, run, token, who, head))
        amount, at = (None, None) if asked is None else asked
        found.append({"token": hexed(token), "amount": None if amount is None else wei(amount), "at": at})
    return found


def _claimable(run: Run, token: Address, who: Address, head: Head) -> tuple[int, int]:
    return int(run.chain.ask(run.revenue.claimable(token, who), at=head.number)), head.timestamp


# --- money


GRANTS_SHOWN: Final = 200
"""Every piece of work leaves a grant: the newest are shown, the others counted."""


def grant_document(name: Digest, grant: GrantRecord) -> Document:
    """Shares that somebody will have."""
    return {"id": hexed(name), "owner": hexed(grant.owner), "amount": wei(grant.amount), "vests_at": grant.vests_at}


def next_round(reader: RunReader) -> Document | None:
    """What a round of the seats that are held sets aside, and for how many such rounds the rest of the escrow is enough
    before anything comes back of it; None where no round opens any more."""
    view, money = reader.view, reader.state.money
    left = view.charter.rounds - len(view.books.commitments.rounds)
    if money.is_ended or view.is_over:
        return None
    seats = seated_next(view) or view.charter.training.seats
    costs, free = cost_of(view.charter, seats, view.books.price_ppm), money.balance - money.reserved_total
    return {"seats": seats, "costs": wei(costs), "enough_for": free // max(costs, 1), "left": left}


def money_document(reader: RunReader) -> Document:
    """Where the run's money is and went: escrow, payments, pots of convictions, shares that vest, revenue."""
    money, books = reader.state.money, reader.money
    newest = list(islice(reversed(money.vesting.items()), GRANTS_SHOWN))
    # Attack: strangers who fund a run with a unit of its token each. Whoever funded most comes first.
    funders = sorted(money.funded.items(), key=lambda entry: (-entry[1], entry[0]))
    whose = {tenure_lock(number): ("tenure", number) for number in reader.state.books.tenures.tenures}
    whose |= {ticket_lock(number): ("ticket", int(number)) for number in ticket_numbers(reader)}
    return {
        "phase": money.phase.words,
        "refundable": money.is_ended and money.balance > 0,
        "launched_at": money.launched_at or None,
        "escrow": wei(money.balance),
        "reserved": {str(round_): wei(held.total) for round_, held in sorted(money.reserves.items())},
        "unreserved": wei(money.balance - money.reserved_total),
        "next_round": next_round(reader),
        "funded": [{"who": hexed(who), "amount": wei(amount)} for who, amount in funders],
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
        "grants": [grant_document(name, grant) for name, grant in newest],
        "grants_more": len(money.vesting) - len(newest),
        "burned": wei(books.burned),
        "revenue": wei(books.revenue),
        "other_revenue": {hexed(token): wei(amount) for token, amount in sorted(books.other_revenue.items())},
    }
