"""Write tests/vectors/games.json: recorded games, every move with what is refused in its place, to the verdict.

The file's fields are explained in tests/vectors/README.md. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any

from assay.bundle.document import verdict_document as bundled_verdict
from assay.conformance.rules import opening_of
from assay.protocol.game.descent import position_key
from assay.protocol.game.errors import GameError
from assay.protocol.game.machine import open_game, process_move, process_timeout
from assay.protocol.game.moves import AnyMove, PostDigests
from assay.protocol.game.openings import Opening
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState, Outcome, ProgramHeader, Rules, Verdict
from assay.protocol.game.table import POSTINGS, Side
from assay.protocol.program.program import Program
from assay.protocol.types import Digest
from tests.harness.damage import damage
from tests.harness.games import ETHER, GameWorld, Log, address, config, play_out, player
from tests.harness.recorded import HONEST, LIAR
from tools.game_definitions import ARITY, Definition, definitions
from tools.opening_vectors import opening_document

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "games.json"
REFUSED_PER_MOVE = 2
TRIES = 12


def _name(field: str) -> str:
    """snake_case as the contract's arguments are called."""
    head, *tail = field.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _plain(field: str, value: object) -> object:
    match value:
        case bytes():
            return value.hex()
        case Opening():
            return opening_document(value)
        case tuple():
            return [str(v) if field == "parts" else _plain(field, v) for v in value]
        case _:
            return value


def arguments(move: AnyMove) -> dict[str, object]:
    """The fields of a move by their names."""
    return {_name(f.name): _plain(f.name, getattr(move, f.name)) for f in fields(move)}


def changed(move: AnyMove, field: str, value: Any) -> AnyMove:
    """The move with one field as a file has it."""
    name = next(f.name for f in fields(move) if _name(f.name) == field)
    return replace(move, **{name: _parsed(field, value, getattr(move, name))})


def _parsed(field: str, value: Any, like: object) -> Any:
    match like:
        case bytes():
            return bytes.fromhex(value)
        case tuple():
            if field in ("heads", "reads"):
                return tuple(opening_of(o) for o in value)
            return tuple(int(v) if field == "parts" else Digest(bytes.fromhex(v)) for v in value)
        case _:
            return value


def _refused(state: GameState, move: AnyMove, rules: Rules, rng: Random) -> Iterator[dict[str, object]]:
    """The move with one field changed, where that is refused."""
    found = 0
    for _ in range(TRIES):
        bad = _other_list(state, rng) if move == PostDigests(()) else damage(move, rng)
        changed = [f.name for f in fields(move) if getattr(bad, f.name) != getattr(move, f.name)]
        if not changed or found == REFUSED_PER_MOVE:
            continue
        try:
            process_move(state, state.party(state.turn), bad, state.turn_started, rules)
        except GameError as error:
            found += 1
            yield {
                "field": _name(changed[0]),
                "value": _plain(changed[0], getattr(bad, changed[0])),
                "error": error.code,
            }


def _other_list(state: GameState, rng: Random) -> PostDigests:
    """A list of the right length and end, where another is known."""
    count = min(ARITY, state.hi - state.lo) - 1
    return PostDigests((*(Digest(rng.randbytes(32)) for _ in range(count)), state.disputed))


def _turn(state: GameState, move: AnyMove, rules: Rules, rng: Random) -> dict[str, object]:
    turn: dict[str, object] = {"stage": int(state.stage), "side": int(state.turn)}
    if state.whose in POSTINGS:
        turn |= {"step": state.step, "lo": state.lo, "hi": state.hi, "key": position_key(state).hex()}
    turn |= {"move": move.kind.function, "arguments": arguments(move)}
    return turn | {"refused": list(_refused(state, move, rules, rng)), "default": _default(state)}


def record(definition: Definition) -> dict[str, object]:
    """A game that was played to its end."""
    end, log = definition.play()
    return _document(definition.what, definition.example.program, end, log, {})


def record_known(what: str, definition: Definition, first: bool) -> dict[str, object]:
    """The second of two games on one claim, opened before the first was played, or with `first` after it.

    It stands at the first position when the list there becomes known; what it comes to later, or begins on, is known.
    """
    world = GameWorld(definition.example.program, config(ARITY))
    ref = world.claim(definition.defends, LIAR, 1000 * ETHER)
    games = [world.challenge(ref, HONEST), world.challenge(ref, address("later"))]
    defends = player(Side.DEFENDER, definition.defends, ARITY)
    challenges = player(Side.CHALLENGER, definition.challenges, ARITY)

    def in_short(state: GameState, posted: Posted) -> AnyMove | None:
        return PostDigests(()) if position_key(state) in known else defends(state, posted)

    play_out(world, games[0], defends, challenges)
    known, log = dict(world.book.position_cache), Log()
    if first:  # what a conviction closes, another world has open
        shown, world = world.shown, GameWorld(definition.example.program, config(ARITY))
        world.book.position_cache.update(known)
        world.shown.update(shown)
        games[1] = world.challenge(world.claim(definition.defends, LIAR, 1000 * ETHER), HONEST)
    end = play_out(world, games[1], in_short, challenges, log=log)
    return _document(what, definition.example.program, end, log, known) | {"knownFirst": first}


def _document(what: str, program: Program, end: GameState, log: Log, known: dict[Digest, Digest]) -> dict[str, object]:
    """A game that was played to its end; `known` are the lists of other games, by their positions' keys."""
    rules, rng = Rules(config(ARITY), ProgramHeader.of(program), known), Random(what)
    claim, verdict = end.claim, end.verdict
    assert verdict is not None
    turns = [_turn(state, move, rules, rng) for state, move in log.moves]
    if verdict.outcome is Outcome.DEFAULT:
        turns.append(_timeout(log.moves, end, rules))
    return {
        "what": what,
        "arity": ARITY,
        "claim": {"id": claim.id.hex(), "program": claim.program.hex(), "x": claim.x.hex(), "y": claim.y.hex()}
        | {"steps": claim.steps},
        "header": program.header.hex(),
        "tree": program.tree.root.hex(),
        "known": {key.hex(): posted.hex() for key, posted in sorted(known.items())},
        "turns": turns,
        "verdict": verdict_document(verdict),
    }


def _timeout(moves: list[tuple[GameState, AnyMove]], end: GameState, rules: Rules) -> dict[str, object]:
    """The turn in which somebody's clock ran out."""
    assert end.verdict is not None
    if moves:
        state, move = moves[-1]
        state = process_move(state, state.party(state.turn), move, state.turn_started, rules)
    else:
        state = open_game(end.game_id, end.claim, end.challenger, 0, rules)
    place = {"stage": int(state.stage), "side": int(state.turn)}
    return place | {"move": "timeout", "arguments": {}, "refused": [], "default": _default(state)}


def _default(state: GameState) -> dict[str, object]:
    """The verdict if the side to move says nothing."""
    verdict = process_timeout(state, state.deadline + 1).verdict
    assert verdict is not None
    return verdict_document(verdict)


def verdict_document(verdict: Verdict) -> dict[str, object]:
    """A verdict as the file has it: as in a bundle, with numbers for side and outcome."""
    known = bundled_verdict(verdict)
    return {k: v for k, v in known.items() if k != "side"} | {
        "loser": int(verdict.side),
        "outcome": int(verdict.outcome),
    }


def text() -> str:
    """The document as it stands in the file: one line per game."""
    documents = [record(definition) for definition in definitions()]
    first = next(definitions())
    documents.append(record_known("a second game on the first claim, its lists known", first, False))
    documents.append(record_known("a later game on the first claim, its lists known from the beginning", first, True))
    return '{"games": [\n' + ",\n".join(map(json.dumps, documents)) + "\n]}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.game_vectors`")
    PATH.write_text(text())
    print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
