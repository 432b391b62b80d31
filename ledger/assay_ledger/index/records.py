"""What a run's events add up to: rounds, commitments, attesters, outer roots, games.

The records are filled by `assay_ledger.index.indexer` and read by strategies and the explorer. They are plain
mutable values, so that an event costs one assignment; readers must not change them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Side, Stage, Turn
from assay.protocol.run.claims import ClaimRef
from assay.protocol.run.schedule import Times
from assay.protocol.types import Address, Digest, Role, Round, Seat, Status, Wei
from assay_ledger.chain.client import Head


@dataclass(slots=True)
class CommitmentRecord:
    """A seat's commitment of a round."""

    seat: Seat
    solver: Address
    digest: Digest
    base: Digest
    roots: tuple[Digest, ...]
    end_lists: tuple[Digest, ...]
    update: Digest
    tx_hash: bytes
    receipts: set[Address] = field(default_factory=set)
    complete: bool = False
    excluded: bool = False
    convicted: bool = False
    status: Status = Status.OPEN


@dataclass(slots=True)
class AttendanceRecord:
    """What a verifier or whistleblower did in a round."""

    role: Role
    root: Digest
    y: bytes | None = None
    leaves: dict[tuple[Seat, int], Digest] = field(default_factory=dict)
    settled: bool = False


@dataclass(slots=True)
class OuterRecord:
    """An outer root posted after a round."""

    root: Digest
    base: Digest
    parameters: Digest
    momentum: Digest
    posters: dict[Address, Status] = field(default_factory=dict)
    bases: dict[Address, Digest] = field(default_factory=dict)
    """What each poster claims to have started from; `base` is the first one's."""
    transactions: dict[Address, bytes] = field(default_factory=dict)
    """In which transaction each of them posted it."""
    fallen: bool = False
    rescue_until: int = 0
    """Chain time until which anybody may still put a lock behind it; 0 while no poster has lost its standing."""


@dataclass(slots=True)
class RoundRecord:
    """One round."""

    number: Round
    times: Times
    roster: tuple[Address | None, ...]
    commitments: dict[Seat, CommitmentRecord] = field(default_factory=dict)
    seed: Digest | None = None
    whistle_seed: Digest | None = None
    attendance: dict[Address, AttendanceRecord] = field(default_factory=dict)
    inclusions: dict[Digest, tuple[int, Digest]] = field(default_factory=dict)
    outers: dict[Digest, OuterRecord] = field(default_factory=dict)
    settled: bool = False

    def seat_of(self, who: Address) -> Seat | None:
        """The seat of an address in this round."""
        return next((Seat(k) for k, holder in enumerate(self.roster) if holder == who), None)


@dataclass(slots=True)
class AttesterRecord:
    """A registered verifier or whistleblower."""

    who: Address
    role: Role
    stake: Wei
    counts_from: Round
    public_key: bytes
    retires_with: Round | None = None
    convicted_at: Round | None = None


@dataclass(slots=True)
class MoveRecord:
    """One transaction of a game."""

    tx_hash: bytes
    mover: Address
    stage: Stage


@dataclass(slots=True)
class GameRecord:
    """One game. `stage`, `turn` and `deadline` are those of the next turn; OVER once there is a verdict.

    `reused`: K(list) of each list of another game that counted as posted, by the number of the transaction (in `moves`)
    that it counted after.
    """

    game_id: int
    claim_id: Digest
    ref: ClaimRef
    challenger: Address
    defender: Address
    opened_tx: bytes
    stage: Stage = Stage.STEPS
    turn: Side = Side.DEFENDER
    deadline: int = 0
    moves: list[MoveRecord] = field(default_factory=list)
    deferrals: Counter[Side] = field(default_factory=Counter)
    reused: dict[int, Digest] = field(default_factory=dict)
    verdict: Verdict | None = None
    verdict_tx: bytes | None = None
    bounty: Wei = Wei(0)  # noqa: RUF009 - an immutable amount
    burned: Wei = Wei(0)  # noqa: RUF009 - an immutable amount
    taken: Wei = Wei(0)  # noqa: RUF009 - an immutable amount

    @property
    def whose(self) -> Turn:
        """The turn that the game stands at."""
        return Turn(self.stage, self.turn)

    @property
    def is_over(self) -> bool:
        """Whether there is a verdict."""
        return self.verdict is not None

    @property
    def convicted(self) -> bool:
        """Whether the claimant lost."""
        return self.verdict is not None and self.verdict.side is Side.DEFENDER

    @property
    def outcome(self) -> Outcome:
        """How it ended, if it did."""
        return Outcome.NONE if self.verdict is None else self.verdict.outcome


@dataclass(slots=True)
class RunState:
    """Everything that a run's events say up to a head."""

    head: Head
    rounds: list[RoundRecord] = field(default_factory=list)
    holders: dict[Seat, Address] = field(default_factory=dict)
    attesters: dict[Address, AttesterRecord] = field(default_factory=dict)
    games: dict[int, GameRecord] = field(default_factory=dict)

    @property
    def round(self) -> RoundRecord | None:
        """The latest round, None before the first."""
        return self.rounds[-1] if self.rounds else None

    def participants(self) -> set[Address]:
        """Everybody who has a seat or ever registered."""
        return {*self.holders.values(), *self.attesters}

    def open_games_of(self, who: Address) -> list[GameRecord]:
        """Games without a verdict to which an address is a party."""
        return [g for g in self.games.values() if not g.is_over and who in (g.defender, g.challenger)]
