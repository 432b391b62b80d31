"""Disputes as JSON documents. Units as in `documents`."""

from __future__ import annotations

from typing import Final

from assay.bundle.words import family_text, ref_text
from assay.explorer.documents import Document, hexed, wei
from assay.explorer.reader import RunReader
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay_ledger.index.records import GameRecord

VERDICT: Final = (
    "loser", "side", "outcome", "family", "node", "element", "term", "expected", "claimed", "tx", "bounty", "burned",
    "reserved",
)  # fmt: skip
"""What is said of a game that is over."""


def game_document(reader: RunReader, game: GameRecord) -> Document:
    """A dispute in figures."""
    hashes = list(dict.fromkeys([game.opened_tx, *(m.tx_hash for m in game.moves)]))
    gas = [reader.gas_of(tx) for tx in hashes]
    known = [used for used in gas if used is not None]
    verdict = game.verdict
    charter = reader.run.charter
    return {
        "game": game.game_id,
        "claim": hexed(game.claim_id),
        "kind": game.ref.kind.name,
        "what": ref_text(game.ref),
        "round": int(game.ref.round),
        "seat": int(game.ref.seat),
        "challenger": hexed(game.challenger),
        "defender": hexed(game.defender),
        "stage": game.stage.name,
        "turn": None if game.turn is Side.NONE else game.turn.name.lower(),
        "deadline": None if game.is_over else game.deadline,
        "bond": wei(charter.economics.challenge_bond),
        "selections": _selections(game),
        "transactions": len(hashes),
        "gas": sum(known) if len(known) == len(gas) else None,
        "gas_last": gas[-1],
        "verdict": None
        if verdict is None
        else {
            "loser": hexed(verdict.loser),
            "side": verdict.side.name.lower(),
            "outcome": verdict.outcome.name,
            "family": family_text(verdict.family) if verdict.outcome is Outcome.LEAF else None,
            "node": verdict.node,
            "element": str(verdict.element),
            "term": str(verdict.term),
            "expected": str(verdict.expected),
            "claimed": str(verdict.claimed),
            "tx": None if game.verdict_tx is None else hexed(game.verdict_tx),
            "bounty": wei(game.bounty),
            "burned": wei(game.burned),
            "reserved": wei(game.taken - game.bounty - game.burned),
        },
    }


def _selections(game: GameRecord) -> int:
    """Moves of the challenger after the opening; a game's end by the clock is no move."""
    moves = game.moves[1:]
    if game.outcome is Outcome.DEFAULT:
        moves = moves[:-1]
    return sum(m.mover == game.challenger for m in moves)
