"""What a charter means for who takes part: stake over all rounds, wall time, pay, gas, and when tokens come back.

Amounts in wei, times in seconds of chain time, gas in units.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from assay.durations import duration
from assay.planning.burdens import MERGE, gas_of
from assay.protocol.economics.limits import PPM
from assay.protocol.economics.round_time import EPOCHS_TO_SETTLE
from assay.protocol.rounds.escrow import cost_of
from assay.protocol.rounds.run_terms import round_terms
from assay.protocol.run.run_charter import RunCharter
from assay.sponsor.launching import escrow_of, stake_of


@dataclass(frozen=True, slots=True)
class RoleOutlook:
    """One seat, or so many tickets, over the whole run."""

    locks: int
    """Once, for all its rounds: a tenure and a ticket have one lock each, however many rounds they last."""
    locks_again: int
    """As much again, where what is lost or left is taken anew: the former lock stays until its rounds are settled."""
    challenge: int
    """While a challenge lasts: bond and deposit."""
    pay: int
    """Of a whole commitment, or of a finding."""
    merge_pay: int
    """Of one's own opening of a root that becomes final: seats' up to 64 of them, else tickets'."""
    shares: int
    gas: int
    """Of a round's calls, or of an epoch's with one finding and no merge."""
    leaving_seconds: int
    """From asking to leave until what was locked is paid out, where nothing is disputed: what was done is settled, or a
    ticket has served to its end and nothing that it answered is drawn any more, and then the exit."""
    away_seconds: int = 0
    """How long an auditor may be away before a ticket can lose all of its stake (DU-6): a call that it did not open is
    followed by one whole epoch, and its secret is still hidden. 0 for a seat."""

    @property
    def advised(self) -> int:
        """With this nothing that is not the actor's own fault keeps it out of a round."""
        return self.locks + self.locks_again + self.challenge


@dataclass(frozen=True, slots=True)
class RunOutlook:
    """The whole run."""

    round_seconds: int
    """From a round's beginning to its last commitment, at the most."""
    round_at_most_seconds: int
    """Until its generation has its majority; it is over as soon as all have committed and merged."""
    rounds_at_most_seconds: int
    before_seconds: int
    """From the registration of tickets until they count."""
    epoch_seconds: int
    vesting_seconds: int
    exit_seconds: int
    cost_of_round: int
    """What a round with all seats sets aside of the escrow."""
    cost_of_run: int

    def to_document(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def outlook_of_run(charter: RunCharter) -> RunOutlook:
    """Times and costs of a run."""
    t, rules = charter.timing, round_terms(charter)
    commit = rules.commit + rules.inclusion
    longest = commit + rules.beacon_delay + rules.hold + rules.group_merge + rules.merge
    return RunOutlook(
        round_seconds=commit,
        round_at_most_seconds=longest,
        rounds_at_most_seconds=charter.rounds * longest,
        before_seconds=t.seasoning,
        epoch_seconds=t.epoch,
        vesting_seconds=t.vesting,
        exit_seconds=t.exit,
        cost_of_round=cost_of(charter, charter.training.seats),
        cost_of_run=escrow_of(charter),
    )


def outlook_of_role(charter: RunCharter, *, tickets: int = 0, price_ppm: int = PPM) -> RoleOutlook:
    """A seat, or so many tickets.

    price_ppm: part of the charter's price of a unit that a round pays which opens now, in parts per million.
    """
    e, t = charter.economics, charter.training
    locks = stake_of(charter, tickets=tickets) if tickets else stake_of(charter, seats=1)
    challenge = e.challenge_bond + e.challenge_deposit
    if tickets:
        gas = tickets * (gas_of("attest") + gas_of("open a secret") + gas_of("settle a finding"))
        merge_pay = 0 if charter.by_seats else e.merge_pay
        leaving = charter.timing.seasoning + _undrawn_after(charter) + charter.timing.exit
        away = charter.timing.seed_delay + charter.timing.epoch
        return RoleOutlook(locks, 0, challenge, e.wage, merge_pay, e.shares_per_duty, gas, leaving, away)
    gas = gas_of("commit", "settle")
    if charter.by_seats:
        gas += gas_of("hold", *MERGE)
    pay, merge_pay = charter.price * price_ppm // PPM if e.pays else 0, e.merge_pay if charter.by_seats else 0
    leaving = _settled_after(charter) + charter.timing.exit
    return RoleOutlook(locks, locks, challenge, pay, merge_pay, e.shares_per_unit * t.max_units, gas, leaving)


def away_words(charter: RunCharter) -> str:
    """What an auditor must know before its machine stands still, in a sentence."""
    away = duration(outlook_of_role(charter, tickets=1).away_seconds)
    return (
        f"A ticket is called until it has left: one that is silent for more than {away} can lose all of its stake, "
        "since the secret of a call that it missed stays hidden."
    )


def _settled_after(charter: RunCharter) -> int:
    """From a commitment until its audits are over and its base is final, if nobody is late."""
    t = charter.timing
    base = t.beacon_delay + t.hold + t.group_merge + t.merge + t.challenge
    return charter.chain.inclusion_delay + max(_undrawn_after(charter), base)


def _undrawn_after(charter: RunCharter) -> int:
    """From what is drawn or answered until it can be drawn no more, if nobody is late."""
    return EPOCHS_TO_SETTLE * (charter.timing.epoch + charter.timing.seed_delay)
