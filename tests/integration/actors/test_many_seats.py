"""A run of more than 64 seats, played to its end: tickets sum the groups, a false sum is convicted, everybody is paid.

Three of the 65 seats are real solvers, the others one farm of seats that really train; all auditors are real.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.escrow import ESCROW_LOCK, RunPhase
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round
from assay.sponsor.charters import AuditRates, Committee, Pace
from assay.sponsor.launching import stake_of
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import TINY
from assay.training.updates import UpdateWire
from assay_ledger.deployment.code import code_of
from assay_ledger.rounds import nodes
from assay_ledger.rounds.view import RunView
from assay_verifier.cheats import AuditCheat
from tests.harness.actors.seat_farm import SeatFarm
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain

SEATS, GROUP = 65, 17
COMMITTEE = Committee(positions=6, top_positions=9)
PACE = Pace(units=5, least=1, steps=2, commit=600)
RATES = AuditRates(audit_ppm=10_000, reaudit_ppm=200_000, tickets=7)
ROUNDS = 3


def many_seats(stage: SharedChain, folder: Path, sums: UpdateWire) -> WholeRun:
    """A run in four groups, with everybody in it."""
    text = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(200))
    prepared = prepare_rounds(TINY, text, SEATS, group_size=GROUP, sums=sums)
    made = new_whole_run(
        stage, folder, seats=SEATS, rounds=ROUNDS, pace=PACE, rates=RATES, prepared=prepared, committee=COMMITTEE
    )
    for name in ("ada", "bob", "cleo"):
        made.solver(name)
    farmed = SEATS - 3
    made.add("farm", SeatFarm, stake_of(made.run.charter, seats=farmed), seats=farmed)
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=3)
    made.auditor("mallory", tickets=1, cheat=AuditCheat.FALSE_SUM)
    made.settle(lambda v: v.books.tenures.seated_at(Round(0)) == SEATS and len(v.books.registry.tickets) == 7)
    ripe = max(held.from_ for held in made.view.books.registry.tickets.values())
    made.settle(lambda view: view.now > ripe)
    made.fund()
    made.launch()
    return made


def is_ruled(view: RunView, node: Node, ticket: int) -> bool:
    """Whether half of a sum's positions or more are one ticket's, which lies, or is convicted and says nothing."""
    voices = view.votes(node).voices
    return 2 * sum(voices[other] for other in voices if other != ticket) <= COMMITTEE.positions


def false_sums(view: RunView) -> list[int]:
    """Games that convicted an opening of a group's sum."""
    return [
        n for n, game in view.games.items() if game.ref.kind is ClaimKind.OUTER and game.ref.duty and game.convicted
    ]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("sums", [UpdateWire.F32, UpdateWire.INT8], ids=lambda wire: wire.value)
def test_sixty_five_seats_are_merged_in_groups_and_a_false_sum_is_convicted(
    stage: SharedChain, tmp_path: Path, sums: UpdateWire
) -> None:
    made = many_seats(stage, tmp_path, sums)
    assert code_of(made.run).status() == "release"
    ((liar, _),) = made.view.tickets_of(made.address("mallory"))
    view = made.settle(lambda v: bool(false_sums(v)) and len(v.state.final_at) > 2 * 5)
    for round_ in (Round(0), Round(1)):
        # Every group was summed, with everybody's update in it, but where by draw half of its positions are the liar's.
        counted = nodes.counted_groups(view, round_)
        assert set(counted) >= {g for g in range(4) if not is_ruled(view, ids.node_of(round_ + 1, g), liar)}
        assert nodes.weights(view, round_) == [(17, 17, 17, 14)[g] if g in counted else 0 for g in range(4)]
        assert view.status(round_ + 1) is GenerationStatus.FINAL
        agent = made.players["ada"].agent
        base = agent.archive.base(view, view.round_of(round_).parent, COMPUTE, publish=False)
        for node in (*(ids.node_of(round_ + 1, group) for group in counted), round_ + 1):
            job = agent.archive.node_job(view, node, base, COMPUTE)
            found = agent.archive.node_roots(node, COMPUTE.recheck(job.program, job.lists, job.steps))
            assert ids.root_of(node, *found) == view.votes(node).root
    assert {view.games[n].defender for n in false_sums(view)} == {made.address("mallory")}
    (ticket,) = view.tickets_of(made.address("mallory"))
    assert ticket[1].convicted_at
    # The run goes on to its end: every ticket that opened what counted is paid, and no lock is left but the escrow's.
    view = made.end(stops=2000)
    assert view.state.money.phase is RunPhase.OVER
    opened = view.books.generations.openings
    due = {place for place, opening in opened.items() if opening.root == view.votes(place[0]).root}
    assert {ids.generation_of(node) for node, _ in due} == {1, 2, 3} and view.state.money.openings_paid == due
    assert set(made.locks()) == {ESCROW_LOCK}
