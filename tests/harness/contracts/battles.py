"""Games on `Game.sol` and in the model at once, and the few steps that every test of them begins with."""

from __future__ import annotations

from assay.protocol.game.moves import AnyMove
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState
from assay.protocol.game.table import Side
from assay.protocol.run.claims import challenge_commitment
from assay.protocol.types import Digest
from tests.harness.contracts.game_chain import Twin
from tests.harness.games import ETHER, GameWorld, address, config, play_out, player
from tests.harness.programs import Example

LIAR, HONEST = address("liar"), address("honest")


def fresh(example: Example, arity: int = 4, bond: int = 640 * ETHER) -> Twin:
    """A world of its own on both."""
    return Twin(example.program, config(arity, bond))


def battle(twin: GameWorld, defends, challenges, number: int, watch=None, lock: int = 1000 * ETHER) -> GameState:
    """A whole game between two stubborn players, `watch` looking on before every move."""
    liar, honest = address(f"defender {number}"), address(f"challenger {number}")
    game_id = twin.challenge(twin.claim(defends, liar, lock, number), honest)
    players = [
        player(side, x, twin.settings.arity) for side, x in ((Side.DEFENDER, defends), (Side.CHALLENGER, challenges))
    ]
    if watch is not None:
        players = [watched(p, watch) for p in players]
    return play_out(twin, game_id, *players)


def watched(inner, watch):
    """A player whose moves somebody looks at first."""

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        move = inner(state, posted)
        watch(state, move)
        return move

    return play


def commit(twin: Twin, ref, root: Digest, who=HONEST, now: int = 0, block: int = 1) -> Digest:
    """Commit to a third-party challenge."""
    commitment = challenge_commitment(ref, root, Digest(bytes(32)), who)
    twin.book.commit_challenge(who, commitment, now, block)
    return commitment


def funded(twin: Twin, who=HONEST, amount: int = 2000 * ETHER) -> None:
    """Give a party money on both."""
    twin.vault.deposit(who, amount)
    twin.games.deposit(who, amount)
