"""Terms, beacon and gate of a run on the executable model, in compressed time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.digests import ZERO, keccak
from assay.protocol.rounds.duty_types import DutyTerms
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.types import Address, Digest, Round, Wei

START: Final = 1_800_000_000
PERIOD: Final = 30
"""Seconds from one beacon round to the next."""
EPOCH_LENGTH: Final = 600
TRAINING, DELAY = 3600, 600
"""C and F. An epoch may repeat twice within a round."""

COIN: Final = Wei(10**18)
RICH: Final = 10**6 * COIN


def mark(*parts: object) -> Digest:
    """A root that a description names."""
    return keccak(repr(parts).encode())


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """What a run is played with; rates are expected replays, `links` the calls that a ticket's chain answers."""

    seats: int
    audit_rate: float
    reaudit_rate: float
    capacity: int
    links: int

    @property
    def duties(self) -> DutyTerms:
        """Terms of audits; a wage is a coin."""
        p, q = (round(1e6 * rate) for rate in (self.audit_rate, self.reaudit_rate))
        return DutyTerms(START, EPOCH_LENGTH, 60, self.capacity, p, q, COIN)

    @property
    def tickets(self) -> TicketTerms:
        """Terms of tickets: one shift, which every epoch calls."""
        return TicketTerms(Wei(100 * COIN), 2 * EPOCH_LENGTH, 1)

    @property
    def rounds(self) -> RoundTerms:
        """Terms of rounds at one level."""
        return RoundTerms(
            seats=self.seats, group_size=64, positions=0, top_positions=0, min_units=30, max_units=60,
            steps_per_unit=5, learning_rate=0, shards=self.seats, shard_length=1000, rounds=2**24 - 1,
            expiry=START + 10**10, commit=TRAINING, inclusion=DELAY, grace=30, hold=120, group_merge=0, merge=300,
            beacon_delay=24, challenge=60, rescue=600, longest_dispute=600, run=mark("run"),
            step_program=mark("step"), update_program=mark("update"), witness_program=mark("witness"),
            partial_program=ZERO, outer_program=mark("outer"), data=mark("data"),
            zero_optimizer=mark("zeros"), zero_update=mark("no update"), zero_partial=ZERO,
            parameters=mark("parameters 0"), momentum=mark("momentum 0"), seat_lock=Wei(30 * COIN), seat_fee=COIN,
            drawn_bounty_ppm=970_000, third_bounty_ppm=500_000,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeededBeacon:
    """A beacon whose rounds are all known, from a seed."""

    seed: int

    def round_after(self, time: int) -> int:
        """The first beacon round whose time is later than `time`."""
        return time // PERIOD + 1

    def time_of(self, beacon_round: int) -> int:
        """The time of a beacon round, in seconds."""
        return beacon_round * PERIOD

    def randomness_of(self, beacon_round: int) -> Digest:
        """What the seed gives for it."""
        return mark("beacon", self.seed, beacon_round)


class OpenGate:
    """Enough escrow and enough tickets, always: neither is in the model yet."""

    def may_open(self, seated: int, now: int) -> bool:
        """Yes."""
        return True

    def carries(self, seated: int, now: int) -> bool:
        """Yes."""
        return True

    def reserve(self, round_: Round, seated: int, now: int) -> None:
        """Nothing has to be set aside."""

    def is_stopped(self) -> bool:
        """It never is."""
        return False

    def stopped_at(self) -> int:
        """Never."""
        return 0


def person(number: int) -> Address:
    """Somebody's account."""
    return Address((0xA0000 + number).to_bytes(20, "big"))
