"""All cheats that find a seat beside honest actors: each is caught by itself, honest work goes on, paid and final."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import SEATS, Status
from assay_solver.cheats import CHEATS
from tests.harness.actors.world import SharedChain, new_world, tiny_work, with_economics
from tests.harness.honest_rules import hp7_the_honest_lose_nothing, hp13_a_loser_loses_no_more_than_it_staked

HONEST_SOLVERS = ("ada", "bob")
HONEST_AUDITORS = ("vera", "viktor", "wilma")

NAMES = sorted(CHEATS)
ROOM = SEATS - len(HONEST_SOLVERS)
CROWDS = [tuple(NAMES[k : k + ROOM]) for k in range(0, len(NAMES), ROOM)]
"""Every cheat in a run of its own or beside others: a run has so many seats, and there may be any number of cheats."""


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("crowd", CROWDS, ids="+".join)
def test_all_cheats_at_once_are_each_convicted_and_nobody_else_is(
    stage: SharedChain, tmp_path: Path, crowd: tuple[str, ...]
) -> None:
    # Every duty is drawn by all three verifiers: an expected rate of three.
    world = new_world(stage, tmp_path, tiny_work(), 3, with_economics(audit_ppm=3_000_000))
    founders = {"first_seats": len(HONEST_SOLVERS) + len(crowd), "first_verifiers": 3}
    for name in HONEST_SOLVERS:
        world.solver(name, **founders)
    for name in crowd:
        world.solver(name, cheat=name, **founders)
    world.verifier("vera", **founders)
    world.verifier("viktor", **founders)
    world.verifier("lazy", lazy=True, **founders)
    world.whistleblower("wilma")
    before = {name: world.wealth(name) for name in world.players}
    state = world.settle(stops=2000)

    convictions = {world.name_of(g.defender): g for g in world.verdicts() if g.convicted}
    assert convictions.keys() == {*crowd, "lazy"}
    assert all(world.name_of(g.challenger) in HONEST_AUDITORS for g in world.verdicts())
    assert not [g for g in world.verdicts() if not g.convicted], "somebody accused the innocent"
    for name in crowd:
        game = convictions[name]
        if CHEATS[name].is_silent:
            assert game.outcome is Outcome.DEFAULT
            continue
        assert game.outcome is Outcome.LEAF and game.verdict is not None
        assert game.verdict.family not in (Family.INPUT, Family.CONST, Family.OUTPUT)
        assert game.verdict.expected != game.verdict.claimed
    assert convictions["lazy"].ref.kind is ClaimKind.ATTESTATION
    if "copied-update" in crowd:
        assert convictions["copied-update"].ref.kind is ClaimKind.UPDATE

    terms = world.run.charter.economics
    for name in HONEST_SOLVERS:
        assert world.wealth(name) == before[name]
        assert world.shares(name) == 3 * terms.units * terms.shares_per_unit
    gains = {name: world.wealth(name) - before[name] for name in HONEST_AUDITORS}
    hp7_the_honest_lose_nothing(gains, gains.keys())
    for name in crowd:
        lost = before[name] - world.wealth(name)
        hp13_a_loser_loses_no_more_than_it_staked(name, lost, terms.claim_lock)
        assert lost > terms.claim_lock - terms.challenge_bond
        assert world.shares(name) == 2 * terms.units * terms.shares_per_unit
    for record in state.rounds:
        assert record.settled
        endings = {world.name_of(c.solver): c.status for c in record.commitments.values()}
        assert all(endings[name] is Status.FINAL for name in HONEST_SOLVERS)
