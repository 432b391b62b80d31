"""How long an action of the first design may wait for stores, from the clock that runs against it. Pure."""

from __future__ import annotations

from typing import Final

from assay.protocol.game.table import Side
from assay_ledger.agents.actions import (
    Action,
    Attest,
    Challenge,
    Commit,
    CommitChallenge,
    Defer,
    EndOverdue,
    Play,
    Receipt,
    Replay,
    RevealChallenge,
    Train,
)
from assay_ledger.agents.patience import BESIDE_GAME_S, IN_GAME_S, LEAST_S, MOST_S
from assay_ledger.index.records import GameRecord
from assay_ledger.index.view import RunView

_IN_GAME: Final = (Play, Defer, EndOverdue, Challenge, CommitChallenge, RevealChallenge)


def is_in_game(action: Action) -> bool:
    """Does the action open, answer or end a game?"""
    return isinstance(action, _IN_GAME)


def patience(action: Action, view: RunView) -> float:
    """Seconds that an action may wait for stores in all."""
    if is_in_game(action):
        return IN_GAME_S
    if any(_is_my_turn(view, game) for game in view.state.open_games_of(view.me)):
        return BESIDE_GAME_S
    return min(max(_share(action, view), LEAST_S), MOST_S)


def _is_my_turn(view: RunView, game: GameRecord) -> bool:
    return game.turn is (Side.DEFENDER if game.defender == view.me else Side.CHALLENGER)


def _share(action: Action, view: RunView) -> float:
    """The part of the time that is left to an action's window that its waiting may take."""
    record = view.state.round
    if record is None:
        return MOST_S
    times = record.times
    match action:
        case Receipt():
            waiting = sum(view.me not in c.receipts for c in record.commitments.values())
            return (times.receipts_until - view.now) / (2 * max(waiting, 1))
        case Train() | Commit():
            return (times.t1 - view.now) / 4
        case Replay() | Attest():
            drawn = view.memory.duties.get(record.number, ())
            missing = sum(view.result(duty) is None for duty in drawn)
            until = times.t3 if view.now < times.t3 else times.t5
            return (until - view.now) / (2 * max(missing, 1))
    return MOST_S
