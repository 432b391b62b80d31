"""Who may open a game, when, and what binding a challenge beforehand costs: on `Game.sol` and in the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.game import errors
from assay.protocol.game.table import Side
from assay.protocol.run.claims import challenge_commitment
from assay.protocol.types import Digest
from tests.harness.contracts.battles import HONEST, LIAR, commit, fresh, funded
from tests.harness.contracts.game_chain import ANYBODY, Twin
from tests.harness.games import CHAIN, CLOCKS, ETHER, address, config, honest_trace, lie_at, play_out, player
from tests.harness.programs import counting


def test_a_third_partys_challenge_is_committed_and_revealed_two_blocks_later() -> None:
    twin, salt = fresh(counting()), Digest(bytes(32))
    truth, lie = honest_trace(counting()), lie_at(counting(), 1)
    ref, root = twin.claim(lie, LIAR, 1000 * ETHER), truth.state_root(1)
    funded(twin)
    before = twin.vault.free[HONEST]
    commitment = commit(twin, ref, root)
    with pytest.raises(errors.CommitmentExists):
        commit(twin, ref, root)
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
    commitment = commit(twin, ref, root)
    with pytest.raises(errors.RevealTooLate):
        twin.book.reveal_challenge(HONEST, ref, root, Digest(bytes(32)), 3601, 9)
    twin.book.expire_challenge(commitment, 3601)
    assert twin.vault.burned == twin.settings.commit_deposit
    with pytest.raises(errors.CommitmentNotFound):
        twin.book.expire_challenge(commitment, 3601)
    twin.check_money()


def test_who_committed_to_the_claimants_own_root_cannot_reveal_it() -> None:
    twin, lie = fresh(counting()), lie_at(counting(), 1)
    ref = twin.claim(lie, LIAR, ETHER)
    funded(twin)
    commit(twin, ref, lie.state_root(1))
    with pytest.raises(errors.WrongDigest):
        twin.book.reveal_challenge(HONEST, ref, lie.state_root(1), Digest(bytes(32)), 5, 3)


def test_who_committed_in_time_gets_the_deposit_back_when_the_claim_fell_meanwhile() -> None:
    twin, salt = fresh(counting()), Digest(bytes(32))
    truth, lie = honest_trace(counting()), lie_at(counting(), 1)
    ref, root = twin.claim(lie, LIAR, 1000 * ETHER), truth.state_root(1)
    funded(twin, address("second"))
    commit(twin, ref, root, address("second"))
    game_id = twin.challenge(ref, HONEST, 1)
    play_out(twin, game_id, player(Side.DEFENDER, lie), player(Side.CHALLENGER, truth), now=1)
    assert twin.book.reveal_challenge(address("second"), ref, root, salt, 2000, 9) == 0
    assert twin.vault.free[address("second")] == 2000 * ETHER
    with pytest.raises(errors.NotChallengeable):
        twin.book.challenge(HONEST, ref, 2000)
    twin.check_money()


def test_a_direct_challenge_needs_an_open_window_and_a_leaf_of_ones_own() -> None:
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


def test_a_reveal_waits_for_the_reorg_depth_and_gains_the_inclusion_delay() -> None:
    chain = replace(CHAIN, reorg_depth=100, inclusion_delay=5000)
    twin, salt = Twin(counting().program, config(chain=chain)), Digest(bytes(32))
    truth, lie = honest_trace(counting()), lie_at(counting(), 1)
    ref, root = twin.claim(lie, LIAR, 1000 * ETHER), truth.state_root(1)
    funded(twin)
    commitment = commit(twin, ref, root, now=10)
    # A reader of the reveal in a block that is undone could else commit before it.
    with pytest.raises(errors.RevealTooEarly):
        twin.book.reveal_challenge(HONEST, ref, root, salt, 109, 30)
    last = 10 + 3600 + 100 + 5000
    with pytest.raises(errors.RevealTooEarly):
        twin.book.expire_challenge(commitment, last)
    with pytest.raises(errors.RevealTooLate):
        twin.book.reveal_challenge(HONEST, ref, root, salt, last + 1, 30)
    game_id = twin.book.reveal_challenge(HONEST, ref, root, salt, last, 30)
    # The chain can keep a side waiting for the inclusion delay once in a game, whichever its turn.
    assert twin.state(game_id).deadline == last + CLOCKS.budget + 5000 + CLOCKS.replay
    players = player(Side.DEFENDER, lie), player(Side.CHALLENGER, truth)
    end = play_out(twin, game_id, *players, now=last, delay=lambda s: s.deadline - s.turn_started)
    assert end.verdict is not None and end.verdict.loser == LIAR
    twin.check_money()
