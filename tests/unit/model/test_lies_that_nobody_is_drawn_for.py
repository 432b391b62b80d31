"""A bribed attestation is looked at by who is drawn for it; who finds the lie beneath it accuses the seat alone."""

from __future__ import annotations

from assay.protocol.economics.audit_prices import most_missed, prize
from assay.protocol.economics.run_bounds import audit_terms
from tests.harness.rounds.charters import HOUR, RUN, changed
from tests.harness.rounds.run_limits import staked

ONE_DUTY = staked(changed(changed(RUN, "economics", capacity=1), "timing", epoch=2 * HOUR + 1200))
"""A ticket answers one duty a call, three of which are open at once."""


def test_a_bribed_auditor_loses_its_stake_only_to_who_is_drawn_for_its_attestation() -> None:
    """Attack: attest what one's accomplice invented. No role of ours challenges it undrawn."""
    t, e = audit_terms(ONE_DUTY), ONE_DUTY.economics
    m, seen = t.open_duties, most_missed(t.honest_reaudit)
    missed = most_missed(t.honest_audit) * seen
    assert e.ticket_bond * (1 - seen**m) * t.lost >= m * prize(t, e.seat_lock) * missed, "a bribed auditor gains"
