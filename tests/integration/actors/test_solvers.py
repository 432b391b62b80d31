"""Eight solvers through rounds on a real node: what they do, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.protocol import abi
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.heartbeat import EVERY_S
from assay_ledger.contract import Call, selector
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, ObjectMissing, StoreUnreachable, open_store
from assay_ledger.store.listfile import file_size
from assay_solver.agent import Solver
from tests.harness.actors.stage import STAKE, Actor, RoundsAlone, RoundStageRun, new_round_run
from tests.harness.actors.truth import replayed_bases
from tests.harness.actors.world import COMPUTE, SharedChain, small_work


class Crashed(Exception):
    """A process ends without a word."""


class Without:
    """A store that serves everything but some objects, and finds nothing under some names."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self.hidden: Callable[[], set[Digest]] = set
        self.flooded: Callable[[], set[str]] = set

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        """See BlobStore."""
        if digest in self.hidden():
            raise ObjectMissing("It is not here.")
        return self._store.get(digest, max_bytes)

    def candidates(self, name: str, after: Digest | None = None) -> Iterator[Digest]:
        """See BlobStore."""
        return iter(()) if name in self.flooded() else self._store.candidates(name, after)


class Full:
    """A store that takes nothing from one solver for a while."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self.is_full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_as(self, digest: Digest, stored: bytes, name: str | None = None) -> None:
        """See BlobStore."""
        self._check()
        self._store.put_as(digest, stored, name)

    def put(self, data: bytes, name: str | None = None, packed: bytes | None = None) -> Digest:
        """See BlobStore."""
        self._check()
        return self._store.put(data, name, packed)

    def _check(self) -> None:
        if self.is_full:
            raise StoreUnreachable("It takes nothing.")


def lists_of(view: RunView, generation: int) -> tuple[Digest, ...]:
    """The list roots of a generation; none before it has a majority."""
    made = view.lists(generation)
    return () if made is None else (made.parameters, made.momentum)


@pytest.mark.long
def test_every_base_of_five_rounds_is_an_independent_replays(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work())
    for k in range(8):
        run.solver(f"solver {k}")
    run.enrol()
    assert run.view.free_seats == 0
    run.begin()
    run.settle()
    view = run.view
    assert view.round == Round(4)
    assert [view.status(g) for g in range(1, 6)] == [GenerationStatus.FINAL] * 5
    assert [view.votes(g).root for g in range(6)] == replayed_bases(run, rounds=5)
    for r in range(5):
        assert all(view.work(Round(r), Seat(k)).work.units == 3 for k in range(8))
        assert view.counted(Round(r))[0] == frozenset(range(8))
    # Nobody lost anything: everything that was locked is free, or on the way.
    assert all(not t.convicted_at and not t.fee_gone for t in view.books.tenures.tenures.values())


@pytest.mark.long
def test_solvers_killed_at_every_transaction_lose_nothing(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=2)
    for k in range(8):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    struck: dict[tuple[bytes, str], int] = {}
    send = Solver.send

    def dies(self: Solver, call: Call, **options: Any) -> Any:
        # Once before it is sent, and once when it is mined.
        place = bytes(self.me), f"{call.name}{call.arguments}"
        struck[place] = struck.get(place, 0) + 1
        if struck[place] == 1:
            raise Crashed
        receipt = send(self, call, **options)
        if struck[place] == 2:
            raise Crashed
        return receipt

    monkeypatch.setattr(Solver, "send", dies)
    run.settle(revived=Crashed)
    assert run.view.votes(2).root == replayed_bases(run, rounds=2)[2]
    assert sum(name.startswith("Commitments.commit") for _, name in struck) == 16
    assert sum(name.startswith("Generations.open") for _, name in struck) == 16


def test_a_solver_that_dies_between_two_units_trains_none_again(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=1)
    for k in range(8):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    ada = run.players["solver 0"].agent
    run.settle(until=lambda _: [r.units for r in ada._runs.values()] == [2])
    again = run.restart("solver 0")
    trained: list[int] = []
    again.progress = lambda doing, done, total: trained.append(done)  # type: ignore[method-assign]
    run.settle()
    assert trained == [5, 6]
    assert run.view.votes(1).root == replayed_bases(run, rounds=1)[1]


def test_a_standby_without_a_folder_opens_the_root_that_the_first_process_sealed(
    stage: SharedChain, tmp_path: Path
) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=1)
    for k in range(3):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    run.settle(until=lambda r: Seat(0) in r.view.votes(1).seals)
    dead = run.players.pop("solver 0").agent
    dead.close()
    run.settle(until=lambda r: bool(r.view.openings(1)))
    # It looks when sealing is over, and has neither the updates nor their merge.
    make = lambda: RoundsAlone(run.run, dead.keys, run.store, tmp_path / "standby", compute=COMPUTE)  # noqa: E731
    run.players["standby"] = Actor(make, make())
    run.settle()
    assert {opening.position for opening in run.view.openings(1)} == set(map(Seat, range(3)))
    assert run.view.votes(1).root == replayed_bases(run, rounds=1, counted=[frozenset(range(3))])[1]


def test_long_work_says_how_far_it_is_as_often_as_heartbeats_are_renewed(stage: SharedChain, tmp_path: Path) -> None:
    run, now = new_round_run(stage, tmp_path, small_work(), rounds=1), [0.0]
    ada = run.solver("ada", clock=lambda: now[0])
    told: list[tuple[float, str]] = []
    ada.heartbeat_writer.report = lambda head, activity, deadline, doing: told.append((now[0], doing))  # type: ignore[assignment, misc]
    for done in range(1, 41):
        now[0] = done / 8
        ada.progress("training", done, 40)
    assert told == [
        (0.125, "training 1/40"),
        (0.125 + EVERY_S, "training 17/40"),
        (0.125 + 2 * EVERY_S, "training 33/40"),
    ]


@pytest.mark.long
def test_who_joins_late_starts_from_the_last_base_alone(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=3)
    for k in range(7):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    run.settle(until=lambda r: r.view.round == 1)
    # The updates are gone and strangers have buried the names of bases: who opened a root says where its lists lie.
    store = Without(run.store)
    updates = [work.work.update for work in run.view.works(Round(0))]
    store.hidden = lambda: {digest for root in updates for digest in run.store.candidates(f"lists/{root.hex()}")}
    store.flooded = lambda: {f"lists/{root.hex()}" for g in range(1, 4) for root in lists_of(run.view, g)}
    late = run.solver("late", store=store)
    run.settle()
    assert run.view.work(Round(2), Seat(7)) is not None
    everybody, seven = frozenset(range(8)), frozenset(range(7))
    counted = [run.view.counted(Round(r))[0] for r in range(3)]
    assert counted[0] == seven and counted[2] == everybody
    assert [run.view.votes(g).root for g in range(4)] == replayed_bases(run, rounds=3, counted=counted)
    assert min(round_ for round_, _ in late.recorder.merges) == next(r for r in range(3) if counted[r] == everybody)


def test_who_comes_back_after_void_rounds_still_has_what_the_next_starts_from(
    stage: SharedChain, tmp_path: Path
) -> None:
    """Bad luck: all are away for some rounds, with the machine of the store, whose disk is another one afterwards."""
    run = new_round_run(stage, tmp_path, small_work(), rounds=12)
    names = [f"solver {k}" for k in range(3)]
    for name in names:
        run.solver(name)
    run.enrol()
    run.begin()
    bench = lambda name, *words: run.chain.send(  # noqa: E731
        stage.sponsor, Call(run.at["RoundsBench"], selector(name) + b"".join(map(abi.uint, words)), name, ())
    )
    bench("setOpen(bool)", 0)
    run.settle(until=lambda r: r.view.status(1) is GenerationStatus.FINAL)
    bench("setOpen(bool)", 1)
    for _ in range(5):
        run.chain.send(stage.sponsor, run.run.generations.restart())
        round_ = run.view.round
        assert round_ is not None and run.view.round_of(round_).parent == 1
        run.chain.rpc("evm_mine", hex(run.view.commit_until(round_) + 1))
    for key in list(run.view.state.unsettled):
        bench("settle(uint64,uint32)", *key)
    for path in [path for path in (tmp_path / "store").rglob("*") if path.is_file()]:
        path.unlink()
    for name in names:
        run.restart(name)
    run.settle(until=lambda r: r.view.newest > 1)
    assert run.view.newest > 1


def test_a_solver_that_leaves_gives_up_its_seat_and_loses_nothing(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=3)
    for k in range(3):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    run.settle(until=lambda r: len(r.view.works(Round(0))) == 3)
    bob = run.players["solver 1"].agent
    bob.leaving = True
    run.settle()
    assert [run.view.counted(Round(r))[0] for r in range(3)] == [frozenset({0, 1, 2})] + [frozenset({0, 2})] * 2
    # Its tenure ended with the round that it had committed to. Both locks wait for that work to be settled.
    (_, tenure), *others = bob.see().tenures_of(bob.me)
    assert (tenure.until, tenure.last, tenure.unsettled) == (1, 1, 1) and not others
    assert not tenure.convicted_at and not tenure.fee_gone and not bob.is_finished(bob.see())
    terms = run.run.facts.rounds
    assert run.chain.ask(run.run.vault.free(bob.me)) == STAKE - terms.seat_lock - terms.seat_fee


def test_who_cannot_have_an_update_says_so_and_nobody_waits_for_its_root(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=2)
    for k in range(3):
        run.solver(f"solver {k}")
    run.enrol()
    poor = Without(run.store)
    mine = run.solver("poor", store=poor)
    run.enrol()

    def hidden() -> set[Digest]:
        work = run.players["solver 1"].agent.see().work(Round(0), Seat(1))
        return set() if work is None else set(run.store.candidates(f"lists/{work.work.update.hex()}"))

    poor.hidden = hidden
    run.begin()
    run.settle(until=lambda r: r.view.round == 1)
    view, votes = run.view, run.view.votes(1)
    assert view.counted(Round(0))[0] == frozenset(range(4))
    assert {seat for seat, seal in votes.seals.items() if seal is None} == {Seat(3)}
    assert {opening.position for opening in view.openings(1)} == {Seat(0), Seat(1), Seat(2)}
    # Sealing ended with its word, and not a grace after the majority; so the next round opened.
    assert view.round_of(Round(1)).t0 < view.hold_until(Round(0)) + view.rules.grace
    # It goes on from what the others made.
    poor.hidden = set
    run.settle()
    assert run.view.votes(2).root == replayed_bases(run, 2, counted=[frozenset(range(4))] * 2)[2]
    assert {opening.position for opening in run.view.openings(2)} == set(map(Seat, range(4)))
    assert mine.see().work(Round(1), Seat(3)) is not None


@pytest.mark.long
def test_who_was_late_is_paid_for_a_round_though_the_next_one_began(stage: SharedChain, tmp_path: Path) -> None:
    """Attack: fast others, and a store that is silent for as long as a round takes them."""
    run = new_round_run(stage, tmp_path, small_work(), rounds=2)
    for k in range(3):
        run.solver(f"solver {k}")
    run.enrol()
    store = Full(run.store)
    run.solver("late", store=store)
    run.enrol()
    run.begin()
    store.is_full = True
    run.settle(until=lambda r: r.view.round == 1)
    assert run.view.work(Round(0), Seat(3)) is None
    # Its process ends too: what it trained is on its disk, and the round's base.
    again = run.restart("late")
    store.is_full = False
    trained: list[str] = []
    again.progress = lambda doing, done, total: trained.append(doing)  # type: ignore[method-assign]
    run.settle()
    view = run.view
    first, second = (view.work(Round(r), Seat(3)) for r in range(2))
    assert first is not None and second is not None
    assert (first.work.units, second.work.units) == (3, 3)
    assert "training round 0" not in trained and "training round 1" in trained
    assert [view.counted(Round(r))[0] for r in range(2)] == [frozenset(range(3)), frozenset(range(4))]
    assert [view.votes(g).root for g in range(3)] == replayed_bases(
        run, rounds=2, counted=[view.counted(Round(r))[0] for r in range(2)]
    )


def joined(run: RoundStageRun, name: str, round_: int) -> tuple[int, int]:
    """Bytes that a solver read which joined in a round, up to its first unit, and the round that it trained then.

    Of the updates of earlier rounds the store has none any more but those of the round before.
    """
    run.settle(until=lambda r: r.view.round == round_)
    for old in map(Round, range(round_ - 1)):
        for work in run.view.works(old):
            for digest in run.store.candidates(f"lists/{work.work.update.hex()}"):
                (Path(run.store.location) / "objects" / digest.hex()[:2] / digest.hex()).unlink(missing_ok=True)
    store = open_store(run.store.location)
    late = run.solver(name, store=store)
    run.settle(until=lambda _: any(made.units for made in late._runs.values()))
    assert late._runs and not late.recorder.merges
    return store.traffic.bytes_read, min(round_ for round_, _, _ in late._runs)


@pytest.mark.long
def test_a_joiner_reads_the_last_base_whatever_came_before_it(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=8)
    for k in range(3):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    early, first = joined(run, "early", 2)
    late, second = joined(run, "late", 6)
    # Four rounds more cost no byte; one more seat costs its update, where the newest base is still to be published.
    update = file_size(next(iter(run.players.values())).agent.archive.update_specs)
    assert second >= first + 4 and abs(late - early) <= 2 * update
    run.settle()
    assert run.view.counted(Round(7))[0] == frozenset(range(5))
    counted = [run.view.counted(Round(r))[0] for r in range(8)]
    assert [run.view.votes(g).root for g in range(9)] == replayed_bases(run, rounds=8, counted=counted)
