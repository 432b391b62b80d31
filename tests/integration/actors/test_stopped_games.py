"""No game opens in a run that was wound down: its locks are released, and deposits of challenges come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.protocol.digests import keccak
from assay.protocol.errors import RejectedError
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.bindings.challenges import ChallengesContract
from assay_ledger.bindings.game import GameContract
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain

REF = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(0))
SALT, OWN = Digest(keccak(b"salt")), Digest(keccak(b"the true end"))


@pytest.fixture
def made(stage: SharedChain, tmp_path: Path) -> Iterator[WholeRun]:
    """A run that was launched; ada's commitment to its first round waits to be challenged."""
    made = new_whole_run(stage, tmp_path, rounds=3)
    for name in ("ada", "bob", "cleo", "dan"):
        made.solver(name)
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    run, chain, ada = made.run, made.chain, made.players["ada"].agent
    tenure = next(n for n, held in made.view.books.tenures.tenures.items() if held.holder == ada.me)
    seat = made.view.books.tenures.tenures[tenure].seat
    ends = (Digest(keccak(b"p")), Digest(keccak(b"o")), Digest(keccak(b"s")))
    work = SeatWork(run.charter.training.max_units, Digest(keccak(b"marks")), ends, Digest(keccak(b"update")))
    base = chain.ask(run.commitments.round_of(Round(0))).base
    chain.send(ada.account, run.commitments.commit(Round(0), seat, tenure, base, work))
    chain.send(ada.account, run.commitments.prepare(ClaimKind.INTERVAL, Round(0), seat, work))
    assert seat == REF.seat
    yield made


def stall(made: WholeRun, seconds: int = 0) -> None:
    """Time passes until so long before the run can be wound down."""
    launched = made.view.state.money.launched_at
    made.chain.rpc("evm_mine", hex(launched + made.run.charter.timing.stall - seconds))


def commit(made: WholeRun) -> ChallengesContract:
    """Bob commits to a challenge, and waits until it can be revealed."""
    contract, bob = ChallengesContract(made.run.modules.challenges), made.players["bob"].agent
    made.chain.send(bob.account, contract.commit_challenge(challenge_commitment(REF, OWN, SALT, bob.me)))
    made.chain.rpc("evm_mine", hex(made.chain.head().timestamp + made.run.charter.chain.reorg_depth + 1))
    made.chain.rpc("evm_mine")
    return contract


@pytest.mark.long
def test_a_challenge_opens_a_game_before_a_wind_down_and_none_after_it(made: WholeRun) -> None:
    bob, run, chain = made.players["bob"].agent, made.run, made.chain
    free = made.free(bob.me)
    stall(made, seconds=600 + run.charter.chain.reorg_depth)
    contract = commit(made)
    before = chain.rpc("evm_snapshot")
    chain.send(bob.account, contract.reveal_challenge(REF, OWN, SALT))
    assert chain.ask(GameContract(run.modules.game).games()) == 1
    assert chain.rpc("evm_revert", before)
    stall(made, seconds=-1)
    chain.send(bob.account, run.escrow.wind_down())
    # Attack: convict a claim whose lock was released, so that what has left is convicted, or its game holds others.
    chain.send(bob.account, contract.reveal_challenge(REF, OWN, SALT))
    assert chain.ask(GameContract(run.modules.game).games()) == 0
    assert made.free(bob.me) == free


def test_no_direct_challenge_opens_a_game_after_a_wind_down(made: WholeRun) -> None:
    bob, run, chain = made.players["bob"].agent, made.run, made.chain
    stall(made)
    with pytest.raises(RejectedError) as refused:
        chain.send(bob.account, GameContract(run.modules.game).challenge(REF))
    assert refused.value.code == "MayNotChallenge"
    stall(made, seconds=-1)
    chain.send(bob.account, run.escrow.wind_down())
    with pytest.raises(RejectedError) as refused:
        chain.send(bob.account, GameContract(run.modules.game).challenge(REF))
    assert refused.value.code == "RunStopped"
