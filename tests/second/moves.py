"""Damaged moves in recorded games: what the model makes of each, and the same for the second implementation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from random import Random
from typing import Any

from assay.protocol.game.errors import GameError
from assay.protocol.game.machine import process_move
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.state import GameState, ProgramHeader, Rules
from tests.harness.damage import damage
from tests.harness.games import config
from tools.game_definitions import ARITY, definitions
from tools.game_vectors import arguments, record


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """A recorded game as the model plays it and as the file has it."""

    document: dict[str, Any]
    turns: tuple[tuple[GameState, AnyMove], ...]
    rules: Rules


@cache
def games() -> tuple[RecordedGame, ...]:
    """The games of games.json."""
    found = []
    for definition in definitions():
        _, log = definition.play()
        rules = Rules(config(ARITY), ProgramHeader.of(definition.example.program))
        if log.moves:
            found.append(RecordedGame(record(definition), tuple(log.moves), rules))
    return tuple(found)


def attempts(game: RecordedGame, rng: Random, count: int) -> tuple[list[str], list[dict[str, Any]]]:
    """What the model says of damaged moves, and the moves as the second implementation takes them."""
    ours, documents = [], []
    while len(ours) < count:
        number = rng.randrange(len(game.turns))
        state, move = game.turns[number]
        bad = damage(move, rng)
        if any(_too_large(getattr(bad, f.name)) for f in fields(bad)):
            continue
        ours.append(_outcome(state, bad, game.rules))
        documents.append({"turn": number, "arguments": arguments(bad)})
    return ours, documents


def _too_large(value: object) -> bool:
    """Whether an integer is one that no caller can encode."""
    return isinstance(value, int) and value < 0


def _outcome(state: GameState, move: AnyMove, rules: Rules) -> str:
    try:
        after = process_move(state, state.party(state.turn), move, state.turn_started, rules)
    except GameError as error:
        return error.code
    if (v := after.verdict) is not None:
        return f"{int(v.side)} {v.family} {v.node} {v.element} {v.term} {v.expected} {v.claimed}"
    return f"{int(after.stage)} {int(after.turn)} {after.agreed.hex()} {after.posted.hex()}"
