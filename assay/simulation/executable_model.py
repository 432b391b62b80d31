"""The contracts' executable model as `interface.PlayableRounds`: the same populations, on the contracts' own rules.

An epoch of a population is a round of the run and the epoch of audits that is open meanwhile: what is committed in one
is drawn in the next. Money is only counted, since the model has neither pay nor bounties yet: a commitment is paid when
it is settled as final, a result when its epoch can be disputed no longer, and drawn accusers share a lock equally.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import NO_FINDING, DutyResult
from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round, Seat
from assay.simulation.interface import (
    AuditWord,
    ClaimNumber,
    OwnerNumber,
    OwnerTally,
    ReplayDuty,
    TenureNumber,
    TicketNumber,
)
from assay.simulation.model_games import ModelGames
from assay.simulation.model_records import ModelRecords
from assay.simulation.model_run import KEEPER, ModelRun, is_lasting
from assay.simulation.model_terms import ModelTerms, mark, person
from assay_verifier.drawing import Drawn, DutyBook


@dataclass(frozen=True, slots=True)
class _PlayedClaim:
    """A commitment (`attestation` is ZERO), or an attestation of a ticket on it."""

    owner: OwnerNumber
    round: Round
    seat: Seat
    ticket: TicketId = TicketId(0)  # noqa: RUF009
    attestation: Digest = ZERO


class ExecutableModel:
    """A run on the model, played by owners. Verdicts follow so many epochs after what they are about was found."""

    def __init__(self, terms: ModelTerms, seed: int, game_epochs: int = 0) -> None:
        self.run = ModelRun(terms, seed)
        self._game_epochs = game_epochs
        self._records = ModelRecords(self.run)
        self._games = ModelGames(self.run)
        self._claims: dict[ClaimNumber, _PlayedClaim] = {}
        self._works: dict[tuple[Round, Seat], ClaimNumber] = {}
        self._named: dict[Digest, ClaimNumber] = {}
        self._unpaid: dict[ClaimNumber, None] = {}
        self._sellers: dict[TicketNumber, OwnerNumber] = {}
        self._holders: dict[TenureNumber, OwnerNumber] = {}
        self._tallies: dict[OwnerNumber, OwnerTally] = {}
        self._duties: dict[ReplayDuty, list[Drawn]] = {}
        self._opening: dict[TicketId, list[tuple[Drawn, AuditWord]]] = {}
        self._hidden: dict[TicketId, int] = {}
        """Tickets that did not show their last secret, and of which epoch."""
        self._pending: list[tuple[int, ClaimNumber, tuple[TicketNumber, ...], OwnerNumber | None]] = []

    # --- joining

    def take_seat(self, owner: OwnerNumber) -> TenureNumber | None:
        """A tenure, while fewer than all seats are taken."""
        try:
            tenure = TenureNumber(self.run.join(person(owner)))
        except RejectedError as refused:
            if refused.code == "NoSeatFree":
                return None
            raise
        self._holders[tenure] = owner
        return tenure

    def buy_ticket(self, owner: OwnerNumber) -> TicketNumber:
        """A ticket, which is called from the next epoch on."""
        ticket = TicketNumber(self.run.register(person(owner)))
        self._sellers[ticket] = owner
        return ticket

    def is_seated(self, tenure: TenureNumber) -> bool:
        """Whether the seat is still held."""
        return is_lasting(self.run, tenure)

    def is_staked(self, ticket: TicketNumber) -> bool:
        """Whether the ticket has neither been convicted nor begun to leave."""
        return not self.run.tickets.tickets[TicketId(ticket)].until

    def tally(self, owner: OwnerNumber) -> OwnerTally:
        """The owner's events so far."""
        return self._tallies.setdefault(owner, OwnerTally())

    # --- an epoch

    def commit(
        self, tenures: Sequence[TenureNumber], invented: Collection[TenureNumber] = ()
    ) -> Sequence[ClaimNumber | None]:
        """A round in which these tenures commit; what is audited is the round before."""
        books = self.run.books
        begun = [t for t in tenures if books.tenures.existing(t).from_ <= max(self.run.round, 0)]
        round_ = self.run.play_round(begun, invented)
        made: dict[TenureNumber, ClaimNumber] = {}
        for tenure in begun:
            seat = books.tenures.existing(tenure).seat
            made[tenure] = self._add(_PlayedClaim(self._holders[tenure], round_, seat))
            self._works[round_, seat] = made[tenure]
        return [made.get(t) for t in tenures]

    def draw(self) -> Sequence[ReplayDuty]:
        """Duties of the newest epoch, of every ticket that it calls: each ticket's c lowest draws."""
        duties, run = self.run.duties, self.run
        if duties.epochs[-1].seed is None:
            run.at(duties.epochs[-1].start + 2 * duties.terms.delay)
            duties.seed_epoch(run.now)
        book, number, self._duties = DutyBook(self._records), duties.number, {}
        for ticket in self._called():
            if (number, ticket) in duties.answers:
                continue
            for one in book.drawn(number, ticket, run.secret_of(ticket, number))[: duties.terms.capacity]:
                claim = self._claim_of(one)
                self._duties.setdefault(ReplayDuty(TicketNumber(ticket), claim), []).append(one)
        return list(self._duties)

    def open_secret(self, ticket: TicketNumber) -> None:
        """Its call will be opened with what it attests."""
        if self.run.is_called(TicketId(ticket), self.run.duties.number):
            self._opening.setdefault(TicketId(ticket), [])

    def attest(self, duty: ReplayDuty, word: AuditWord = AuditWord.REPLAYED) -> ClaimNumber:
        """A result to open with the secret; the claim that it will be."""
        ticket, number = TicketId(duty.ticket), self.run.duties.number
        claim = ClaimNumber(0)
        for one in self._duties[duty]:
            self._opening[ticket].append((one, word))
            name = draws.attestation_id(number, ticket, one.duty.kind, one.target)
            owner = self._sellers[duty.ticket]
            claim = self._add(_PlayedClaim(owner, Round(one.round), one.seat, ticket, name))
            self._named[name] = claim
        return claim

    def close(self) -> bool:
        """The calls are opened and the epoch ends, with fines for what was missed; or it repeats."""
        run, duties, number = self.run, self.run.duties, self.run.duties.number
        for ticket, said in self._opening.items():
            if (number, ticket) in duties.answers:
                continue
            said.sort(key=lambda result: result[0].rank)
            results = [self._result(one, word) for one, word in said]
            owner, seed = person(self._sellers[TicketNumber(ticket)]), duties.epochs[number].seed
            assert seed is not None
            duties.open(owner, ticket, seed, run.secret_of(ticket, number), results, run.now)
        self._opening = {}
        called = self._called()
        last = run.audited.commit_until(max(run.works))
        run.at(1 + max(duties.epochs[-1].deadline, last))
        duties.close_epoch(run.now)
        if duties.number == number:
            return False
        shown = {t for t in called if (number, t) in duties.answers}
        self._hidden = {t: k for t, k in self._hidden.items() if t not in shown}
        if duties.epochs[number].fines:
            self._fine(number, called)
        for due, claim, drawn, third in self._pending:
            if due <= number:
                self._judge(claim, drawn, third)
        self._pending = [p for p in self._pending if p[0] > number]
        return True

    # --- verdicts and money

    def uphold(self, claim: ClaimNumber, drawn: Sequence[TicketNumber], third: OwnerNumber | None) -> None:
        """A claim lost its game, or will when it is over."""
        if not self._game_epochs:
            self._judge(claim, tuple(drawn), third)
            return
        due = self.run.duties.number - 1 + self._game_epochs
        if claim not in [pending for _, pending, *_ in self._pending]:
            self._pending.append((due, claim, tuple(drawn), third))

    def dismiss(self, claim: ClaimNumber, accuser: TicketNumber) -> None:
        """An accuser loses every game that it could open, and its ticket."""
        self._games.lose_all(TicketId(accuser))
        winner = self._claims[claim]
        lost = winner.ticket and self.run.tickets.tickets[winner.ticket].convicted_at
        if self.run.tickets.forfeit(TicketId(accuser), self.run.now):
            self.tally(self._sellers[accuser]).stakes += 1
            self.tally(winner.owner).third_stakes += not lost

    def settle(self) -> None:
        """Pays what can be disputed no longer, and puts off who stayed away."""
        run, books = self.run, self.run.books
        for number in list(self._unpaid):
            claim = self._claims[number]
            if claim.attestation != ZERO:
                if run.attestations.window_of(claim.attestation):
                    del self._unpaid[number]
                    self.tally(claim.owner).wages += not run.tickets.tickets[claim.ticket].convicted_at
            elif self._is_audited(claim.round):
                try:
                    status = books.commitments.settle(claim.round, claim.seat)
                except RejectedError:
                    continue
                del self._unpaid[number]
                self.tally(claim.owner).paid += status is WorkStatus.FINAL
        for tenure, owner in self._holders.items():
            if is_lasting(run, tenure) and self._is_evicted(tenure):
                self.tally(owner).fees += 1

    # --- inside

    def _add(self, claim: _PlayedClaim) -> ClaimNumber:
        number = ClaimNumber(len(self._claims) + 1)
        self._claims[number] = claim
        self._unpaid[number] = None
        return number

    def _called(self) -> list[TicketId]:
        held = self.run.tickets.tickets
        tickets = [TicketId(t) for t in self._sellers if not held[TicketId(t)].convicted_at]
        return [t for t in tickets if self.run.is_called(t, self.run.duties.number)]

    def _claim_of(self, one: Drawn) -> ClaimNumber:
        if one.duty.attestation != ZERO:
            return self._named[one.duty.attestation]
        return self._works[Round(one.round), one.seat]

    def _result(self, one: Drawn, word: AuditWord) -> DutyResult:
        """The bytes that say it."""
        round_, seat, keys = Round(one.round), one.seat, (one.key, *one.audited)
        work = self.run.works[round_][seat]
        audited = self.run.attestations.findings.get(one.duty.attestation, NO_FINDING)
        if word is AuditWord.INVENTED:
            claimed = audited if audited is not NO_FINDING else work
            guesses = (mark("guess", one.key), *(audited.accumulators if one.audited else ()))
            return DutyResult(one.duty, work, claimed.ends, claimed.update, guesses, audited)
        truth = self.run.work(round_, seat)
        accumulators = tuple(mark("accumulator", key, round_, seat) for key in keys)
        update = mark("wrong", one.key) if word is AuditWord.WRONG else truth.update
        return DutyResult(one.duty, work, truth.ends, update, accumulators, audited)

    def _fine(self, number: int, called: Sequence[TicketId]) -> None:
        """What anybody can prove after an epoch: misses, absences, and stakes of who hides a second secret."""
        run, duties, book = self.run, self.run.duties, DutyBook(self._records)
        for ticket in called:
            owner = self._sellers[TicketNumber(ticket)]
            if (number, ticket) not in duties.answers:
                self._charge(owner, ticket, duties.absent(KEEPER, ticket, number, run.now))
                hidden = self._hidden.setdefault(ticket, number)
                if hidden < number:
                    duties.forfeit(ticket, hidden, number, run.now)
                    self.tally(owner).stakes += 1
                continue
            for home in book.calls_shown_by(number, ticket):
                for one in (*book.missed(home, ticket, number), *book.missed_again(home, ticket, number)):
                    if duties.epochs[home].fines and run.audited.is_base_final(one.round):
                        self._charge(owner, ticket, duties.miss(KEEPER, ticket, home, number, one.duty, run.now))

    def _charge(self, owner: OwnerNumber, ticket: TicketId, taken: int) -> None:
        self.tally(owner).fines += taken / self.run.duties.terms.wage
        held = self.run.tickets.tickets[ticket]
        if held.short_since and not held.convicted_at:
            self.run.tickets.top_up(held.owner, ticket)

    def _judge(self, number: ClaimNumber, drawn: tuple[TicketNumber, ...], third: OwnerNumber | None) -> None:
        """The claim's party loses its lock, if it has one and the claim can still be challenged."""
        claim = self._claims[number]
        if claim.attestation == ZERO:
            is_lost = self._games.convict_seat(claim.round, claim.seat)
        else:
            is_lost = self._games.convict_attestation(claim.attestation)
        if is_lost:
            self._share(claim, drawn, third)

    def _share(self, lost: _PlayedClaim, drawn: tuple[TicketNumber, ...], third: OwnerNumber | None) -> None:
        """Tallies a lock that was lost, and who would get its bounty."""
        kind = "locks" if lost.attestation == ZERO else "stakes"
        shares = [(lost.owner, kind, 1.0)]
        shares += [(self._sellers[t], f"drawn_{kind}", 1 / len(drawn)) for t in drawn]
        if not drawn and third is not None:
            shares.append((third, f"third_{kind}", 1.0))
        for owner, name, share in shares:
            tally = self.tally(owner)
            setattr(tally, name, getattr(tally, name) + share)

    def _is_audited(self, round_: Round) -> bool:
        """Whether nothing about a round's work can be drawn any more; it belongs to the epoch that its end begins."""
        return self.run.duties.is_audited(round_, round_ + 1)

    def _is_evicted(self, tenure: int) -> bool:
        """Whether somebody could put a holder off, and did."""
        tenures, newest = self.run.books.tenures, max(self.run.works)
        if tenures.existing(tenure).last > newest:
            return False
        try:
            tenures.evict(KEEPER, tenure, newest, self.run.now)
        except RejectedError:
            return False
        return True
