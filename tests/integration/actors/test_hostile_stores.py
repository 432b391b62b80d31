"""Honest actors in a game while their store hangs, drips or holds FIFOs: they move in seconds, from their copies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.game.table import Side
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round, Seat, Status
from assay_ledger.agents.actions import Play, Receipt
from assay_ledger.agents.urgency import BESIDE_GAME_S, IN_GAME_S, LEAST_S, MOST_S, is_in_game, patience
from assay_ledger.store.blobs import StorePace, open_store
from assay_ledger.store.objects import Objects
from tests.harness.actors.claims import ClaimsRun, aside
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, publish, small_work
from tests.harness.buckets import HOSTILITIES, ServedBucket, running_bucket

FIRST_MOVE_S = 20.0
"""From a cold start, on a loaded machine; the shortest turn has 600."""


def challenged(world: ActorWorld) -> tuple[ClaimsRun, dict[str, int]]:
    """A round of an honest solver and an honest verifier, whom a stranger accuses of one claim each; the games."""
    world.solver("ada")
    world.verifier("vera")
    claims = ClaimsRun(world, world.keys("stranger"))
    world.settle(lambda state: bool(state.rounds) and any(a.leaves for a in state.rounds[0].attendance.values()))
    work = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(0), 1)
    attested = ClaimRef(ClaimKind.ATTESTATION, Round(0), Seat(0), 2, world.address("vera"))
    false = Digest(b"\x55" * 32)
    games = {
        "ada": claims.challenge_as_third_party(work, false),
        "vera": claims.challenge_as_third_party(attested, false),
    }
    for name, game_id in games.items():
        state = world.run.games.game(game_id).state
        assert state.defender == world.address(name) and state.turn is Side.DEFENDER
    return claims, games


def seconds_to_first_move(world: ActorWorld, name: str, game_id: int) -> float:
    """How long an actor needs that was just started, with nothing in memory."""
    agent = world.restart(name)
    start = time.monotonic()
    while world.run.games.game(game_id).state.turn is Side.DEFENDER:
        agent.step()
        assert time.monotonic() - start < FIRST_MOVE_S, f"{name} has not moved"
    return time.monotonic() - start


def everything_a_fifo(folder: Path) -> None:
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        path.unlink()
        os.mkfifo(path)


def everything_a_directory(folder: Path) -> None:
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        path.unlink()
        path.mkdir()


def everything_zeros(folder: Path) -> None:
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        path.unlink()
        path.symlink_to("/dev/zero")


def folders_are_fifos(folder: Path) -> None:
    for path in list(folder.iterdir()):
        path.rename(folder.parent / f"gone-{path.name}")
        os.mkfifo(path)


@pytest.fixture(scope="module")
def in_a_folder(
    stage: SharedChain, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ActorWorld, ClaimsRun, dict[str, int]]:
    world = new_world(stage, tmp_path_factory.mktemp("hostile"), small_work(), rounds=1)
    return world, *challenged(world)


@pytest.mark.parametrize(
    "harm", [everything_a_fifo, everything_a_directory, everything_zeros, folders_are_fifos], ids=lambda f: f.__name__
)
def test_whoever_is_challenged_moves_in_seconds_whatever_became_of_a_folder(
    in_a_folder: tuple[ActorWorld, ClaimsRun, dict[str, int]], harm: Callable[[Path], None]
) -> None:
    world, claims, games = in_a_folder
    harm(Path(world.store.location))
    with aside(claims):
        for name, game_id in games.items():
            print(f"{harm.__name__}: {name} {seconds_to_first_move(world, name, game_id):.2f} s")


def test_what_an_action_may_wait_follows_from_the_clock_that_runs(
    in_a_folder: tuple[ActorWorld, ClaimsRun, dict[str, int]],
) -> None:
    _, claims, games = in_a_folder
    vera = claims.participant("vera")
    view = vera.see()
    record = view.state.rounds[0]
    receipt, play = Receipt(Round(0), Seat(0), record.commitments[Seat(0)].digest), Play(games["vera"], 0)
    assert is_in_game(play) and not is_in_game(receipt)
    assert (patience(play, view), patience(receipt, view)) == (IN_GAME_S, BESIDE_GAME_S)
    # Not her turn: the window counts, shared by what is to be fetched; at its end, and after it, the least.
    state = deepcopy(view.state)
    for game in state.games.values():
        game.turn = Side.CHALLENGER
    until = record.times.receipts_until
    for waiting in (1, 2):
        for left, share in ((0, LEAST_S), (20 * waiting, LEAST_S), (22 * waiting, 11), (10**6, MOST_S)):
            first = state.rounds[0].commitments[Seat(0)]
            first.receipts.discard(vera.me)
            state.rounds[0].commitments = {Seat(k): first for k in range(waiting)}
            assert patience(receipt, replace(view, state=state, now=until - left)) == share


def test_the_games_end_well_and_the_round_is_settled_from_copies_in_a_store_of_fifos(
    in_a_folder: tuple[ActorWorld, ClaimsRun, dict[str, int]],
) -> None:
    # Before another run's rounds move the time of the node that they share.
    world, claims, _ = in_a_folder
    everything_a_fifo(Path(world.store.location))
    for name in world.players:
        world.restart(name)
    (record,) = world.settle().rounds
    assert [c.status for c in record.commitments.values()] == [Status.FINAL]
    assert len(world.verdicts()) == 2
    assert all(not game.convicted for game in world.verdicts())
    assert {g.verdict.loser for g in world.verdicts() if g.verdict} == {claims.stranger.address}


@pytest.fixture(scope="module")
def in_a_bucket(
    stage: SharedChain, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServedBucket, ActorWorld, ClaimsRun, dict[str, int]]]:
    with running_bucket() as bucket:
        world = new_world(stage, tmp_path_factory.mktemp("bucket"), small_work(), rounds=1)
        world.store = open_store("s3://bucket/", StorePace(call_s=1.0))
        publish(Objects(world.store), world.work)
        yield bucket, world, *challenged(world)


@pytest.mark.parametrize("hostility", HOSTILITIES)
def test_whoever_is_challenged_moves_in_seconds_whatever_a_server_does(
    in_a_bucket: tuple[ServedBucket, ActorWorld, ClaimsRun, dict[str, int]], hostility: str
) -> None:
    bucket, world, claims, games = in_a_bucket
    bucket.hostility = hostility
    try:
        with aside(claims):
            for name, game_id in games.items():
                print(f"{hostility}: {name} {seconds_to_first_move(world, name, game_id):.2f} s")
    finally:
        bucket.hostility = None
