"""Terms, work and claims that tests of rounds begin from, and values named by labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eth_hash.auto import keccak

from assay.protocol.digests import ZERO
from assay.protocol.rounds.duty_types import DutyTerms
from assay.protocol.rounds.terms import RoundTerms, SeatWork
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat, Wei

ETHER = 10**18
START = 1_800_000_000
TICKET_TERMS = TicketTerms(bond=Wei(ETHER // 100), seasoning=7200, shifts=3)
AUDIT_TERMS = DutyTerms(
    start=START + 7201, length=3600, delay=60, capacity=4, audit_ppm=4_000_000, reaudit_ppm=4_000_000, wage=Wei(ETHER)
)


def mark(label: object) -> Digest:
    """A 32-byte value that a label names."""
    return Digest(keccak(repr(label).encode()))


TERMS = RoundTerms(
    seats=8, group_size=64, positions=15, top_positions=63, min_units=30, max_units=60, steps_per_unit=5,
    learning_rate=0x3A83126F, shards=1024, shard_length=1000, rounds=1000, expiry=START + 10**9, commit=3600,
    inclusion=600, grace=30, hold=120, group_merge=0, merge=300, beacon_delay=24, challenge=50_000, rescue=1800,
    longest_dispute=7 * 86_400, run=mark("run"), step_program=mark("step"), update_program=mark("update"),
    partial_program=mark("partial"),
    outer_program=mark("outer"), witness_program=mark("witness"), data=mark("data"), zero_optimizer=mark("zeros"),
    zero_update=mark("no update"), zero_partial=mark("no sum"), parameters=mark("parameters 0"),
    momentum=mark("momentum 0"), seat_lock=Wei(30 * ETHER), seat_fee=Wei(2 * ETHER),
    drawn_bounty_ppm=970_000, third_bounty_ppm=500_000,
)  # fmt: skip


def terms_of(**changes: Any) -> RoundTerms:
    """The usual terms, changed."""
    return replace(TERMS, **changes)


def work_of(label: object, units: int = 60) -> SeatWork:
    """Work that a label names."""
    ends = (mark((label, "parameters")), mark((label, "optimizer")), mark((label, "scalars")))
    return SeatWork(units, mark((label, "marks")), ends, mark((label, "update")))


def fields(work: SeatWork) -> tuple[Any, ...]:
    """The work as the contract takes it."""
    return (work.units, work.marks, list(work.ends), work.update)


def work_ref(kind: ClaimKind, round_: Round, seat: Seat) -> tuple[Any, ...]:
    """A claim of a commitment, as games take it."""
    return (int(kind), round_, seat, 0, bytes(20), ZERO)


def node_ref(round_: Round, seat: Seat, root: Digest, backer: Address | None = None) -> tuple[Any, ...]:
    """An opening, as games take it."""
    return (int(ClaimKind.OUTER), round_, seat, 0, backer or bytes(20), root)


def address(index: int) -> Address:
    """Somebody."""
    return Address((0xA000 + index).to_bytes(20, "big"))


def bits(places: Iterable[int]) -> int:
    """A bit per place."""
    return sum(1 << place for place in places)
