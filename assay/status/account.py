"""Everything that an account has, owes and earns in a run, as one document.

Amounts are wei as decimal strings, addresses and digests full lower-case hex, times seconds of chain time: as the
explorer's documents have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from assay.explorer.audit_documents import ticket_status
from assay.explorer.documents import Document, hexed, wei
from assay.explorer.money import Account
from assay.explorer.people import roles_of
from assay.explorer.reader import RunReader
from assay.explorer.work_documents import tenure_status
from assay.planning.outlook import outlook_of_role
from assay.protocol.rounds.terms import NEVER, GenerationStatus
from assay.protocol.types import Address, Digest
from assay.status.deadlines import deadlines_of
from assay.status.locks import OwnLock, locks_of
from assay_ledger.bindings.challenges import ChallengeCommitted, ChallengeUncommitted
from assay_ledger.rounds.view import RunView
from assay_verifier.ticket_keeping import owed_calls
from assay_verifier.view_records import ViewRecords


@dataclass(frozen=True, slots=True)
class OwnMoney:
    """What the events say of an account's money, beside a run's books."""

    figures: Account
    locks: Mapping[Digest, int]
    """Wei of each."""
    leaving_after: int = 0
    """The chain time after which it may withdraw what it asked out."""
    challenges: Mapping[Digest, int] = field(default_factory=dict)
    """When it committed each challenge that is not revealed, by commitment."""
    claimable: Mapping[str, int] = field(default_factory=dict)
    """Revenue that it can claim, by token."""
    roles: tuple[str, ...] = ()
    payee: Address | None = None
    """Whom it named to be paid when it takes out; nobody: it is paid itself."""


def money_of(reader: RunReader, who: Address, claimable: Mapping[str, int]) -> OwnMoney:
    """An account's money as a reader has followed it."""
    books, challenges = reader.money, dict[Digest, int]()
    # Of a long run a million events are looked at, so none is written out that is not wanted.
    for number in range(len(reader.events)):
        match reader.events.event(number):
            case ChallengeCommitted(commitment, challenger) if challenger == who:
                challenges[commitment] = reader.events[number].time
            case ChallengeUncommitted(commitment):
                challenges.pop(commitment, None)
    after = books.leaving_after.get(who, 0)
    roles, payee = tuple(roles_of(reader, who)), books.payees.get(who)
    return OwnMoney(books.of(who), books.locks_of(who), after, challenges, claimable, roles, payee)


def status_of(view: RunView, money: OwnMoney) -> Document:
    """What `view.me` has, owes and earns at the view's head."""
    locks = locks_of(view, money.locks, money.challenges)
    due = [asdict(each) for each in deadlines_of(view, money.challenges)]
    seats, tickets = _seats(view), _tickets(view)
    return {
        "run": hexed(view.facts.address),
        "address": hexed(view.me),
        "known": bool(money.roles or seats or tickets or money.figures != Account()),
        "roles": list(money.roles),
        "phase": view.state.money.phase.words,
        "block": view.block,
        "now": view.now,
        "stake": {name: wei(getattr(money.figures, name)) for name in ("deposited", "withdrawn", "free", "locked")},
        "locks": [_lock(lock) for lock in locks],
        "leaving": _leaving(view, money),
        "withdrawal_address": hexed(money.payee or view.me),
        "seats": seats,
        "tickets": tickets,
        "next_deadline": due[0] if due else None,
        "deadlines": due,
        "earned": _earned(view, money),
        "income": _income(view),
    }


def withdraw_at(leaving_after: int) -> int:
    """The first second whose block takes the withdrawal: strictly after the delay (`withdraw` in Vault.sol)."""
    return leaving_after + 1


def _leaving(view: RunView, money: OwnMoney) -> Document | None:
    amount = money.figures.leaving
    if not amount:
        return None
    at = withdraw_at(money.leaving_after)
    return {"amount": wei(amount), "ends_at": at, "is_due": at <= view.now}


def _lock(lock: OwnLock) -> Document:
    return {
        "id": hexed(lock.id),
        "kind": lock.kind,
        "number": lock.number,
        "what": lock.what,
        "amount": wei(lock.amount),
        **asdict(lock.end),
    }


def _seats(view: RunView) -> list[Document]:
    opened = view.books.commitments.rounds
    return [
        {
            "tenure": number,
            "seat": int(tenure.seat),
            "status": tenure_status(view.state, number),
            "from": int(tenure.from_),
            "since": opened[tenure.from_].t0 if tenure.from_ < len(opened) else None,
            "until": None if tenure.until == NEVER else int(tenure.until),
            "commitments": sum(work.tenure == number for work in view.state.works.values()),
            "unsettled": tenure.unsettled,
            "open_games": tenure.games,
            "open_accusations": tenure.accusations,
            "convicted_at": tenure.convicted_at or None,
            "fee_lost": tenure.fee_gone,
        }
        for number, tenure in view.tenures_of(view.me)
    ]


def _tickets(view: RunView) -> list[Document]:
    records = ViewRecords(view)
    return [
        {
            "ticket": int(held.id),
            "status": ticket_status(view.state, held.id),
            "shift": held.shift,
            "since": held.from_,
            "until": held.until or None,
            "obligations": held.obligations,
            "secrets_owed": len(owed_calls(held, records, len(view.epochs) - 1)),
            "missing": wei(held.missing),
            "findings": sum(made.ticket == held.id for made in view.state.attestations.values()),
        }
        for held in records.held_tickets()
    ]


def _earned(view: RunView, money: OwnMoney) -> Document:
    """What was paid, what may still be, and what the model's shares bring."""
    figures = money.figures
    vesting = [record for record in view.state.money.vesting.values() if record.owner == view.me]
    paid = ("pay", "wages", "merges", "won", "lost", "shares", "claimed")
    return {
        **{name: wei(getattr(figures, name)) for name in paid},
        "pending": wei(view.state.money.pending[view.me]),
        "vesting": [
            {"amount": wei(record.amount), "ends_at": record.vests_at}
            for record in sorted(vesting, key=lambda record: record.vests_at)
        ],
        "claimable": {token: wei(amount) for token, amount in money.claimable.items()},
        "unpaid": _unpaid(view),
    }


def _unpaid(view: RunView) -> Document:
    """Work and findings that are not settled, and what they bring if they stand; nothing where a run has ended."""
    economics, registry, state = view.charter.economics, view.books.registry, view.state
    is_ended = state.money.is_ended
    works = [
        work
        for work in state.unsettled.values()
        if not is_ended and view.books.tenures.existing(work.tenure).holder == view.me
        if not view.books.tenures.is_convicted(work.tenure) and not _is_cut(view, work.round)
    ]
    findings = [
        made
        for name, made in state.attestations.items()
        if not is_ended and name not in state.money.findings_paid
        if registry.payee_of(made.ticket) == view.me and not _is_cut(view, made.round)
    ]
    # Each round pays the price at which it opened, whatever was voted since.
    pay = sum(view.books.work_pay_of(work.round, work.work.units * economics.unit_price) for work in works)
    return {
        "commitments": len(works),
        "pay_at_most": wei(pay if economics.pays else 0),
        "findings": len(findings),
        "wages_at_most": wei(len(findings) * economics.wage),
    }


def _is_cut(view: RunView, round_: int) -> bool:
    parent = view.books.commitments.rounds[round_].parent
    return view.status(parent) is GenerationStatus.CUT


def _income(view: RunView) -> Document | None:
    """What is paid now for what this account holds; how often chance calls a ticket is not guessed."""
    if view.state.money.is_ended:
        return None
    tickets = [held for _, held in view.tickets_of(view.me) if not (held.until or held.convicted_at)]
    found: Document = {}
    if view.tenure is not None and not view.is_over:
        seat = outlook_of_role(view.charter, price_ppm=view.books.price_ppm)
        found |= {"per_round_at_most": wei(seat.pay), "shares_per_round_at_most": wei(seat.shares)}
        found |= {"per_merge": wei(seat.merge_pay)} if seat.merge_pay else {}
    if tickets:
        ticket = outlook_of_role(view.charter, tickets=1)
        found |= {"per_finding": wei(ticket.pay), "shares_per_finding": wei(ticket.shares)}
        found |= {"per_merge": wei(ticket.merge_pay)} if ticket.merge_pay else {}
    return found or None
