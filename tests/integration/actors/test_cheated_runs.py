"""Whole runs in which somebody cheats: the cheat pays, nobody else does, and the run ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.run_terms import game_config
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round
from assay.sponsor.charters import AuditRates
from assay_ledger.bindings.payments import FindingPaid
from assay_ledger.rounds.view import RunView
from assay_solver.cheats import solver_cheat_named
from assay_verifier.cheats import AuditCheat
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain


def play(made: WholeRun) -> RunView:
    """The run from its first seat to the time at which nobody has anything left to do, its bounties taken."""
    made.enrol()
    made.fund()
    made.launch()
    view = made.end()
    assert view.state.money.phase is RunPhase.OVER
    assert all(player.agent.is_finished(player.agent.see()) for player in made.players.values())
    assert all(view.status(round_ + 1) is GenerationStatus.FINAL for round_ in range(made.run.charter.rounds))
    # Nothing but the escrow's own lock is left: pay, bounties and stakes are where they belong.
    escrow = made.chain.ask(made.run.escrow.balance())
    assert [amount for _, amount in made.locks().values()] == [escrow] * bool(escrow)
    free, locked, leaving, burned = made.chain.ask(made.run.vault.totals())
    assert (locked, leaving) == (escrow, 0)
    brought = sum(player.brought for player in made.players.values())
    assert free + escrow + burned == brought + sum(view.state.money.funded.values())
    return view


def gained(made: WholeRun, name: str) -> int:
    """What an actor has more than it brought, in wei."""
    return made.free(made.address(name)) - made.players[name].brought


def pay_of(made: WholeRun, rounds: int) -> int:
    """What so many rounds of work and openings pay, in wei."""
    return rounds * (made.run.charter.price + made.run.charter.economics.merge_pay)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_lying_solver_loses_its_lock_to_one_element_and_the_run_goes_on(stage: SharedChain, tmp_path: Path) -> None:
    # One ticket a shift, so that whoever is called is drawn for all; such terms ask for the whole lock as a bounty.
    rates = AuditRates(audit_ppm=1_000_000, capacity=10, shifts=5, drawn_bounty_ppm=1_000_000)
    made = new_whole_run(stage, tmp_path, rounds=4, rates=rates)
    for name in ("ada", "bob", "cleo"):
        made.solver(name)
    made.solver("mallory", solver_cheat_named("false-step", 1))
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    view = play(made)
    (game,) = view.games.values()
    assert (game.ref.kind, game.ref.round, game.outcome) == (ClaimKind.INTERVAL, 1, Outcome.LEAF)
    assert game.defender == made.address("mallory") and game.challenger in map(made.address, ("vera", "viktor"))
    # Its seat is empty from the round after the conviction on, and the others train all rounds.
    convicted = [t.holder for t in view.books.tenures.tenures.values() if t.convicted_at]
    assert convicted == [made.address("mallory")]
    seated = [view.round_of(Round(k)).committed for k in range(4)]
    assert seated[:2] == [4, 4] and seated[-1] == 3
    assert [gained(made, name) for name in ("ada", "bob", "cleo")] == [pay_of(made, 4)] * 3
    # The lock went to the accuser, less what the game paid back of it.
    e = made.run.charter.economics
    wages = {name: len(made.wages(name)) * e.wage for name in ("vera", "viktor")}
    accuser = next(name for name in wages if made.address(name) == game.challenger)
    (other,) = set(wages) - {accuser}
    assert gained(made, other) == wages[other]
    assert e.seat_lock * 99 // 100 < gained(made, accuser) - wages[accuser] <= e.seat_lock
    assert gained(made, "mallory") < pay_of(made, 1) - e.seat_lock and made.shares("mallory") == 0


@pytest.mark.long
@pytest.mark.timeout(600)
def test_blind_auditors_lose_their_tickets_to_who_audits_them(stage: SharedChain, tmp_path: Path) -> None:
    rates = AuditRates(audit_ppm=1_000_000, reaudit_ppm=850_000, capacity=13, drawn_bounty_ppm=1_000_000)
    made = new_whole_run(stage, tmp_path, rounds=8, rates=rates)
    solvers, honest = ("ada", "bob", "cleo", "dan"), ("vera", "viktor")
    for name in solvers:
        made.solver(name)
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.auditor("mallory", tickets=5, cheat=AuditCheat.BLIND)
    view = play(made)
    # A liar's ticket may be drawn to audit another of its own: it then sits on both sides, and one of them is silent.
    mallory, seen = made.address("mallory"), list(view.games.values())
    own = [game for game in seen if game.challenger == game.defender]
    assert {(game.outcome, game.challenger, game.taken) for game in own} <= {(Outcome.DEFAULT, mallory, 0)}
    # Each of 32 commitments leads to 0.21 convictions in the mean: one run in 900 has none.
    games = [game for game in seen if game not in own]
    ended = {(game.ref.kind, game.outcome, game.verdict and game.verdict.loser) for game in games}
    assert ended == {(ClaimKind.ATTESTATION, Outcome.LEAF, mallory)}
    convicted = [t.owner for t in view.books.registry.tickets.values() if t.convicted_at]
    # Two honest auditors may try one ticket at once: it is convicted, and its stake taken, once.
    assert len(games) >= len(convicted) and set(convicted) == {mallory}
    assert [gained(made, name) for name in solvers] == [pay_of(made, 8)] * 4
    # Each took its whole stake. Of that the winner gets its gas, and back what it paid for the liar's replies, first.
    charter = made.run.charter
    e, refund = charter.economics, made.chain.ask(made.run.game.move_refund())
    lost = len(convicted) * e.ticket_bond
    assert (sum(game.taken for game in games), sum(game.burned for game in games)) == (lost, 0)
    # What a ticket found that is convicted by then is settled and paid to nobody.
    logs = made.chain.events(FindingPaid.search(made.run.payments.address), made.run.first_block)
    paid = {log.event.attestation: log.event.pay for log in logs}
    wages = {name: sum(paid.get(found, 0) for found in made.findings_of(name)) for name in (*honest, "mallory")}
    # Half of what is left of the bond of a challenger that loses is burned, and here that is its own game; and all that
    # it had advanced for replies, if another game took the stake meanwhile.
    burned = made.chain.ask(made.run.vault.totals())[3]
    own_replies = sum(len(game.moves) for game in own)
    assert (burned > 0) == (own != []) and not made.fines("mallory")
    assert abs(2 * burned - len(own) * e.challenge_bond) <= own_replies * refund
    replied = gained(made, "mallory") - wages["mallory"] + lost + burned
    replies = own_replies + sum(move.mover == game.defender for game in games for move in game.moves)
    assert replied % refund == 0 and 0 < replied <= replies * refund
    won = sum(gained(made, name) - wages[name] for name in honest)
    assert won == lost - replied
    pots = [pot.amount for pot in view.state.money.pots.values()]
    kept = game_config(charter).kept
    assert len(pots) == len(convicted) and len(convicted) * kept <= won - sum(pots) <= len(games) * kept
    assert all(wages[name] == len(made.findings_of(name)) * e.wage for name in honest)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_auditor_that_leaves_duties_out_is_fined_for_them(stage: SharedChain, tmp_path: Path) -> None:
    rates = AuditRates(audit_ppm=1_000_000, capacity=10, drawn_bounty_ppm=1_000_000)
    made = new_whole_run(stage, tmp_path, rounds=5, rates=rates)
    solvers, honest = ("ada", "bob", "cleo", "dan"), ("vera", "viktor")
    for name in solvers:
        made.solver(name)
    for name in honest:
        made.auditor(name, tickets=2, reports=True)
    made.auditor("mallory", tickets=2, cheat=AuditCheat.DROPPING)
    view = play(made)
    assert not view.games and not view.state.accusations
    # Each of its tickets is drawn for a fifth of 20 commitments: in one run of 7,000 neither is for any.
    e = made.run.charter.economics
    fines = made.fines("mallory")
    assert fines and set(fines) == {3 * e.wage} and not made.fines("vera") and not made.fines("viktor")
    assert gained(made, "mallory") == len(made.wages("mallory")) * e.wage - sum(fines)
    assert [gained(made, name) for name in solvers] == [pay_of(made, 5)] * 4
    wages = sum(len(made.wages(name)) * e.wage for name in honest)
    assert sum(gained(made, name) for name in honest) == wages + sum(fines) // 2


CAUGHT = {
    "false-step": ClaimKind.INTERVAL,
    "false-update": ClaimKind.UPDATE,
    "copied-update": ClaimKind.UPDATE,
    "false-root": ClaimKind.OUTER,
}
"""What each lie of a solver is convicted of."""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_all_lies_of_solvers_at_once_are_each_convicted_and_nobody_else_is(stage: SharedChain, tmp_path: Path) -> None:
    # One ticket a shift, so that whoever is called is drawn for all: it answers for five seats, and no more.
    rates = AuditRates(audit_ppm=1_000_000, capacity=14, shifts=5, drawn_bounty_ppm=1_000_000)
    auditors = "vera", "viktor"
    made = new_whole_run(stage, tmp_path, seats=1 + len(CAUGHT), rounds=3, rates=rates)
    made.solver("ada")
    for name in CAUGHT:
        made.solver(name, solver_cheat_named(name, 1))
    for name, tickets in zip(auditors, (3, 2), strict=True):
        made.auditor(name, tickets=tickets)
    view = play(made)
    names = {made.address(name): name for name in made.players}
    lost = {names[game.defender]: game.ref.kind for game in view.games.values() if game.convicted}
    assert lost == CAUGHT
    for game in view.games.values():
        assert game.outcome is Outcome.LEAF and game.verdict is not None
        # Where the true root was opened first, who lies about it accuses that one too.
        assert game.convicted or (names[game.challenger], game.ref.kind) == ("false-root", ClaimKind.OUTER)
        assert names[game.verdict.loser] in CAUGHT
    convicted = {names[held.holder] for held in view.books.tenures.tenures.values() if held.convicted_at}
    assert convicted == CAUGHT.keys()
    e = made.run.charter.economics
    for name in CAUGHT:
        assert gained(made, name) < pay_of(made, 3) - e.seat_lock and made.shares(name) == 0
    # Whoever challenged the false root has its bounty besides.
    assert gained(made, "ada") >= pay_of(made, 3)
    assert all(gained(made, name) >= len(made.wages(name)) * e.wage for name in auditors)
