"""A run on the executable model of its contracts, in process.

Roots are marks instead of tensors: what a commitment or a replay ends in is named, not computed. Everything else is
`assay.protocol.rounds` as it stands: rounds, masks, merges, epochs, draws, openings, accusations, fines.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from assay.protocol.digests import state_digest
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.audited_books import AuditedBooks
from assay.protocol.rounds.clock import commit_until
from assay.protocol.rounds.duties import Duties
from assay.protocol.rounds.ledger import RoundLedger
from assay.protocol.rounds.terms import NEVER, GenerationStatus, SeatWork
from assay.protocol.rounds.ticket_types import TicketId, chain_of
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.rounds.vault import Vault
from assay.protocol.types import Address, Digest, Round, Seat
from assay.simulation.model_terms import (
    RICH,
    START,
    TRAINING,
    ModelTerms,
    OpenGate,
    SeededBeacon,
    mark,
    person,
)

KEEPER: Final = person(10**6)
"""Who proves misses, evicts, and backs roots that lost their openers."""


class ModelRun:
    """Books of a run, their people, and a clock in seconds of chain time."""

    def __init__(self, terms: ModelTerms, seed: int) -> None:
        self.terms = terms
        self.now = START
        self.vault = Vault(exit_delay=1)
        self.beacon = SeededBeacon(seed)
        calls = _LateCalls()
        self.tickets = Tickets(self.vault, calls, terms.tickets)
        self.books = RoundLedger(terms.rounds, self.vault, self.beacon, self.tickets, OpenGate(), calls)
        self.audited = AuditedBooks(self.books)
        self.duties = calls.duties = Duties(self.tickets, self.beacon, self.audited, terms.duties)
        self.attestations = self.duties.attestations
        self.works: dict[Round, dict[Seat, SeatWork]] = {}
        """What was committed, as the contract's events tell it."""
        self._chains: dict[TicketId, list[Digest]] = {}
        self._known: set[Address] = set()
        self._final = 0
        self._seed = seed
        self.fund(KEEPER)

    # --- people

    def fund(self, who: Address) -> None:
        """Free stake, once."""
        if who not in self._known:
            self._known.add(who)
            self.vault.deposit(who, RICH)

    def join(self, who: Address) -> int:
        """A seat from the next round on. Raises NoSeatFree."""
        self.fund(who)
        return self.books.tenures.join(who, self.now)

    def register(self, who: Address) -> TicketId:
        """A ticket with a chain of secrets."""
        self.fund(who)
        chain = chain_of(mark("secret", self._seed, len(self._chains)), self.terms.links)
        ticket = self.tickets.register(who, chain[0], self.now)
        self._chains[ticket] = chain
        return ticket

    def secret_of(self, ticket: TicketId, epoch: int) -> Digest:
        """A ticket's secret for a call of an epoch; its first call is that of the first epoch in which it counts."""
        before = self.duties.calls_at(self.tickets.shift_of(ticket), self.tickets.tickets[ticket].from_ - 1)
        return self._chains[ticket][self.duties.epochs[epoch].call - before]

    def is_called(self, ticket: TicketId, epoch: int) -> bool:
        """Whether an epoch calls a ticket."""
        called = self.duties.epochs[epoch]
        on_shift = bool(called.on_call) and self.tickets.shift_of(ticket) == called.shift
        return on_shift and self.tickets.is_serving(ticket, called.start, self.now)

    # --- rounds

    @property
    def round(self) -> Round:
        """The round that takes commitments."""
        return Round(len(self.books.commitments.rounds) - 1)

    def at(self, time: int) -> None:
        """It is this second, or later already."""
        self.now = max(self.now, time)

    def play_round(self, tenures: Sequence[int], invented: Collection[int]) -> Round:
        """A round in which these tenures commit, as one merge, to its end; the round's number."""
        if self.round < 0:
            self.books.generations.begin(self.now)
        commitments, r = self.books.commitments, self.round
        state = commitments.rounds[r]
        self.at(state.t0 + TRAINING)
        for number in tenures:
            tenure = self.books.tenures.existing(number)
            work = self.work(r, tenure.seat, number in invented)
            commitments.commit(tenure.holder, r, tenure.seat, number, state.base, work, self.now)
            self.works.setdefault(r, {})[tenure.seat] = work
        self._merge(r)
        if self.round == r:
            last = commit_until(self.terms.rounds, state)
            self.at(1 + (last if state.is_under_half else commitments.merge_until(r)))
            self.books.generations.restart(self.now)
        self._finalize()
        return r

    def work(self, round_: Round, seat: Seat, is_invented: bool = False) -> SeatWork:
        """What an honest replay of a seat's round ends in, or what was invented instead."""
        label = ("invented" if is_invented else "true", round_, seat)
        ends = (mark(label, "parameters"), mark(label, "optimizer"), mark(label, "scalars"))
        return SeatWork(60, mark(label, "marks"), ends, mark(label, "update"))

    # --- inside

    def _merge(self, round_: Round) -> None:
        """Everybody with weight says that it holds all updates, seals one root and opens it."""
        commitments, generations = self.books.commitments, self.books.generations
        group = commitments.group_of(round_, 0)
        if commitments.rounds[round_].is_under_half or not group.maskable:
            return
        seats = {Seat(place): self.books.tenures.existing(work.tenure) for place, work in group.maskable.items()}
        seats = {seat: tenure for seat, tenure in seats.items() if not tenure.convicted_at}
        everything = frozenset(group.maskable)
        self.at(commitments.rounds[round_].mask_at + 1)
        for seat, tenure in seats.items():
            commitments.hold(tenure.holder, round_, 0, [seat], group.acc, everything, self.now)
        self.at(commitments.hold_until(round_, 0) + 1)
        over = generations.over_of(round_ + 1, self.now)
        lists, salt = (mark("parameters", round_), mark("momentum", round_)), mark("salt")
        for seat, tenure in seats.items():
            seal = ids.seal_digest(round_, seat, state_digest(lists), over, salt, tenure.holder)
            generations.seal(tenure.holder, round_, seat, seal, self.now)
        if not (sealed_until := generations.votes[round_ + 1].seal_until):
            return
        self.at(sealed_until + 1)
        for seat, tenure in seats.items():
            generations.open(tenure.holder, round_, seat, *lists, salt, self.now)

    def _finalize(self) -> None:
        """Every merged generation whose window is over becomes final, in its order."""
        generations = self.books.generations
        for generation in range(self._final + 1, self.round + 1):
            status = generations.status_of(generation)
            if status is GenerationStatus.MERGED and not self._finalized(generation):
                return
            self._final = generation

    def _finalized(self, generation: int) -> bool:
        """Whether one that stands makes it final; where nobody stands any more, its root is backed first."""
        generations, root = self.books.generations, self.books.generations.votes[generation].root
        assert root is not None
        parties = [party for g, party in generations.openings if g == generation]
        for party in parties:
            try:
                generations.finalize(generation, party, self.now)
            except RejectedError as refused:
                if refused.code != "NotStanding":
                    return False
            else:
                return True
        generations.drop(generation, parties[0], self.now)
        generations.back(KEEPER, generation, root, self.now)
        return False


def is_lasting(run: ModelRun, tenure: int) -> bool:
    """Whether a tenure was neither convicted nor evicted, and has not left."""
    return run.books.tenures.existing(tenure).until == NEVER


class _LateCalls:
    """Tickets are made before the duties that call them."""

    duties: Duties

    def calls_at(self, shift: int, time: int) -> int:
        """Calls of a shift by epochs that began at a time or before."""
        return self.duties.calls_at(shift, time)

    def newest(self) -> tuple[int, int]:
        """The newest epoch and when it began."""
        return self.duties.newest()

    def over_after(self, time: int) -> int:
        """Since when nothing that was due by a time can be drawn any more, in seconds of chain time; 0: it can."""
        return self.duties.over_after(time)

    def over_since(self, number: int) -> int:
        """Since when nothing that belongs to an epoch can be drawn any more, in seconds of chain time; 0: it can."""
        return self.duties.over_since(number)
