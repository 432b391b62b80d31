"""The dispute game as a pure state machine: the defender opens, the challenger selects, one element is computed.

`process_move`, `process_defer` and `process_timeout` are what `Game.sol` does, move for move and error for error; time
is an argument, and so is the base fee.
A verdict convicts the party whose opening was refuted or whose clock ran out, and no other. Money is `model.games`'.
Source: docs/protocol.md, section 5; the table of turns is `table`, drawn in docs/game.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from assay.protocol.errors import InvariantError
from assay.protocol.game import descent
from assay.protocol.game import element as elements
from assay.protocol.game.clock import DEFERRAL, DEFERRALS
from assay.protocol.game.errors import FeeNotAboveCap, NoDeferralLeft, NotYourTurn, TooEarly, TooLate, WrongStage
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.state import DisputedClaim, GameState, Outcome, Rules, Verdict
from assay.protocol.game.table import TABLE, Move, Side, Stage, stages_of
from assay.protocol.types import Address

_PROCESS: Final[dict[Move, Callable[[GameState, Any, Rules], GameState]]] = {
    Move.POST_DIGESTS: descent.post_digests,
    Move.BISECT_DIGESTS: descent.bisect_digests,
    Move.OPEN_NODE: descent.open_node,
    Move.PROVE_ROOT: descent.prove_root,
    Move.SELECT_SUBTREE: descent.select_subtree,
    Move.OPEN_SUBTREE: descent.open_subtree,
    Move.OPEN_LEAF: descent.open_leaf,
    Move.SELECT_ELEMENT: elements.select_element,
    Move.POST_PARTS: elements.post_parts,
    Move.SELECT_PART: elements.select_part,
    Move.PROVE_TERM: elements.prove_term,
    Move.OPEN_STATE: descent.open_state,
    Move.SELECT_LIST: descent.select_list,
}


def open_game(game_id: int, claim: DisputedClaim, challenger: Address, now: int, rules: Rules) -> GameState:
    """A new game: all steps of the claim are disputed, the defender is to move unless its list is known."""
    if claim.steps < 1 or claim.program != rules.program.root:
        raise InvariantError("A game needs at least one step of the program given.", code="WrongClaim")
    clocks = rules.config.clocks
    budgets = (clocks.budget, clocks.budget)
    state = GameState(game_id, claim, challenger, Stage.STEPS, Side.DEFENDER, now, 0, budgets)
    if claim.steps > 1:
        state = replace(state, lo=0, hi=claim.steps, agreed=claim.x, disputed=claim.y)
    else:
        state = descent.begin_nodes(state, rules, 1, claim.x, claim.y)
    return _start_turn(descent.reuse_list(state, rules), now, rules)


def check_turn(state: GameState, mover: Address, move: Move, now: int) -> None:
    """Whether a move is due, in the order in which the contract asks.

    Raises:
        WrongStage: the move does not belong to this stage.
        NotYourTurn: the other side is to move, or the mover is no party to the game.
        TooLate: the deadline has passed.
    """
    if state.stage not in stages_of(move):
        raise WrongStage(f"{move.function} does not belong to stage {state.stage.name}.", actual=state.stage)
    if state.turn is not move.side:
        raise NotYourTurn(f"{state.turn.name.capitalize()} is to move.", caller=mover)
    _check_mover(state, mover, now)


def _check_mover(state: GameState, mover: Address, now: int) -> None:
    """Whether the mover is the side to move, and in time."""
    if mover != state.party(state.turn):
        raise NotYourTurn(f"{state.turn.name.capitalize()} is to move.", caller=mover)
    if now > state.deadline:
        raise TooLate(f"The deadline was {state.deadline}, it is {now}.", deadline=state.deadline)


def process_move(state: GameState, mover: Address, move: AnyMove, now: int, rules: Rules) -> GameState:
    """The state after a move at chain time `now`.

    Raises:
        WrongStage, NotYourTurn, TooLate: the move is not due.
        WrongCount, WrongDigest, ListMismatch, IndexOutOfRange, PartsMismatch: the move is malformed.
    """
    check_turn(state, mover, move.kind, now)
    after = _PROCESS[move.kind](state, move, rules)
    if after.verdict is not None:
        return _over(after)
    # A side that deferred may move within the hour, before its clock runs on.
    side, used = state.turn, max(0, now - state.turn_started)
    left = rules.config.clocks.budget_after(state.budget_left[side - 1], used, state.whose)
    defender, challenger = state.budget_left
    budgets = (left, challenger) if side is Side.DEFENDER else (defender, left)
    after = descent.reuse_list(replace(after, budget_left=budgets), rules)
    assert after.whose in TABLE[state.whose].next
    return _start_turn(after, now, rules)


def process_defer(state: GameState, mover: Address, now: int, base_fee: int, rules: Rules) -> GameState:
    """The state after the side to move deferred its turn: everything as it was, an hour later.

    `base_fee` is that of the block, in wei of the chain's coin per gas.

    Raises:
        WrongStage: the game is over.
        NotYourTurn, TooLate: as for a move.
        FeeNotAboveCap: the fee is no reason to wait.
        NoDeferralLeft: this side has deferred three times in this game.
    """
    if state.is_over:
        raise WrongStage("The game is over.", actual=state.stage)
    _check_mover(state, mover, now)
    cap, side = rules.config.chain.fee_cap, state.turn
    if base_fee <= cap:
        raise FeeNotAboveCap(f"The base fee of {base_fee} is not above {cap}.", base_fee=base_fee, cap=cap)
    taken = list(state.deferrals)
    taken[side - 1] += 1
    if taken[side - 1] > DEFERRALS:
        raise NoDeferralLeft(f"A side defers at most {DEFERRALS} times in a game.", caller=mover)
    started, deadline = state.turn_started + DEFERRAL, state.deadline + DEFERRAL
    return replace(state, turn_started=started, deadline=deadline, deferrals=(taken[0], taken[1]))


def process_timeout(state: GameState, now: int) -> GameState:
    """The state after anyone called `timeout`: the side whose clock ran out has lost by DEFAULT.

    Raises:
        WrongStage: the game is over.
        TooEarly: the deadline has not passed.
    """
    if state.is_over:
        raise WrongStage("The game is over.", actual=state.stage)
    if now <= state.deadline:
        raise TooEarly(f"The deadline is {state.deadline}, it is {now}.", deadline=state.deadline)
    loser = state.party(state.turn)
    verdict = Verdict(loser, state.turn, Outcome.DEFAULT, state.family, state.node, state.element, 0, 0, 0)
    return _over(replace(state, verdict=verdict))


def _start_turn(state: GameState, now: int, rules: Rules) -> GameState:
    """The clock of the side to move starts."""
    deadline = rules.config.clocks.deadline(now, state.budget_left[state.turn - 1], state.whose)
    return replace(state, turn_started=now, deadline=deadline)


def _over(state: GameState) -> GameState:
    """The game is over: no side is to move."""
    return replace(state, stage=Stage.OVER, turn=Side.NONE)
