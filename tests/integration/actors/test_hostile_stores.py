"""Honest actors in a game while their store is dark, hangs, drips or holds FIFOs: they work from their own copies.

What an actor published or fetched it keeps, so that no store can convict it or save a lie.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.errors import UnavailableError
from assay.protocol.game.table import Side
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round
from assay_ledger.agents.game_actions import Play
from assay_ledger.agents.patience import BESIDE_GAME_S, IN_GAME_S, LEAST_S, MOST_S
from assay_ledger.chain.client import Head
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, StorePace, StoreUnreachable, open_store
from assay_ledger.store.objects import Objects
from assay_solver import strategy
from assay_solver.actions import CommitWork, TakeSeat
from assay_solver.agent import Solver
from assay_solver.merging import ComputeMerge, FetchUpdate
from assay_verifier.answering import OwnCall, ReplayPass, ReplayUnit
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.disputed import Puppet, again, aside, check_judged, is_judged, verdicts
from tests.harness.actors.whole_run import WholeRun
from tests.harness.actors.world import COMPUTE
from tests.harness.buckets import HOSTILITIES, ServedBucket, running_bucket

FIRST_MOVE_S = 120.0
"""From a cold start, on a machine that does a dozen things beside; the shortest turn has 600, and what hangs hangs."""


class Curtain:
    """A store that answers nothing about objects; heartbeats go on."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self.refused = 0

    def __getattr__(self, name: str) -> object:
        if name in ("get", "put", "has", "list", "candidates"):
            self.refused += 1
            raise StoreUnreachable("The store is unavailable.")
        return getattr(self._store, name)


# --- dark, or wiped: before anybody was challenged (`challenged` below lasts to the end of the module)


def test_an_honest_solver_that_is_challenged_in_the_dark_answers_and_loses_nothing(disputed: WholeRun) -> None:
    with aside(disputed):
        puppet, before = Puppet(disputed), disputed.wealth("ada")
        game_id = puppet.challenge()
        # Nothing that the process had in memory helps it.
        curtain = Curtain(disputed.store)
        ada = again(disputed, "ada", store=curtain)  # type: ignore[arg-type]
        while not (view := disputed.view).games[game_id].is_over:
            if not ada.step():
                assert ada.deadline is not None
                disputed.chain.rpc("evm_mine", hex(ada.deadline))
        # The challenge, her answer, and the end of the clock that the stranger then let run out.
        game = view.games[game_id]
        assert [m.mover for m in game.moves] == [puppet.address, ada.me, ada.me]
        assert not game.convicted and game.verdict is not None and game.verdict.loser == puppet.address
        assert disputed.wealth("ada") >= before


def test_a_store_that_is_dark_for_good_saves_no_lie_and_costs_nobody_honest_anything(disputed: WholeRun) -> None:
    with aside(disputed):
        curtain = Curtain(disputed.store)
        for name in disputed.players:
            if name != "mallory":
                again(disputed, name, store=curtain)  # type: ignore[arg-type]
        check_judged(disputed, disputed.settle(is_judged))
        assert curtain.refused > 3 and verdicts(disputed.view)


@pytest.mark.parametrize("is_wiped", [True, False], ids=["wiped", "written over"])
def test_what_is_wiped_after_it_was_held_is_put_back_by_who_published_it(
    disputed: WholeRun, tmp_path: Path, is_wiped: bool
) -> None:
    """Else no auditor could make the base of the next round, which nobody but auditors publishes."""
    shutil.copytree(disputed.store.location, tmp_path / "store")
    store = open_store(tmp_path / "store")
    with aside(disputed):
        for name in disputed.players:
            again(disputed, name, store=store)
        view = disputed.settle(lambda view: view.votes(1).root is not None)
        for work in view.works(Round(0)):
            name = tmp_path / "store" / "names" / "lists" / work.work.update.hex()
            for marker in name.iterdir():
                there = tmp_path / "store" / "objects" / marker.name[:2] / marker.name
                if is_wiped:
                    there.unlink()
                    marker.unlink()
                else:
                    there.write_bytes(b"other bytes")
        archive = disputed.players["vera"].agent.archive
        stranger = Archive(archive.charter, archive.facts, Objects(store), Publications(disputed.chain, Objects(store)))
        with pytest.raises(UnavailableError):
            stranger.base(view, 1, COMPUTE)
        first = len(view.epochs)
        view = disputed.settle(lambda view: len(view.state.attestations) == 2 and len(view.epochs) > first)
        assert stranger.base_roots(stranger.base(view, 1, COMPUTE)) == view.lists(1)
        # Whose base it is may have published that, too: the update itself is there again.
        holder = view.books.tenures.existing
        (own,) = [work for work in view.works(Round(0)) if holder(work.tenure).holder == disputed.address("ada")]
        assert stranger.fetch_update(own)


def test_a_base_that_is_wiped_is_put_back_while_its_work_is_audited(disputed: WholeRun, tmp_path: Path) -> None:
    """Else auditors that come anew, or without copies, miss what they are drawn for, and are fined."""
    shutil.copytree(disputed.store.location, tmp_path / "store")
    store = open_store(tmp_path / "store")
    with aside(disputed):
        for name in disputed.players:
            again(disputed, name, store=store)
        # Those who replayed work on it have published it, and do so once.
        first = len(disputed.settle(lambda view: len(view.state.attestations) == 2).epochs)
        archive = disputed.players["vera"].agent.archive
        for marker in (tmp_path / "store" / "names" / "lists" / archive.facts.rounds.parameters.hex()).iterdir():
            (tmp_path / "store" / "objects" / marker.name[:2] / marker.name).unlink()
            marker.unlink()
        stranger = Archive(archive.charter, archive.facts, Objects(store), Publications(disputed.chain, Objects(store)))
        with pytest.raises(UnavailableError):
            stranger.fetch_base(disputed.view, 0)
        view = disputed.settle(lambda view: len(view.epochs) > first + 1)
        assert stranger.base_roots(stranger.fetch_base(view, 0)) == view.lists(0)


# --- hostile to whoever is challenged


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


GamesOf = dict[str, int]
"""By the name of the defender."""


@pytest.fixture(scope="module")
def challenged(disputed: WholeRun) -> Iterator[tuple[WholeRun, Puppet, GamesOf]]:
    """A stranger challenges ada's work, and what vera attests of it; both are true."""
    with aside(disputed):
        view = disputed.settle(lambda view: len(view.state.attestations) == 2)
        puppet = Puppet(disputed)
        found = next(name for name, made in view.state.attestations.items() if made.seat == puppet.ref.seat)
        games = {"ada": puppet.challenge(), "vera": puppet.challenge_attestation(found)}
        for name, game_id in games.items():
            state = disputed.run.games.game(game_id).state
            assert state.defender == disputed.address(name) and state.turn is Side.DEFENDER
        yield disputed, puppet, games


def seconds_to_first_move(made: WholeRun, name: str, game_id: int, store: BlobStore) -> float:
    """How long an actor needs that was just started, with nothing in memory."""
    agent = again(made, name, store=store)
    start = time.monotonic()
    while made.run.games.game(game_id).state.turn is Side.DEFENDER:
        agent.step()
        assert time.monotonic() - start < FIRST_MOVE_S, f"{name} has not moved"
    return time.monotonic() - start


@pytest.mark.parametrize(
    "harm", [everything_a_fifo, everything_a_directory, everything_zeros, folders_are_fifos], ids=lambda f: f.__name__
)
def test_whoever_is_challenged_moves_in_seconds_whatever_became_of_a_folder(
    challenged: tuple[WholeRun, Puppet, GamesOf], tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    made, _, games = challenged
    folder = tmp_path / "store"
    shutil.copytree(made.store.location, folder)
    harm(folder)
    with aside(made):
        for name, game_id in games.items():
            print(f"{harm.__name__}: {name} {seconds_to_first_move(made, name, game_id, open_store(folder)):.2f} s")


def at(view: RunView, time: int, games: bool = False) -> RunView:
    """The same run at another chain time, with its games or none."""
    kept = view.state.games if games else {}
    return replace(view, state=replace(view.state, head=Head(view.block + 1, time), games=kept))


def test_what_an_action_may_wait_follows_from_the_clock_that_runs(challenged: tuple[WholeRun, Puppet, GamesOf]) -> None:
    made, puppet, games = challenged
    ada, vera = made.restart("ada"), made.restart("vera")
    assert isinstance(ada, Solver) and isinstance(vera, AuditorAgent)
    view, round_ = ada.see(), Round(0)
    fetch, play = FetchUpdate(round_, puppet.ref.seat), Play(games["ada"], 0)
    commit = CommitWork(round_, puppet.ref.seat, view.base(round_).root)
    assert ada.patience(play, view) == IN_GAME_S
    assert ada.patience(fetch, view) == ada.patience(commit, view) == BESIDE_GAME_S
    # No turn of hers: the window counts, shared by what is to be fetched; at its end, and after it, the least.
    seen, own = strategy.seen(view, round_), ada.own(view)
    waiting, speak = len(seen.maskable), seen.hold_until - own.lead
    assert waiting == 2 and not own.held
    for left, share in ((1, LEAST_S), (20 * waiting, LEAST_S), (22 * waiting, 11), (10**6, MOST_S)):
        assert ada.patience(fetch, at(view, speak - left)) == share
    assert ada.patience(ComputeMerge(round_, frozenset()), at(view, view.seal_until(round_) - 50)) == 25
    assert ada.patience(commit, at(view, view.commit_until(round_) - 400)) == 100
    # A replay waits as long as the first call leaves to each duty; without one, as anything else.
    other, now = vera.see(), view.now
    replay = ReplayUnit(ReplayPass(Digest(bytes(32)), round_, puppet.ref.seat, 1, 0, ()), 1)
    duties: Any = (None, None)
    assert vera.patience(replay, at(other, now)) == MOST_S
    vera.calls = tuple(OwnCall(TicketId(k), 1, ZERO, now + k * 200, duties) for k in (1, 2))
    assert vera.patience(replay, at(other, now)) == 25 and vera.patience(replay, at(other, now + 200)) == LEAST_S
    assert vera.patience(TakeSeat(), at(other, now)) == MOST_S
    assert vera.patience(replay, at(other, now, games=True)) == BESIDE_GAME_S


@pytest.fixture(scope="module")
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


@pytest.mark.parametrize("hostility", HOSTILITIES)
def test_whoever_is_challenged_moves_in_seconds_whatever_a_server_does(
    challenged: tuple[WholeRun, Puppet, GamesOf], bucket: ServedBucket, hostility: str
) -> None:
    made, _, games = challenged
    bucket.hostility = hostility
    try:
        with aside(made):
            for name, game_id in games.items():
                store = open_store("s3://bucket/", StorePace(call_s=1.0))
                print(f"{hostility}: {name} {seconds_to_first_move(made, name, game_id, store):.2f} s")
    finally:
        bucket.hostility = None
