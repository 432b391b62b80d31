"""Games of any run as the events of its game contract tell them."""

from __future__ import annotations

from assay.protocol.game.table import Side, Stage
from assay.protocol.types import Wei
from assay_ledger.bindings import game
from assay_ledger.contract import Event
from assay_ledger.index.games import verdict_of
from assay_ledger.index.records import GameRecord, MoveRecord


def fold_game(games: dict[int, GameRecord], event: Event, transaction: bytes) -> GameRecord | None:
    """Applies an event of the game contract, in the transaction of this hash; the game that it opened or ended."""
    match event:
        case game.GameOpened():
            opened = GameRecord(
                game_id=event.game_id,
                claim_id=event.claim_id,
                ref=event.ref,
                challenger=event.challenger,
                defender=event.defender,
                opened_tx=transaction,
            )
            games[event.game_id] = opened
            return opened
        case game.DigestsReused():
            record = games[event.game_id]
            # The event of the transaction's own turn comes after this one.
            record.reused[len(record.moves)] = event.list
        case game.Moved():
            record = games[event.game_id]
            record.stage, record.turn, record.deadline = event.stage, event.turn, event.deadline
            record.moves.append(MoveRecord(transaction, event.mover, event.stage))
        case game.Deferred():
            record = games[event.game_id]
            record.deferrals[Side.DEFENDER if event.mover == record.defender else Side.CHALLENGER] += 1
        case game.Verdict():
            return _judged(games[event.game_id], event, transaction)
        case game.LockTaken():
            record = games[event.game_id]
            record.bounty, record.burned = event.bounty, event.burned
            record.taken = Wei(event.bounty + event.burned + event.reserved)
    return None


def _judged(record: GameRecord, event: game.Verdict, transaction: bytes) -> GameRecord:
    side = Side.DEFENDER if event.loser == record.defender else Side.CHALLENGER
    record.verdict = verdict_of(event, side)
    record.verdict_tx = transaction
    record.stage, record.turn = Stage.OVER, Side.NONE
    return record
