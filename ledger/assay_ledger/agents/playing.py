"""When a party of games moves, defers or ends them, whatever kind of run they are about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.protocol.game.clock import Clocks, Timing, nearing, timing
from assay.protocol.game.table import Side
from assay.protocol.types import Address
from assay_ledger.agents.game_actions import Defer, EndOverdue, Play
from assay_ledger.index.records import GameRecord


def is_my_turn(me: Address, game: GameRecord) -> bool:
    """Is it this actor's turn?"""
    return game.turn is (Side.DEFENDER if game.defender == me else Side.CHALLENGER)


def moves(
    games: Iterable[GameRecord], me: Address, now: int, is_expensive: bool, clocks: Clocks
) -> Iterator[Play | Defer | EndOverdue]:
    """Moves that are due in some open games of one party, nearest clock first, and games whose other side is overdue.

    While gas costs more than what games refund (`is_expensive`) it waits for a lower fee, then defers.
    """
    for game in sorted(games, key=lambda game: (game.deadline, game.game_id)):
        if is_my_turn(me, game):
            if now <= game.deadline:
                deferred = game.deferrals[game.turn]
                match timing(game.whose, game.deadline, deferred, now, is_expensive, clocks):
                    case Timing.MOVE:
                        yield Play(game.game_id, len(game.moves))
                    case Timing.DEFER:
                        yield Defer(game.game_id, deferred)
        elif now > game.deadline:
            yield EndOverdue(game.game_id)


def times(games: Iterable[GameRecord], is_expensive: bool, clocks: Clocks) -> Iterator[int]:
    """Chain times at which something may become due in some open games of one party."""
    for game in games:
        if is_expensive:
            yield nearing(game.deadline, game.whose, clocks)
        yield game.deadline + 1
