"""What a strategy sees of a run: its books and records at a head. Pure values and lookups.

Nothing here asks the chain or a store. `now` is the chain time of the newest block, in seconds; a transaction lands
later. What a contract would answer at `now` is asked of the books, which are the executable model's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.rounds.clock import commit_until, merge_until
from assay.protocol.rounds.duty_types import CallAnswer, DutyTerms, Epoch
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import (
    NEVER,
    GenerationStatus,
    GroupState,
    Presence,
    RoundState,
    RoundTerms,
    Tenure,
    UpdateEntry,
    Votes,
)
from assay.protocol.rounds.ticket_types import Ticket, TicketId
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.chain.client import Head
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.books import ToldBooks
from assay_ledger.rounds.facts import RunFacts
from assay_ledger.rounds.records import AttestationRecord, OpeningRecord, RunState, WorkRecord


@dataclass(frozen=True, slots=True)
class BaseLists:
    """What a generation is made of: list roots of parameters and of the merge's momentum."""

    parameters: Digest
    momentum: Digest

    @property
    def root(self) -> Digest:
        """The state root."""
        return state_digest((self.parameters, self.momentum))


@dataclass(frozen=True)
class RunView:
    """A run as one actor sees it at a head."""

    charter: RunCharter
    facts: RunFacts
    me: Address
    state: RunState

    @property
    def head(self) -> Head:
        """The newest block."""
        return self.state.head

    @property
    def games(self) -> Mapping[int, GameRecord]:
        """All games by number."""
        return self.state.games

    @property
    def now(self) -> int:
        """Chain time of the head, in seconds."""
        return self.state.head.timestamp

    @property
    def block(self) -> int:
        """Number of the head."""
        return self.state.head.number

    @property
    def books(self) -> ToldBooks:
        """What the contracts have in their books."""
        return self.state.books

    @property
    def rules(self) -> RoundTerms:
        """The terms of rounds."""
        return self.facts.rounds

    # --- rounds

    @property
    def round(self) -> Round | None:
        """The newest round; None before the first."""
        count = len(self.books.commitments.rounds)
        return Round(count - 1) if count else None

    def round_of(self, round_: Round) -> RoundState:
        """A round that was opened. Raises RejectedError (RoundNotOpen)."""
        return self.books.commitments.round_of(round_)

    def commit_until(self, round_: Round) -> int:
        """Last second to commit: T0 + C + F."""
        return commit_until(self.rules, self.round_of(round_))

    def merge_until(self, round_: Round) -> int:
        """Last second in which the round's generation can have its majority: T_m."""
        return merge_until(self.rules, self.round_of(round_))

    def is_mask_closed(self, round_: Round) -> bool:
        """Whether no further commitment gets weight."""
        return self.now > self.round_of(round_).mask_at

    def groups(self) -> range:
        """The groups of seats."""
        return range(self.rules.place(Seat(self.rules.seats - 1))[0] + 1)

    def seat_at(self, group: int, place: int) -> Seat:
        """The seat at a place of a group."""
        return Seat(place if self.rules.by_seats else group * self.rules.group_size + place)

    def group(self, round_: Round, group: int) -> GroupState:
        """The seats of a group in a round: what was committed with weight, in order, and who said what it holds."""
        return self.books.commitments.group_of(round_, group)

    def entries(self, round_: Round, group: int = 0) -> list[UpdateEntry]:
        """The updates of a group with weight, in the order of their commits: what `prepare` of a merge takes."""
        seats = [self.seat_at(group, place) for place in self.group(round_, group).maskable]
        works = [self.state.works[round_, seat].work for seat in seats]
        return [UpdateEntry(seat, work.units, work.update) for seat, work in zip(seats, works, strict=True)]

    def work(self, round_: Round, seat: Seat) -> WorkRecord | None:
        """A seat's commitment in a round."""
        return self.state.works.get((round_, seat))

    def works(self, round_: Round) -> list[WorkRecord]:
        """All commitments of a round, by seat."""
        placed = ((group, place) for group in self.groups() for place in self.group(round_, group).committed)
        return [self.state.works[round_, seat] for seat in sorted(self.seat_at(*at) for at in placed)]

    def hold_until(self, round_: Round, group: int = 0) -> int:
        """Last second to say what one holds, as things stand."""
        return self.books.commitments.hold_until(round_, group)

    def counted(self, round_: Round, group: int = 0) -> tuple[frozenset[Seat], bool]:
        """Seats of a group whose update counts, and whether that can change no more."""
        places, is_closed = self.books.commitments.counted_of(round_, group, self.now)
        return frozenset(self.seat_at(group, place) for place in places), is_closed

    def presence(self, round_: Round, seat: Seat) -> Presence:
        """Whether a seat was there in a round."""
        return self.books.commitments.presence_of(round_, seat, self.now)

    # --- seats

    def tenures_of(self, who: Address) -> list[tuple[int, Tenure]]:
        """All tenures of an account, the oldest first."""
        return [(number, t) for number, t in sorted(self.books.tenures.tenures.items()) if t.holder == who]

    @property
    def tenure(self) -> tuple[int, Tenure] | None:
        """This actor's newest tenure that lasts."""
        mine = [pair for pair in self.tenures_of(self.me) if pair[1].until == NEVER]
        return mine[-1] if mine else None

    def tenure_in(self, round_: Round) -> tuple[int, Tenure] | None:
        """This actor's tenure of a round that it may still commit to."""
        return next(
            (
                (number, t)
                for number, t in self.tenures_of(self.me)
                if t.from_ <= round_ < t.until and not t.convicted_at and not t.released
            ),
            None,
        )

    @property
    def free_seats(self) -> int:
        """Seats that nobody holds."""
        return self.rules.seats - sum(t.until == NEVER for t in self.books.tenures.tenures.values())

    @property
    def is_over(self) -> bool:
        """Whether no round will open any more."""
        return self.books.commitments.is_over(self.now)

    @property
    def never_opened(self) -> bool:
        """Whether no round ever began, and none can any more. Rounds that no escrow launched are another gate's."""
        return self.state.money.phase is RunPhase.FUNDING and self.round is None and self.is_over

    # --- generations

    def status(self, generation: int) -> GenerationStatus:
        """What became of a generation."""
        return self.books.generations.status_of(generation)

    def votes(self, node: Node) -> Votes:
        """The seals of a generation or a sum, and the root that leads."""
        return self.books.generations.votes.get(node, Votes())

    def lists(self, generation: int, root: Digest | None = None) -> BaseLists | None:
        """The lists of a root that somebody opened; of the one with the majority if none is named."""
        root = self.votes(generation).root if root is None else root
        node = self.books.generations.nodes.get((generation, root or ZERO))
        return None if node is None else BaseLists(node.parameters, node.momentum)

    def base(self, round_: Round) -> BaseLists:
        """What a round starts from."""
        found = self.lists(self.round_of(round_).parent)
        assert found is not None  # no round opens from a generation without a majority
        return found

    def openings(self, node: Node) -> list[OpeningRecord]:
        """Who stands, or stood, behind which root of a generation or a sum, in the order in which they came."""
        return list(self.state.openings_of.get(node, ()))

    def seal_until(self, round_: Round) -> int:
        """Last second to seal a root of the round's generation, as things stand."""
        return self.votes(round_ + 1).seal_until or self.merge_until(round_)

    @property
    def newest(self) -> int:
        """The newest generation that has a majority and is not cut."""
        return self.books.generations.newest()

    # --- audits: what `assay_verifier.drawing.AuditRecords` asks for

    @property
    def terms(self) -> DutyTerms:
        """The terms of audits."""
        return self.facts.duties

    @property
    def epochs(self) -> Sequence[Epoch]:
        """All epochs; the last one is the only one that is not closed."""
        return self.books.duties.epochs

    def works_of(self, epoch: int) -> list[WorkRecord]:
        """Commitments of the rounds that belong to an epoch: it is the first that began after their last second."""
        before = self.epochs[epoch - 1].start if epoch else 0
        rounds = range(len(self.books.commitments.rounds))
        first, end = (
            bisect_left(rounds, time, key=lambda number: self.commit_until(Round(number)))
            for time in (before, self.epochs[epoch].start)
        )
        return [work for round_ in map(Round, rounds[first:end]) for work in self.works(round_)]

    def attestations_of(self, epoch: int) -> list[AttestationRecord]:
        """Results that were opened in an epoch, in the order in which they came."""
        return list(self.state.attestations_of.get(epoch, ()))

    def is_attested(self, attestation: Digest) -> bool:
        """Whether there is a result of this name."""
        return attestation in self.state.attestations

    def is_doubted(self, epoch: int, ticket: TicketId) -> bool:
        """Whether a ticket was accused when it opened in an epoch, or before its end."""
        return (epoch, ticket) in self.books.duties.attestations.doubted

    def answer_of(self, epoch: int, ticket: TicketId) -> CallAnswer | None:
        """What a ticket did at a call."""
        return self.books.duties.answers.get((epoch, ticket))

    def answers_shown_in(self, epoch: int) -> list[tuple[int, TicketId]]:
        """Epochs and tickets of the secrets that were shown while an epoch was the newest."""
        # They stand in the order in which they were shown.
        later = takewhile(lambda told: told[1].shown_in >= epoch, reversed(self.books.duties.answers.items()))
        return [place for place, answer in later if answer.shown_in == epoch][::-1]

    def is_called(self, ticket: TicketId, epoch: int) -> bool:
        """Whether an epoch calls a ticket."""
        return self.books.duties._is_called(ticket, self.epochs[epoch], self.now)

    def exists(self, ticket: TicketId) -> bool:
        """Whether a ticket was registered and its stake has not gone back."""
        return ticket in self.books.registry.tickets

    def tickets_of(self, who: Address) -> list[tuple[TicketId, Ticket]]:
        """The tickets of an account whose stake has not gone back, the oldest first."""
        return [(number, t) for number, t in sorted(self.books.registry.tickets.items()) if t.owner == who]

    def called_tickets(self, epoch: int) -> Iterator[TicketId]:
        """Tickets that an epoch calls."""
        if self.epochs[epoch].on_call:
            yield from (t for t in sorted(self.books.registry.tickets) if self.is_called(t, epoch))

    # --- games

    def open_games(self) -> list[GameRecord]:
        """Games without a verdict to which this actor is a party, nearest clock first."""
        return sorted(self.state.open_games_of(self.me), key=lambda game: (game.deadline, game.game_id))
