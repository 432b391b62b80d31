"""Stores that are pruned while a run goes on: what is over goes, and nobody honest ever asks for it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.rounds.duty_types import Accusation, AccusationStatus
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Digest, Round
from assay.sponsor.charters import AuditRates, Pace
from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Head
from assay_ledger.index.publications import Publications
from assay_ledger.retention.needed import oldest_needed, retained
from assay_ledger.retention.pruning import Pruned, StoreShared, prune
from assay_ledger.retention.survey import StoredKind, survey
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, object_path, open_store
from assay_ledger.store.objects import Objects
from assay_solver.agent import Solver
from assay_solver.cheats import solver_cheat_named
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.commands import assay_on

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

ROUNDS = 16
"""Some are left once anything was deleted, also where a finding of the first rounds was drawn again, and that again."""

HELD_S = 2900
"""Most of the time that a round has to commit."""

PACE = Pace(units=5, least=3, steps=2, commit=3000, replay=60)
RATES = AuditRates(audit_ppm=100_000, reaudit_ppm=50_000, capacity=1, shifts=1)
"""Short epochs and windows, in rounds; a finding is seldom drawn again, which keeps its round for an epoch more."""

SOLVERS = ("ada", "bob", "cleo")


class ActorsStore(BlobStore):
    """What actors read through: notes who asks for what was deleted."""

    def __init__(self, store: BlobStore) -> None:
        super().__init__(store._backend, store.location)
        self.deleted: set[str] = set()
        self.asked: list[str] = []

    def _note(self, key: str) -> None:
        if key in self.deleted:
            self.asked.append(key)

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        self._note(digest.hex())
        return super().get(digest, max_bytes)

    def has(self, digest: Digest) -> bool:
        self._note(digest.hex())
        return super().has(digest)

    def candidates(self, name: str, after: Digest | None = None) -> Iterator[Digest]:
        self._note(name)
        return super().candidates(name, after)


def paths(store: BlobStore) -> set[str]:
    """All that lies in a store."""
    return {path for top in ("objects", "names") for path, _ in store.entries(top)}


class PrunedRun:
    """A run whose store is pruned after every sweep."""

    def __init__(self, made: WholeRun) -> None:
        self.made = made
        self.seen = ActorsStore(made.store)
        self.done: list[Pruned] = []

    def prune(self) -> None:
        """As the command does it, and notes what is gone."""
        before, view = paths(self.made.store), self.made.view
        self.done.append(prune(self.made.store, view, self.archive_of(self.made.store), delete=True))
        played = [game.ref.round for game in view.games.values() if not game.is_over]
        assert all(self.done[-1].kept.first_round <= max(round_ - 1, 0) for round_ in played)
        for path in before - paths(self.made.store):
            self.seen.deleted.add(path.rpartition("/")[2] if path.startswith("objects/") else path[6:-65])

    def archive_of(self, store: BlobStore) -> Archive:
        """An onlooker's, without copies."""
        run, objects = self.made.run, Objects(store)
        return Archive(run.charter, run.facts, objects, Publications(run.chain, objects))

    def end(self, until: Callable[[RunView], bool] = lambda _: False) -> RunView:
        """Steps everybody until it comes to this, or the run is over; rounds last HELD_S: windows end meanwhile."""
        for _ in range(2000):
            while self.sweep():
                self.prune()
                if until(view := self.made.view):
                    return view
            if not self.pass_time():
                return self.made.view
        raise AssertionError("the run does not come to rest")

    def held_until(self) -> int:
        """When solvers go on, in seconds of chain time."""
        view = self.made.view
        return 0 if view.round is None or view.is_over else view.round_of(view.round).t0 + HELD_S

    def awake(self) -> list[Agent]:
        """Who acts now."""
        is_held = self.made.chain.head().timestamp < self.held_until()
        agents = [player.agent for player in self.made.players.values()]
        return [agent for agent in agents if not (is_held and isinstance(agent, Solver))]

    def sweep(self) -> bool:
        """See WholeRun."""
        head = self.made.chain.head()
        acted = [agent.step() for agent in self.awake()]
        return any(acted) or self.made.chain.head() != head

    def pass_time(self) -> bool:
        """See WholeRun."""
        now, held = self.made.chain.head().timestamp, self.held_until()
        if held <= now:
            return self.made.pass_time()
        times = [agent.deadline for agent in self.awake() if agent.deadline is not None]
        self.made.chain.rpc("evm_mine", hex(min([held, *(t for t in times if t > now)])))
        return True


@pytest.fixture(scope="module")
def pruned(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> PrunedRun:
    """With audits, a liar that is convicted, and a solver that joins late and has nothing of its own."""
    folder = tmp_path_factory.mktemp("pruned")
    run = PrunedRun(new_whole_run(stage, folder, rounds=ROUNDS, pace=PACE, rates=RATES))
    made = run.made
    for name in SOLVERS:
        made.solver(name, store=run.seen)
    made.solver("liar", solver_cheat_named("false-root", 1), store=run.seen)
    made.auditor("vera", tickets=3, store=run.seen)
    made.auditor("viktor", tickets=2, store=run.seen)
    made.enrol()
    made.fund()
    made.launch()
    run.end(until=lambda view: view.round == 3)
    copytree(folder / "store", folder / "early")
    # Not until a round: what tickets are drawn for keeps the first ones for two epochs, or for three and more.
    run.end(until=lambda _: bool(run.seen.deleted))
    assert run.seen.deleted
    made.solver("late", store=run.seen)
    run.end()
    return run


@pytest.fixture
def early(pruned: PrunedRun, tmp_path: Path) -> BlobStore:
    """The store as it was when round 3 began."""
    copytree(pruned.made.folder / "early", tmp_path / "early")
    return open_store(tmp_path / "early")


def test_nobody_honest_asks_for_what_a_prune_after_every_sweep_deleted(pruned: PrunedRun) -> None:
    made, view = pruned.made, pruned.made.view
    kinds = {kind for done in pruned.done for kind in done.kinds}
    assert {StoredKind.UPDATES, StoredKind.MARKS, StoredKind.BASES, StoredKind.MANIFESTS} == kinds
    assert pruned.seen.deleted and pruned.seen.asked == []
    assert [view.status(g + 1) for g in range(ROUNDS)] == [GenerationStatus.FINAL] * ROUNDS
    assert any(game.is_over and game.convicted for game in view.games.values())
    assert all(view.work(Round(0), seat) for seat in range(3))
    assert made.address("late") in {held.holder for held in view.books.tenures.tenures.values()}
    wealth = {name: made.wealth(name) - made.players[name].brought for name in (*SOLVERS, "vera", "viktor", "late")}
    assert all(gain >= 0 for gain in wealth.values()), wealth


def updates_of(view: RunView, round_: int) -> set[str]:
    """Names of the updates of a round."""
    return {f"lists/{work.work.update.hex()}" for work in view.works(Round(round_))}


def gone(pruned: PrunedRun, store: BlobStore, view: RunView, **options: bool) -> set[str]:
    """Names that a prune takes out of a store."""
    before = paths(store)
    prune(store, view, pruned.archive_of(store), **{"delete": True, **options})
    return {path[6:-65] for path in before - paths(store) if path.startswith("names/")}


def test_a_round_stays_to_the_last_second_in_which_a_root_can_be_challenged(
    pruned: PrunedRun, early: BlobStore
) -> None:
    view = pruned.made.view
    opening = next(made for made in view.openings(1))
    until = view.now + 100
    late = replace(opening, at=until - view.rules.challenge)

    def at(time: int) -> RunView:
        state = replace(view.state, head=Head(view.block, time), unclosed={(late.node, late.party): late})
        return replace(view, state=state)

    assert oldest_needed(at(until))[0] == 0 and gone(pruned, early, at(until)) == set()
    assert oldest_needed(at(until + 1))[0] > 1 and gone(pruned, early, at(until + 1)) >= updates_of(view, 0)


@pytest.mark.parametrize("pin", ["unsettled work", "open game", "accusation"])
def test_a_round_stays_while_anything_of_it_is_open(
    pruned: PrunedRun, early: BlobStore, pin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = pruned.made.view
    state, found, round_ = view.state, view.books.duties.attestations, Round(1)
    match pin:
        case "unsettled work":
            state = replace(state, unsettled={(round_, work.seat): work for work in view.works(round_)})
        case "open game":
            game = next(game for game in view.games.values() if game.convicted)
            assert game.ref.round == round_
            state = replace(state, games={**state.games, game.game_id: replace(game, verdict=None)})
        case "accusation":
            name, made = min(found.attestations.items(), key=lambda pair: pair[1].round)
            round_ = Round(made.round)
            tried = Accusation(AccusationStatus.TRIED, True, 1, made.ticket, made.epoch, 0, name, ZERO)
            monkeypatch.setitem(found.accusations, Digest(bytes(32)), tried)
    pinned = replace(view, state=state)
    assert oldest_needed(pinned)[0] == round_ < oldest_needed(view)[0] or pin == "accusation"
    # The updates of the round before make the base of this one where nobody published that.
    taken = gone(pruned, early, pinned)
    assert not taken & (updates_of(view, round_) | updates_of(view, max(round_ - 1, 0)))
    monkeypatch.undo()
    assert pin == "accusation" or gone(pruned, early, view) >= updates_of(view, 0)


def test_what_makes_the_newest_base_that_is_served_stays(pruned: PrunedRun, early: BlobStore) -> None:
    view, archive = pruned.made.view, pruned.archive_of(early)
    served = [g for g in range(ROUNDS + 1) if all(early.list(f"lists/{root.hex()}") for root in roots(view, g))]
    kept = retained(view, lambda generation: generation in served)
    assert kept.first_round == max(served) > 0
    taken = gone(pruned, early, view)
    assert taken and not taken & updates_of(view, kept.first_round)
    archive.fetch_base(view, max(served))
    for name in ("programs", "tensors", "runs"):
        assert early.list(name) == pruned.made.store.list(name) != ()


def roots(view: RunView, generation: int) -> tuple[Digest, ...]:
    """Of the lists of a generation."""
    made = view.lists(generation)
    assert made is not None
    zeros = view.rules.momentum
    return tuple(root for root in (made.parameters, made.momentum) if root != zeros)


def test_a_store_without_a_final_base_is_left_alone(pruned: PrunedRun, early: BlobStore) -> None:
    view = pruned.made.view
    for generation in range(1, ROUNDS + 1):
        for root in roots(view, generation):
            for name, digest in early.list(f"lists/{root.hex()}"):
                early.delete(f"names/{name}/{digest.hex()}")
                early.delete(object_path(digest))
    assert gone(pruned, early, view) == set()


def test_names_manifests_and_marks_of_strangers_delete_nothing_that_others_need(
    pruned: PrunedRun, early: BlobStore
) -> None:
    view, rules = pruned.made.view, pruned.made.view.rules
    update = sorted(updates_of(view, 0))[0]
    needed = [digest for name in ("programs", "tensors", "runs") for _, digest in early.list(name)]
    needed += [digest for _, digest in early.list(f"lists/{rules.parameters.hex()}")]
    for digest in needed:
        early._write(f"names/{update}/{digest.hex()}", b"", "write")
    assert gone(pruned, early, view) >= updates_of(view, 0) - {update}
    assert all(early.has(digest) for digest in needed)


def test_a_store_of_several_runs_is_pruned_by_manifest_alone(pruned: PrunedRun, early: BlobStore) -> None:
    view = pruned.made.view
    early.put(b"{}", f"runs/{'ab' * 20}/card")
    with pytest.raises(StoreShared, match="abab"):
        gone(pruned, early, view)
    update = sorted(updates_of(view, 0))[0]
    other = early.put(b"another run's", update)
    assert gone(pruned, early, view, only_run=True) >= updates_of(view, 0) - {update}
    assert early.has(other)


def test_without_delete_nothing_is_touched_and_the_same_bytes_are_said(pruned: PrunedRun, early: BlobStore) -> None:
    view, archive = pruned.made.view, pruned.archive_of(early)
    before = survey(early, view, archive.publications).total
    said = prune(early, view, archive, delete=False)
    assert survey(early, view, archive.publications).total == before and said.total.bytes > 0
    assert prune(early, view, archive, delete=True).total == said.total
    after = survey(early, view, archive.publications).total
    assert (before.objects - after.objects, before.bytes - after.bytes) == (said.total.objects, said.total.bytes)


def test_usage_counts_every_byte_once_by_kind_and_round(pruned: PrunedRun, early: BlobStore) -> None:
    view = pruned.made.view
    found = survey(early, view, pruned.archive_of(early).publications)
    lying = [path for path in Path(early.location).rglob("*") if path.is_file() and path.parts[-3] != "names"]
    assert found.total.bytes == sum(path.stat().st_size for path in lying)
    assert found.kinds[StoredKind.PROGRAMS].objects == 4
    assert found.rounds[0][StoredKind.UPDATES].objects == len(updates_of(view, 0))
    assert found.rounds[0][StoredKind.MARKS].bytes == 32 * sum(work.work.units for work in view.works(Round(0)))
    assert found.kinds[StoredKind.HEARTBEATS].objects == 0


def test_the_commands_say_what_they_did_as_json(pruned: PrunedRun, early: BlobStore) -> None:
    def store(*words: str) -> Any:
        (found,) = json.loads(assay_on(pruned.made.run, "store", *words, "--store", early.location, "--json").stdout)[
            "stores"
        ]
        return found

    used = store("usage")
    said = store("prune")
    assert not said["deleted"] and 0 < said["bytes"] < used["bytes"] and said["kept_from_round"] > 0
    done = store("prune", "--delete")
    left = store("usage")
    assert done["deleted"] and done["bytes"] == said["bytes"] == used["bytes"] - left["bytes"]
