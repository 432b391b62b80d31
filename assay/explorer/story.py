"""What a run is and what happened in it, each in a sentence: who cheated, and what became of it."""

from __future__ import annotations

from typing import Final

from assay.bundle.words import ref_text
from assay.explorer.documents import Document, hexed
from assay.explorer.reader import RunReader
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address
from assay_ledger.index.records import GameRecord

NAMED: Final = 4
"""So many cheats are named; the others are counted."""

WHAT: Final = (
    "People who do not trust each other train one model here: whoever takes part stakes money, strangers replay its "
    "work, and whoever cheats loses what it staked."
)


def story_document(reader: RunReader) -> Document:
    """`cheats`: who lost a dispute, by which games, and what it lost; `quiet` where nobody has."""
    lost: dict[Address, list[GameRecord]] = {}
    for game in reader.shelves.games:
        if game.verdict is not None:
            lost.setdefault(game.verdict.loser, []).append(game)
    named = list(lost.items())[-NAMED:]
    return {
        "what": WHAT,
        "cheats": [
            {
                "who": hexed(who),
                "did": did(games),
                "games": [g.game_id for g in proving(games)[-NAMED:]],
                "more": len(games) - len(proving(games)[-NAMED:]),
                "became": became(reader, who),
            }
            for who, games in named
        ],
        "more": len(lost) - len(named),
        "quiet": quiet(reader),
    }


def proving(games: list[GameRecord]) -> list[GameRecord]:
    """Of the games that somebody lost those in which it was refuted itself; all where it was in none."""
    return [game for game in games if game.convicted] or games


def did(games: list[GameRecord]) -> str:
    """What somebody who lost these games had done, by the first in which it was refuted itself."""
    refuted = next((game for game in games if game.convicted), None)
    if refuted is None:
        return f"challenged {ref_text(games[0].ref)}, which was true"
    what = ref_text(refuted.ref)
    match refuted.ref.kind:
        case ClaimKind.OUTER:
            return f"opened a false root for {what}"
        case ClaimKind.ATTESTATION:
            return f"said a falsehood about {what}"
        case _:
            return f"committed false work: {what}"


def became(reader: RunReader, who: Address) -> str:
    """What somebody who lost a game lost by it."""
    tenures = reader.state.books.tenures
    tickets = reader.state.books.registry.tickets
    held = [tenures.existing(number) for number in reader.shelves.tenures_of[who]]
    mine = [tickets[number] for number in reader.shelves.tickets_of[who] if number in tickets]
    tickets_lost = sum(bool(t.convicted_at) for t in mine)
    parts = [f"lost {reader.run.currency.about(reader.money.of(who).lost).replace(',', ' ')} tokens"]
    parts += ["its seat"] if any(t.convicted_at for t in held) else []
    parts += [f"{tickets_lost} tickets" if tickets_lost > 1 else "a ticket"] if tickets_lost else []
    return " and ".join(parts)


def quiet(reader: RunReader) -> str:
    """What happened where nobody lost a game."""
    works, findings = len(reader.shelves.works), len(reader.shelves.findings)
    if not works:
        return "Nothing has been trained yet, so nobody can have cheated."
    disputed = sum(not game.is_over for game in reader.shelves.games)
    often = "once" if findings == 1 else f"{findings} times"
    what = "1 commitment says" if works == 1 else f"{works} commitments say"
    text = f"Nobody was found cheating: auditors replayed {often} what {what}"
    going = "1 dispute goes on" if disputed == 1 else f"{disputed} disputes go on"
    return f"{text}; {going}." if disputed else f"{text}."
