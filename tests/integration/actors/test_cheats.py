"""Every way to cheat, alone: who is convicted, by whom, how, and that it costs no other party anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.errors import RejectedError, UsageError
from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round, Seat, Status
from assay_ledger.index.records import GameRecord
from assay_ledger.index.view import RunView
from assay_solver.agent import SolverAgent
from assay_solver.cheats import CHEATS, cheat_named
from tests.harness.actors.verdicts import digest_of, recompute
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, tiny_work, with_economics

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}
HONEST = ("ada", "vera", "viktor", "wilma")


def play(stage: SharedChain, folder: Path, cheat: str, at: int, rounds: int, lazy: bool = False) -> ActorWorld:
    """One honest and one cheating solver, two verifiers, one whistleblower, until everything is settled."""
    change = with_economics(whistle_ppm=1_000_000) if lazy else lambda charter: charter
    world = new_world(stage, folder, tiny_work(), rounds, change)
    world.solver("ada", **FOUNDERS)
    world.solver("mallory", cheat=cheat_named(cheat, rounds, at), **FOUNDERS)
    world.verifier("vera", lazy=lazy, **FOUNDERS)
    world.verifier("viktor", lazy=lazy, **FOUNDERS)
    world.whistleblower("wilma")
    for name in world.players:
        world.players[name].wealth = world.wealth(name)
    world.settle()
    assert all(record.settled for record in world.state.rounds)
    return world


def gain(world: ActorWorld, name: str) -> int:
    """What an actor's wealth in the vault has changed by."""
    return world.wealth(name) - world.players[name].wealth


def check_one_conviction(world: ActorWorld, at: int) -> GameRecord:
    """One game, won by a verifier against the cheater, whose lock is the only thing that anybody lost."""
    (game,) = world.verdicts()
    terms = world.run.charter.economics
    assert game.verdict is not None and world.name_of(game.verdict.loser) == "mallory"
    accuser = world.name_of(game.challenger)
    assert accuser in ("vera", "viktor")
    assert game.ref.round == at
    endings = {c.solver: c.status for c in world.state.rounds[at].commitments.values()}
    assert endings == {world.address("ada"): Status.FINAL, world.address("mallory"): Status.CONVICTED}
    refunds = gain(world, "mallory") + terms.claim_lock
    assert 0 <= refunds < terms.challenge_bond
    duties = len(world.state.rounds) * 2 * world.run.charter.training.duties
    for name in ("vera", "viktor"):
        bounty = terms.claim_lock * terms.bounty_ppm // 1_000_000 - refunds if name == accuser else 0
        assert gain(world, name) == duties * terms.wage + bounty
    assert gain(world, "ada") == 0
    assert gain(world, "wilma") >= 0
    assert world.shares("mallory") == (len(world.state.rounds) - 1) * terms.units * terms.shares_per_unit
    return game


@pytest.mark.parametrize(
    ("cheat", "at", "kind", "duty", "families"),
    [
        ("skip-steps", 0, ClaimKind.INTERVAL, 2, {Family.MAP}),
        pytest.param("wrong-data", 0, ClaimKind.INTERVAL, 0, {Family.GATHER}, marks=pytest.mark.long),
        ("bit-flip", 1, ClaimKind.INTERVAL, 2, {Family.MAP}),
        pytest.param(
            *("stale-start", 1, ClaimKind.INTERVAL, 0),
            {Family.GATHER, Family.ROWEXP, Family.DOT, Family.MAP},
            marks=pytest.mark.long,
        ),
        ("copied-update", 0, ClaimKind.UPDATE, 5, {Family.MAP}),
    ],
)
def test_a_cheat_ends_in_an_element_that_the_contract_computes(
    stage: SharedChain, tmp_path: Path, cheat: str, at: int, kind: ClaimKind, duty: int, families: set[Family]
) -> None:
    world = play(stage, tmp_path, cheat, at, rounds=at + 1)
    game = check_one_conviction(world, at)
    assert game.verdict is not None
    assert game.outcome is Outcome.LEAF
    assert (game.ref.kind, game.ref.duty) == (kind, duty)
    assert game.verdict.family in families
    assert (game.verdict.expected, game.verdict.claimed) == recompute(world, game, "vera")
    assert game.verdict.expected != game.verdict.claimed


def test_whoever_does_not_answer_loses_by_its_clock(stage: SharedChain, tmp_path: Path) -> None:
    world = play(stage, tmp_path, "silent", at=0, rounds=1)
    game = check_one_conviction(world, 0)
    assert game.outcome is Outcome.DEFAULT
    assert gain(world, "mallory") == -world.run.charter.economics.claim_lock


def test_a_whistleblower_convicts_both_lazy_verifiers_and_the_solver_they_covered(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = play(stage, tmp_path, "bit-flip", at=0, rounds=1, lazy=True)
    games = world.verdicts()
    assert {world.name_of(g.challenger) for g in games} == {"wilma"}
    losers = {world.name_of(g.verdict.loser): g for g in games if g.verdict is not None}
    assert losers.keys() == {"vera", "viktor", "mallory"} and len(games) == 3
    assert all(g.outcome is Outcome.LEAF for g in games)
    terms = world.run.charter.economics
    for name in ("vera", "viktor"):
        game = losers[name]
        assert game.ref.kind is ClaimKind.ATTESTATION and game.verdict is not None
        # The honest run against a claimed end that does not follow from it: a slot of the end state.
        assert game.verdict.family == Family.OUTPUT
        assert digest_of(game.verdict.expected) != digest_of(game.verdict.claimed)
        assert -terms.verifier_bond <= gain(world, name) < 0
        assert world.shares(name) == 0
    game = losers["mallory"]
    assert game.ref.kind is ClaimKind.INTERVAL and game.verdict is not None
    assert game.verdict.family == Family.MAP
    assert (game.verdict.expected, game.verdict.claimed) == recompute(world, game, "wilma")
    assert gain(world, "ada") == 0
    assert gain(world, "wilma") > 0


def test_the_contract_refuses_a_stale_start_that_is_not_hidden(stage: SharedChain, tmp_path: Path) -> None:
    world = new_world(stage, tmp_path, tiny_work(), rounds=2)
    ada = world.solver("ada", first_seats=1)
    world.verifier("vera", first_seats=1)
    # The second round is open and Ada's honest training of it published, but nothing is committed.
    world.settle(lambda state: (Round(1), _base(world)) in ada.memory.trained if len(state.rounds) == 2 else False)
    assert isinstance(ada, SolverAgent)
    trained = ada.memory.trained[Round(1), _base(world)]
    first = ada.memory.trained[Round(0), ada.facts.genesis]
    stale = [first.roots[0], *trained.roots[1:]]
    commit = world.run.rounds.commit
    with pytest.raises(RejectedError) as refused:
        ada.send(commit(1, Seat(0), stale, list(trained.end_lists), trained.update, trained.base))
    assert refused.value.code == "StartMismatch"
    ada.send(commit(1, Seat(0), list(trained.roots), list(trained.end_lists), trained.update, trained.base))


def _base(world: ActorWorld) -> bytes:
    ada = world.players["ada"].agent
    view = RunView(ada.facts, ada.me, 0, 0, ada.state, ada.memory)
    return view.verified_base(Round(1)) or b""


def test_every_cheat_has_a_name_and_a_round_of_the_run() -> None:
    for name in CHEATS:
        cheat = cheat_named(name, rounds=2)
        assert cheat.name == name and 0 <= cheat.round < 2
    with pytest.raises(UsageError) as refused:
        cheat_named("none", 3)
    assert refused.value.code == "UnknownCheat"
