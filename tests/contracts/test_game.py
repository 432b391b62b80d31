"""The same games on `Game.sol` and in the model: same stages, same clocks, same verdicts, same errors, same money.

A `Twin` makes every call on both and compares; here are the games that it is put through.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest
from eth_hash.auto import keccak
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.protocol import game_errors as errors
from assay.protocol import merkle, prefix
from assay.protocol.claims import challenge_commitment
from assay.protocol.game_book import advance_account, game_lock
from assay.protocol.game_clock import LARGEST, Clocks, Shape, longest_game, most_moves
from assay.protocol.game_moves import AnyMove, OpenLeaf, OpenNode, PointDigest, PostDigests
from assay.protocol.game_state import GameState, Outcome
from assay.protocol.game_table import TABLE, Move, Side, Turn
from assay.protocol.nodes import Family
from assay.protocol.play import Posted, posted_by
from assay.protocol.types import Digest, Wei
from tests.contracts.game_chain import ANYBODY, ChainGames, Twin, ref_tuple
from tests.contracts.harness import MAX_DEPLOYED, Chain, Contract, Reverted, artifact
from tests.games import (
    ETHER,
    World,
    address,
    config,
    flipped,
    honest_trace,
    lie_at,
    lie_in_slot,
    play_out,
    player,
    silent_after,
)
from tests.programs import Example, counting, every_family
from tests.tournaments import Seat, Tournament, check, tournament

LIAR, HONEST = address("liar"), address("honest")


def fresh(example: Example, arity: int = 4) -> Twin:
    """A world of its own on both."""
    return Twin(example.program, config(arity))


def battle(twin: World, defends, challenges, number: int, watch=None, lock: int = 1000 * ETHER) -> GameState:
    """A whole game between two stubborn players, `watch` looking on before every move."""
    liar, honest = address(f"defender {number}"), address(f"challenger {number}")
    game_id = twin.challenge(twin.claim(defends, liar, lock, number), honest)
    players = [
        player(side, x, twin.settings.arity) for side, x in ((Side.DEFENDER, defends), (Side.CHALLENGER, challenges))
    ]
    if watch is not None:
        players = [watched(p, watch) for p in players]
    return play_out(twin, game_id, *players)


def watched(inner, watch):
    """A player whose moves somebody looks at first."""

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        move = inner(state, posted)
        watch(state, move)
        return move

    return play


@cache
def lies() -> tuple[tuple[Family, object], ...]:
    """A lie in a node of every family."""
    example = every_family()
    return tuple(
        (f, next(x for x in (lie_at(example, k) for k in example.nodes_of(f)) if x is not None)) for f in Family
    )


# --- tournaments


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 6))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
def test_tournaments_come_out_alike_on_contract_and_model(seed: int, steps: int) -> None:
    twin = fresh(counting())
    t = tournament(twin, counting(), steps, seed, 2)
    t.run()
    check(t, counting())
    twin.check_money()


@given(seed=st.integers(0, 2**32), arity=st.sampled_from((2, 4, 64)))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
def test_tournaments_on_every_family_come_out_alike(seed: int, arity: int) -> None:
    twin = fresh(every_family(), arity)
    t = tournament(twin, every_family(), 1, seed, 2)
    t.run()
    check(t, every_family())
    twin.check_money()


# --- every family, every turn


@pytest.mark.parametrize("arity", (4, 64))
def test_every_family_convicts_the_lying_side_on_chain(arity: int) -> None:
    twin, truth = fresh(every_family(), arity), honest_trace(every_family())
    for family, lie in lies():
        for defends, challenges, loser in ((lie, truth, Side.DEFENDER), (truth, lie, Side.CHALLENGER)):
            end = battle(twin, defends, challenges, 10 * family + loser)
            assert end.verdict is not None
            assert (end.verdict.side, end.verdict.outcome, end.verdict.family) == (loser, Outcome.LEAF, family)
    end = battle(twin, lie_in_slot(every_family(), 1, 0), truth, 999)
    assert end.verdict is not None
    assert (end.verdict.side, end.verdict.family) == (Side.DEFENDER, Family.OUTPUT)
    twin.check_money()


def test_every_bit_of_the_final_proof_counts_on_chain() -> None:
    twin, truth = fresh(every_family()), honest_trace(every_family())
    tried: dict[str, int] = {}

    def watch(state: GameState, move: AnyMove | None) -> None:
        if move is None or move.kind not in (Move.PROVE_ROOT, Move.PROVE_TERM, Move.POINT_ELEMENT):
            return
        for damaged in flipped(move):
            with pytest.raises(errors.GameError):
                twin.book.move(state.game_id, state.challenger, damaged, state.turn_started)
            tried[move.kind.name] = tried.get(move.kind.name, 0) + 1

    for family, lie in lies():
        battle(twin, lie, truth, int(family), watch)
    battle(twin, lie_in_slot(every_family(), 0, 0), truth, 999, watch)
    assert set(tried) == {"PROVE_ROOT", "PROVE_TERM", "POINT_ELEMENT"}
    assert sum(tried.values()) > 500


def test_every_illegal_move_in_every_turn_is_refused_by_the_same_name() -> None:
    example = every_family()
    twin, truth = fresh(example, 2), honest_trace(example)
    moves: dict[Move, AnyMove] = {}
    seen: set[Turn] = set()

    def collect(state: GameState, move: AnyMove | None) -> None:
        assert move is not None
        moves.setdefault(move.kind, move)

    def pester(state: GameState, due: AnyMove | None) -> None:
        if state.whose in seen:
            return
        seen.add(state.whose)
        now, late = state.turn_started, state.deadline + 1
        for kind, move in sorted(moves.items()):
            for who in (state.defender, state.challenger, ANYBODY):
                if due is None or kind is not due.kind or who != state.party(state.turn):
                    with pytest.raises((errors.WrongStage, errors.NotYourTurn)):
                        twin.book.move(state.game_id, who, move, now)
        assert due is not None
        with pytest.raises(errors.TooLate):
            twin.book.move(state.game_id, state.party(state.turn), due, late)
        with pytest.raises(errors.TooEarly):
            twin.book.timeout(state.game_id, state.deadline)

    games = [(lie, truth) for _, lie in lies()] + [(lie_in_slot(example, 2, 0), truth)]
    model = World(example.program, config(2))
    for number, (lie, true) in enumerate(games):
        battle(model, lie, true, number, collect)
    for number, (lie, true) in enumerate(games):
        battle(twin, lie, true, number, pester)
    steps = Twin(counting().program, config(2))
    twin = steps
    battle(steps, lie_at(counting(), 1, 2, 3), honest_trace(counting(), 3), 1, pester)
    assert seen == set(TABLE)
    assert set(moves) == set(Move)


def disputed_map(twin: Twin, digests: tuple[Digest, ...]) -> GameState:
    """A game on the counting program whose claimant posted these digests and in which node 1, the map, is disputed."""
    game_id = twin.challenge(twin.claim(lie_at(counting(), 0), LIAR, 1000 * ETHER), HONEST)
    twin.book.move(game_id, LIAR, PostDigests(digests), 1)
    return twin.book.move(game_id, HONEST, PointDigest(1, digests), 2)


def test_an_earlier_value_cannot_be_exchanged_between_two_prefixes() -> None:
    """Binding (a): P_1 is the true one, P_2 the liar's, whose input was another from the start."""
    twin, lie, truth = fresh(counting()), lie_at(counting(), 0), honest_trace(counting())
    digests = (truth.prefix_root(1, 1), lie.prefix_root(1, 2), lie.prefix_root(1, 3), lie.state_root(1))
    state = disputed_map(twin, digests)
    opening = player(Side.DEFENDER, lie)(state, Posted())
    assert isinstance(opening, OpenNode)
    with pytest.raises(errors.WrongDigest):
        twin.book.move(state.game_id, LIAR, opening, 3)


def test_a_node_cannot_be_opened_as_another_of_the_same_shape() -> None:
    """Binding (b): the output has type and dims of the map, and would make its value right whatever it is."""
    twin, lie, truth = fresh(counting()), lie_at(counting(), 1), honest_trace(counting())
    game_id = twin.challenge(twin.claim(lie, LIAR, 1000 * ETHER), HONEST)
    digests = (*(lie.prefix_root(1, k) for k in (1, 2, 3)), lie.state_root(1))
    twin.book.move(game_id, LIAR, PostDigests(digests), 1)
    state = twin.book.move(game_id, HONEST, PointDigest(1, digests), 2)
    assert state.node == 1
    opening = player(Side.DEFENDER, lie)(state, Posted())
    assert isinstance(opening, OpenNode)
    program = truth.program
    for other in (0, 2):
        swapped = replace(opening, node=program.descriptors[other], program_path=program.tree.path(other))
        with pytest.raises(errors.GameError):
            twin.book.move(game_id, LIAR, swapped, 3)
        with pytest.raises(errors.WrongDigest):
            twin.book.move(game_id, LIAR, replace(opening, node=program.descriptors[other]), 3)
    assert twin.book.move(game_id, LIAR, opening, 3).family == Family.MAP


def test_a_finished_game_and_one_that_never_was_take_no_moves() -> None:
    twin = fresh(counting())
    end = battle(twin, lie_at(counting(), 1), honest_trace(counting()), 1)
    for game_id in (end.game_id, 77):
        with pytest.raises(errors.WrongStage):
            twin.book.timeout(game_id, 10**7)
        with pytest.raises(errors.WrongStage):
            twin.book.move(game_id, end.defender, OpenLeaf(b""), 10**7)


@pytest.mark.parametrize("side", (Side.DEFENDER, Side.CHALLENGER))
def test_silence_at_every_move_comes_out_alike(side: Side) -> None:
    example = counting()
    twin, lie, truth = fresh(example), lie_at(example, 1, 2, 3), honest_trace(example, 3)
    for moves in range(7):
        ref = twin.claim(lie, address(f"d{moves}"), 500 * ETHER, moves + 1)
        game_id = twin.challenge(ref, address(f"c{moves}"))
        players = {Side.DEFENDER: player(Side.DEFENDER, lie), Side.CHALLENGER: player(Side.CHALLENGER, truth)}
        players[side] = silent_after(players[side], moves)
        end = play_out(twin, game_id, players[Side.DEFENDER], players[Side.CHALLENGER])
        assert end.verdict is not None
    twin.check_money()


# --- opening


def bind(twin: Twin, ref, root: Digest, who=HONEST, now: int = 0, block: int = 1) -> Digest:
    """Bind a free-lance challenge."""
    commitment = challenge_commitment(ref, root, Digest(bytes(32)), who)
    twin.book.commit_challenge(who, commitment, now, block)
    return commitment


def funded(twin: Twin, who=HONEST, amount: int = 2000 * ETHER) -> None:
    """Give a party money on both."""
    twin.vault.deposit(who, amount)
    twin.games.deposit(who, amount)


def test_a_free_lance_challenge_is_bound_and_revealed_two_blocks_later() -> None:
    twin, salt = fresh(counting()), Digest(bytes(32))
    truth, lie = honest_trace(counting()), lie_at(counting(), 1)
    ref, root = twin.claim(lie, LIAR, 1000 * ETHER), truth.state_root(1)
    funded(twin)
    before = twin.vault.free[HONEST]
    commitment = bind(twin, ref, root)
    with pytest.raises(errors.CommitmentExists):
        bind(twin, ref, root)
    with pytest.raises(errors.RevealTooEarly):
        twin.book.reveal_challenge(HONEST, ref, root, salt, 5, 2)
    for who, other in ((ANYBODY, root), (HONEST, Digest(bytes(31) + b"\1"))):
        with pytest.raises(errors.CommitmentNotFound):
            twin.book.reveal_challenge(who, ref, other, salt, 5, 3)
    with pytest.raises(errors.RevealTooEarly):
        twin.book.expire_challenge(commitment, 3600)
    game_id = twin.book.reveal_challenge(HONEST, ref, root, salt, 3600, 3)
    assert twin.state(game_id).challenger == HONEST
    assert twin.vault.free[HONEST] == before - twin.settings.bond
    with pytest.raises(errors.CommitmentNotFound):
        twin.book.reveal_challenge(HONEST, ref, root, salt, 3600, 3)
    twin.check_money()


def test_who_binds_anothers_challenge_first_only_pays_its_deposit_for_it() -> None:
    twin, salt, copycat = fresh(counting()), Digest(bytes(32)), address("copycat")
    ref, root = twin.claim(lie_at(counting(), 1), LIAR, 1000 * ETHER), honest_trace(counting()).state_root(1)
    funded(twin)
    funded(twin, copycat)
    commitment = challenge_commitment(ref, root, salt, HONEST)
    twin.book.commit_challenge(copycat, commitment, 0, 1)
    with pytest.raises(errors.CommitmentNotFound):
        twin.book.reveal_challenge(copycat, ref, root, salt, 5, 3)
    game_id = twin.book.reveal_challenge(HONEST, ref, root, salt, 5, 3)
    assert twin.state(game_id).challenger == HONEST
    assert twin.vault.free[copycat] == 2000 * ETHER
    twin.check_money()


def test_a_challenge_not_revealed_in_time_loses_its_deposit_and_nothing_else() -> None:
    twin = fresh(counting())
    ref, root = twin.claim(lie_at(counting(), 1), LIAR, ETHER), honest_trace(counting()).state_root(1)
    funded(twin)
    commitment = bind(twin, ref, root)
    with pytest.raises(errors.RevealTooLate):
        twin.book.reveal_challenge(HONEST, ref, root, Digest(bytes(32)), 3601, 9)
    twin.book.expire_challenge(commitment, 3601)
    assert twin.vault.burned == twin.settings.commit_deposit
    with pytest.raises(errors.CommitmentNotFound):
        twin.book.expire_challenge(commitment, 3601)
    twin.check_money()


def test_who_bound_the_claimants_own_root_cannot_reveal_it() -> None:
    twin, lie = fresh(counting()), lie_at(counting(), 1)
    ref = twin.claim(lie, LIAR, ETHER)
    funded(twin)
    bind(twin, ref, lie.state_root(1))
    with pytest.raises(errors.WrongDigest):
        twin.book.reveal_challenge(HONEST, ref, lie.state_root(1), Digest(bytes(32)), 5, 3)


def test_who_bound_in_time_gets_the_deposit_back_when_the_claim_fell_meanwhile() -> None:
    twin, salt = fresh(counting()), Digest(bytes(32))
    truth, lie = honest_trace(counting()), lie_at(counting(), 1)
    ref, root = twin.claim(lie, LIAR, 1000 * ETHER), truth.state_root(1)
    funded(twin, address("second"))
    bind(twin, ref, root, address("second"))
    game_id = twin.challenge(ref, HONEST, 1)
    play_out(twin, game_id, player(Side.DEFENDER, lie), player(Side.CHALLENGER, truth), now=1)
    assert twin.book.reveal_challenge(address("second"), ref, root, salt, 2000, 9) == 0
    assert twin.vault.free[address("second")] == 2000 * ETHER
    with pytest.raises(errors.NotChallengeable):
        twin.book.challenge(HONEST, ref, 2000)
    twin.check_money()


def test_only_a_claim_in_its_window_and_a_party_with_a_leaf_of_its_own_is_challenged_directly() -> None:
    twin = fresh(counting())
    ref = twin.claim(honest_trace(counting()), LIAR, ETHER, now=100)
    until = twin.claims.views[ref].challengeable_until
    funded(twin)
    twin.claims.direct.add((ref, HONEST))
    twin.games.allow(ref, HONEST)
    for now in (99, until + 1):
        with pytest.raises(errors.NotChallengeable):
            twin.book.challenge(HONEST, ref, now)
    with pytest.raises(errors.MayNotChallenge):
        twin.book.challenge(ANYBODY, ref, 100)
    assert twin.book.challenge(HONEST, ref, until) == 1


def test_a_claim_about_another_program_is_no_games_business() -> None:
    twin = fresh(counting())
    ref = twin.claim(honest_trace(counting()), LIAR, ETHER)
    view = twin.claims.views[ref]
    twin.claims.views[ref] = replace(view, claim=replace(view.claim, program=Digest(bytes(32))))
    twin.games.put(ref, twin.claims.views[ref], 0)
    funded(twin)
    twin.claims.direct.add((ref, HONEST))
    twin.games.allow(ref, HONEST)
    with pytest.raises(errors.UnknownProgram):
        twin.book.challenge(HONEST, ref, 0)


# --- money


def test_three_honest_winners_are_all_made_whole_on_chain() -> None:
    twin, lie, truth = fresh(counting()), lie_at(counting(), 1), honest_trace(counting())
    ref = twin.claim(lie, LIAR, 3000 * ETHER)
    names = [address(f"honest {i}") for i in range(3)]
    games = [twin.challenge(ref, who) for who in names]
    players = {Side.DEFENDER: player(Side.DEFENDER, lie), Side.CHALLENGER: player(Side.CHALLENGER, truth)}
    # Side by side, so that all three have advanced refunds when the first conviction takes the lock.
    t = Tournament(twin, random.Random(1), 1, [Seat(g, ref, False, True, players) for g in games])
    t.run()
    advanced = [twin.state(g).advanced for g in games]
    assert all(advanced)
    wealth = sorted(twin.vault.wealth(who) for who in names)
    assert wealth == [twin.settings.bond] * 2 + [twin.settings.bond + 1500 * ETHER - sum(advanced)]
    assert twin.vault.burned == 1500 * ETHER
    twin.check_money()


def test_a_small_lock_makes_refunds_wait_in_the_bond_and_a_truthful_defender_gets_them_in_the_end() -> None:
    twin, truth, lie = fresh(counting()), honest_trace(counting()), lie_at(counting(), 1)
    end = battle(twin, truth, lie, 1, lock=20 * ETHER)
    assert end.advanced > 0
    assert end.held > 0
    refund, bond = twin.settings.move_refund, twin.settings.bond
    assert end.advanced <= 5 * ETHER < end.advanced + refund
    rest = bond - end.advanced - end.held
    assert twin.vault.free[address("defender 1")] == end.advanced + end.held + rest // 2
    assert twin.vault.burned == rest - rest // 2
    twin.check_money()


@pytest.mark.parametrize("new_first", (True, False))
def test_a_lock_put_up_anew_has_an_account_of_its_own(new_first: bool) -> None:
    twin, lie, truth = fresh(counting()), lie_at(counting(), 1), honest_trace(counting())
    defends, challenges = player(Side.DEFENDER, lie), player(Side.CHALLENGER, truth)
    ref = twin.claim(lie, LIAR, 1000 * ETHER)
    old = [twin.challenge(ref, address(f"old {i}")) for i in range(2)]
    # One old game gets as far as an advance, the other is won and takes the lock.
    opening = defends(twin.state(old[1]), Posted())
    assert opening is not None
    pointing = challenges(twin.book.move(old[1], LIAR, opening, 1), posted_by(opening))
    assert pointing is not None
    twin.book.move(old[1], address("old 1"), pointing, 2)
    play_out(twin, old[0], defends, challenges)
    lock_id = twin.state(old[0]).claim.lock_id
    assert twin.vault.lock_amount(advance_account(lock_id, 0)) == twin.settings.move_refund
    # The liar puts up a smaller lock of the same name, and a claim under it.
    for world in (twin.vault, twin.games):
        world.deposit(LIAR, 400 * ETHER)
    twin.vault.lock(lock_id, LIAR, Wei(400 * ETHER))
    twin.claims.fallen.remove(lock_id)
    twin.games.call(ANYBODY, "renew", lock_id, LIAR, 400 * ETHER, contract=twin.games.book)
    new = twin.challenge(ref, address("new"), 100)
    later = (lambda: play_out(twin, new, defends, challenges, now=100), lambda: twin.book.timeout(old[1], 2000))
    for play in later if new_first else reversed(later):
        play()
    assert twin.vault.burned == 500 * ETHER + 200 * ETHER
    winners = [twin.vault.wealth(address(name)) - twin.settings.bond for name in ("old 1", "new")]
    if new_first:
        assert winners == [0, 200 * ETHER - twin.state(new).advanced]
    else:
        # The old game's conviction comes first and takes the new lock; the new game's advances are not in it yet.
        assert winners == [200 * ETHER, 0]
    twin.check_money()


def test_locks_of_games_and_reserves_are_named_as_the_model_names_them() -> None:
    twin = fresh(counting())
    ref = twin.claim(lie_at(counting(), 1), LIAR, ETHER)
    game_id = twin.challenge(ref, HONEST)
    assert twin.games.lock_amount(game_lock(game_id)) == twin.settings.bond
    assert twin.games.view("moveRefund") == twin.settings.move_refund
    assert twin.games.view("openGames", ref_tuple(ref), contract=twin.games.book) == 1


# --- construction


def test_the_deployed_contracts_leave_ten_percent_room() -> None:
    for name in ("Game", "Arbiter"):
        assert len(artifact(name).deployed) <= MAX_DEPLOYED, name


@pytest.mark.parametrize(
    ("clocks", "arity", "error"),
    (
        (Clocks(100, 100, 100), 48, "WrongArity"),
        (Clocks(100, 100, 100), 128, "WrongArity"),
        (Clocks(100, 10**6, 100), 64, "DisputeTooLong"),
        (Clocks(5 * 10**5, 1, 1), 64, "DisputeTooLong"),
    ),
)
def test_a_charter_whose_games_could_not_be_bounded_is_refused(clocks: Clocks, arity: int, error: str) -> None:
    settings_ = config(4)
    object.__setattr__(settings_, "arity", arity)
    object.__setattr__(settings_, "clocks", clocks)
    with pytest.raises(RuntimeError) as caught:
        ChainGames(counting().program, settings_)
    signature = {"WrongArity": "WrongArity(uint256)", "DisputeTooLong": "DisputeTooLong(uint256,uint256)"}[error]
    assert f"output: 0x{keccak(signature.encode())[:4].hex()}" in str(caught.value)


def test_a_charter_with_a_malformed_header_is_refused() -> None:
    program = counting().program
    harness = Chain().deploy("GameHarness")
    header = program.header
    assert harness.call("parseHeader", header)[1:] == (3, (1,), (1,))
    broken = (header[:-1], header + b"\0", b"\0\2" + header[2:], header[:2] + bytes(4) + header[6:], b"", header[:6])
    too_many = header[:2] + (2).to_bytes(4, "big") + header[6:7] + (2).to_bytes(4, "big") + header[11:]
    for bad in (*broken, too_many, header[:2] + (1 << 21).to_bytes(4, "big") + header[6:]):
        assert harness.call("parseHeader", bad)[1] == 0, bad.hex()


def test_slots_of_y_are_the_last_nodes_in_list_order() -> None:
    program = every_family().program
    harness = Chain().deploy("GameHarness")
    for number, nodes in enumerate(program.output_nodes):
        for index, node in enumerate(nodes):
            assert harness.call("outputNode", program.header, number, index) == node


@given(st.integers(0, 200), st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_trees_and_openings_are_the_models(count: int, levels: int) -> None:
    harness = merkle_harness()
    digests = [Digest(keccak(bytes([i]))) for i in range(count)]
    tree = merkle.Tree(digests)
    assert harness.call("emptyPrefix") == prefix.EMPTY
    if count <= 64:
        assert harness.call("root", digests) == tree.root
    for index in {0, count // 2, count - 1} if count else ():
        path = tree.path(index)
        assert harness.call("rootFromPath", digests[index], index, count, path) == tree.root
        for wrong in (path[:-1] if path else (tree.root,), (*path, tree.root)):
            with pytest.raises(Reverted, match="WrongCount"):
                harness.call("rootFromPath", digests[index], index, count, wrong)
    for level in range(merkle.height(count) + 1):
        for index in {0, merkle.level_count(count, level) - 1} if count else {0}:
            below, first, end = merkle.opening_range(count, level, index, levels)
            assert harness.call("opening", count, level, index, levels) == (below, first, end - first)


@cache
def merkle_harness() -> Contract:
    """The library under test."""
    return Chain().deploy("GameHarness")


def test_bounds_of_moves_and_seconds_are_the_models() -> None:
    harness = Chain().deploy("GameHarness")
    rng = random.Random(5)
    for arity in (2, 4, 8, 16, 32, 64):
        assert harness.call("mostReplies", arity, arity.bit_length() - 1) == most_moves(LARGEST, arity)[0]
        for _ in range(40):
            sizes = [1 << rng.randrange(b) for b in (32, 21, 58, 65, 33)]
            shape = Shape(*(max(1, s - rng.randrange(2)) for s in sizes))
            clocks = Clocks(*(rng.randrange(10**6) for _ in range(3)))
            args = (tuple(getattr(shape, n) for n in ("steps", "nodes", "leaves", "terms", "slots")), arity)
            got = harness.call(
                "longestGame", *args, arity.bit_length() - 1, (clocks.budget, clocks.replay, clocks.move)
            )
            assert got == longest_game(shape, arity, clocks)
