"""What a lying gateway does, and a lying accuser: apart from honest code, for the demo and for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.engine.runtime.trace import TorchTrace
from assay.inference.bonds import AnswerGames, bond, pledge_model
from assay.inference.claims import answer_state, honest_trace
from assay.inference.cover import accusing_time, check_covered
from assay.inference.model import LanguageModel
from assay.inference.statement import AnswerStatement, sign
from assay.inference.verify import false_place
from assay.protocol.errors import InvariantError
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.nodes import Output
from assay.protocol.program.program import Program
from assay.protocol.program.trace import flip_bit
from assay.protocol.run.answers import HELD, SaidAnswer
from assay.protocol.types import Wei
from assay_ledger.bindings.game import LockTaken, Moved

if TYPE_CHECKING:
    from assay_ledger.deployment.answers import AnswerGates
    from assay_ledger.keys.keystore import ActorKeys


def false_statement(true: AnswerStatement, place: int, vocabulary: int) -> AnswerStatement:
    """A statement with the next token in place of one."""
    answer = list(true.answer)
    answer[place] = (answer[place] + 1) % vocabulary
    return replace(true, answer=tuple(answer))


def claimed_trace(program: Program, model: LanguageModel, said: SaidAnswer, place: int) -> TorchTrace:
    """A run that ends in what a statement claims, whether it is true or not."""
    found = honest_trace(program, model, said, place)
    return found if found.state_root(1) == HELD else contrary_trace(program, model, said, place)


def contrary_trace(program: Program, model: LanguageModel, said: SaidAnswer, place: int) -> TorchTrace:
    """A run that ends in the contrary of what is true, by a lie where that is decided: the last node that computes."""
    last = program.nodes[program.output_nodes[0][0]]
    assert isinstance(last, Output)
    return TorchTrace(program, answer_state(model, said, place), tamper=flip_bit(1, last.node))


@dataclass(frozen=True, slots=True)
class CaughtLie:
    """A lie that its reader found and the game decided. bounty, burned: of the bond, in wei."""

    place: int
    game_id: int
    outcome: Outcome
    is_convicted: bool
    bounty: Wei
    burned: Wei
    transactions: int


def catch_liar(
    gates: AnswerGates,
    model: LanguageModel,
    liar: ActorKeys,
    reader: ActorKeys,
    true: AnswerStatement,
    pass_time: Callable[[int], None],
) -> CaughtLie:
    """A gateway bonds and pledges itself, answers falsely, and is convicted by the reader who draws the answer again.

    true: an honest answer, in which one token is exchanged. pass_time: until a chain time. The games of both sides are
    played by the code that gateways and readers play theirs with; the liar alone brings another run.
    """
    bond(gates, liar)
    pledge_model(gates, model, liar, 2 * accusing_time(gates))
    false = sign(false_statement(true, len(true.answer) // 2, model.vocabulary), liar.local)
    check_covered(gates, false)
    place = false_place(model, false.statement)
    assert place is not None
    accuser, defender = AnswerGames(gates, model, reader), AnswerGames(gates, model, liar, claimed_trace)
    claim = accuser.commit(false, place)
    at = accuser.reveals_at(claim)[1]
    accuser.wait_to_reveal(claim, lambda: pass_time(max(at, gates.run.chain.head().timestamp + 1)))
    game_id = accuser.present(false, place)
    while not gates.games.game(game_id).state.is_over:
        if not (defender.step(game_id) or accuser.step(game_id)):
            raise InvariantError(f"Nobody has a move to make in game {game_id}.", code="NoMove")
    return caught(gates, place, game_id)


def caught(gates: AnswerGates, place: int, game_id: int) -> CaughtLie:
    """What a game that is over has taken."""
    found = gates.games.verdict(game_id)
    assert found is not None
    chain, first, at = gates.run.chain, gates.run.first_block, gates.game.address
    taken = [logged.event for logged in chain.events(LockTaken.search(at, game_id=game_id), first)]
    moves = {logged.transaction for logged in chain.events(Moved.search(at, game_id=game_id), first)}
    bounty, burned = Wei(sum(e.bounty for e in taken)), Wei(sum(e.burned for e in taken))
    verdict = found[0]
    is_convicted = verdict.side is Side.DEFENDER
    return CaughtLie(place, game_id, verdict.outcome, is_convicted, bounty, burned, len(moves))
