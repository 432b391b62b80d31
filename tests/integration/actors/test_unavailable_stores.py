"""Stores become unavailable after the receipts: what was complete is audited, defended and built on all the same.

An actor that signed for a commitment, or published it, holds a copy; it works from that and puts back what is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Digest, Round, Seat, Status
from assay_ledger.index.records import RoundRecord, RunState
from assay_ledger.store.blobs import BlobStore, StoreUnreachable, open_store
from assay_ledger.store.objects import Objects
from assay_solver.cheats import cheat_named
from tests.harness.actors.claims import ClaimsRun
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, publish, small_work, with_a_bit_flipper

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}


def is_complete(state: RunState) -> bool:
    """Have both solvers' commitments of the first round their receipts?"""
    made = state.rounds[0].commitments if state.rounds else {}
    return len(made) == 2 and all(c.complete for c in made.values())


def names_of(world: ActorWorld, record: RoundRecord) -> Iterator[str]:
    """Everything that the commitments of a round name and nothing before them did."""
    objects = world.players["ada"].agent.archive.objects
    for commitment in record.commitments.values():
        start, *later = commitment.roots
        known = objects.state(start)
        yield f"lists/{commitment.update.hex()}"
        for root in later:
            yield f"states/{root.hex()}"
            yield from (f"lists/{r.hex()}" for r in objects.state(root)[: TrainingList.SCALARS] if r not in known)
        yield f"states/{start.hex()}"


def wipe(world: ActorWorld, names: list[str]) -> None:
    """A party that may write to a store may delete: objects and markers are gone."""
    folder = Path(world.store.location)
    for name in names:
        for marker in (folder / "names" / name).iterdir():
            (folder / "objects" / marker.name[:2] / marker.name).unlink(missing_ok=True)
            marker.unlink()


def is_served(store: BlobStore, name: str) -> bool:
    """Does the store have bytes under a name?"""
    return any(store.has(digest) for listed, digest in store.list(name) if listed == name)


@pytest.mark.parametrize("carl_stays", [True, False], ids=["and defends his lie", "and its author with it"])
def test_what_is_wiped_after_the_receipts_is_audited_built_on_and_put_back(
    stage: SharedChain, tmp_path: Path, carl_stays: bool
) -> None:
    world = new_world(stage, tmp_path, small_work(), rounds=2)
    world.solver("ada", **FOUNDERS)
    world.solver("carl", cheat=cheat_named("bit-flip", 2, at=0), **FOUNDERS)
    for name in ("vera", "viktor"):
        world.verifier(name, **FOUNDERS)
    world.whistleblower("wilma")
    world.enrol()
    before = {name: world.wealth(name) for name in world.players}
    carl = world.address("carl")
    world.settle(is_complete)
    wiped = list(names_of(world, world.state.rounds[0]))
    wipe(world, wiped)
    assert not any(is_served(world.store, name) for name in wiped)
    if not carl_stays:
        world.players.pop("carl").agent.close()
    state = world.settle()
    first, second = state.rounds
    assert {c.status for c in first.commitments.values() if c.solver == carl} == {Status.CONVICTED}
    assert [c.status for r in state.rounds for c in r.commitments.values() if c.solver != carl] == [Status.FINAL] * 2
    assert {g.defender for g in state.games.values()} == {carl} and any(g.convicted for g in state.games.values())
    assert {g.outcome for g in world.verdicts()} == {Outcome.LEAF if carl_stays else Outcome.DEFAULT}
    # Both verifiers answered for every duty, and the whistleblower, who signed for nothing, for each of its own.
    terms, everything = world.run.charter, 2 * world.run.charter.training.duties
    duties = dict.fromkeys(before, 0)
    for record in state.rounds:
        for who, mine in record.attendance.items():
            duties[world.name_of(who)] += len(mine.leaves)
    assert duties["vera"] == duties["viktor"] == everything + terms.training.duties * len(second.commitments)
    memory = world.players["wilma"].agent.memory
    assert duties["wilma"] == sum(len(drawn) for drawn in memory.duties.values())
    for name in ("ada", "vera", "viktor", "wilma"):
        assert world.wealth(name) >= before[name] + duties[name] * terms.economics.wage


class Curtain:
    """A store that answers nothing about objects once it is `unavailable`; heartbeats go on."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self.unavailable = False
        self.refused = 0

    def __getattr__(self, name: str) -> object:
        if self.unavailable and name in ("get", "put", "has", "list", "candidates"):
            self.refused += 1
            raise StoreUnreachable("The store is unavailable.")
        return getattr(self._store, name)


def behind_a_curtain(world: ActorWorld) -> Curtain:
    """Everybody's store from here on."""
    curtain = Curtain(world.store)
    world.store = curtain  # type: ignore[assignment]
    for name in world.players:
        world.restart(name)
    return curtain


def test_a_store_that_is_dark_for_good_saves_no_lie_and_costs_nobody_honest_anything(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = with_a_bit_flipper(stage, tmp_path)
    curtain = behind_a_curtain(world)
    world.settle(is_complete)
    curtain.unavailable = True
    (record,) = world.settle().rounds
    assert curtain.refused > 20
    endings = {world.name_of(c.solver): c.status for c in record.commitments.values()}
    assert endings == {"ada": Status.FINAL, "mallory": Status.CONVICTED}
    assert {g.outcome for g in world.verdicts()} == {Outcome.LEAF}
    assert {world.name_of(g.defender) for g in world.state.games.values()} == {"mallory"}
    assert {len(a.leaves) for a in record.attendance.values()} == {2 * world.run.charter.training.duties}
    for name in ("ada", "vera", "viktor"):
        assert world.wealth(name) >= world.players[name].wealth


def test_an_honest_solver_that_is_challenged_in_the_dark_answers_and_loses_nothing(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = new_world(stage, tmp_path, small_work(), rounds=1)
    world.solver("ada")
    world.verifier("vera")
    world.enrol()
    before = {name: world.wealth(name) for name in world.players}
    curtain = behind_a_curtain(world)
    claims = ClaimsRun(world, world.keys("stranger"))
    world.settle(lambda state: bool(state.rounds) and any(a.leaves for a in state.rounds[0].attendance.values()))
    curtain.unavailable = True
    # Nothing that the process had in memory helps it.
    world.restart("ada")
    claims.challenge_as_third_party(ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(0), 1), Digest(b"\x55" * 32))
    (record,) = world.settle().rounds
    (game,) = world.verdicts()
    # The challenge, her answer, and the end of the clock that the stranger then let run out.
    assert [m.mover for m in game.moves] == [claims.stranger.address, world.address("ada"), world.address("ada")]
    assert not game.convicted and game.verdict is not None and game.verdict.loser == claims.stranger.address
    assert [c.status for c in record.commitments.values()] == [Status.FINAL]
    assert world.wealth("ada") > before["ada"] and world.wealth("vera") >= before["vera"]


def test_a_majority_signing_unfetched_work_goes_unnoticed_and_takes_no_stake(
    stage: SharedChain, tmp_path: Path
) -> None:
    """What the rules leave open: see docs/security/threat-model.md. No party is accused of what cannot be known."""
    world = new_world(stage, tmp_path, small_work(), rounds=2)
    hidden = open_store(tmp_path / "hidden")
    publish(Objects(hidden), world.work)
    world.solver("ada", **FOUNDERS)
    world.solver("carl", store=hidden, cheat=cheat_named("bit-flip", 1), **FOUNDERS)
    world.verifier("vera", **FOUNDERS)
    world.verifier("lazy", lazy=True, stake=world.run.charter.economics.verifier_bond + 1, **FOUNDERS)
    world.whistleblower("wilma")
    world.enrol()
    before = {name: world.wealth(name) for name in world.players}
    state = world.settle()
    record = state.rounds[0]
    endings = {world.name_of(c.solver): c.status for c in record.commitments.values()}
    assert endings == {"ada": Status.FINAL, "carl": Status.FINAL} and not state.games
    duties, terms = world.run.charter.training.duties, world.run.charter.economics
    # Who could not fetch answers for what it could: it loses the wages of the rest, and nothing that it had.
    assert len(record.attendance[world.address("vera")].leaves) == duties
    assert world.wealth("vera") == before["vera"] + duties * terms.wage
    assert all(world.wealth(name) >= before[name] for name in before)
    # Without the update the outer step cannot be taken: the run stands still.
    assert len(state.rounds) == 1 and not record.outers
