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

from assay.conformance_rules import opening_of
from assay.protocol.game import process_move
from assay.protocol.game_descent import position_key
from assay.protocol.game_errors import GameError
from assay.protocol.game_moves import AnyMove, PostDigests
from assay.protocol.game_state import GameState, ProgramHeader, Rules
from assay.protocol.game_table import POSTINGS, Side
from assay.protocol.nodes import Family
from assay.protocol.openings import Opening
from assay.protocol.play import Posted
from assay.protocol.program import Program
from assay.protocol.trace import ReferenceTrace
from assay.protocol.types import Digest
from tests.games import ETHER, Log, World, address, config, damage, honest_trace, lie_at, lie_in_slot, play_out, player
from tests.programs import Example, counting, every_family
from tests.recorded import HONEST, LIAR, whole_game
from tools.opening_vectors import opening_document

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "games.json"
ARITY = 4
REFUSED_PER_MOVE = 2
TRIES = 12


Definition = tuple[str, Example, ReferenceTrace, int]
"""What it is, the program and its true X, the defender's trace, the steps."""


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
    return turn | {"refused": list(_refused(state, move, rules, rng))}


def record(what: str, example: Example, lie: ReferenceTrace, steps: int) -> dict[str, object]:
    """A game of a liar that defends and an honest challenger."""
    end, log = whole_game(example, lie, honest_trace(example, steps), ARITY, steps)
    return _document(what, example.program, end, log, {})


def record_known(what: str, example: Example, lie: ReferenceTrace, steps: int) -> dict[str, object]:
    """The second of two games on one claim, opened before the first was played.

    It stands at the first position when the list there becomes known; later ones are known when it comes there.
    """
    world = World(example.program, config(ARITY))
    ref = world.claim(lie, LIAR, 1000 * ETHER)
    first, second = world.challenge(ref, HONEST), world.challenge(ref, address("later"))
    defends = player(Side.DEFENDER, lie, ARITY)
    challenges = player(Side.CHALLENGER, honest_trace(example, steps), ARITY)

    def in_short(state: GameState, posted: Posted) -> AnyMove | None:
        return PostDigests(()) if position_key(state) in known else defends(state, posted)

    play_out(world, first, defends, challenges)
    known, log = dict(world.book.lists), Log()
    end = play_out(world, second, in_short, challenges, log=log)
    return _document(what, example.program, end, log, known)


def _document(what: str, program: Program, end: GameState, log: Log, known: dict[Digest, Digest]) -> dict[str, object]:
    """A game that was played to its end; `known` are the lists of other games, by their positions' keys."""
    rules, rng = Rules(config(ARITY), ProgramHeader.of(program), known), Random(what)
    claim, verdict = end.claim, end.verdict
    assert verdict is not None
    return {
        "what": what,
        "arity": ARITY,
        "claim": {"id": claim.id.hex(), "program": claim.program.hex(), "x": claim.x.hex(), "y": claim.y.hex()}
        | {"steps": claim.steps},
        "header": program.header.hex(),
        "tree": program.tree.root.hex(),
        "known": {key.hex(): posted.hex() for key, posted in sorted(known.items())},
        "turns": [_turn(state, move, rules, rng) for state, move in log.moves],
        "verdict": {
            "loser": int(verdict.side),
            "outcome": int(verdict.outcome),
            "family": verdict.family,
            "node": verdict.node,
            "element": str(verdict.element),
            "term": str(verdict.term),
            "expected": str(verdict.expected),
            "claimed": str(verdict.claimed),
        },
    }


def definitions() -> Iterator[Definition]:
    """Every stage and every move of the game."""
    count = counting()
    lie = lie_at(count, 1, 2, 5)
    assert lie is not None
    yield "five steps of counting, a lie in the map of the second", count, lie, 5
    example = every_family()
    for family in (Family.DOT, Family.SCATTER_SUM, Family.INPUT, Family.CONST, Family.OUTPUT):
        for k in example.nodes_of(family):
            found = lie_at(example, k)
            if found is not None:
                yield f"a lie in a node of family {family.name.lower()}", example, found, 1
                break
    yield "a slot of the end that is not its output node", example, lie_in_slot(example, 2, 0), 1


def text() -> str:
    """The document as it stands in the file: one line per game."""
    documents = [record(*definition) for definition in definitions()]
    documents.append(record_known("a second game on the first claim, its lists known", *next(definitions())[1:]))
    return '{"games": [\n' + ",\n".join(map(json.dumps, documents)) + "\n]}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.game_vectors`")
    PATH.write_text(text())
    print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
