"""What the books of a run hold: equal to the structs of IRounds.sol, IOuters.sol, IAudit.sol and IShares.sol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.game.state import DisputedClaim
from assay.protocol.model.games import ClaimView
from assay.protocol.types import Address, Digest, Role, Round, Seat, Wei


@dataclass(slots=True)
class Commitment:
    """What a seated solver committed to."""

    solver: Address
    digest: Digest
    base: Digest
    start_optimizer: Digest
    roots: tuple[Digest, ...]
    parameters: Digest
    optimizer: Digest
    update: Digest
    open_games: int = 0
    convicted: bool = False
    excluded: bool = False
    closed: bool = False


@dataclass(slots=True)
class Last:
    """What the optimizer list of a solver's next start hangs on; 0 = no conviction since its latest commitment."""

    round: Round
    seat: Seat
    blank_from: int = 0
    blank_again: int = 0


@dataclass(slots=True)
class OuterRoot:
    """An outer root of a generation."""

    parameters: Digest
    momentum: Digest
    standing: int = 0
    is_final: bool = False
    rescue_until: int = 0
    """Until when anybody may still put a lock behind it; 0 while no poster has lost its standing."""


@dataclass(slots=True)
class OuterClaim:
    """One poster's claim behind a root."""

    base: Digest
    posted_at: int
    open_games: int = 0
    convicted: bool = False
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The mask (bit k = seat k) and X root of an outer step from a base."""

    mask: int
    x: Digest


@dataclass(slots=True)
class Attester:
    """A registered verifier or whistleblower."""

    role: Role
    stake: Wei
    public_key: bytes
    convicted_at: int = 0
    retires_with: int | None = None
    """First round that it is not drawn in; None while it serves."""
    open_games: int = 0


@dataclass(slots=True)
class Attendance:
    """What an attester did in a round."""

    root: Digest
    ticket: Digest | None = None
    duties: int = 0
    open_games: int = 0
    revealed: bool = False
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf as it is revealed."""

    seat: Seat
    duty: int
    end_root: Digest
    salt: Digest


@dataclass(slots=True)
class Grant:
    """Shares credited and not yet tokens."""

    owner: Address
    amount: Wei
    vests_at: int
    for_duties: bool
    done: bool = False


NO_CLAIM: Final = ClaimView(DisputedClaim(ZERO, Address(bytes(20)), ZERO, ZERO, ZERO, 0, ZERO), 0, 0, Wei(0), False, 0)
"""What a book answers for a claim that does not exist."""


EndRoots = dict[tuple[Round, int, int, Address], Digest]
