"""A gateway with several games at once: a move in each of them, whatever one of them or its node does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from web3.exceptions import Web3RPCError

from assay.inference.bonds import AnswerGames
from assay.protocol.digests import ZERO
from assay.protocol.errors import InvariantError, RejectedError, UnavailableError
from assay.protocol.game.state import DisputedClaim, GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.payments.gateway_books import answer_ref
from assay.protocol.types import Address
from assay_ledger.index.games import Game


class GamesAtHand(AnswerGames):
    """Games that are open for as long as a move is left in them; `meets` is what each move meets."""

    def __init__(self, moves: dict[int, int], meets: Callable[[int], None] = lambda _: None) -> None:
        self.moves, self._meets = moves, meets
        self.order: list[int] = []

    def own(self) -> list[Game]:
        return [opened(number) for number, left in sorted(self.moves.items()) if left]

    def step(self, game_id: int) -> bool:
        self._meets(game_id)
        self.order.append(game_id)
        self.moves[game_id] -= 1
        return True


def opened(number: int) -> Game:
    nobody = Address(bytes(20))
    claim = DisputedClaim(ZERO, nobody, ZERO, ZERO, ZERO, 1, ZERO)
    state = GameState(number, claim, nobody, Stage.NODES, Side.DEFENDER, 0, 0, (0, 0))
    return Game(state, answer_ref(ZERO))


def failing(error: Exception) -> Callable[[int], None]:
    """The first game fails with an error, the others do not."""

    def meets(game: int) -> None:
        if game == 1:
            raise error

    return meets


def test_each_of_several_games_gets_a_move_before_any_gets_another() -> None:
    games = GamesAtHand({1: 2, 2: 2, 5: 1})
    assert games.step_all(lambda *_: None) == ({1, 2, 5}, True)
    assert games.step_all(lambda *_: None) == ({1, 2}, True)
    assert games.step_all(lambda *_: None) == (set(), False)
    assert games.order == [1, 2, 5, 1, 2]


@pytest.mark.parametrize("error", [UnavailableError("silent"), RejectedError("TooEarly"), Web3RPCError("late")])
def test_a_game_that_fails_is_told_and_holds_up_no_other(error: Exception) -> None:
    games = GamesAtHand({1: 1, 2: 1}, failing(error))
    told: list[tuple[int, Exception]] = []
    assert games.step_all(lambda game, why: told.append((game, why))) == ({1, 2}, True)
    assert games.order == [2] and told == [(1, error)]


def test_a_defect_ends_what_plays_and_is_not_taken_for_a_silent_node() -> None:
    games = GamesAtHand({1: 1, 2: 1}, failing(InvariantError("a defect")))
    with pytest.raises(InvariantError):
        games.step_all(lambda *_: None)
