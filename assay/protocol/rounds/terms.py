"""What the contracts of rounds are built with, and what they keep (IRoundTerms.sol, ITenures.sol, ICommitments.sol)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.types import Address, Digest, Round, Seat, Wei

ONE_LEVEL: Final = 64
"""Seats up to which a run has one group, whose seats are its positions."""

NO_ONE_HERE: Final = Address(bytes(20))

NEVER: Final = 2**32 - 1
"""The end of a tenure that lasts."""


@dataclass(frozen=True, slots=True)
class RoundTerms:
    """Equal to `RoundTerms` in IRoundTerms.sol. Times in seconds of chain time, amounts in wei."""

    seats: int
    group_size: int
    positions: int
    top_positions: int
    min_units: int
    max_units: int
    steps_per_unit: int
    learning_rate: int
    shards: int
    shard_length: int
    rounds: int
    expiry: int
    commit: int
    inclusion: int
    grace: int
    hold: int
    group_merge: int
    merge: int
    beacon_delay: int
    challenge: int
    rescue: int
    longest_dispute: int
    run: Digest
    step_program: Digest
    update_program: Digest
    partial_program: Digest
    outer_program: Digest
    witness_program: Digest
    data: Digest
    zero_optimizer: Digest
    zero_update: Digest
    zero_partial: Digest
    parameters: Digest
    momentum: Digest
    seat_lock: Wei
    seat_fee: Wei
    drawn_bounty_ppm: int
    third_bounty_ppm: int

    @property
    def by_seats(self) -> bool:
        """Whether the seats that committed are the positions."""
        return self.seats <= ONE_LEVEL

    @property
    def groups(self) -> int:
        """Groups of the run's seats."""
        return 1 if self.by_seats else -(-self.seats // self.group_size)

    def place(self, seat: Seat) -> tuple[int, int]:
        """Group of a seat, and its place in the group."""
        return divmod(seat, ONE_LEVEL if self.by_seats else self.group_size)


@dataclass(frozen=True, slots=True)
class SeatWork:
    """What a seat did in a round (`Work`): ends are the list roots of the last state, update a list root."""

    units: int
    marks: Digest
    ends: tuple[Digest, Digest, Digest]
    update: Digest


class Presence(IntEnum):
    """Whether a seat was there in a round; equal to `Presence` in ICommitments.sol."""

    UNKNOWN = 0
    PRESENT = 1
    MISSED = 2
    UNCOUNTED = 3
    UNHELD = 4

    @property
    def is_absence(self) -> bool:
        """Whether it counts towards an eviction. Where a third or more hold an update, who is right is not known."""
        return self in (Presence.MISSED, Presence.UNHELD)


class WorkStatus(IntEnum):
    """How a commitment ended; equal to `WorkStatus` in ICommitments.sol."""

    OPEN = 0
    VOID = 1
    CONVICTED = 2
    FINAL = 3


class GenerationStatus(IntEnum):
    """What became of a generation; equal to `GenerationStatus` in IGenerations.sol."""

    OPEN = 0
    MERGED = 1
    FINAL = 2
    CUT = 3


@dataclass(slots=True)
class Tenure:
    """One holder's time in one seat, from round `from_` until round `until`, which is no longer of it."""

    holder: Address
    seat: Seat
    from_: Round
    until: int = NEVER
    fee_gone: bool = False
    released: bool = False
    unsettled: int = 0
    games: int = 0
    accusations: int = 0
    suspensions: int = 0
    convicted_at: int = 0
    last: int = 0
    """Last round it committed to, plus one; 0: none."""

    @property
    def never_worked(self) -> bool:
        """Whether it is over, held its seat in a round, and never committed to one."""
        return not self.last and self.from_ < self.until < NEVER


@dataclass(slots=True)
class RoundState:
    """A round that was opened. `mask_at` is the last second, in chain time, in which a commitment gets weight."""

    t0: int
    mask_at: int
    seated: int
    parent: int
    base: Digest
    committed: int = 0
    groups: int = 0
    """Groups of which somebody committed with weight."""

    @property
    def is_under_half(self) -> bool:
        """Fewer than half of the seats committed."""
        return 2 * self.committed < self.seated


@dataclass(slots=True)
class WorkState:
    """What the contract keeps of a commitment."""

    tenure: int
    digest: Digest
    units: int
    late: bool
    games: int = 0
    settled: bool = False


@dataclass(slots=True)
class GroupState:
    """The seats of a group in a round, by their place in it; `words` holds what each position said it holds."""

    acc: Digest = ZERO
    committed: set[int] = field(default_factory=set)
    maskable: dict[int, WorkState] = field(default_factory=dict)
    words: dict[int, frozenset[int]] = field(default_factory=dict)
    close_at: int = 0


@dataclass(slots=True)
class MergeNode:
    """A root that somebody opened, and what stands behind it (`Node` in GenerationNodes.sol). Of a group's sum,
    `parameters` is the sum and `momentum` zero."""

    parameters: Digest
    momentum: Digest
    votes: int = 0
    openings: int = 0
    """Of seats or tickets, each for all its positions."""
    standing: int = 0
    games: int = 0
    rescue_until: int = 0
    """Last second to back it; 0: no claim behind it fell."""


@dataclass(slots=True)
class OpenedRoot:
    """An opening (`OpenedRoot` in IGenerations.sol): the claim of a tenure, above 64 seats of a ticket, or of a backer
    (opener 0)."""

    root: Digest
    opener: int
    backer: Address
    at: int
    games: int = 0
    fallen: bool = False
    closed: bool = False


@dataclass(slots=True)
class Votes:
    """What positions said of a node, by seat or ticket, and the root that leads: the generation's with its majority, a
    group's with the most voices."""

    root: Digest | None = None
    seals: dict[int, Digest | None] = field(default_factory=dict)
    """None: it cannot compute the root."""
    voices: dict[int, int] = field(default_factory=dict)
    """Positions of whoever sealed."""
    seal_until: int = 0
    is_final: bool = False
    spoke: int = 0
    """Voices of a group that opened, or said that they cannot compute."""
    close_at: int = 0
    """Last second to open a group's sum once more than half of its voices spoke; 0 before."""

    @property
    def sealed(self) -> int:
        """Voices that sealed, or said that they cannot compute."""
        return sum(self.voices.values())


@dataclass(slots=True)
class Segment:
    """Rounds that follow each other without a restart; its generations begin at `first` + 1."""

    first: int
    parent: int
    lowest_cut: int = 0


@dataclass(frozen=True, slots=True)
class UpdateEntry:
    """An update that was committed with weight (`Entry` in IGenerations.sol)."""

    seat: Seat
    units: int
    update: Digest
