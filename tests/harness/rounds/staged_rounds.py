"""Commitments, tenures and a beacon as a test of audits writes them, and what honest work and replays end in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eth_abi import encode
from eth_hash.auto import keccak

from assay.protocol.digests import ZERO
from assay.protocol.errors import refuse
from assay.protocol.rounds.duty_types import ReplayFinding
from assay.protocol.rounds.ids import work_digest
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Digest, Round, Seat
from tests.harness.rounds.samples import TERMS


def mark(*parts: object) -> Digest:
    """A digest that a description names."""
    return Digest(keccak(repr(parts).encode()))


def true_finding(round_: int, seat: int, keys: Sequence[Digest] = ()) -> ReplayFinding:
    """What an honest replay of a commitment ends in."""
    ends = (mark("p", round_, seat), mark("o", round_, seat), mark("s", round_, seat))
    return ReplayFinding(ends, mark("u", round_, seat), tuple(keys), tuple(mark("acc", k, round_, seat) for k in keys))


def true_work(round_: int, seat: int) -> SeatWork:
    """An honest commitment."""
    found = true_finding(round_, seat)
    return SeatWork(60, mark("marks", round_, seat), found.ends, found.update)


class StagedRounds:
    """Commitments, tenures and a beacon as the test writes them; AuditStage.sol is its contract."""

    def __init__(self) -> None:
        self.randomness: dict[int, Digest] = {}
        self.until: dict[int, int] = {}
        self.final: dict[int, bool] = {}
        self.final_at: dict[int, int] = {}
        """Since when the bases of rounds are final."""
        self.works: dict[tuple[int, int], tuple[int, SeatWork]] = {}
        self.accusations: Counter[int] = Counter()
        self.suspensions: Counter[int] = Counter()
        self.settled: set[tuple[int, int]] = set()
        self.convicted: set[int] = set()
        self.over = 0
        """How many rounds there are, once no round can open any more."""

    def round_after(self, time: int) -> int:
        return time // 30 + 1

    def randomness_of(self, beacon_round: int) -> Digest:
        if beacon_round not in self.randomness:
            raise refuse("BeaconNotSubmitted", beacon_round=beacon_round)
        return self.randomness[beacon_round]

    def commit_until(self, round_: int) -> int:
        if round_ not in self.until:
            raise refuse("RoundNotOpen", round=round_)
        return self.until[round_]

    def trained_until(self, now: int) -> int | None:
        return self.commit_until(self.over - 1) if self.over else None

    def work_of(self, round_: int, seat: Seat) -> tuple[Digest, int]:
        if (round_, seat) not in self.works:
            return ZERO, 0
        tenure, work = self.works[round_, seat]
        return self.digest_of(round_, seat, tenure, work), tenure

    def digest_of(self, round_: int, seat: Seat, tenure: int, work: SeatWork) -> Digest:
        return work_digest(Round(round_), seat, tenure, work)

    def start_of(self, round_: int, seat: Seat) -> tuple[Digest, Digest, Digest]:
        parameters, scalars = encode(["uint64"], [round_]), encode(["uint64", "uint32"], [round_, seat])
        return Digest(keccak(parameters)), ZERO, Digest(keccak(scalars))

    def steps_of(self, round_: int, seat: Seat) -> int:
        return self.works[round_, seat][1].units * TERMS.steps_per_unit

    def is_disputable(self, round_: int, seat: Seat) -> bool:
        return (round_, seat) not in self.settled

    def is_convicted(self, tenure: int) -> bool:
        return tenure in self.convicted

    def is_base_final(self, round_: int) -> bool:
        return self.final.get(round_, False)

    def accuse(self, tenure: int) -> None:
        self.accusations[tenure] += 1

    def unaccuse(self, tenure: int) -> None:
        self.accusations[tenure] -= 1

    def suspend(self, tenure: int) -> None:
        self.suspensions[tenure] += 1

    def resume(self, tenure: int) -> None:
        self.suspensions[tenure] -= 1
