"""The rules of the dispute game: every turn and every family."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.game import errors
from assay.protocol.game.clock import DEFERRAL, DEFERRALS
from assay.protocol.game.machine import process_defer, process_move, process_timeout
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.state import GameState, Outcome, ProgramHeader, Rules
from assay.protocol.game.table import TABLE, Move, Side, Turn, stages_of, to_mermaid
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import flip_bit
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.damage import flipped
from tests.harness.games import CHAIN, EXPENSIVE, address, config, honest_trace, lie_at, lie_in_slot
from tests.harness.programs import Example, counting, every_family, f32_bytes, mlp_step
from tests.harness.recorded import LIAR, recorded, whole_game


def any_move(kind: Move) -> AnyMove:
    """Some move of this kind."""
    return next(move for _, move, _ in recorded().values() if move.kind is kind)


def test_the_recorded_games_visit_every_turn_of_the_table() -> None:
    assert set(recorded()) == set(TABLE)


@pytest.mark.parametrize("turn", list(TABLE), ids=lambda t: f"{t.stage.name}-{t.side.name}")
def test_every_move_in_every_turn_is_due_or_refused_by_name(turn: Turn) -> None:
    state, due, rules = recorded()[turn]
    now = state.turn_started
    for kind in Move:
        move = due if kind is due.kind else any_move(kind)
        for side in (Side.DEFENDER, Side.CHALLENGER):
            mover = state.party(side)
            if turn.stage not in stages_of(kind):
                with pytest.raises(errors.WrongStage):
                    process_move(state, mover, move, now, rules)
            elif kind is not due.kind or side is not turn.side:
                with pytest.raises(errors.NotYourTurn):
                    process_move(state, mover, move, now, rules)
            else:
                after = process_move(state, mover, move, now, rules)
                assert after.is_over or after.whose in TABLE[turn].next
                with pytest.raises(errors.TooLate):
                    process_move(state, mover, move, state.deadline + 1, rules)
                last = process_move(state, mover, move, state.deadline, rules)
                assert last.is_over or last.budget_left[side - 1] == 0
        if turn.stage in stages_of(kind):
            with pytest.raises(errors.NotYourTurn):
                process_move(state, address("stranger"), move, now, rules)


@pytest.mark.parametrize("turn", list(TABLE), ids=lambda t: f"{t.stage.name}-{t.side.name}")
def test_only_the_party_to_move_loses_by_silence_and_only_after_the_deadline(turn: Turn) -> None:
    state, due, rules = recorded()[turn]
    with pytest.raises(errors.TooEarly):
        process_timeout(state, state.deadline)
    over = process_timeout(state, state.deadline + 1)
    assert over.verdict is not None
    assert (over.verdict.outcome, over.verdict.side) == (Outcome.DEFAULT, turn.side)
    assert over.verdict.loser == state.party(turn.side)
    for refused in (lambda: process_timeout(over, over.deadline + 9), lambda: process_move(over, LIAR, due, 0, rules)):
        with pytest.raises(errors.WrongStage):
            refused()


@pytest.mark.parametrize("turn", list(TABLE), ids=lambda t: f"{t.stage.name}-{t.side.name}")
def test_any_turn_is_deferred_by_its_side_alone_three_times_and_only_above_the_cap(turn: Turn) -> None:
    state, due, rules = recorded()[turn]
    mover, now = state.party(turn.side), state.turn_started
    with pytest.raises(errors.FeeNotAboveCap):
        process_defer(state, mover, now, CHAIN.fee_cap, rules)
    for other in (state.party(turn.side.other), address("stranger")):
        with pytest.raises(errors.NotYourTurn):
            process_defer(state, other, now, EXPENSIVE, rules)
    with pytest.raises(errors.TooLate):
        process_defer(state, mover, state.deadline + 1, EXPENSIVE, rules)
    later = state
    for count in range(1, DEFERRALS + 1):
        later = process_defer(later, mover, later.deadline, EXPENSIVE, rules)
        assert later.deferrals[turn.side - 1] == count and later.deferrals[turn.side.other - 1] == 0
        assert (later.turn_started, later.deadline) == (now + count * DEFERRAL, state.deadline + count * DEFERRAL)
        # Nothing but the clock has moved.
        same = {"turn_started": now, "deadline": state.deadline, "deferrals": (0, 0)}
        assert replace(later, **same) == state
    with pytest.raises(errors.NoDeferralLeft):
        process_defer(later, mover, now, EXPENSIVE, rules)
    # An hour that was not needed costs nothing, and one that was costs no budget.
    for at in (now, now + DEFERRALS * DEFERRAL):
        after = process_move(later, mover, due, at, rules)
        assert after.is_over or after.budget_left == state.budget_left
    with pytest.raises(errors.TooEarly):
        process_timeout(later, later.deadline)
    over = process_timeout(later, later.deadline + 1)
    with pytest.raises(errors.WrongStage):
        process_defer(over, mover, now, EXPENSIVE, rules)


def test_the_table_gives_every_move_to_one_side_and_ends_in_verdicts_only() -> None:
    for turn, transition in TABLE.items():
        assert transition.move.side is turn.side
        assert transition.next or transition.decides
        assert all(follower in TABLE for follower in transition.next)
    assert {t.move for t in TABLE.values()} == set(Move)


def test_the_diagram_names_every_turn_and_every_move() -> None:
    text = to_mermaid()
    assert all(f"{turn.stage.name}_{turn.side.name[0]}:" in text for turn in TABLE)
    assert all(move.function in text for move in Move)


# --- every family


def lies_by_family() -> list[tuple[str, Family, int]]:
    """A lie in a node of every family, of the example programs."""
    found: dict[Family, tuple[str, int]] = {}
    for example in (every_family(), mlp_step(), counting()):
        for k, node in enumerate(example.program.nodes):
            if node.family not in found and lie_at(example, k) is not None:
                found[node.family] = (example.name, k)
    return [(name, family, k) for family, (name, k) in sorted(found.items())]


EXAMPLES = {e.name: e for e in (every_family(), mlp_step(), counting())}


def test_every_family_can_be_lied_about() -> None:
    assert {family for _, family, _ in lies_by_family()} == set(Family)


@pytest.mark.parametrize("arity", (2, 4, 64))
@pytest.mark.parametrize(("name", "family", "k"), lies_by_family(), ids=lambda v: getattr(v, "name", str(v)))
def test_a_lie_in_one_node_is_refuted_in_exactly_that_node(name: str, family: Family, k: int, arity: int) -> None:
    example = EXAMPLES[name]
    lie, truth = lie_at(example, k), honest_trace(example)
    assert lie is not None
    for defends, challenges, loser in ((lie, truth, Side.DEFENDER), (truth, lie, Side.CHALLENGER)):
        end, _ = whole_game(example, defends, challenges, arity)
        verdict = end.verdict
        assert verdict is not None
        assert (verdict.outcome, verdict.side) == (Outcome.LEAF, loser)
        assert (verdict.family, verdict.node) == (family, k)
        assert (verdict.expected != verdict.claimed) == (loser is Side.DEFENDER)


@pytest.mark.parametrize("number", (0, 1, 2))
def test_a_slot_that_is_not_its_output_node_is_refuted_as_an_output(number: int) -> None:
    example = every_family()
    lie = lie_in_slot(example, number, 0)
    end, _ = whole_game(example, lie, honest_trace(example))
    verdict = end.verdict
    assert verdict is not None
    assert (verdict.side, verdict.outcome, verdict.family) == (Side.DEFENDER, Outcome.LEAF, Family.OUTPUT)
    assert verdict.node == example.program.output_nodes[number][0]
    assert verdict.expected == int.from_bytes(lie.node_root(1, verdict.node), "big", signed=True)


def test_a_lie_in_one_of_many_steps_is_refuted_in_that_step() -> None:
    for step in range(1, 8):
        lie = lie_at(counting(), 1, step, 7)
        end, log = whole_game(counting(), lie, honest_trace(counting(), 7), 4, 7)
        assert end.verdict is not None
        assert (end.verdict.side, end.step, end.verdict.family) == (Side.DEFENDER, step, Family.MAP)
        assert log.moves[-1][1].kind is Move.SELECT_ELEMENT


def final_moves() -> list[tuple[str, GameState, AnyMove, Rules]]:
    """The last move of the honest challenger's game against a lie in each family, and in a slot."""
    found = []
    for name, family, k in lies_by_family():
        example = EXAMPLES[name]
        _, log = whole_game(example, lie_at(example, k), honest_trace(example))
        found.append((family.name, *log.moves[-1], Rules(config(), ProgramHeader.of(example.program))))
    example = every_family()
    _, log = whole_game(example, lie_in_slot(example, 0, 0), honest_trace(example))
    found.append(("SLOT", *log.moves[-1], Rules(config(), ProgramHeader.of(example.program))))
    return found


@pytest.mark.parametrize(
    ("name", "state", "move", "rules"), final_moves(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_every_field_of_the_final_proof_with_one_bit_flipped_is_refused(
    name: str, state: GameState, move: AnyMove, rules: Rules
) -> None:
    assert process_move(state, state.party(state.turn), move, state.turn_started, rules).is_over
    count = 0
    for damaged in flipped(move):
        with pytest.raises(errors.GameError):
            process_move(state, state.party(state.turn), damaged, state.turn_started, rules)
        count += 1
    assert count > 0, name


@pytest.mark.parametrize("dtype", (DType.F32, DType.BOOL))
def test_a_nan_with_a_payload_and_a_bool_of_two_are_wrong_elements(dtype: DType) -> None:
    """Every bit of a leaf belongs to an element, and a store writes one NaN and bools of 0 and 1 only."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (3,))]])
    s = ScalarBuilder([DType.F32])
    x = s.operand(0)
    value = s.sub(x, x) if dtype is DType.F32 else s.lt(x, x)
    program = b.build([[b.map(s.build(value), [b.input(0, 0)], (3,))]])
    example = Example("specials", program, ((f32_bytes(1.0, float("inf"), float("nan")),),))
    # Infinity less infinity is NaN; its lowest bit, or the second of a bool, is the lie.
    bit = 32 if dtype is DType.F32 else 9
    lie = example.trace(1, flip_bit(1, 1, bit))
    end, _ = whole_game(example, lie, honest_trace(example))
    assert end.verdict is not None
    assert (end.verdict.side, end.verdict.outcome, end.verdict.element) == (Side.DEFENDER, Outcome.LEAF, 1)
    assert end.verdict.claimed == end.verdict.expected ^ (1 if dtype is DType.F32 else 2)
