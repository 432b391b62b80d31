"""Games of two stubborn players, and one that stands in each turn of the table, with the move that is due."""

from __future__ import annotations

from functools import cache

from assay.protocol.game.moves import AnyMove
from assay.protocol.game.state import GameState, ProgramHeader, Rules
from assay.protocol.game.table import Side, Turn
from tests.harness.games import (
    ETHER,
    GameWorld,
    Log,
    address,
    config,
    honest_trace,
    lie_at,
    lie_in_slot,
    play_out,
    player,
)
from tests.harness.programs import Example, counting, every_family

LIAR, HONEST = address("liar"), address("honest")


def rules_of(world: GameWorld) -> Rules:
    """What the moves of a world's games are judged by."""
    return Rules(world.settings, ProgramHeader.of(world.program))


def whole_game(example: Example, defends, challenges, arity: int = 4, steps: int = 1) -> tuple[GameState, Log]:
    """A game between two stubborn players over these traces."""
    world = GameWorld(example.program, config(arity))
    game_id = world.challenge(world.claim(defends, LIAR, 1000 * ETHER), HONEST)
    log = Log()
    end = play_out(
        world,
        game_id,
        player(Side.DEFENDER, defends, arity),
        player(Side.CHALLENGER, challenges, arity),
        log=log,
    )
    return end, log


@cache
def recorded() -> dict[Turn, tuple[GameState, AnyMove, Rules]]:
    """For every turn of the table a game that stands there, and the move that is due."""
    found: dict[Turn, tuple[GameState, AnyMove, Rules]] = {}
    example = every_family()
    lies = [lie_at(example, k) for k in range(len(example.program.nodes))]
    lies += [lie_in_slot(example, 2, 0)]
    pairs = [(example, lie, honest_trace(example), 1) for lie in lies if lie is not None]
    # Three leaves at arity 2 and several steps: openings below the first, and bisection of steps.
    pairs += [(counting(), lie_at(counting(), 1, 2, 5), honest_trace(counting(), 5), 5)]
    for source, lie, truth, steps in pairs:
        for arity in (2, 4):
            _, log = whole_game(source, lie, truth, arity, steps)
            rules = Rules(config(arity), ProgramHeader.of(source.program))
            for state, move in log.moves:
                found.setdefault(state.whose, (state, move, rules))
    return found
