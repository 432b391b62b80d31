"""Known? Counted? Paid? And if not: the code, the remedy, the deadline. For whatever has a name in a run."""

from __future__ import annotations

from dataclasses import asdict

from assay.explorer.answers import no, not_yet, standing, yes
from assay.explorer.chain_reader import EventRow
from assay.explorer.codes import find_code
from assay.explorer.documents import (
    Document,
    actor_document,
    claims,
    commitment_document,
    game_document,
    hexed,
    included,
)
from assay.explorer.run_reader import RunReader
from assay.explorer.search import search
from assay.explorer.words import exact
from assay.protocol.types import Address, Digest, Role, Seat, Status
from assay_ledger.index.records import CommitmentRecord, GameRecord, RoundRecord


def explain(reader: RunReader, name: str) -> Document:
    """Everything that can be said about a code, address, digest, transaction, `game N` or `round N`."""
    code = explain_code(name)
    if code is not None:
        return code
    for url in (hit.url for hit in search(reader, name)):
        kind, *rest = url.strip("/").split("/")
        if kind == "actors":
            return explain_actor(reader, Address(bytes.fromhex(rest[0][2:])))
        if kind == "commitments":
            return explain_commitment(reader, int(rest[0]), Seat(int(rest[1])))
        if kind == "claims":
            return explain_claim(reader, rest[0])
        if kind == "games":
            return explain_game(reader, reader.state.games[int(rest[0])])
        return {"name": name, "kind": kind, "known": True, "see": url, "answers": []}
    return unknown(name)


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


def explain_commitment(reader: RunReader, round_: int, seat: Seat) -> Document:
    """A commitment: is it complete, in the model, beyond challenge, paid?"""
    record = reader.state.rounds[round_]
    c = record.commitments[seat]
    answers = [yes("known", f"Seat {seat} committed to round {round_} in transaction {hexed(c.tx_hash)}.")]
    answers += [_counted(reader, record, c), _paid(reader, record, c)]
    document = commitment_document(reader, record, c)
    return {"name": hexed(c.digest), "kind": "commitment", "known": True, "answers": answers, "commitment": document}


def _counted(reader: RunReader, record: RoundRecord, c: CommitmentRecord) -> Document:
    now, times = reader.state.head.timestamp, record.times
    if not c.complete:
        view = reader.view
        signed = sum(view.stake_at(reader.state.attesters[who], record.number) for who in c.receipts)
        total = view.total_at(Role.VERIFIER, record.number)
        text = (
            f"Receipts stand behind it for {_share(signed, total)} of the verifiers' stake; more than half are needed."
        )
        if now <= times.receipts_until:
            return not_yet("counted", text, times.receipts_until)
        return standing("counted", text, "Incomplete")
    if c.convicted:
        lost = [g.game_id for g in reader.state.games.values() if _is_on(g, record, c) and g.convicted]
        return standing("counted", f"It was convicted in game {', '.join(map(str, lost))}.", "Convicted")
    if c.excluded:
        accusers = [row.arguments["accuser"] for row in _rows(reader, "rounds", "Excluded", record, c.seat)]
        text = f"It was left out of the outer step: {', '.join(accusers)} revealed another result."
        return standing("counted", text, "Excluded", times.challenge_until)
    is_in = included(record, c)
    if is_in is None:
        return not_yet("counted", "It is complete; the outer step of the round has not been posted.", times.t7)
    if is_in:
        return yes("counted", "It is complete and part of the outer step.")
    return standing("counted", "It is not part of the outer step from its base.", "BaseFell")


def _paid(reader: RunReader, record: RoundRecord, c: CommitmentRecord) -> Document:
    match c.status:
        case Status.FINAL:
            (row,) = _rows(reader, "settlement", "WorkSettled", record, c.seat)
            pay, shares = exact(row.arguments["pay"]), exact(row.arguments["shares"])
            text = f"It is final: {pay} tokens of pay and {shares} shares."
            return yes("paid", text) | {"pay": str(row.arguments["pay"]), "shares": str(row.arguments["shares"])}
        case Status.CONVICTED:
            return standing("paid", "It was convicted: nothing is paid, and the lock is gone.", "Convicted")
        case Status.VOID:
            return standing(
                "paid", "It is void: unpaid, and nothing was slashed.", "BaseFell" if c.complete else "Incomplete"
            )
        case Status.OPEN:
            until = record.times.challenge_until
            if c.convicted:
                return standing("paid", "It was convicted: nothing will be paid.", "Convicted")
            return standing("paid", "It is not settled yet.", "NotSettledYet", until) | {"yes": None}


def explain_claim(reader: RunReader, name: str) -> Document:
    """A claim: does it stand, which games are about it, and what follows for the work behind it?"""
    claim = next(c for c in claims(reader) if c["id"] == name)
    answers = [yes("known", f"It is the claim of {claim['what']}, and it {_verb(claim['status'])}.")]
    if claim["kind"] in ("INTERVAL", "UPDATE"):
        answers += explain_commitment(reader, claim["round"], Seat(claim["seat"]))["answers"][1:]
    elif claim["status"] == "fallen":
        answers.append(standing("counted", f"It fell in game {claim['games'][-1]}.", "Convicted"))
    else:
        until = reader.state.rounds[claim["round"]].times.challenge_until
        is_over = reader.state.head.timestamp > until
        answers.append(
            yes("counted", "It stands beyond challenge.") if is_over else not_yet("counted", "It stands.", until)
        )
    return {"name": name, "kind": "claim", "known": True, "answers": answers, "claim": claim}


def explain_game(reader: RunReader, game: GameRecord) -> Document:
    """A game: whose clock runs until when, or who lost and how."""
    document = game_document(reader, game)
    if game.verdict is None:
        whose = hexed(game.defender if document["turn"] == "defender" else game.challenger)
        text = f"Game {game.game_id} on {document['what']} stands at {game.stage.name}; {whose} is to move."
        answer = not_yet("known", text, game.deadline)
    else:
        how = "an opening or a selection was refuted" if game.verdict.outcome.name == "LEAF" else "a clock ran out"
        text = f"Game {game.game_id} on {document['what']} is over: {hexed(game.verdict.loser)} lost, because {how}."
        answer = yes("known", text)
    return {"name": f"game {game.game_id}", "kind": "game", "known": True, "answers": [answer], "game": document}


def explain_actor(reader: RunReader, who: Address) -> Document:
    """An address: role, what it did, and what stands between it and pay."""
    actor = actor_document(reader, who)
    answers = [yes("known", f"It is a {actor['role']} of this run." if actor["role"] != "-" else "It took part.")]
    for record in reader.state.rounds:
        for seat, c in sorted(record.commitments.items()):
            if c.solver == who:
                for answer in explain_commitment(reader, int(record.number), seat)["answers"][1:]:
                    answers.append(answer | {"about": f"round {record.number}, seat {seat}"})
        attendance = record.attendance.get(who)
        if attendance is None:
            continue
        about = {"about": f"audit of round {record.number}"}
        if attendance.settled:
            answers.append(yes("paid", f"{len(attendance.leaves)} duties were revealed and settled.") | about)
        elif attendance.leaves:
            answers.append(
                standing("paid", "Duties are not settled yet.", "NotSettledYet", record.times.challenge_until) | about
            )
        elif reader.state.head.timestamp > record.times.t7 and attendance.root != Digest(bytes(32)):
            answers.append(standing("paid", "Its results were never revealed.", "Unrevealed") | about)
    return {"name": hexed(who), "kind": "actor", "known": True, "answers": answers, "actor": actor}


# --- inside


def _rows(reader: RunReader, contract: str, name: str, record: RoundRecord, seat: Seat) -> list[EventRow]:
    wanted = (contract, name, int(record.number), int(seat))
    return [
        r for r in reader.events if (r.contract, r.name, r.arguments.get("round"), r.arguments.get("seat")) == wanted
    ]


def _is_on(game: GameRecord, record: RoundRecord, c: CommitmentRecord) -> bool:
    return (game.ref.round, game.ref.seat, game.defender) == (record.number, c.seat, c.solver)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def _verb(status: str) -> str:
    return {"stands": "stands", "fallen": "has fallen", "disputed": "is disputed"}[status]
