"""The books of a run as its events tell them: those of the executable model, so that the view asks the specification.

A role asks `tenures`, `commitments`, `generations`, `registry` (of tickets) and `duties` what the contracts would
answer, with the chain time as an argument.
"""

from __future__ import annotations

from assay.protocol.economics.limits import PPM
from assay.protocol.errors import InvariantError
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import BeaconBook, EpochEnds, Rights, TicketBook
from assay.protocol.rounds.clock import commit_until
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import GenerationStatus, SeatWork
from assay.protocol.rounds.ticket_types import TicketId, ToldStop
from assay.protocol.rounds.vault import Vault
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.trees.state import list_root
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.rounds.facts import KnownBeacon, RunFacts, UncountedVault
from assay_ledger.rounds.told_audits import ToldDuties, ToldTickets
from assay_ledger.rounds.told_generations import told_generations
from assay_ledger.rounds.told_rounds import ToldCommitments, ToldTenures


class ToldBooks:
    """All books of one run."""

    def __init__(self, facts: RunFacts) -> None:
        self.facts = facts
        self.terms = facts.rounds
        self.vault: Vault = UncountedVault()
        self.randomness = KnownBeacon(facts.beacon)
        """Of the beacon's rounds that were submitted."""
        self.beacon: BeaconBook = self.randomness
        self.rights: Rights = _ChainDecides()
        self.now = 0
        """Chain time of the newest block, in seconds."""
        self.stop = ToldStop()
        self.sunset = False
        """The owners of shares decided that no round opens any more."""
        self.paused_until = 0
        """First second of chain time after the newest pause of new rounds; 0: there was none."""
        self.price_ppm = PPM
        """What a round that opens now pays for a unit, in parts per million of the charter's price."""
        self.prices: dict[Round, int] = {}
        """The same of rounds that opened at another than the charter's price: each keeps its own."""
        self.tenures = ToldTenures(self)
        self.commitments = ToldCommitments(self)
        self.generations = told_generations(self)
        self.committees: dict[Node, dict[TicketId, tuple[int, ...]]] = {}
        """Positions of each ticket at nodes whose beacon is known (above 64 seats): they change no more."""
        self.audits: EpochEnds = _EpochCalls(self)
        self.registry = ToldTickets(self.vault, _EpochCalls(self), facts.tickets)
        self.registry.state = self.stop
        self.tickets: TicketBook = self.registry
        self.duties = ToldDuties(self.registry, self.randomness, _AuditedBooks(self), facts.duties)

    def is_sunset(self) -> bool:
        """See RoundBooks."""
        return self.sunset

    def work_pay_of(self, round_: Round, amount: int) -> int:
        """What a round pays for work that is worth an amount at the charter's price, in wei, rounded down."""
        return amount * self.prices.get(round_, PPM) // PPM

    def on_games(self, ref: ClaimRef, change: int) -> None:
        """A game was opened (1) or ended (-1) on a claim."""
        tenure = 0
        if ref.kind in (ClaimKind.INTERVAL, ClaimKind.UPDATE):
            tenure = self.commitments.on_games(ref, change)
        elif ref.kind is ClaimKind.OUTER:
            opener = self.generations.on_games(ref, change)
            if self.terms.by_seats:
                tenure = opener
            elif opener and change > 0:
                self.registry.dispute(TicketId(opener))
            elif opener:
                # A conviction has an event of its own.
                self.registry.undispute(TicketId(opener), False, self.now)
        elif ref.kind is ClaimKind.ATTESTATION:
            self.duties.attestations.on_games(ref, change, self.now)
        if tenure:
            self.tenures.on_games(tenure, change)


class _ChainDecides:
    """Whether a round may open is the gate's to say; these books learn of it when it has."""

    def may_open(self, seated: int, now: int) -> bool:
        raise InvariantError("Books that follow the chain open no rounds.", code="NotDecidedHere")

    def carries(self, seated: int, now: int) -> bool:
        raise InvariantError("Books that follow the chain let nobody join.", code="NotDecidedHere")

    def is_stopped(self) -> bool:
        # Releases are told by events; nobody asks these books for one.
        return False

    def stopped_at(self) -> int:
        return 0  # what becomes final is told by events too

    def reserve(self, round_: Round, seated: int, now: int) -> None:
        raise InvariantError("Books that follow the chain set nothing aside.", code="NotDecidedHere")


class _EpochCalls:
    """The calls of the epochs of some books."""

    def __init__(self, books: ToldBooks) -> None:
        self._books = books

    def calls_at(self, shift: int, time: int) -> int:
        return self._books.duties.calls_at(shift, time)

    def newest(self) -> tuple[int, int]:
        return self._books.duties.newest()

    def over_since(self, epoch: int) -> int:
        return self._books.duties.over_since(epoch)

    def over_after(self, time: int) -> int:
        return self._books.duties.over_after(time)


class _AuditedBooks:
    """What audits ask of the other books."""

    def __init__(self, books: ToldBooks) -> None:
        self._books = books

    def commit_until(self, round_: int) -> int:
        return commit_until(self._books.terms, self._books.commitments.round_of(Round(round_)))

    def trained_until(self, now: int) -> int | None:
        commitments = self._books.commitments
        return (
            self.commit_until(len(commitments.rounds) - 1) if commitments.is_over(now) and commitments.rounds else None
        )

    def work_of(self, round_: int, seat: Seat) -> tuple[Digest, int]:
        made = self._books.commitments.works.get((Round(round_), seat))
        return (made.digest, made.tenure) if made else (Digest(bytes(32)), 0)

    def digest_of(self, round_: int, seat: Seat, tenure: int, work: SeatWork) -> Digest:
        return ids.work_digest(Round(round_), seat, tenure, work)

    def start_of(self, round_: int, seat: Seat) -> tuple[Digest, Digest, Digest]:
        parameters, _ = self._books.commitments.start_of(Round(round_), seat)
        scalars = self._books.facts.round_scalars(Round(round_), seat)
        return parameters, self._books.terms.zero_optimizer, list_root(scalars.roots())

    def steps_of(self, round_: int, seat: Seat) -> int:
        return self._books.commitments.works[Round(round_), seat].units * self._books.terms.steps_per_unit

    def is_disputable(self, round_: int, seat: Seat) -> bool:
        return self._books.commitments.is_disputable(Round(round_), seat)

    def is_convicted(self, tenure: int) -> bool:
        return self._books.tenures.is_convicted(tenure)

    def is_base_final(self, round_: int) -> bool:
        parent = self._books.commitments.round_of(Round(round_)).parent
        return self._books.generations.status_of(parent) is GenerationStatus.FINAL

    def accuse(self, tenure: int) -> None:
        self._books.tenures.existing(tenure).accusations += 1

    def unaccuse(self, tenure: int) -> None:
        self._books.tenures.existing(tenure).accusations -= 1

    def suspend(self, tenure: int) -> None:
        self._books.tenures.suspend(tenure)

    def resume(self, tenure: int) -> None:
        self._books.tenures.existing(tenure).suspensions -= 1
