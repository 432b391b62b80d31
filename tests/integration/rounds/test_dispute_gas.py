"""What a whole game costs, from its challenge to the verdict on one element.

The in-process chain counts all calls as one transaction: slots are warm, and a node's figures are higher.
"""

from __future__ import annotations

import pytest

from assay.protocol.game.table import Move, Side
from assay.protocol.run.claims import ClaimKind
from tests.harness.contracts import snapshots
from tests.harness.contracts.harness import MAX_MOVE_GAS
from tests.harness.games import player
from tests.harness.rounds.played_scenes import dispute

MOST_GAS, MOST_TRANSACTIONS = 4_000_000, 20
KINDS = {
    "work, by its accuser": (ClaimKind.INTERVAL, True, 0),
    "work, by a third party": (ClaimKind.INTERVAL, False, 0),
    "update, by a third party": (ClaimKind.UPDATE, False, 0),
    "merge, by who trains": (ClaimKind.OUTER, True, 0),
    "accumulator, by its accuser": (ClaimKind.ATTESTATION, True, 0),
    "update of a finding, by its accuser": (ClaimKind.ATTESTATION, True, 1),
}


Moves = list[tuple[str, int]]


def moves_of_a_game(kind: ClaimKind, by_accuser: bool, part: int) -> Moves:
    """Function and gas of each transaction of a game on a lie."""
    w, d = dispute(kind, True, by_accuser, part)
    try:
        arity = w.book.config.arity
        w.play(d.number, player(Side.DEFENDER, d.defence, arity), player(Side.CHALLENGER, d.attack, arity))
        return w.moves[d.number]
    finally:
        w.end()


@pytest.mark.timeout(400)
def test_a_whole_dispute_stays_within_its_bars_and_its_table() -> None:
    defends = {move.function for move in Move if move.side is Side.DEFENDER}
    played = {name: moves_of_a_game(*row) for name, row in KINDS.items()}
    table = {}
    for name, moves in played.items():
        gas = [g for _, g in moves]
        assert sum(gas) <= MOST_GAS and len(gas) <= MOST_TRANSACTIONS and max(gas) <= MAX_MOVE_GAS
        table[name] = {
            "transactions": len(gas),
            "gas of the defender": sum(g for move, g in moves if move in defends),
            "gas, all": sum(gas),
            "dearest": max(gas),
        }
    snapshots.check("disputes", table)
