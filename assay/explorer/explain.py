"""Known? Counted? Paid? And if not: the code, the remedy, the deadline. For whatever has a name in a run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from assay.amounts import SHARES
from assay.counts import count
from assay.explorer.answers import answer, no, not_yet, standing, yes
from assay.explorer.audit_documents import accusation_document, finding_document, ticket_document
from assay.explorer.codes import find_code
from assay.explorer.documents import Document, hexed
from assay.explorer.games import game_document
from assay.explorer.merged_seats import held_seats
from assay.explorer.people import actor_document, stakes_of
from assay.explorer.reader import RunReader
from assay.explorer.search import MISSPELT, Hit, events_naming, is_misspelt, naming, search
from assay.explorer.work_documents import work_document
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.terms import GenerationStatus, WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.agents.waiting import Wait, waits
from assay_ledger.rounds.records import WorkRecord

ACCUSATION_TEXTS = {
    AccusationStatus.RECORDED: "It is recorded; its game has not been opened.",
    AccusationStatus.TRIED: "Its game is being played.",
    AccusationStatus.UPHELD: "A game upheld it: the accused was convicted.",
    AccusationStatus.REJECTED: "A game rejected it: the accuser lost.",
    AccusationStatus.LAPSED: "It lapsed without a game: its accuser was fined, unless the run was stopped before.",
    AccusationStatus.EXCUSED: "The accused was convicted elsewhere, so no game could open.",
}


NEVER_SETTLED: Final = "The run was wound down before it was settled: it is unpaid for good."

NAMING_READ: Final = 100
"""So many events are looked through for whether one names an address that has no role."""
EXPLAINED: Final = 100
"""So many commitments of an address are explained, the newest."""


def explain(reader: RunReader, name: str) -> Document:
    """Everything that can be said about a code, address, digest, transaction, `game N`, `ticket N` and so on."""
    code = explain_code(name)
    if code is not None:
        return code
    if name.strip().lower().removeprefix("0x") == reader.run.charter.token.hex():
        answers = [yes("known", "It is the token that this run locks and pays.")]
        return {"name": hexed(reader.run.charter.token), "kind": "token", "known": True, "answers": answers}
    for hit in search(reader, name):
        kind, *rest = hit.url.strip("/").split("/")
        match kind:
            case "actors":
                return explain_actor(reader, Address(bytes.fromhex(rest[0][2:])))
            case "commitments":
                return explain_work(reader, reader.state.works[Round(int(rest[0])), Seat(int(rest[1]))])
            case "findings":
                return explain_finding(reader, Digest(bytes.fromhex(rest[0][2:])))
            case "accusations":
                return explain_accusation(reader, Digest(bytes.fromhex(rest[0][2:])))
            case "tickets":
                return explain_ticket(reader, TicketId(int(rest[0])))
            case "games":
                return explain_game(reader, int(rest[0]))
            case _:
                return explain_place(reader, name, hit)
    return explain_stranger(reader, name) or unknown(name)


def explain_place(reader: RunReader, name: str, hit: Hit) -> Document:
    """What is part of the run, or of something that happened in it: its contracts, programs, transactions."""
    kind = hit.url.strip("/").split("/")[0].partition("?")[0]
    answers = [yes("known", f"It is {hit.what}.")]
    if name.lower().removeprefix("0x") == reader.run.address.hex():
        phase = reader.state.money.phase.words
        answers = [yes("known", f"It is a run of {count(reader.run.charter.rounds, 'round')}, which is {phase}.")]
        answers += [standing_still(wait) for wait in waits(reader.view)]
    elif hit.url.startswith("/events?tx="):
        tx = hit.url.removeprefix("/events?tx=")
        rows = (reader.events[int(number)] for number in events_naming(reader, tx))
        answers += [yes("known", f"{row.contract}: {row.name}.") for row in rows if row.tx == tx]
    return {"name": name, "kind": kind, "known": True, "see": hit.url, "answers": answers}


def standing_still(wait: Wait) -> Document:
    """Whether a run goes on by itself, with what it waits for."""
    if not wait.stands or wait.until is not None:
        return answer("goes on", None if wait.stands else True, wait.text, deadline=wait.until)
    return no("goes on", wait.text, wait.code, wait.remedy)


def explain_stranger(reader: RunReader, name: str) -> Document | None:
    """An account of this chain that has no part in the run; None where the name is no address."""
    digits = name.strip().lower().removeprefix("0x")
    if len(digits) != 40 or not set(digits) <= set("0123456789abcdef"):
        return None
    if is_misspelt(name.strip()):
        said = no("known", MISSPELT, "AddressUnchecked", "Copy the address as its wallet shows it.")
        return {"name": name, "kind": "unknown", "known": False, "answers": [said]}
    who = Address(bytes.fromhex(digits))
    return {"name": hexed(who), "kind": "account", "known": True, "answers": [_no_part(who)]}


def _no_part(who: Address) -> Document:
    remedy = f"`assay run can-join --address {hexed(who)}` says what it would take."
    return no("known", "It has no seat, no ticket and no money in this run.", "NoPart", remedy)


def unknown(name: str) -> Document:
    """Nothing has this name."""
    remedy = "Check the run (--run) and the spelling; a thing of another run is not known in this one."
    answers = [no("known", "Nothing in this run has that name.", "Unknown", remedy)]
    return {"name": name, "kind": "unknown", "known": False, "answers": answers}


def explain_code(name: str) -> Document | None:
    """An error code; None when there is none of this name."""
    code = find_code(name.strip())
    if code is None:
        return None
    return {
        "name": code.name,
        "kind": "code",
        "known": True,
        "source": code.source,
        "meaning": code.meaning,
        "remedy": code.remedy,
        "sentences": [asdict(sentence) for sentence in code.sentences],
        "answers": [],
    }


# --- work


def explain_work(reader: RunReader, work: WorkRecord) -> Document:
    """A commitment: has it weight in the merge, and is it paid?"""
    document = work_document(reader, work)
    answers = [yes("known", f"Seat {work.seat} committed {work.work.units} units to round {work.round}.")]
    answers += [_counted(reader, work, document), _paid(reader, work, document)]
    return {"name": hexed(work.digest), "kind": "commitment", "known": True, "answers": answers, "commitment": document}


def _counted(reader: RunReader, work: WorkRecord, document: Document) -> Document:
    view = reader.view
    if document["convicted"]:
        lost = [g for g in document["games"] if reader.state.games[g].convicted]
        return standing("counted", f"It was convicted in game {', '.join(map(str, lost))}.", "Convicted")
    if view.status(view.round_of(work.round).parent) is GenerationStatus.CUT:
        return standing("counted", f"Generation {document['base']}, which it starts from, was cut.", "BaseCut")
    if work.late:
        return standing("counted", "It came after the mask had closed.", "CommittedLate")
    if document["counted"] is None:
        text = "The positions are still saying what they hold"
        text += "." if view.rules.by_seats else ", or merge the sums of groups."
        return not_yet("counted", text, view.merge_until(work.round))
    if document["counted"]:
        return yes("counted", f"It is part of the merge of generation {work.round + 1}.")
    if work.seat in held_seats(reader, work.round)[0]:
        text = f"It is not part of the merge of generation {work.round + 1}: the sum of its group was left out."
        return standing("counted", text, "GroupLeftOut")
    return standing("counted", f"It is not part of the merge of generation {work.round + 1}.", "NotCounted")


def _paid(reader: RunReader, work: WorkRecord, document: Document) -> Document:
    tenure = reader.state.books.tenures.existing(work.tenure)
    match work.status:
        case WorkStatus.FINAL:
            paid = _paid_words(reader, document["pay"], document["shares"])
            return yes("paid", f"It is final: {paid}.") | {"pay": document["pay"], "shares": document["shares"]}
        case WorkStatus.CONVICTED:
            return standing("paid", "Its tenure was convicted: nothing is paid, and the lock is gone.", "Convicted")
        case WorkStatus.VOID:
            return standing("paid", "It is void: unpaid, and nothing was slashed.", "BaseCut")
        case _ if tenure.convicted_at:
            return standing("paid", "Its tenure was convicted: nothing will be paid.", "Convicted")
        case _ if reader.state.money.is_stopped:
            return standing("paid", NEVER_SETTLED, "NeverSettled")
        case _ if tenure.accusations or document["disputed"]:
            return standing("paid", "Its tenure is accused, or a game on it is open.", "UnderAccusation") | {
                "yes": None
            }
        case _:
            return standing("paid", "It is not settled yet.", "NotAuditedYet") | {"yes": None}


def _paid_words(reader: RunReader, pay: str, shares: str) -> str:
    """Tokens, shares or both, as far as there are any: a run may pay either."""
    parts = [f"{reader.run.currency.show(int(pay))} tokens"] if int(pay) or not int(shares) else []
    return " and ".join([*parts, *([f"{SHARES.show(int(shares))} shares"] if int(shares) else [])])


# --- audits


def explain_finding(reader: RunReader, name: Digest) -> Document:
    """A result of an auditor."""
    document = finding_document(reader, reader.state.attestations[name])
    agrees = "agrees with it" if document["agrees"] else "differs from it"
    text = f"Ticket {document['ticket']} replayed seat {document['seat']} of round {document['round']} and {agrees}."
    answers = [yes("known", text)]
    if document["paid"] is None and reader.state.money.is_stopped:
        answers.append(standing("paid", NEVER_SETTLED, "NeverSettled"))
    elif document["paid"] is None:
        answers.append(standing("paid", "It is not settled yet.", "NotAuditedYet") | {"yes": None})
    elif int(document["paid"]) or int(document["shares"]):
        answers.append(yes("paid", f"It was paid {_paid_words(reader, document['paid'], document['shares'])}."))
    else:
        remedy = "Nothing: work on a generation that was cut, and findings of a convicted ticket, are unpaid."
        answers.append(no("paid", "It was settled without a wage.", "Unpaid", remedy))
    return {"name": hexed(name), "kind": "finding", "known": True, "answers": answers, "finding": document}


def explain_accusation(reader: RunReader, name: Digest) -> Document:
    """An accusation and how far it is."""
    document = accusation_document(reader, name)
    status = reader.state.books.duties.attestations.accusations[name].status
    text = f"Ticket {document['ticket']} accuses {document['what']}. {ACCUSATION_TEXTS[status]}"
    if status is AccusationStatus.RECORDED and reader.state.money.is_stopped:
        text += " The run was stopped: none opens any more, and nobody is fined for it."
    return {
        "name": hexed(name),
        "kind": "accusation",
        "known": True,
        "answers": [yes("known", text)],
        "accusation": document,
    }


def explain_ticket(reader: RunReader, number: TicketId) -> Document:
    """A ticket: what it stakes, did and lost."""
    document = ticket_document(reader, number)
    opened = sum(call["in_time"] for call in document["calls"])
    text = f"Ticket {number} is {document['status']}: {count(opened, 'call')} opened"
    text += f", {count(document['findings'], 'finding')}"
    fined = reader.run.currency.show(int(document["fined"]))
    text += f", {fined} tokens of fines." if document["fined"] != "0" else "."
    return {
        "name": f"ticket {number}",
        "kind": "ticket",
        "known": True,
        "answers": [yes("known", text)],
        "ticket": document,
    }


# --- games and people


def explain_game(reader: RunReader, number: int) -> Document:
    """A game: whose clock runs until when, or who lost and how."""
    game = reader.state.games[number]
    document = game_document(reader, game)
    if game.verdict is None:
        whose = hexed(game.defender if document["turn"] == "defender" else game.challenger)
        text = f"Game {number} on {document['what']} stands at {game.stage.name}; {whose} is to move."
        answer = not_yet("known", text, game.deadline)
    else:
        how = "an opening or a selection was refuted" if game.verdict.outcome.name == "LEAF" else "a clock ran out"
        answer = yes("known", f"Game {number} on {document['what']} is over: {hexed(game.verdict.loser)} lost: {how}.")
    return {"name": f"game {number}", "kind": "game", "known": True, "answers": [answer], "game": document}


def explain_actor(reader: RunReader, who: Address) -> Document:
    """An address: what it is, what it did, and what stands between it and pay."""
    actor = actor_document(reader, who)
    if actor["role"] != "-":
        answers = [yes("known", f"Its role in this run: {actor['role']}.")]
    else:
        named = naming(reader, events_naming(reader, who.hex())[:NAMING_READ], who.hex())
        answers = [yes("known", "It took part.") if named else _no_part(who)]
    stakes = stakes_of(reader, who)
    works = [work for document in stakes["tenures"] for work in reader.shelves.works_of_tenure[document["tenure"]]]
    for work in sorted(works, key=lambda work: (work.round, work.seat))[-EXPLAINED:]:
        about = {"about": f"round {work.round}, seat {work.seat}"}
        answers += [answer | about for answer in explain_work(reader, work)["answers"][1:]]
    for document in stakes["tickets"]:
        about = {"about": f"ticket {document['ticket']}"}
        answers += [a | about for a in explain_ticket(reader, TicketId(document["ticket"]))["answers"]]
    return {"name": hexed(who), "kind": "actor", "known": True, "answers": answers, "actor": actor}
