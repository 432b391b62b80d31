"""Tickets, epochs, findings and accusations as JSON documents. Units as in `work_documents`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from assay.explorer.documents import Document, hexed, wei
from assay.explorer.reader import RunReader
from assay.protocol.rounds.duty_types import DutyKind
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round
from assay_ledger.rounds.records import AttestationRecord, RunState

KINDS = {
    DutyKind.WORK: "commitment",
    DutyKind.REAUDIT: "attestation",
    DutyKind.WORK_AGAIN: "commitment, drawn again",
    DutyKind.REAUDIT_AGAIN: "attestation, drawn again",
    DutyKind.MISSED: "what another missed",
}
"""What a duty replays."""


def ticket_document(reader: RunReader, number: TicketId) -> Document:
    """A ticket with its calls; one whose stake went back is known by its events alone."""
    registry, state = reader.state.books.registry, reader.state
    held = registry.tickets.get(number)
    mine, shelves = reader.shelves.findings_of_ticket[number], reader.shelves
    answers = state.books.duties.answers
    found = Counter(made.epoch for made in mine)
    return {
        "ticket": int(number),
        "owner": hexed(owner_of(reader, number)),
        "status": ticket_status(reader.state, number),
        "shift": number % reader.run.charter.economics.shifts,
        "from": None if held is None else held.from_,
        "until": None if held is None or not held.until else held.until,
        "stake": wei(
            0
            if held is None or held.convicted_at
            else reader.run.charter.economics.ticket_bond - registry.missing[number]
        ),
        "fined": wei(fines_of(reader, number)),
        "obligations": 0 if held is None else held.obligations,
        "findings": len(mine),
        "calls": [
            {
                "epoch": epoch,
                "in_time": answer.in_time,
                "answered": found[epoch],
                "left_out": answer.answered - found[epoch],
                "skipped": answer.skipped,
            }
            for epoch, answer in ((e, answers[e, number]) for e in sorted(shelves.calls_of_ticket[number]))
        ],
        "wages": wei(sum(reader.money.finding_pay.get(a.id, 0) for a in mine)),
        "accuses": [hexed(name) for name in shelves.accusations_by_ticket[number]],
        "accused": [hexed(name) for name in shelves.accused_tickets[number]],
    }


def ticket_numbers(reader: RunReader) -> list[TicketId]:
    """Every ticket that was ever registered."""
    return sorted(reader.state.books.registry.anchors)


def owner_of(reader: RunReader, number: TicketId) -> bytes:
    """Who registered a ticket."""
    return reader.money.ticket_owners[number]


def ticket_status(state: RunState, number: TicketId) -> str:
    """What became of a ticket, in a word."""
    registry, now = state.books.registry, state.head.timestamp
    held = registry.tickets.get(number)
    if held is None:
        return "reclaimed"
    if held.convicted_at:
        return "convicted"
    if held.until:
        return "retired" if held.until <= now else "retiring"
    if held.short_since:
        return "short"
    return "serving" if held.from_ <= now else "not yet counting"


def fines_of(reader: RunReader, number: TicketId) -> int:
    """What fines have taken of a ticket, in wei."""
    return reader.money.fines.get(number, 0)


def epoch_document(reader: RunReader, number: int) -> Document:
    """A turn of the audits: who was called, what they found, what they left undone."""
    view, state, shelves = reader.view, reader.state, reader.shelves
    epoch = view.epochs[number]
    called = sorted(view.called_tickets(number)) if epoch.seed is not None else []
    answers = {ticket: state.books.duties.answers[number, ticket] for ticket in shelves.calls_of_epoch[number]}
    found = Counter(record.ticket for record in shelves.findings_of_epoch[number])
    return {
        "epoch": number,
        "phase": epoch_phase(reader, number),
        "start": epoch.start,
        "seed": None if epoch.seed is None else hexed(epoch.seed),
        "deadline": epoch.deadline or None,
        "shift": epoch.shift,
        "on_call": epoch.on_call,
        "opened": epoch.opened,
        "repeats": epoch.repeats,
        "fines": epoch.fines,
        "rounds": rounds_of(reader, number),
        "called": [
            {
                "ticket": int(ticket),
                "owner": hexed(owner_of(reader, ticket)),
                "opened": ticket in answers and answers[ticket].in_time,
                "answered": found[ticket],
                "left_out": answers[ticket].answered - found[ticket] if ticket in answers else 0,
            }
            for ticket in sorted({*called, *answers})
        ],
        "findings": [finding_document(reader, record) for record in shelves.findings_of_epoch[number]],
        "accusations": [accusation_document(reader, name) for name in shelves.accusations_in[number]],
        "fined": [
            {"ticket": int(event.ticket), "fine": wei(event.fine), "id": hexed(event.id)}
            for event in shelves.fined_in[number]
        ],
    }


def epoch_line(reader: RunReader, number: int) -> Document:
    """An epoch as a line of a table: what there was of each, counted."""
    epoch, shelves = reader.view.epochs[number], reader.shelves
    return {
        "epoch": number,
        "phase": epoch_phase(reader, number),
        "start": epoch.start,
        "opened": epoch.opened,
        "on_call": epoch.on_call,
        "findings": len(shelves.findings_of_epoch[number]),
        "fined": len(shelves.fined_in[number]),
        "accusations": len(shelves.accusations_in[number]),
    }


def rounds_of(reader: RunReader, number: int) -> list[int]:
    """The rounds with work that belong to an epoch: it is the first that began after their last second."""
    view, epochs = reader.view, reader.view.epochs
    rounds, before = view.books.commitments.rounds, epochs[number - 1].start if number else 0

    def ended(k: int) -> int:
        return view.commit_until(Round(k))

    # Rounds open one after another, and so they end.
    first = bisect_left(range(len(rounds)), before, key=ended)
    last = bisect_left(range(len(rounds)), epochs[number].start, key=ended)
    return [k for k in range(first, last) if reader.shelves.works_of_round[k]]


def epoch_phase(reader: RunReader, number: int) -> str:
    """What an epoch is at, in a few words."""
    epoch = reader.view.epochs[number]
    if epoch.closed:
        return "closed" if epoch.fines or not epoch.on_call else "closed without fines"
    if reader.state.money.is_stopped:
        return "ended with the run"
    if epoch.seed is None:
        return "waiting for its seed" if reader.state.head.timestamp >= epoch.start else "not begun"
    return "open" if reader.state.head.timestamp <= epoch.deadline else "waiting to be closed"


def finding_document(reader: RunReader, record: AttestationRecord) -> Document:
    """A result that a ticket opened."""
    kept = reader.state.books.duties.attestations
    made = kept.attestations[record.id]
    window = kept.window_of(record.id)
    return {
        "id": hexed(record.id),
        "epoch": record.epoch,
        "ticket": int(record.ticket),
        "owner": hexed(owner_of(reader, record.ticket)),
        "kind": record.kind.name,
        "of": KINDS[record.kind],
        "target": hexed(record.target),
        "round": int(record.round),
        "seat": int(record.seat),
        "agrees": not made.differs,
        "ends": [hexed(end) for end in record.finding.ends],
        "update": hexed(record.finding.update),
        "keys": [hexed(key[:8]) for key in record.finding.keys],
        "accumulators": [hexed(word) for word in record.finding.accumulators],
        "window_until": window or None,
        "paid": None
        if record.id not in reader.state.money.findings_paid
        else wei(reader.money.finding_pay.get(record.id, 0)),
        "shares": wei(reader.money.finding_shares.get(record.id, 0)),
        "accused_by": [hexed(name) for name in reader.shelves.accusations_against[record.id]],
        "accuses": [hexed(name) for name in reader.shelves.accusations_by[record.id]],
        "tx": hexed(record.tx_hash),
    }


def accusation_document(reader: RunReader, name: Digest) -> Document:
    """Who accuses whom, and what became of it."""
    state = reader.state
    made = state.books.duties.attestations.accusations[name]
    by = state.attestations[made.by]
    accused = state.books.tenures.existing(made.accused).holder if made.is_work else None
    pot = state.money
    return {
        "id": hexed(name),
        "status": made.status.name,
        "what": accused_text(made.is_work, by.round, int(by.seat)),
        "is_work": made.is_work,
        "ticket": int(made.ticket),
        "accuser": hexed(owner_of(reader, made.ticket)),
        "accused_number": made.accused,
        "accused": hexed(accused if accused is not None else owner_of(reader, TicketId(made.accused))),
        "by": hexed(made.by),
        "against": hexed(made.against),
        "round": int(by.round),
        "seat": int(by.seat),
        "epoch": made.epoch,
        "at": made.at,
        "shares_the_bounty": name in pot.entered,
        "bounty_taken": name in pot.parts_taken,
        "games": games_of_accusation(reader, name),
    }


def accused_text(is_work: bool, round_: Round, seat: int) -> str:
    """What an accusation says is false."""
    work = f"the work of seat {seat} in round {round_}"
    return work if is_work else f"an attestation of {work}"


def games_of_accusation(reader: RunReader, name: Digest) -> list[int]:
    """Games that an accuser opened for its accusation."""
    return list(reader.shelves.games_of_accusation[name])
