"""Prices of audits: what locks and stakes must be so that no lie about whole commitments pays.

Symbols, as docs/economics.md explains them: W full pay of a commitment, w wage of a duty, p audit rate and q re-audit
rate (expected replays, at most 1), v share of tickets that a cartel holds or that are not online, beta_d and beta_f
bounty shares of drawn accusers and of third parties, S lock of a tenure, B stake of a ticket, m duties that it has open
at once, U rounds of a seat's pay that are unsettled at once. p_h = p (1 - v), q_h = q (1 - v). r is what of a slash a
cartel loses: 1 - beta_f - (beta_d - beta_f) v.

Everything is a Fraction, exact; what a contract refuses is rounded up to a wei, against the party that locks. Gains are
bounded by pay and wage, not by cost, so that no bound moves with the price of the token or of computing.
`assay economics simulate` plays the same rules without these formulas. Source: docs/adr/0033-second-round.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from assay.protocol.economics.limits import MAX_AMOUNT, PPM, refusal
from assay.protocol.types import Wei

REPLAY_PRICE: Final = Fraction(13, 10)
"""w over W: what the replay of a whole commitment is paid."""

DRAWN_BOUNTY_PPM: Final = 970_000
"""beta_d, unless a sponsor says otherwise."""

THIRD_BOUNTY_PPM: Final = 100_000
"""beta_f, likewise. Whatever it is, puppets of the accused can take it: each part of it raises S and B."""

LOCK_MULTIPLE: Final = 2
"""S over the least lock at which laziness does not pay: an arbitrary update then costs about W beyond its own pay."""

MERGE_SHARE: Final = 100
"""W over what the opening of a final root is paid, as a rule."""

MISS_WAGES: Final = 3
"""Wages that a missed duty costs."""

INVERSE_E_PPM: Final = 367_880
"""1 / e in parts per million, rounded up."""

MAX_OPEN_DUTIES: Final = 64
MAX_UNSETTLED: Final = 64
"""U; beyond it no stake is affordable."""


@dataclass(frozen=True, slots=True)
class AuditTerms:
    """What a charter says about audits; rates and shares in parts per million."""

    price: Wei
    """W."""
    wage: Wei
    """w, of a duty on a whole commitment."""
    audit_ppm: int
    reaudit_ppm: int
    cartel_ppm: int
    drawn_bounty_ppm: int
    third_bounty_ppm: int
    open_duties: int
    """m."""
    unsettled: int
    """U."""
    merge_pay: Wei
    """Of a round's merge, which a conviction takes beside W."""

    @property
    def unpaid(self) -> int:
        """What of a seat's pay is not settled at once, in wei."""
        return self.unsettled * (self.price + self.merge_pay)

    @property
    def honest_audit(self) -> Fraction:
        """p_h, expected replays of a commitment by honest tickets that are online."""
        return Fraction(self.audit_ppm * (PPM - self.cartel_ppm), PPM * PPM)

    @property
    def honest_reaudit(self) -> Fraction:
        """q_h, the same of an attestation."""
        return Fraction(self.reaudit_ppm * (PPM - self.cartel_ppm), PPM * PPM)

    @property
    def forgone(self) -> Fraction:
        """1 - beta_d, what of a slash even a coalition with every drawn accuser loses."""
        return 1 - Fraction(self.drawn_bounty_ppm, PPM)

    @property
    def lost(self) -> Fraction:
        """r = 1 - beta_f - (beta_d - beta_f) v, what of a slash a cartel loses.

        Attack: puppets of the accused. Where nobody drawn accuses they are the third party. Where somebody does, their
        games take half of beta_f back as advances, and the first winner's gas is paid from the other half; of what is
        left in the pot, the cartel's own drawn tickets have their share.
        """
        drawn, third = self.drawn_bounty_ppm, self.third_bounty_ppm
        return 1 - Fraction(third * (PPM - self.cartel_ppm) + drawn * self.cartel_ppm, PPM * PPM)


# --- detection


def most_missed(rate: Fraction) -> Fraction:
    """1 / (1 + x) >= e^-x: an upper bound on the chance that nobody is drawn at rate x.

    Tickets draw alone, each with its share of x, so the chance lies between 1 - x (one ticket) and e^-x (many), and two
    rates do not add up to a chance: the sum of p_h and q_h promises more than is found.
    """
    return 1 / (1 + rate)


def epochs_until_caught(t: AuditTerms, duties: Fraction) -> Fraction:
    """Epochs, at most, in which an auditor that invents its results stays, with so many duties an epoch."""
    return 1 / (duties * (1 - most_missed(t.honest_reaudit)))


# --- the lock of a tenure


def lazy_lock(t: AuditTerms) -> Fraction:
    """W / (p_h r): at this S invented work earns nothing, for any number of open rounds. In wei.

    A conviction takes all unsettled pay, so more open rounds only lower what is kept.
    """
    return t.price / (t.honest_audit * t.lost)


def min_tenure_lock(t: AuditTerms) -> Wei:
    """The least S in wei, twice the lazy lock, rounded up."""
    return Wei(math.ceil(LOCK_MULTIPLE * lazy_lock(t)))


# --- the stake of a ticket


def prize(t: AuditTerms, lock: Wei | Fraction) -> Fraction:
    """G = (1 - beta_d) S + U (W + merge pay) + w, what a lie about a false commitment saves its coalition. In wei.

    Whoever accuses instead gets beta_d S from the same coalition's pocket. The liar saves its replay as well, worth at
    most its wage: it stays with the liar together with the wage that it did not earn.
    """
    return lock * t.forgone + t.unpaid + t.wage


def stake_if_blind(t: AuditTerms) -> Fraction:
    """w / (q_h r): an invented result about true work earns a wage and is looked at with q_h. In wei."""
    return t.wage / (t.honest_reaudit * t.lost)


def stake_if_insured(t: AuditTerms) -> Fraction:
    """W (2 + p_h) / (2 e p_h q_h r): at this B no false accusation insures its own side's lock. In wei.

    Attack: a puppet accuses its accomplice falsely and keeps the game open as long as a game can last. Whatever the
    accomplice is convicted of meanwhile, the pot is the puppet's, whose epoch is the lowest. So it invents its work, K
    rounds of it, and is paid when its puppet has lost: at best max_K K W mu^K <= W (2 + p_h) / (2 e p_h), since
    ln (1 + p_h) >= 2 p_h / (2 + p_h). The puppet's own attestation is false, and re-audited before that: mu of it
    leaves the insurance, 1 - mu = q_h mu costs r B. More such accusations of one ticket fall with it, all at once.
    """
    p, q = t.honest_audit, t.honest_reaudit
    return t.price * (2 + p) * Fraction(INVERSE_E_PPM, PPM) / (2 * p * q * t.lost)


def stake_if_bribed(t: AuditTerms, lock: Wei | Fraction) -> Fraction:
    """m G mu / ((1 - mu_q^m) r), mu the chance that neither an audit nor a re-audit finds a lie. In wei.

    Attack: a ticket attests m false commitments of its accomplices at once and saves the prize of each that is missed.
    The first one that a re-audit finds costs B: who audits the same work accuses its maker, and mu_q is a re-audit's.
    """
    unseen = most_missed(t.honest_reaudit)
    m, missed = t.open_duties, most_missed(t.honest_audit) * unseen
    return m * prize(t, lock) * missed / ((1 - unseen**m) * t.lost)


def stake_if_reauditor_bribed(t: AuditTerms, lock: Wei | Fraction) -> Fraction | None:
    """m mu (G + (m - 1) w) / ((1 - mu^2m) r - m mu (1 - beta_d)), mu of the re-audit alone. In wei; None: no B does.

    Attack: a re-auditor that finds the lie lies too. It saves the prize, the wages of what the first liar's m open
    duties found, and its stake, of which the share 1 - beta_d would be lost: the prize grows with B. It is looked at
    twice: by others drawn for the same attestation, and by the next epoch's re-auditors. Deeper levels save no lock:
    the windows of the work are shut by then.
    """
    missed, m = most_missed(t.honest_reaudit), t.open_duties
    risk = (1 - missed ** (2 * m)) * t.lost - m * missed * t.forgone
    return m * missed * (prize(t, lock) + (m - 1) * t.wage) / risk if risk > 0 else None


def min_ticket_stake(t: AuditTerms, lock: Wei) -> Wei:
    """The least B in wei, rounded up. Raises RejectedError (NoStakeSuffices)."""
    reaudited = stake_if_reauditor_bribed(t, lock)
    if reaudited is None:
        raise refusal(
            "NoStakeSuffices",
            f"With {t.open_duties} open duties a ticket, re-auditors are cheaper to bribe than to lose at any stake.",
            maximum=t.open_duties - 1,
        )
    return Wei(math.ceil(max(stake_if_blind(t), stake_if_insured(t), stake_if_bribed(t, lock), reaudited)))


# --- what things cost


def audit_overhead(audit: Fraction, reaudit: Fraction) -> Fraction:
    """Cost of a run over its training: 1 + 1.3 p / (1 - q), since attestations of re-audits are re-audited too."""
    return 1 + REPLAY_PRICE * duties_per_commitment(audit, reaudit)


def duties_per_commitment(audit: Fraction, reaudit: Fraction) -> Fraction:
    """Replays that one commitment leads to: p / (1 - q)."""
    return audit / (1 - reaudit)


def update_price_gross(t: AuditTerms, lock: Wei | Fraction) -> Fraction:
    """p_h (S + W): what is slashed and cancelled, in expectation, for one undetected arbitrary update. In wei."""
    return min(t.honest_audit, Fraction(1)) * (lock + t.price)


def update_price_net(t: AuditTerms, lock: Wei | Fraction, returned: Fraction) -> Fraction:
    """The same less the pay that is kept and the part `returned` of the lock that friends of the liar get. In wei.

    `returned` is 0 where all accusers are strangers, 1 - r for a cartel. Below zero the update is paid for.
    """
    missed = most_missed(t.honest_audit)
    return (1 - missed) * lock * (1 - returned) - missed * t.price


def hardware_error_price(t: AuditTerms, lock: Wei) -> Wei:
    """What an honest seat loses by one wrong bit that is replayed: S and U rounds of pay."""
    return Wei(lock + t.unpaid)


def silence_price(t: AuditTerms, duties: Fraction) -> Fraction:
    """3 w (1 + duties), what an honest ticket loses that does not open in an epoch with so many to expect. In wei."""
    return MISS_WAGES * t.wage * (1 + duties)


def blind_share_of_last_epoch(t: AuditTerms, stake: Wei | Fraction) -> Fraction:
    """The share of invented results where no epoch follows: a third party's replay costs up to w and earns beta_f B.

    With more lies than w / (beta_f B) third parties would look at every attestation, with fewer at none.
    """
    return min(Fraction(1), t.wage / (Fraction(t.third_bounty_ppm, PPM) * stake))


# --- what a contract refuses


def check_audit_terms(t: AuditTerms, lock: Wei, stake: Wei) -> None:
    """Refuse terms under which a lie pays.

    Raises RejectedError: ReferencePriceZero, ValueZero, RateTooHigh, ScheduleTooLong, AmountTooLarge,
    ClaimLockTooSmall, NoStakeSuffices, BondTooSmall.
    """
    if t.price == 0:
        raise refusal("ReferencePriceZero", "Without a reference price every lock, fee and wage is zero.")
    rates = {
        "audit": (t.audit_ppm, PPM),
        "re-audit": (t.reaudit_ppm, PPM - 1),
        "cartel": (t.cartel_ppm, PPM - 1),
        "drawn bounty": (t.drawn_bounty_ppm, PPM),
        "third-party bounty": (t.third_bounty_ppm, PPM // 2),
    }
    for what, (ppm, maximum) in rates.items():
        if ppm > maximum:
            raise refusal(
                "RateTooHigh", f"The {what} rate of {ppm} ppm is above {maximum}.", what=what, maximum=maximum
            )
    counts = {"open duties": (t.open_duties, MAX_OPEN_DUTIES), "unsettled rounds": (t.unsettled, MAX_UNSETTLED)}
    for what, (count, maximum) in counts.items():
        if count > maximum:
            raise refusal("ScheduleTooLong", f"{what} = {count} is above {maximum}.", what=what, maximum=maximum)
    nonzero = {"wage": t.wage, "audit rate": t.honest_audit, "re-audit rate": t.honest_reaudit}
    for what, value in (nonzero | {what: count for what, (count, _) in counts.items()}).items():
        if value == 0:
            raise refusal("ValueZero", f"The {what} must not be zero.", what=what)
    for what, amount in {"price": t.price, "wage": t.wage, "claim lock": lock, "ticket stake": stake}.items():
        if amount > MAX_AMOUNT:
            raise refusal("AmountTooLarge", f"The {what} is too large: sums of it could overflow.", what=what)
    if lock < (minimum := min_tenure_lock(t)):
        raise refusal("ClaimLockTooSmall", f"S must be at least {minimum} wei.", minimum=minimum)
    if stake < (minimum := min_ticket_stake(t, lock)):
        raise refusal("BondTooSmall", f"B must be at least {minimum} wei.", minimum=minimum)
