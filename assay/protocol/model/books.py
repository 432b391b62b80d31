"""What the books of a run ask of one another, as the contracts do through their interfaces.

`Ledger` puts the books together; each knows the others by these alone, so that none imports another.
"""

from __future__ import annotations

from typing import Protocol

from assay.protocol.model.types import Attester, Commitment, EndRoots, OuterRoot
from assay.protocol.model.vault import Vault
from assay.protocol.run.charter import Charter
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.schedule import Times
from assay.protocol.types import Address, Digest, Role, Round, Seat, Status


class RoundsBook(Protocol):
    """IRounds.sol, as other contracts call it."""

    holders: list[Address]
    opened_at: list[int]
    commitments: dict[tuple[Round, Seat], Commitment]

    @property
    def latest(self) -> Round:
        """The latest round."""
        ...

    def times(self, round_: Round) -> Times:
        """The deadlines of a round."""
        ...

    def is_over(self, now: int) -> bool:
        """Does no further round open?"""
        ...

    def is_seated(self, round_: Round, who: Address) -> bool:
        """Had an address a seat in a round?"""
        ...

    def is_complete(self, round_: Round, seat: Seat) -> bool:
        """Has a commitment more than half of the receipts?"""
        ...

    def duty_of(self, round_: Round, seat: Seat, duty: int) -> tuple[Digest, Digest, Digest]:
        """The claim, X and Y of a duty."""
        ...

    def check_close(self, round_: Round, seat: Seat, now: int) -> Status:
        """How a commitment ends. Raises RejectedError while that is open."""
        ...

    def close(self, round_: Round, seat: Seat, now: int) -> tuple[Status, Address]:
        """Ends a commitment: how, and whose it was."""
        ...


class OutersBook(Protocol):
    """IOuters.sol, as other contracts call it."""

    roots: dict[tuple[Round, Digest], OuterRoot]

    def standing_count(self, generation: Round) -> int:
        """How many roots stand."""
        ...

    def is_alive(self, generation: Round, root: Digest, now: int) -> bool:
        """May work still build on a root?"""
        ...

    def status_of(self, generation: Round, root: Digest, now: int) -> Status:
        """How a root ended, or OPEN."""
        ...


class AuditBook(Protocol):
    """IAudit.sol, as other contracts call it."""

    attesters: dict[Address, Attester]
    members: dict[Role, int]
    end_roots: EndRoots

    def stake_at(self, who: Address, round_: Round) -> int:
        """An attester's stake that counts in a round, wei."""
        ...

    def total_at(self, role: Role, round_: Round) -> int:
        """A role's stake that counts in a round, wei."""
        ...

    def check_close(self, round_: Round, who: Address, now: int) -> int:
        """How many duties an attester is paid for. Raises RejectedError while that is open."""
        ...

    def close(self, round_: Round, who: Address, now: int) -> int:
        """Ends an attendance: how many duties are paid."""
        ...

    def revealers(self, round_: Round) -> int:
        """How many attesters have revealed in a round."""
        ...


class SettlementBook(Protocol):
    """ISettlement.sol, as other contracts call it."""

    def on_round_opened(self, round_: Round, seats: int) -> None:
        """A round opened with so many seats taken."""
        ...


class RunBooks(Protocol):
    """A run as each of its books sees it."""

    charter: Charter
    chain_id: int
    address: Address
    audit_address: Address
    vault: Vault

    @property
    def rounds(self) -> RoundsBook:
        """Seats, rounds and commitments."""
        ...

    @property
    def outers(self) -> OutersBook:
        """Outer steps."""
        ...

    @property
    def audit(self) -> AuditBook:
        """Attesters and attestations."""
        ...

    @property
    def settlement(self) -> SettlementBook:
        """Escrow and pay."""
        ...

    def claim_id(self, kind: ClaimKind, claimant: Address, x: Digest, y: Digest) -> Digest:
        """The id of a claim of this run."""
        ...
