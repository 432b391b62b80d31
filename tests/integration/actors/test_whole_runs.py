"""A run from its post to its last withdrawal: release contracts, real solvers and auditors."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.rounds.escrow import ESCROW_LOCK, RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import escrow_of
from assay_ledger.chain.client import address_of
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain

SOLVERS = ("ada", "bob", "cleo", "dan")
ROUNDS = 3


def test_a_run_ends_with_everybody_paid_and_every_token_withdrawn(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path, rounds=ROUNDS, rates=AuditRates(audit_ppm=500_000))
    made.begin_with(*SOLVERS)
    view = made.end()
    charter, sponsor = made.run.charter, address_of(stage.sponsor)
    # Every round was trained, merged and opened by everybody, and every generation is final.
    assert view.round == ROUNDS - 1 and view.state.money.phase is RunPhase.OVER
    for round_ in map(Round, range(ROUNDS)):
        assert view.status(round_ + 1) is GenerationStatus.FINAL
        assert [work.work.units for work in view.works(round_)] == [charter.training.max_units] * len(SOLVERS)
        assert len(view.openings(round_ + 1)) == len(SOLVERS)
    assert all(player.agent.is_finished(player.agent.see()) for player in made.players.values())
    # Whoever worked is paid, no lock is left but the escrow's, and what nobody earned goes back.
    wages = {name: made.wages(name) for name in ("vera", "viktor")}
    earned = dict.fromkeys(SOLVERS, ROUNDS * (charter.price + charter.economics.merge_pay))
    earned |= {name: len(mine) * charter.economics.wage for name, mine in wages.items()}
    assert sum(map(len, wages.values())) > 0
    assert set.union(*wages.values()) == set(view.state.attestations)
    assert {name: made.free(made.address(name)) for name in earned} == {
        name: made.players[name].brought + amount for name, amount in earned.items()
    }
    # Which work is audited is drawn: where it was all of it, all was earned.
    left = escrow_of(charter) - sum(earned.values())
    assert set(made.locks()) == ({ESCROW_LOCK} if left else set())
    if left:
        made.chain.send(stage.sponsor, made.run.escrow.refund(sponsor))
    assert made.free(sponsor) == left and made.locks() == {}
    # Shares are whoever's work and findings they are for.
    e = charter.economics
    shares = dict.fromkeys(SOLVERS, ROUNDS * charter.training.max_units * e.shares_per_unit)
    shares |= {name: len(mine) * e.shares_per_duty for name, mine in wages.items()}
    assert {name: made.shares(name) for name in shares} == shares
    # Everything can be taken out of the vault, to the wei.
    assert made.withdraw_all() == {
        **{name: made.players[name].brought + amount for name, amount in earned.items()},
        "sponsor": left,
    }
    assert made.chain.ask(made.run.token.balance_of(made.run.vault.address)) == 0
