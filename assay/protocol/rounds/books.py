"""What the books of rounds know of each other, of tickets, of a beacon and of the vault."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import GenerationStatus, GroupState, Presence, RoundState, RoundTerms, Tenure
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.rounds.vault import Vault
from assay.protocol.types import Address, Digest, Round, Seat


class BeaconBook(Protocol):
    """What a beacon answers (IBeacon.sol)."""

    def round_after(self, time: int) -> int:
        """The first beacon round whose time is later than `time`."""

    def time_of(self, beacon_round: int) -> int:
        """The time from which a beacon round can be known, in seconds."""

    def randomness_of(self, beacon_round: int) -> Digest:
        """Raises BeaconNotSubmitted."""


class TicketBook(Protocol):
    """What is asked of tickets (ITickets.sol)."""

    def position_of(self, seed: Digest, node: Digest, j: int, time: int, now: int) -> TicketId:
        """The ticket at position j of a committee. Raises TimeNotSettled, NoTickets."""

    def holder_of_position(self, seed: Digest, node: Digest, j: int, time: int, now: int) -> Address:
        """Who owns the ticket at position j of a committee; nobody once it was convicted.

        Raises TimeNotSettled, NoTickets, TicketNotFound.
        """

    def owner_of(self, ticket: TicketId) -> Address:
        """Raises TicketNotFound."""

    def is_convicted(self, ticket: TicketId) -> bool:
        """Whether its lock is gone."""

    def can_answer(self, ticket: TicketId) -> bool:
        """Whether its stake is neither lost nor below nine tenths of B."""

    def dispute(self, ticket: TicketId) -> None:
        """A game about it begins. Raises TicketNotFound."""

    def undispute(self, ticket: TicketId, convicted: bool, now: int) -> bool:
        """A game about it is over; whether it was the first conviction. Raises TicketNotFound."""

    def oblige(self, ticket: TicketId) -> None:
        """One more claim hangs on it. Raises TicketNotFound."""

    def acquit(self, ticket: TicketId) -> None:
        """One claim fewer hangs on it. Raises TicketNotFound."""


class Rights(Protocol):
    """Whether the run can carry one more round, and what is set aside for it (IRoundGate)."""

    def may_open(self, seated: int, now: int) -> bool:
        """Enough escrow, and enough tickets on call."""

    def carries(self, seated: int, now: int) -> bool:
        """A round of so many seats could be audited, in an epoch without another, and paid beside what is reserved."""

    def is_stopped(self) -> bool:
        """The run was cancelled or wound down: what no open game holds is free."""

    def stopped_at(self) -> int:
        """When that was, in seconds of chain time; 0: it was not."""

    def reserve(self, round_: Round, seated: int, now: int) -> None:
        """Sets aside what the round can cost, which may open."""


class EpochEnds(Protocol):
    """When audits of a round end, which commitments ask (ICalls.sol)."""

    def over_after(self, time: int) -> int:
        """Since when nothing of the first epoch that began after a time can be drawn, in seconds; 0: something can."""


class TenureBook(Protocol):
    """What commitments and generations ask of tenures."""

    def check_charge(self, number: int, round_: Round, who: Address) -> Tenure:
        """Raises TenureNotFound, NotTheHolder, NotInTenure."""

    def charge(self, tenure: Tenure, round_: Round) -> bool:
        """The holder commits to a round; whether its work has weight."""

    def on_game_closed(self, number: int, convicted: bool, now: int) -> bool:
        """Whether this is the tenure's first conviction."""

    def existing(self, number: int) -> Tenure:
        """Raises TenureNotFound."""

    def can_answer(self, number: int) -> bool:
        """Whether a lock stands behind what it says: it was neither lost nor taken back."""

    def is_convicted(self, number: int) -> bool:
        """Whether its lock is gone."""

    def seated_at(self, round_: Round) -> int:
        """Seats held in a round."""


class CommitmentBook(Protocol):
    """What tenures and generations ask of commitments."""

    rounds: list[RoundState]

    def open_round(self, parent: int, base: Digest, now: int) -> Round:
        """The next round."""

    def is_over(self, now: int) -> bool:
        """No round will open any more."""

    def round_of(self, round_: Round) -> RoundState:
        """Raises RoundNotOpen."""

    def partial_until(self, round_: Round) -> int:
        """Last second to open a group's partial sum. Raises RoundNotOpen."""

    def seed_of(self, round_: Round) -> Digest:
        """What draws the positions of a round's nodes. Raises BeaconNotSubmitted."""

    def speaker_of(
        self, node: Node, position: Seat | TicketId, positions: Iterable[int], who: Address, now: int
    ) -> tuple[int, int, int]:
        """Opener, its voices, and all voices of a node.

        Raises RoundNotOpen, MaskOpen, NobodyCommitted, TooFewCommitted, TicketNotFound, BeaconNotSubmitted,
        NotThePosition.
        """

    def hold_until(self, round_: Round, group: int) -> int:
        """Last second to say what one holds. Raises RoundNotOpen."""

    def merge_until(self, round_: Round) -> int:
        """T_m. Raises RoundNotOpen."""

    def group_of(self, round_: Round, group: int) -> GroupState:
        """The seats of a group in a round."""

    def counted_of(self, round_: Round, group: int, now: int) -> tuple[frozenset[int], bool]:
        """Places of the group whose update counts, and whether that is final."""

    def over_of(self, round_: Round, group: int, now: int) -> Digest:
        """What a merge of the group's updates is over, as things stand. Raises RoundNotOpen."""

    def presence_of(self, round_: Round, seat: Seat, now: int) -> Presence:
        """Raises RoundNotOpen."""


class GenerationBook(Protocol):
    """What commitments ask of generations."""

    def parameters_of(self, generation: int) -> Digest:
        """List root of a generation's parameters."""

    def status_of(self, generation: int) -> GenerationStatus:
        """What became of a generation."""


class RoundBooks(Protocol):
    """The books of a run's rounds, and their neighbours."""

    terms: RoundTerms
    vault: Vault
    beacon: BeaconBook
    tickets: TicketBook
    rights: Rights
    audits: EpochEnds

    def is_sunset(self) -> bool:
        """The owners of shares decided that no round opens any more."""

    @property
    def tenures(self) -> TenureBook: ...
    @property
    def commitments(self) -> CommitmentBook: ...
    @property
    def generations(self) -> GenerationBook: ...
