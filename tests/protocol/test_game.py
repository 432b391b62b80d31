"""The rules of the dispute game, one by one: turns, clocks, digests, verdicts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol import game_errors as errors
from assay.protocol.builder import ProgramBuilder
from assay.protocol.errors import InvariantError
from assay.protocol.game import process_move, process_timeout
from assay.protocol.game_clock import (
    LARGEST,
    Clocks,
    Shape,
    bisections,
    longest_game,
    most_moves,
    needs_replay,
    openings,
)
from assay.protocol.game_descent import position
from assay.protocol.game_element import chunk, part_count
from assay.protocol.game_moves import AnyMove, OpenLeaf, PointElement, PostDigests, ProveRoot, ProveTerm
from assay.protocol.game_state import NO_FAMILY, GameState, Outcome, ProgramHeader, Rules
from assay.protocol.game_table import TABLE, Move, Side, Stage, Turn, stages_of, to_mermaid
from assay.protocol.merkle import Tree
from assay.protocol.nodes import Family
from assay.protocol.scalar_builder import ScalarBuilder
from assay.protocol.tensors import TensorSpec
from assay.protocol.trace import flip_bit
from assay.protocol.types import Digest, DType
from tests.games import (
    CLOCKS,
    ETHER,
    Log,
    World,
    address,
    bound_of,
    config,
    flipped,
    honest_trace,
    lie_at,
    lie_in_slot,
    play_out,
    player,
    silent_after,
)
from tests.programs import Example, counting, every_family, f32_bytes, mlp_step

LIAR, HONEST = address("liar"), address("honest")


def rules_of(world: World) -> Rules:
    """What the moves of a world's games are judged by."""
    return Rules(world.settings, ProgramHeader.of(world.program))


def whole_game(example: Example, defends, challenges, arity: int = 4, steps: int = 1) -> tuple[GameState, Log]:
    """A game between two stubborn players over these traces."""
    world = World(example.program, config(arity))
    game_id = world.challenge(world.claim(defends, LIAR, 1000 * ETHER), HONEST)
    log = Log()
    end = play_out(
        world,
        game_id,
        player(Side.DEFENDER, defends, arity),
        player(Side.CHALLENGER, challenges, arity),
        log=log,
    )
    return end, log


@cache
def recorded() -> dict[Turn, tuple[GameState, AnyMove, Rules]]:
    """For every turn of the table a game that stands there, and the move that is due."""
    found: dict[Turn, tuple[GameState, AnyMove, Rules]] = {}
    example = every_family()
    lies = [lie_at(example, k) for k in range(len(example.program.nodes))]
    lies += [lie_in_slot(example, 2, 0)]
    pairs = [(example, lie, honest_trace(example), 1) for lie in lies if lie is not None]
    # Three leaves at arity 2 and several steps: openings below the first, and bisection of steps.
    pairs += [(counting(), lie_at(counting(), 1, 2, 5), honest_trace(counting(), 5), 5)]
    for source, lie, truth, steps in pairs:
        for arity in (2, 4):
            _, log = whole_game(source, lie, truth, arity, steps)
            rules = Rules(config(arity), ProgramHeader.of(source.program))
            for state, move in log.moves:
                found.setdefault(state.whose, (state, move, rules))
    return found


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
def test_silence_loses_by_default_strictly_after_the_deadline_and_only_for_who_is_to_move(turn: Turn) -> None:
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
        assert log.moves[-1][1].kind is Move.POINT_ELEMENT


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


# --- details of moves


def at(stage: Stage, side: Side) -> tuple[GameState, AnyMove, Rules]:
    """A recorded turn."""
    return recorded()[Turn(stage, side)]


def refuse(error: type[errors.GameError], state: GameState, move: AnyMove, rules: Rules) -> None:
    """The move is refused by this error."""
    with pytest.raises(error):
        process_move(state, state.party(state.turn), move, state.turn_started, rules)


@pytest.mark.parametrize("stage", (Stage.STEPS, Stage.NODES))
def test_a_posted_list_has_the_exact_count_and_ends_in_the_disputed_digest(stage: Stage) -> None:
    state, move, rules = at(stage, Side.DEFENDER)
    assert isinstance(move, PostDigests)
    refuse(errors.WrongCount, state, PostDigests(move.digests[1:]), rules)
    refuse(errors.WrongCount, state, PostDigests((*move.digests, move.digests[-1])), rules)
    refuse(errors.WrongDigest, state, PostDigests((*move.digests[:-1], Digest(bytes(32)))), rules)


@pytest.mark.parametrize("stage", (Stage.STEPS, Stage.NODES, Stage.TENSOR, Stage.LIST, Stage.STATE, Stage.PARTS))
def test_a_pointing_gives_the_posted_list_again_and_names_an_entry_of_it(stage: Stage) -> None:
    state, move, rules = at(stage, Side.CHALLENGER)
    name = next(f for f in ("digests", "list_roots", "parts") if hasattr(move, f))
    posted = getattr(move, name)
    refuse(errors.ListMismatch, state, replace(move, **{name: posted[:-1]}), rules)
    refuse(errors.ListMismatch, state, replace(move, **{name: tuple(reversed(posted)) + posted}), rules)
    refuse(errors.IndexOutOfRange, state, replace(move, index=len(posted)), rules)


def test_each_binding_of_an_opened_node_is_checked() -> None:
    state, move, rules = at(Stage.NODE, Side.DEFENDER)
    program = every_family().program
    same_shape = [k for k, spec in enumerate(program.specs) if spec == program.specs[state.node] and k != state.node]
    other = same_shape[0]
    zero, other_path = Digest(bytes(32)), (Digest(bytes(31) + b"\1"), *move.append_path[1:])
    # (a) append path, (b) descriptor, (d) header; (c) and (e) are the ROOT and SLOT stages.
    refuse(errors.WrongDigest, state, replace(move, append_path=other_path), rules)
    refuse(errors.WrongCount, state, replace(move, append_path=move.append_path[1:]), rules)
    swapped = replace(move, node=program.descriptors[other], program_path=program.tree.path(other))
    refuse(errors.WrongDigest, state, swapped, rules)
    refuse(errors.WrongDigest, state, replace(move, node=move.node[:-1] + bytes((move.node[-1] ^ 1,))), rules)
    refuse(errors.WrongCount, state, replace(move, program_path=(*move.program_path, zero)), rules)
    refuse(errors.WrongCount, state, replace(move, digests=(*move.digests, zero)), rules)
    refuse(errors.WrongDigest, state, replace(move, digests=(zero,) * len(move.digests)), rules)


def test_a_leaf_of_another_length_is_refused_even_if_its_digest_was_claimed() -> None:
    state, move, rules = at(Stage.LEAF, Side.DEFENDER)
    assert isinstance(move, OpenLeaf)
    refuse(errors.WrongCount, state, OpenLeaf(move.leaf + b"\0"), rules)
    refuse(errors.WrongCount, state, OpenLeaf(move.leaf[:-1]), rules)
    refuse(errors.WrongDigest, state, OpenLeaf(bytes(len(move.leaf))), rules)


def test_an_element_outside_the_leaf_cannot_be_pointed_at() -> None:
    state, move, rules = at(Stage.LEAF, Side.CHALLENGER)
    assert isinstance(move, PointElement)
    refuse(errors.IndexOutOfRange, state, replace(move, offset=len(move.leaf)), rules)
    refuse(errors.WrongDigest, state, replace(move, node=move.node + b"\0"), rules)
    refuse(
        errors.WrongCount, state, replace(move, heads=(*move.heads, *move.heads, *move.heads)), rules
    ) if move.heads else None


def test_parts_that_do_not_stand_for_the_element_refute_their_poster() -> None:
    state, move, rules = at(Stage.PARTS, Side.DEFENDER)
    parts = (move.parts[0] + 1 << 70, *move.parts[1:])
    after = process_move(state, state.defender, replace(move, parts=parts), state.turn_started, rules)
    assert after.verdict is not None
    assert (after.verdict.side, after.verdict.outcome) == (Side.DEFENDER, Outcome.LEAF)
    assert (after.verdict.element, after.verdict.claimed) == (state.element, state.claimed)
    refuse(errors.WrongCount, state, replace(move, parts=move.parts[:-1]), rules)


def test_proofs_for_a_slot_or_a_constant_carry_nothing_superfluous() -> None:
    state, move, rules = at(Stage.SLOT, Side.CHALLENGER)
    assert isinstance(move, ProveRoot)
    refuse(errors.WrongCount, state, replace(move, node=b"\0"), rules)
    refuse(errors.WrongCount, state, replace(move, opening=move.opening + b"\0"), rules)
    refuse(errors.WrongCount, state, replace(move, path=move.path[:-1]), rules)


def test_the_challenger_goes_on_to_prove_what_it_pointed_down_to() -> None:
    for stage in (Stage.TERM, Stage.SLOT):
        state, move, _ = at(stage, Side.CHALLENGER)
        assert isinstance(move, ProveTerm | ProveRoot)
        assert state.turn is Side.CHALLENGER


def test_a_game_of_one_step_begins_with_its_nodes_and_the_empty_prefix() -> None:
    world = World(counting().program)
    state = world.state(world.challenge(world.claim(honest_trace(counting()), LIAR, ETHER), HONEST))
    assert (state.stage, state.turn, state.lo, state.hi) == (Stage.NODES, Side.DEFENDER, 0, 4)
    assert state.agreed.hex() == "7a618954dca87e1f844c2e2222e632b1697192ee82989632bbd501114adabe6d"
    assert state.family == NO_FAMILY


# --- clocks


def test_time_above_the_extension_comes_out_of_the_movers_budget_only() -> None:
    world = World(counting().program)
    trace = honest_trace(counting(), 5)
    game_id = world.challenge(world.claim(trace, LIAR, ETHER), HONEST)
    defends = player(Side.DEFENDER, trace)
    rules, state = rules_of(world), world.state(game_id)
    assert state.deadline == CLOCKS.budget + CLOCKS.replay
    free = process_move(state, LIAR, defends(state, None), CLOCKS.replay, rules)
    assert free.budget_left == (CLOCKS.budget, CLOCKS.budget)
    late = process_move(state, LIAR, defends(state, None), CLOCKS.replay + 7, rules)
    assert late.budget_left == (CLOCKS.budget - 7, CLOCKS.budget)
    assert late.deadline == CLOCKS.replay + 7 + CLOCKS.budget + CLOCKS.replay


def test_a_replay_is_granted_at_steps_and_nodes_and_to_every_opening() -> None:
    for turn in TABLE:
        expected = turn.stage in (Stage.STEPS, Stage.NODES) or turn.side is Side.DEFENDER
        assert needs_replay(turn) is expected
        assert CLOCKS.extension(turn) == (CLOCKS.replay if expected else CLOCKS.move)


@pytest.mark.parametrize("steps", (1, 2, 5, 17))
@pytest.mark.parametrize("arity", (2, 4, 64))
def test_the_slowest_game_takes_no_longer_than_its_bound(steps: int, arity: int) -> None:
    """Both sides use every second that they have, down to the deepest leaf."""
    example = counting(2000)
    world = World(example.program, config(arity))
    lie = lie_at(example, 1, steps, steps)
    game_id = world.challenge(world.claim(lie, LIAR, ETHER), HONEST)
    log = Log()
    end = play_out(
        world,
        game_id,
        player(Side.DEFENDER, lie, arity),
        player(Side.CHALLENGER, honest_trace(example, steps), arity),
        delay=lambda state: state.deadline - state.turn_started,
        log=log,
    )
    assert end.verdict is not None
    bound = bound_of(example.program, steps, world.settings)
    assert bound - 2 * CLOCKS.replay * (steps.bit_length() + 6) - 2 <= log.ended - log.started <= bound


def test_silence_at_any_move_ends_the_game_within_its_bound() -> None:
    example = every_family()
    lie, truth = lie_at(example, 25), honest_trace(example)
    for moves in range(14):
        for side in (Side.DEFENDER, Side.CHALLENGER):
            world = World(example.program)
            game_id = world.challenge(world.claim(lie, LIAR, ETHER), HONEST)
            players = {Side.DEFENDER: player(Side.DEFENDER, lie), Side.CHALLENGER: player(Side.CHALLENGER, truth)}
            players[side] = silent_after(players[side], moves)
            log = Log()
            end = play_out(world, game_id, players[Side.DEFENDER], players[Side.CHALLENGER], log=log)
            assert end.verdict is not None
            assert log.ended - log.started <= bound_of(example.program, 1, world.settings)


@given(st.integers(1, 1 << 40), st.sampled_from((2, 4, 16, 64)))
def test_bisection_halves_as_its_bound_says(width: int, arity: int) -> None:
    rounds, lo, hi = 0, 0, width
    while hi - lo > 1:
        m = min(arity, hi - lo)
        cuts = [position(lo, hi, i, m) for i in range(m + 1)]
        assert cuts[0] == lo and cuts[-1] == hi and all(a < b for a, b in pairwise(cuts))
        lo, hi = max(pairwise(cuts), key=lambda c: c[1] - c[0])
        rounds += 1
    assert rounds == bisections(width, arity)


@given(st.integers(2, 1 << 40), st.sampled_from((2, 4, 16, 64)))
def test_parts_are_at_most_the_arity_and_their_depth_is_that_of_bisection(terms: int, arity: int) -> None:
    size, rounds = terms, 0
    while size > 1:
        assert 2 <= part_count(size, arity) <= arity
        assert chunk(size, arity) * arity >= size
        size, rounds = chunk(size, arity), rounds + 1
    assert rounds == bisections(terms, arity)


@given(st.integers(0, 300), st.sampled_from((2, 4, 64)))
def test_openings_reach_the_leaves_in_as_many_moves_as_the_bound_says(count: int, arity: int) -> None:
    tree = Tree([Digest(bytes([i % 256]) * 32) for i in range(count)])
    level, rounds = len(tree.levels) - 1, 0
    while True:
        level, rounds = max(level - arity.bit_length() + 1, 0), rounds + 1
        if level == 0:
            break
    assert rounds == openings(count, arity)


def test_the_bound_grows_with_every_dimension_of_the_claim() -> None:
    shape, clocks = Shape(5, 100, 10, 100, 5), Clocks(10, 5, 1)
    base = longest_game(shape, 4, clocks)
    for name, larger in (("steps", 100), ("nodes", 5000), ("leaves", 1000), ("terms", 10**6)):
        assert longest_game(replace(shape, **{name: larger}), 4, clocks) > base
    assert longest_game(shape, 64, clocks) < base
    assert most_moves(LARGEST, 64) == (32, 33)


@pytest.mark.parametrize("arity", (0, 1, 3, 48, 128))
def test_an_arity_that_is_no_power_of_two_up_to_64_is_refused(arity: int) -> None:
    with pytest.raises(InvariantError):
        config(arity)


def test_half_of_a_bond_survives_the_longest_defence() -> None:
    for arity in (2, 4, 8, 16, 32, 64):
        settings = config(arity)
        assert 0 < most_moves(LARGEST, arity)[0] * settings.move_refund * 2 <= settings.bond
