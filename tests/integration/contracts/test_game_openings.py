"""Openings keyed by position, on `Game.sol` and on the model at once: one answer per position, in every game."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.digests import keccak
from assay.protocol.game import errors
from assay.protocol.game.descent import position_key
from assay.protocol.game.moves import BisectDigests, PostDigests
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState, Outcome, ProgramHeader
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.trace import Trace
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Address, Digest, DType
from tests.harness.contracts.battles import HONEST, LIAR, fresh
from tests.harness.contracts.game_chain import ChainGames, Twin
from tests.harness.games import ETHER, Log, Player, address, config, honest_trace, lie_at, play_out, player
from tests.harness.honest_rules import hp4_the_truth_wins
from tests.harness.programs import Example, counting, i32_bytes
from tests.harness.recorded import recorded

STEPS = 5
LOCK = 3000 * ETHER


def lie() -> Trace:
    """Wrong from step 4 on."""
    found = lie_at(counting(), 1, 4, STEPS)
    assert found is not None
    return found


def players(defends: Trace, challenges: Trace) -> tuple[Player, Player]:
    """Two players that stick to their traces."""
    return player(Side.DEFENDER, defends), player(Side.CHALLENGER, challenges)


def post(twin: Twin, game_id: int, trace: Trace, now: int = 1) -> PostDigests:
    """The claimant's list in a game that waits for one, posted."""
    state = twin.state(game_id)
    move = player(Side.DEFENDER, trace)(state, Posted())
    assert isinstance(move, PostDigests)
    twin.book.move(game_id, state.defender, move, now)
    return move


def bisect(twin: Twin, game_id: int, digests: tuple[Digest, ...], index: int, now: int = 2) -> GameState:
    """The challenger's bisection."""
    return twin.book.move(game_id, twin.state(game_id).challenger, BisectDigests(index, digests), now)


# --- one answer


def test_a_challenger_at_a_known_position_moves_at_once_on_a_full_clock_for_free() -> None:
    truth, twin = honest_trace(counting(), STEPS), fresh(counting())
    ref = twin.claim(lie(), LIAR, LOCK)
    first, log = twin.challenge(ref, address("first")), Log()
    play = players(lie(), truth)
    # The first game stands with the claimant's node to open: three lists are known.
    while twin.state(first).stage in (Stage.STEPS, Stage.NODES):
        state = twin.state(first)
        if state.turn is Side.DEFENDER:
            shown = post(twin, first, lie(), state.turn_started + 1).digests
        else:
            move = play[1](state, Posted(shown))
            assert isinstance(move, BisectDigests)
            twin.book.move(first, state.challenger, move, state.turn_started + 1)
            log.moves.append((state, move))
    assert len(twin.book.position_cache) == len(log.moves) == 3
    second = twin.challenge(ref, HONEST, 500)
    clocks = twin.settings.clocks
    for state, move in log.moves:
        now = twin.state(second)
        # Not a second of the defender's, all of the challenger's, and no refund for what was not sent.
        assert (now.stage, now.turn, now.posted) == (state.stage, Side.CHALLENGER, state.posted)
        assert (now.lo, now.hi, now.agreed, now.disputed) == (state.lo, state.hi, state.agreed, state.disputed)
        assert now.deadline - now.turn_started == clocks.budget + clocks.replay
        assert (now.advanced, now.held, now.budget_left) == (0, 0, (clocks.budget, clocks.budget))
        twin.book.move(second, HONEST, move, now.turn_started + 7)
    assert (twin.state(second).stage, twin.state(second).turn) == (Stage.NODE, Side.DEFENDER)
    for game_id in (second, first):
        end = play_out(twin, game_id, *play, now=600)
        hp4_the_truth_wins(end.verdict, Side.CHALLENGER)
    refunds = [twin.state(g).advanced + twin.state(g).held for g in (first, second)]
    assert refunds[0] - refunds[1] == 3 * twin.settings.move_refund
    twin.check_money()


def test_a_game_that_waited_is_answered_in_short_and_that_reply_is_refunded() -> None:
    twin = fresh(counting())
    ref = twin.claim(lie(), LIAR, LOCK)
    games = [twin.challenge(ref, address(f"challenger {k}")) for k in range(3)]
    with pytest.raises(errors.WrongCount):
        twin.book.move(games[0], LIAR, PostDigests(()), 1)
    posted = post(twin, games[0], lie())
    for game_id in games[1:]:
        with pytest.raises(errors.NotYourTurn):
            bisect(twin, game_id, posted.digests, 0)
        state = twin.book.move(game_id, LIAR, PostDigests(()), 3)
        assert (state.turn, state.posted) == (Side.CHALLENGER, twin.state(games[0]).posted)
        assert state.advanced == twin.settings.move_refund
        bisect(twin, game_id, posted.digests, 3)
    assert len(twin.book.position_cache) == 1
    # Only the claimant answers, and the clock of the side that waits runs on.
    with pytest.raises(errors.NotYourTurn):
        twin.book.move(games[1], HONEST, PostDigests(()), 3)
    with pytest.raises(errors.TooLate):
        twin.book.move(games[1], LIAR, PostDigests(()), twin.state(games[1]).deadline + 1)


def test_a_claimant_cannot_answer_two_challengers_differently() -> None:
    twin, truth = fresh(counting()), honest_trace(counting(), STEPS)
    ref = twin.claim(lie(), LIAR, LOCK)
    games = [twin.challenge(ref, address(f"challenger {k}")) for k in range(2)]
    digests = post(twin, games[0], lie()).digests
    other = (truth.state_root(1), *digests[1:]) if digests[0] != truth.state_root(1) else (digests[1], *digests[1:])
    with pytest.raises(errors.ListMismatch):
        twin.book.move(games[1], LIAR, PostDigests(other), 2)
    # The same list once more, in full, is as good as in short.
    assert twin.book.move(games[1], LIAR, PostDigests(digests), 2).posted == twin.state(games[0]).posted


def test_a_silent_challenger_at_a_known_position_loses_by_its_own_clock() -> None:
    twin, truth = fresh(counting()), honest_trace(counting(), STEPS)
    ref = twin.claim(truth, HONEST, LOCK)
    first = twin.challenge(ref, address("first"))
    post(twin, first, truth)
    second = twin.challenge(ref, LIAR, 10)
    state = twin.state(second)
    with pytest.raises(errors.TooEarly):
        twin.book.timeout(second, state.deadline)
    end = twin.book.timeout(second, state.deadline + 1)
    assert end.verdict is not None and (end.verdict.loser, end.verdict.outcome) == (LIAR, Outcome.DEFAULT)
    assert twin.vault.wealth(HONEST) > LOCK
    twin.check_money()


# --- whose answer


def test_garbage_in_a_puppets_game_binds_the_claimant_alone() -> None:
    twin, truth = fresh(counting()), honest_trace(counting(), STEPS)
    ref = twin.claim(lie(), LIAR, LOCK)
    puppet = twin.challenge(ref, address("puppet"))
    state = twin.state(puppet)
    garbage = PostDigests((*(Digest(keccak(bytes([k]))) for k in range(3)), state.disputed))
    twin.book.move(puppet, LIAR, garbage, 1)
    game_id = twin.challenge(ref, HONEST, 2)
    # An honest challenger is shown the garbage and selects it; its preimage is nowhere.
    state = twin.state(game_id)
    assert state.turn is Side.CHALLENGER
    move = player(Side.CHALLENGER, truth)(state, Posted(garbage.digests))
    assert isinstance(move, BisectDigests) and move.index == 0
    state = twin.book.move(game_id, HONEST, move, 3)
    end = play_out(twin, game_id, *players(lie(), truth), now=4)
    assert end.verdict is not None and end.verdict.loser == LIAR
    assert twin.vault.wealth(HONEST) > twin.settings.bond
    # The same X and Y, claimed by somebody else: what the liar posted is not its answer.
    other = twin.claim(lie(), address("stranger"), LOCK, 2)
    assert twin.state(twin.challenge(other, address("another"), 5)).turn is Side.DEFENDER
    twin.check_money()


def same_end(twin: Twin, name: Digest, who: Address, program: Digest, number: int) -> int:
    """A game on a claim of this id, claimant and program whose X and Y are those of claim 1."""
    model = twin.claims.views[next(iter(twin.claims.views))]
    ref = twin.claim(honest_trace(counting()), who, LOCK, number)
    view = twin.claims.views[ref]
    claim = replace(view.claim, id=name, program=program, x=model.claim.x, y=model.claim.y)
    twin.claims.views[ref] = replace(view, claim=claim)
    twin.games.put(ref, twin.claims.views[ref], 0)
    return twin.challenge(ref, address(f"challenger {number}"))


@cache
def doubling() -> Example:
    """As large as the counting program in every way, and another computation."""
    size = 600
    b = ProgramBuilder([[TensorSpec(DType.I32, (size,))]])
    s = ScalarBuilder([DType.I32])
    x = s.operand(0)
    return Example("doubling", b.build([[b.map(s.build(s.add(x, x)), [b.input(0, 0)], (size,))]]), counting().state)


def test_a_list_counts_under_its_claim_and_its_program_only() -> None:
    """Attestations of an interval and of an update may have one id: claimant, X and Y are all that it binds."""
    one, another = counting().program, doubling().program
    assert len(one.nodes) == len(another.nodes) and one.root != another.root
    twin = Twin(one, config(), ChainGames(one, config(), other=another))
    twin.book.programs = {p.root: ProgramHeader.of(p) for p in (one, another)}
    trace, name = lie_at(counting(), 1), keccak(b"attestation")
    assert trace is not None
    twin.claim(trace, LIAR, LOCK)
    first = same_end(twin, name, LIAR, one.root, 2)
    waiting = same_end(twin, name, LIAR, another.root, 3)
    digests = post(twin, first, trace).digests
    for move in (PostDigests(()), PostDigests(digests[:-1])):
        with pytest.raises(errors.WrongCount):
            twin.book.move(waiting, LIAR, move, 2)
    cases = ((name, one, Side.CHALLENGER), (name, another, Side.DEFENDER), (keccak(b"else"), one, Side.DEFENDER))
    for number, (claim, program, turn) in enumerate(cases, 4):
        game_id = same_end(twin, claim, LIAR, program.root, number)
        assert twin.state(game_id).turn is turn


@cache
def vanishing() -> Example:
    """Every element times zero: all states from the first on are the same, and the first step is unlike the others."""
    size = 40
    b = ProgramBuilder([[TensorSpec(DType.I32, (size,))]])
    s = ScalarBuilder([DType.I32])
    zero = s.mul(s.operand(0), s.i32(0))
    state = ((i32_bytes(*range(1, size + 1)),),)
    return Example("vanishing", b.build([[b.map(s.build(zero), [b.input(0, 0)], (size,))]]), state)


def test_steps_with_equal_ends_are_positions_apart_an_honest_claimant_wins_each() -> None:
    example = vanishing()
    twin, truth = fresh(example), honest_trace(example, 3)
    assert truth.state_root(1) == truth.state_root(2) and truth.prefix_root(1, 1) != truth.prefix_root(2, 1)
    ref = twin.claim(truth, HONEST, LOCK)
    digests: tuple[Digest, ...] = ()
    for index in (0, 1, 2):
        game_id = twin.challenge(ref, address(f"false {index}"), 10 * index)
        digests = digests or post(twin, game_id, truth).digests
        state = bisect(twin, game_id, digests, index, 10 * index + 2)
        assert (state.stage, state.turn, state.step) == (Stage.NODES, Side.DEFENDER, index + 1)
        end = play_out(twin, game_id, *players(truth, truth), now=10 * index + 3)
        hp4_the_truth_wins(end.verdict, Side.DEFENDER)
    assert len(twin.book.position_cache) == 4
    twin.check_money()


def test_every_field_of_a_position_is_in_its_key() -> None:
    state = next(s for turn, (s, _, _) in recorded().items() if turn.stage is Stage.NODES)
    changed = [
        replace(state, claim=replace(state.claim, id=keccak(b"id"))),
        replace(state, claim=replace(state.claim, program=keccak(b"program"))),
        replace(state, stage=Stage.STEPS),
        *(replace(state, **{name: getattr(state, name) + 1}) for name in ("step", "lo", "hi")),
        *(replace(state, **{name: keccak(name.encode())}) for name in ("agreed", "disputed")),
    ]
    assert len({position_key(s) for s in (state, *changed)}) == 9
    # With any challenger, and whatever else has happened in the game, it is the same position.
    same = replace(state, challenger=address("another"), game_id=77, turn=Side.CHALLENGER, deferrals=(1, 2))
    assert position_key(same) == position_key(state)


# --- after a conviction


def test_an_open_game_goes_on_over_known_lists_after_the_claim_was_convicted() -> None:
    twin, truth = fresh(counting()), honest_trace(counting(), STEPS)
    ref = twin.claim(lie(), LIAR, LOCK)
    games = [twin.challenge(ref, address(f"honest {k}")) for k in range(2)]
    play = players(lie(), truth)
    end = play_out(twin, games[0], *play)
    hp4_the_truth_wins(end.verdict, Side.CHALLENGER)
    with pytest.raises(errors.NotChallengeable):
        twin.challenge(ref, address("late"), 50)
    before = twin.state(games[1])
    assert before.turn is Side.DEFENDER
    twin.book.move(games[1], LIAR, PostDigests(()), 60)
    log = Log()
    end = play_out(twin, games[1], *play, now=61, log=log)
    assert end.verdict is not None and (end.verdict.side, end.verdict.outcome) == (Side.DEFENDER, Outcome.LEAF)
    # The refunds wait in the bond, since the lock is gone, and return with it.
    assert not any(isinstance(move, PostDigests) for _, move in log.moves)
    assert end.advanced == 0 < end.held
    assert twin.vault.wealth(address("honest 1")) == twin.settings.bond
    assert twin.vault.burned == LOCK // 2
    twin.check_money()
