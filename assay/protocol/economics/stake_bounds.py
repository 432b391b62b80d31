"""The least stakes that a contract admits: the bounds of audit_prices.py in fixed point, to the wei as RunPrices.sol.

Chances have 18 digits, rounded up where they are of a lie that is missed; every bound rounds up. So a bound here is
never below the exact one, and above it by less than a part in 10^9 unless hardly any stake suffices.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from assay.protocol.economics.audit_prices import INVERSE_E_PPM, LOCK_MULTIPLE, AuditTerms
from assay.protocol.economics.limits import PPM, refusal
from assay.protocol.types import Wei

SQUARE: Final = PPM * PPM
ONE: Final = 10**18

OPEN_EPOCHS: Final = 3
"""Epochs whose attestations can be disputed at once: a ticket has c duties open in each."""


def min_lock(t: AuditTerms) -> Wei:
    """S >= 2 W / (p_h r)."""
    return Wei(_up(LOCK_MULTIPLE * t.price * SQUARE * SQUARE, _honest(t, t.audit_ppm) * _lost(t)))


def min_stake(t: AuditTerms, lock: Wei) -> Wei:
    """B against invented results, insured locks, bribed auditors and re-auditors.

    Raises RejectedError (NoStakeSuffices).
    """
    p, q = _honest(t, t.audit_ppm), _honest(t, t.reaudit_ppm)
    lost, m = _lost(t), t.open_duties
    blind = _up(t.wage * SQUARE * SQUARE, q * lost)
    insured = _up(t.price * INVERSE_E_PPM * (2 * SQUARE + p) * SQUARE * SQUARE, 2 * PPM * p * q * lost)
    unpaid = t.unsettled * (t.price + t.merge_pay) * PPM
    bribed = (_up(m * (silence.saved + unpaid) * silence.missed * PPM, silence.risk) for silence in _silences(t, lock))
    return Wei(max(blind, insured, *bribed))


def most_unsettled(t: AuditTerms, lock: Wei, stake: Wei) -> int:
    """The largest U at which B = `stake` outweighs a bribe for silence, whatever `t` says of it.

    `min_stake` is at most B there, and more one round later unless U is not what asks for most.
    Raises RejectedError (NoStakeSuffices).
    """
    prizes = ((stake * silence.risk // (silence.missed * PPM), silence.saved) for silence in _silences(t, lock))
    unpaid = min(max(prize // t.open_duties - saved, 0) for prize, saved in prizes)
    return unpaid // ((t.price + t.merge_pay) * PPM)


class _Silence(NamedTuple):
    """Somebody who is bribed to say nothing."""

    missed: int
    """The chance that it goes unseen, of 10^18."""
    risk: int
    """What of its B it risks, of 10^30."""
    saved: int
    """What it saves beside unsettled pay, in wei times PPM."""


def _silences(t: AuditTerms, lock: Wei) -> tuple[_Silence, _Silence]:
    """A bribed auditor, who saves what an accused liar loses, and a bribed re-auditor, with a first liar's wages too.

    Who audits the same work accuses its maker alone: an attestation falls by who is drawn for it.

    Raises RejectedError (NoStakeSuffices).
    """
    p, q = _honest(t, t.audit_ppm), _honest(t, t.reaudit_ppm)
    lost, m = _lost(t), t.open_duties
    saved = lock * (PPM - t.drawn_bounty_ppm) + t.wage * PPM
    bribed = _up(ONE * SQUARE * SQUARE, (SQUARE + p) * (SQUARE + q))
    missed = _up(ONE * SQUARE, SQUARE + q)
    risk = (ONE - power(missed, 2 * m)) * lost
    forgone = m * missed * (PPM - t.drawn_bounty_ppm) * PPM
    if risk <= forgone:
        raise refusal(
            "NoStakeSuffices",
            f"With {m} open duties a ticket, re-auditors are cheaper to bribe than to lose at any stake.",
        )
    first = _Silence(bribed, (ONE - power(missed, m)) * lost, saved)
    return first, _Silence(missed, risk - forgone, saved + (m - 1) * t.wage * PPM)


def power(x: int, n: int) -> int:
    """x^n in fixed point, each product rounded up."""
    result = ONE
    for _ in range(n):
        result = _up(result * x, ONE)
    return result


def _honest(t: AuditTerms, ppm: int) -> int:
    """p_h or q_h, times 10^12."""
    return ppm * (PPM - t.cartel_ppm)


def _lost(t: AuditTerms) -> int:
    """r, times 10^12."""
    return SQUARE - t.third_bounty_ppm * (PPM - t.cartel_ppm) - t.drawn_bounty_ppm * t.cartel_ppm


def _up(value: int, divisor: int) -> int:
    return -(-value // divisor)
