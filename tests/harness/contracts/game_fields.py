"""A game of the model in the words of `GameState` in GameTypes.sol, for the comparison of the two field by field."""

from __future__ import annotations

from typing import Any

from assay.protocol.game.book import OpenGame


def stored(model: OpenGame, ref: tuple[Any, ...], start: int) -> dict[str, Any]:
    """What the contract stores of a game whose claim is `ref`, when the model's time began at chain time `start`."""
    state = model.state
    defender_budget, challenger_budget = state.budget_left
    defender_deferrals, challenger_deferrals = state.deferrals
    expected = {
        "challenger": "0x" + state.challenger.hex(),
        "defender": "0x" + state.defender.hex(),
        "stage": state.stage,
        "turn": state.turn,
        "deadline": start + state.deadline,
        "turnStarted": start + state.turn_started,
        "defenderBudget": defender_budget,
        "challengerBudget": challenger_budget,
        "defenderDeferrals": defender_deferrals,
        "challengerDeferrals": challenger_deferrals,
        "advanced": state.advanced,
        "held": state.held,
        "backing": model.backing,
        "account": model.account,
        "claimId": state.claim.id,
        "lockId": state.claim.lock_id,
        "program": state.claim.program,
        "after_": state.after,
        "nodeHash": state.node_hash,
        "listIndex": state.list_index,
        "ref": (*ref[:4], "0x" + model.ref.party.hex(), model.ref.outer_root),
    }
    for name in ("family", "whole", "step", "last", "node", "element", "lo", "hi", "index", "count", "level"):
        expected[name] = getattr(state, name)
    for name in ("agreed", "disputed", "posted", "before", "value", "claimed", "heads"):
        expected[name] = getattr(state, name)
    return {name: same(value) for name, value in expected.items()}


def same(value: Any) -> Any:
    """A value in the form in which contract and model are compared: lists as tuples."""
    return tuple(value) if isinstance(value, list | tuple) else value
