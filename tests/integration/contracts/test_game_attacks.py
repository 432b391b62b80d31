"""Adversaries that are not in the tournaments, one test each, on `Game.sol` and on the model at once.

docs/security/attacks.md lists them all, with the test of each.
"""

from __future__ import annotations

import struct
from functools import cache

import pytest

from assay.protocol.arithmetic.words import canonical, from_bytes
from assay.protocol.digests import keccak
from assay.protocol.game import errors
from assay.protocol.game.descent import position_key
from assay.protocol.game.moves import PostDigests
from assay.protocol.game.players import Posted, posted_by
from assay.protocol.game.state import GameState, Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Trace
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Address, Digest, DType
from tests.harness.contracts.battles import HONEST, LIAR, fresh
from tests.harness.contracts.harness import Reverted
from tests.harness.damage import flip
from tests.harness.games import ETHER, Log, Player, address, bound_of, honest_trace, lie_at, play_out, player, try_move
from tests.harness.honest_rules import hp4_the_truth_wins
from tests.harness.programs import F32, Example, binary, counting, every_family


def players(defends: Trace, challenges: Trace, arity: int = 4) -> tuple[Player, Player]:
    """Two players that stick to their traces."""
    return player(Side.DEFENDER, defends, arity), player(Side.CHALLENGER, challenges, arity)


# --- clocks


@pytest.mark.parametrize("truthful", (Side.DEFENDER, Side.CHALLENGER))
def test_who_moves_in_the_last_second_of_every_clock_gains_nothing_by_it(truthful: Side) -> None:
    example, steps = counting(), 5
    twin, truth, lie = fresh(example), honest_trace(example, steps), lie_at(example, 1, 3, steps)
    assert lie is not None
    claimed, other = (truth, lie) if truthful is Side.DEFENDER else (lie, truth)
    game_id = twin.challenge(twin.claim(claimed, LIAR, 1000 * ETHER), HONEST)
    log = Log()
    end = play_out(twin, game_id, *players(claimed, other), log=log, delay=lambda s: s.deadline - s.turn_started)
    assert end.verdict is not None
    assert (end.verdict.side, end.verdict.outcome) != (truthful, Outcome.DEFAULT)
    hp4_the_truth_wins(end.verdict, truthful)
    # The first turn of each side ate its budget; every later one had its extension only.
    assert end.budget_left == (0, 0)
    assert log.ended - log.started <= bound_of(example.program, steps, twin.settings)
    twin.check_money()


def test_a_second_after_the_deadline_the_clock_has_won() -> None:
    example = counting()
    twin, lie = fresh(example), lie_at(example, 1)
    assert lie is not None
    game_id = twin.challenge(twin.claim(lie, LIAR, 1000 * ETHER), HONEST)
    state = twin.state(game_id)
    move = player(Side.DEFENDER, lie)(state, Posted())
    assert move is not None
    with pytest.raises(errors.TooLate):
        twin.book.move(game_id, LIAR, move, state.deadline + 1)
    # Anyone may call it, but not in the last second.
    with pytest.raises(errors.TooEarly):
        twin.book.timeout(game_id, state.deadline)
    assert twin.book.timeout(game_id, state.deadline + 1).verdict is not None


# --- what is opened


def test_digests_that_nobody_knows_a_preimage_of_lose_by_silence() -> None:
    example = counting()
    twin, lie, truth = fresh(example), lie_at(example, 1), honest_trace(example)
    assert lie is not None
    game_id = twin.challenge(twin.claim(lie, LIAR, 1000 * ETHER), HONEST)
    state = twin.state(game_id)
    made_up = tuple(Digest(keccak(bytes([k]))) for k in range(3))
    post = PostDigests((*made_up, state.disputed))
    state = twin.book.move(game_id, LIAR, post, 1)
    bisection = player(Side.CHALLENGER, truth)(state, posted_by(post))
    assert bisection is not None
    state = twin.book.move(game_id, HONEST, bisection, 2)
    assert state.turn is Side.DEFENDER
    # Whatever it opens, true or false, does not hash to what it posted.
    for trace in (lie, truth):
        opening = player(Side.DEFENDER, trace)(state, Posted())
        assert opening is not None
        with pytest.raises(errors.WrongDigest):
            twin.book.move(game_id, LIAR, opening, 3)
    end = twin.book.timeout(game_id, state.deadline + 1)
    assert end.verdict is not None
    assert (end.verdict.loser, end.verdict.outcome) == (LIAR, Outcome.DEFAULT)
    assert twin.vault.wealth(HONEST) > twin.settings.bond
    twin.check_money()


def specials() -> list[int]:
    """Words of binary32 that break naive code: NaN, infinities, zeros, subnormals, the largest and smallest."""
    positive = [0x7FC00000, 0x7F800000, 0, 1, 0x00400000, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000]
    return [w | sign for w in positive for sign in (0, 0x80000000) if w != 0x7FC00000 or not sign]


@cache
def awkward(function: str) -> Example:
    """Every pair of special words through one operation; the state's second slot is the result of the first step."""
    words = [(a, b) for a in specials() for b in specials()]
    spec = TensorSpec(F32, (len(words),))
    b = ProgramBuilder([[spec, spec]])
    left, right = b.input(0, 0), b.input(0, 1)
    program = b.build([[left, b.map(binary([F32, F32], function), [left, right], spec.dims)]])
    slots = tuple(struct.pack(f"<{len(words)}I", *(pair[k] for pair in words)) for k in (0, 1))
    return Example(function, program, (slots,))


@pytest.mark.parametrize("function", ("add", "sub", "mul", "div"))
def test_nan_infinity_and_subnormals_in_the_disputed_element_are_judged_as_any_other(function: str) -> None:
    example = awkward(function)
    (node,) = example.nodes_of(Family.MAP)
    truth = honest_trace(example)
    values = from_bytes(F32, truth.node_bytes(1, node))
    kinds = {"nan": 0x7FC00000, "inf": 0x7F800000, "zero": 0}
    wanted = {name: next(k for k, v in enumerate(values) if v == word) for name, word in kinds.items()}
    wanted["subnormal"] = next(k for k, v in enumerate(values) if 0 < v & 0x7FFFFFFF < 0x00800000)
    twin = fresh(example, 64)
    for number, (name, element) in enumerate(sorted(wanted.items())):
        # A zero that is claimed with a sign, an infinity one step smaller, and so on: other words, all canonical.
        lie = example.trace(1, lambda t, k, data, e=element: flip(data, 32 * e + 31) if k == node else data)
        if name == "nan":
            lie = example.trace(1, lambda t, k, data, e=element: _put(data, e, 0x7F800000) if k == node else data)
        for defends, challenges, loser in ((lie, truth, Side.DEFENDER), (truth, lie, Side.CHALLENGER)):
            me, other = address(f"d{number}{loser}"), address(f"c{number}{loser}")
            game_id = twin.challenge(twin.claim(defends, me, 1000 * ETHER, 2 * number + loser), other)
            end = play_out(twin, game_id, *players(defends, challenges, 64))
            assert end.verdict is not None
            assert (end.verdict.side, end.verdict.outcome, end.verdict.element) == (loser, Outcome.LEAF, element)
            assert end.verdict.expected == values[element] == canonical(F32, values[element])
    twin.check_money()


def _put(data: bytes, element: int, word: int) -> bytes:
    return data[: 4 * element] + struct.pack("<I", word) + data[4 * element + 4 :]


# --- who plays


def test_when_both_sides_lie_one_is_convicted_and_the_truth_still_wins_its_own_game() -> None:
    example = every_family()
    nodes = [k for k, n in enumerate(example.program.nodes) if n.family in (Family.MAP, Family.DOT, Family.SUM)]
    one, another = [lie for lie in (lie_at(example, k) for k in nodes) if lie is not None][:2]
    twin, truth, bystander = fresh(example), honest_trace(example), address("bystander")
    ref = twin.claim(one, LIAR, 1000 * ETHER)
    twin.vault.deposit(bystander, ETHER)
    twin.games.deposit(bystander, ETHER)
    false, right = twin.challenge(ref, address("second liar")), twin.challenge(ref, HONEST)
    parties = (LIAR, address("second liar"), HONEST)
    before = {who: twin.vault.wealth(who) for who in parties}
    end = play_out(twin, false, *players(one, another))
    assert end.verdict is not None and end.verdict.loser in parties[:2]
    verdict = play_out(twin, right, *players(one, truth)).verdict
    assert verdict is not None and verdict.loser == LIAR
    gains = {who: twin.vault.wealth(who) - amount for who, amount in before.items()}
    assert gains[HONEST] >= 0
    assert gains[LIAR] + gains[parties[1]] <= -twin.vault.burned < 0
    assert twin.vault.wealth(bystander) == ETHER
    twin.check_money()


def test_ten_false_challenges_at_once_are_answered_by_one_empty_purse() -> None:
    example, count = counting(), 10
    truth, lie = honest_trace(example, 5), lie_at(example, 1, 4, 5)
    assert lie is not None
    twin = fresh(example)
    # One lock for all of them, too small to answer for ten advances: some refunds must wait in the bonds.
    ref = twin.claim(truth, HONEST, 20 * twin.settings.move_refund)
    assert twin.vault.free.get(HONEST, 0) == 0
    before = twin.vault.wealth(HONEST)
    games = [twin.challenge(ref, address(f"flood {k}")) for k in range(count)]
    posted = dict.fromkeys(games, Posted())
    defends, challenges = players(truth, lie)
    now, lists = 0, 0
    while open_games := [g for g in games if not twin.state(g).is_over]:
        for game_id in open_games:
            state, now = twin.state(game_id), now + 1
            move = (defends if state.turn is Side.DEFENDER else challenges)(state, twin.posted(state, posted[game_id]))
            if isinstance(move, PostDigests):
                # Ten stand at one position: its list is posted once.
                is_known = position_key(state) in twin.book.position_cache
                move, lists = (PostDigests(()), lists) if is_known else (move, lists + 1)
            assert try_move(twin, game_id, move, now), "no side is late, and the purse is never asked for anything"
            if state.turn is Side.DEFENDER:
                assert move is not None
                posted[game_id] = posted_by(move)
                assert twin.vault.wealth(HONEST) >= before
    ends = [twin.state(g) for g in games]
    for end in ends:
        hp4_the_truth_wins(end.verdict, Side.DEFENDER)
    assert lists == len(twin.book.position_cache) == 3
    assert any(end.held for end in ends) and any(end.advanced for end in ends)
    # Each flooder lost its whole bond, and half of what the defence left of it burned.
    assert all(twin.vault.wealth(address(f"flood {k}")) == 0 for k in range(count))
    refunds = [end.held + end.advanced for end in ends]
    won = sum(refund + (twin.settings.bond - refund) // 2 for refund in refunds)
    assert twin.vault.wealth(HONEST) - before == won
    assert twin.vault.lock_amount(twin.claims.views[ref].claim.lock_id) == 20 * twin.settings.move_refund
    twin.check_money()


def test_a_stake_behind_a_disputed_claim_cannot_leave_before_the_verdict_takes_it() -> None:
    example = counting()
    twin, lie, truth = fresh(example), lie_at(example, 1), honest_trace(example)
    assert lie is not None
    game_id = twin.challenge(twin.claim(lie, LIAR, 1000 * ETHER), HONEST)
    tried: list[str] = []

    def leaving(state: GameState, posted: Posted) -> object:
        with pytest.raises(Reverted) as refused:
            twin.games.call(LIAR, "requestExit", 1000 * ETHER, contract=twin.games.vault)
        tried.append(refused.value.name)
        return player(Side.DEFENDER, lie)(state, posted)

    end = play_out(twin, game_id, leaving, player(Side.CHALLENGER, truth))  # type: ignore[arg-type]
    assert end.verdict is not None and end.verdict.loser == LIAR
    assert len(tried) >= 3 and set(tried) == {"InsufficientFree"}
    assert twin.games.lock_amount(end.claim.lock_id) == 0
    assert twin.vault.burned == 500 * ETHER
    twin.check_money()


def test_nobody_else_moves_for_a_party_and_a_party_does_not_move_for_the_other() -> None:
    """A sock puppet cannot lose a stranger's game on purpose: only the claimant opens, only the challenger selects."""
    example = counting()
    twin, lie, truth = fresh(example), lie_at(example, 1), honest_trace(example)
    assert lie is not None
    game_id = twin.challenge(twin.claim(truth, HONEST, 1000 * ETHER), LIAR)

    def guarded(inner: Player) -> Player:
        def play(state: GameState, posted: Posted) -> object:
            move = inner(state, posted)
            assert move is not None
            others: set[Address] = {LIAR, HONEST, address("puppet")} - {state.party(state.turn)}
            for who in sorted(others):
                with pytest.raises(errors.NotYourTurn):
                    twin.book.move(game_id, who, move, state.turn_started)
            return move

        return play  # type: ignore[return-value]

    end = play_out(twin, game_id, *(guarded(p) for p in players(truth, lie)))
    assert end.verdict is not None and end.verdict.loser == LIAR


def test_the_special_words_are_special() -> None:
    values = [canonical(DType.F32, w) for w in specials()]
    assert len(values) == len(set(values)) == 17
    assert sum(v & 0x7F800000 == 0x7F800000 for v in values) == 3
    assert sum(0 < v & 0x7FFFFFFF < 0x00800000 for v in values) == 6
