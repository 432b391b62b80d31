"""False attestations, tried in real games of a whole run: who is convicted, and for which part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.economics.limits import PPM
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.run.claims import ClaimKind
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import deposit, mint_tokens, stake_of
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.view import RunView
from assay_verifier.cheats import AuditCheat
from tests.harness.actors.whole_run import PACE, WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain

pytestmark = pytest.mark.timeout(600)

RATES = AuditRates(audit_ppm=PPM, reaudit_ppm=700_000, capacity=6, tickets=6)
"""Every commitment and nearly every attestation is audited, so that a lie is found soon."""

SLOW = replace(PACE, commit=3600)
"""Rounds of an hour: few epochs pass while a game is played."""

CROWDED = AuditRates(audit_ppm=PPM, reaudit_ppm=800_000, capacity=8, tickets=6, drawn_bounty_ppm=PPM)
"""The same for more tickets, which leave room for more re-audits."""

MANY = 60
"""Rounds: more than there will be, so that chance decides when a cheat is caught and not whether."""


def audited(stage: SharedChain, folder: Path, cheats: dict[AuditCheat, int], rates: AuditRates = RATES) -> WholeRun:
    """Two solvers and an auditor of three tickets, honest, and one for each cheat, of so many tickets."""
    made = new_whole_run(stage, folder, seats=2, rounds=MANY, pace=SLOW, rates=rates)
    made.solver("ada")
    made.solver("bob")
    made.auditor("vera", tickets=3, reports=True)
    for cheat, tickets in cheats.items():
        made.auditor(cheat, tickets=tickets, cheat=cheat)
    made.enrol()
    made.fund()
    made.launch()
    return made


def lost_by(made: WholeRun, view: RunView, name: str, side: Side, kind: ClaimKind) -> list[GameRecord]:
    """Games about claims of a kind that an actor lost on a side.

    A false accuser also challenges the true attestations that it should agree with, and loses those by default."""
    who, judged = made.address(name), [g for g in view.games.values() if g.ref.kind is kind and g.verdict is not None]
    return [g for g in judged if g.verdict is not None and g.verdict.loser == who and g.verdict.side is side]


def is_spotless(made: WholeRun, view: RunView) -> bool:
    """Whether no honest actor was convicted or lost a game."""
    honest = {made.address(name) for name in ("ada", "bob", "vera")}
    tickets, tenures = view.books.registry.tickets.values(), view.books.tenures.tenures.values()
    convicted = {t.owner for t in tickets if t.convicted_at} | {t.holder for t in tenures if t.convicted_at}
    losers = {g.verdict.loser for g in view.games.values() if g.verdict is not None}
    return honest.isdisjoint(convicted | losers)


@pytest.mark.long
def test_a_blind_attestation_is_convicted_at_an_element_of_its_own_key(stage: SharedChain, tmp_path: Path) -> None:
    made = audited(stage, tmp_path, {AuditCheat.BLIND: 3})
    view = made.settle(lambda view: bool(lost_by(made, view, "blind", Side.DEFENDER, ClaimKind.ATTESTATION)))
    game, *_ = lost_by(made, view, "blind", Side.DEFENDER, ClaimKind.ATTESTATION)
    assert game.verdict is not None and game.verdict.outcome is Outcome.LEAF
    assert game.challenger == made.address("vera")
    # Part 0 is the key of the attestation itself.
    assert game.ref.duty == 0 and is_spotless(made, view)


@pytest.mark.long
def test_who_agrees_with_a_blind_one_is_convicted_at_the_key_it_answered_for(
    stage: SharedChain, tmp_path: Path
) -> None:
    # Each ticket of the blind one is soon convicted, and none is left to agree with: with three of each, and as many
    # re-audits as above, that came first in one run of eight. Counted by simulated draws, here it does in 2 of 1,000.
    made = audited(stage, tmp_path, {AuditCheat.SILENT: 6, AuditCheat.BLIND: 8}, CROWDED)
    view = made.settle(lambda view: bool(lost_by(made, view, "silent", Side.DEFENDER, ClaimKind.ATTESTATION)))
    game, *_ = lost_by(made, view, "silent", Side.DEFENDER, ClaimKind.ATTESTATION)
    assert game.verdict is not None and game.verdict.outcome is Outcome.LEAF
    # Its own accumulator is true; the one that it took over is not.
    finding = view.state.attestations[view.state.accusations[game.ref.outer_root].against].finding
    assert 0 < game.ref.duty < len(finding.keys) and is_spotless(made, view)


@pytest.mark.long
def test_who_lost_a_stake_by_what_it_signed_registers_no_other_ticket(stage: SharedChain, tmp_path: Path) -> None:
    """Bad luck: a machine that errs loses one stake after another, as long as any is free."""
    made = audited(stage, tmp_path, {AuditCheat.FALSE_ACCUSER: 3})
    who, more = made.players["false-accuser"].agent, stake_of(made.run.charter, tickets=2)
    mint_tokens(made.chain, who.account, made.run.token, who.me, more)
    deposit(made.chain, who.account, made.run, more)
    first = len(made.settle(lambda view: any(held.convicted_at for _, held in view.tickets_of(who.me))).epochs)
    view = made.settle(lambda view: len(view.epochs) > first + 1)
    assert made.chain.ask(made.run.vault.free(who.me)) >= made.run.charter.economics.ticket_bond
    assert len([held for held in view.books.registry.tickets.values() if held.owner == who.me]) == 3


@pytest.mark.long
def test_a_false_accusation_loses_its_game_and_its_update_part_its_ticket(stage: SharedChain, tmp_path: Path) -> None:
    made = audited(stage, tmp_path, {AuditCheat.FALSE_ACCUSER: 3})
    view = made.settle(lambda view: bool(lost_by(made, view, "false-accuser", Side.DEFENDER, ClaimKind.ATTESTATION)))
    game, *_ = lost_by(made, view, "false-accuser", Side.DEFENDER, ClaimKind.ATTESTATION)
    assert game.verdict is not None and game.verdict.outcome is Outcome.LEAF
    finding = view.state.attestations[view.state.accusations[game.ref.outer_root].against].finding
    assert game.ref.duty == len(finding.keys) and game.challenger == made.address("vera")
    # What it says of the seats' updates it tries, and loses to the seats.
    assert lost_by(made, view, "false-accuser", Side.CHALLENGER, ClaimKind.UPDATE) and is_spotless(made, view)
    attestations = view.books.duties.attestations
    judged = [a for a in attestations.accusations.values() if a.is_work and a.status > AccusationStatus.TRIED]
    assert {a.status for a in judged} <= {AccusationStatus.REJECTED, AccusationStatus.LAPSED}
