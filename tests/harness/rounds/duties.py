"""Audits on the stage: epochs, commitments as a test writes them, tickets that answer truly unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from typing import Any

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.attestations import PreparedClaim
from assay.protocol.rounds.duties import Duties
from assay.protocol.rounds.duty_types import (
    NO_FINDING,
    NOTHING_MISSED,
    DrawnDuty,
    DutyKind,
    DutyResult,
    DutyTerms,
    Missed,
    ReplayFinding,
)
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms, ToldStop, chain_of
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Seat, Wei
from tests.harness.rounds.duty_rows import duty_tuple, finding_tuple, result_tuple, work_tuple
from tests.harness.rounds.stage import ETHER, START, ModelAndContracts, text
from tests.harness.rounds.staged_rounds import StagedRounds, mark, true_finding, true_work

TICKETS = TicketTerms(bond=Wei(100 * ETHER), seasoning=2 * 3600, shifts=1)
TERMS = DutyTerms(
    start=START + 7200, length=3600, delay=60, capacity=4, audit_ppm=4_000_000, reaudit_ppm=4_000_000, wage=Wei(ETHER)
)
STAGED = ("escrow", "beacon", "commitments", "tenures", "generations", "game")
"""Modules that AuditStage.sol plays."""

CREW = (TicketId(1), TicketId(2), TicketId(3), TicketId(4))


class DutyStage(ModelAndContracts):
    """Four tickets of four people, one shift, every epoch calls all of them unless the terms say otherwise."""

    def __init__(
        self,
        contracts: bool = True,
        terms: DutyTerms = TERMS,
        tickets: TicketTerms = TICKETS,
        people: int = 4,
        **more: Any,
    ) -> None:
        super().__init__(people, contracts=contracts, **more)
        self.rounds = StagedRounds()
        self.calls = LateCalls()
        self.tickets = Tickets(self.vault, self.calls, tickets)
        self.duties = Duties(self.tickets, self.rounds, self.rounds, terms)
        self.attestations = self.duties.attestations
        self.calls.duties = self.duties
        self.chains: dict[int, list[Digest]] = {}
        self.round = 0
        if contracts:
            self.deploy(
                {"rounds": "AuditStage", "tickets": "Tickets", "duties": "Duties", "attestations": "Attestations"},
                {**{name: name for name in ("tickets", "duties", "attestations")}, **dict.fromkeys(STAGED, "rounds")},
                tickets=tickets,
                duties=terms,
            )

    # --- the world

    def register(self, who: int, secrets: list[Digest] | None = None) -> TicketId:
        """Register a ticket whose chain the stage keeps."""
        secrets = secrets or chain_of(mark("secret", self.tickets._last + 1), 40)
        ticket = self.both(
            lambda: self.tickets.register(self.people[who], secrets[0], self.now),
            "tickets",
            "register",
            secrets[0],
            caller=self.people[who],
        )
        self.chains[ticket] = secrets
        return TicketId(ticket)

    def crew(self) -> None:
        """A ticket per person, seasoned; the first epoch has begun and is not seeded."""
        for who in range(len(self.people)):
            self.register(who)
        self.pass_time(self.tickets.terms.seasoning)

    def write(self, function: str, *args: Any) -> None:
        """Write into AuditStage.sol."""
        if self.contracts:
            self.contracts["rounds"].call(function, *args)

    def open_round(self, until: int, final: bool = True) -> int:
        """A round that takes commitments until a time."""
        self.round += 1
        self.set_round(self.round, until, final)
        return self.round

    def set_round(self, round_: int, until: int, final: bool) -> None:
        self.rounds.until[round_], self.rounds.final[round_] = until, final
        if final:
            self.rounds.final_at[round_] = self.now
        self.write("setRound", round_, until, final)

    def commit(self, round_: int, seat: int, work: SeatWork | None = None) -> None:
        """A commitment, true unless told otherwise; its tenure is the seat plus one."""
        work = true_work(round_, seat) if work is None else work
        self.rounds.works[round_, seat] = (seat + 1, work)
        self.write("setWork", round_, seat, seat + 1, work_tuple(work))

    def settle(self, round_: int, seat: int) -> None:
        """No game can be opened on a commitment any more."""
        self.rounds.settled.add((round_, seat))
        self.write("setSettled", round_, seat)

    def stop(self) -> None:
        """The run is wound down, or cancelled."""
        self.tickets.state = ToldStop(self.now)
        self.write("setStopped", self.now)

    def convict(self, tenure: int) -> None:
        """A tenure is convicted by a game elsewhere."""
        self.rounds.convicted.add(tenure)
        self.write("setConvicted", tenure)

    # --- epochs

    def seed(self, label: object = 0, who: int = 0) -> None:
        """Submit the beacon's round of the newest epoch and seed it."""
        start = self.duties.epochs[-1].start
        self.pass_time(max(0, start + 120 - self.now))
        number = self.rounds.round_after(start + self.duties.terms.delay)
        randomness = mark("beacon", number, label)
        self.rounds.randomness[number] = randomness
        self.write("setRandomness", number, randomness)
        self.any("seedEpoch", lambda: self.duties.seed_epoch(self.now))

    def close(self) -> None:
        """Let the deadline pass, and close or repeat the newest epoch."""
        deadline = self.duties.epochs[-1].deadline
        self.pass_time(max(0, deadline + 1 - self.now))
        self.any("closeEpoch", lambda: self.duties.close_epoch(self.now))

    def any(self, function: str, model: Callable[[], Any], *args: Any, who: int = 0) -> Any:
        """A call of anybody."""
        return self.both(model, "duties", function, *args, caller=self.people[who])

    def game(self, function: str, model: Callable[[], Any], *args: Any, of: str = "attestations") -> None:
        """A call of the game, or of another peer, in whose name AuditStage.sol calls."""
        data = self.contracts[of].calldata(function, *args) if self.contracts else b""
        place = self.contracts[of].address if self.contracts else ""
        self.both(model, "rounds", "act", place, data, caller=self.people[0])

    # --- tickets

    def secret(self, ticket: int, number: int | None = None) -> Digest:
        """The secret of a ticket's call in an epoch (the newest)."""
        epoch = self.duties.epochs[self.duties.number if number is None else number]
        held = self.tickets.tickets[TicketId(ticket)]
        first = self.duties.calls_at(self.tickets.shift_of(TicketId(ticket)), held.from_ - 1)
        return self.chains[ticket][epoch.call - first]

    def owner(self, ticket: int) -> Address:
        return self.tickets.tickets[TicketId(ticket)].owner

    def drawn(self, ticket: int, duties: Sequence[DrawnDuty], number: int | None = None) -> list[DrawnDuty]:
        """Those of some duties that a ticket is drawn for in an epoch, by rank."""
        number = self.duties.number if number is None else number
        seed, secret = self.duties.epochs[number].seed, self.secret(ticket, number)
        assert seed is not None
        found = []
        for duty in duties:
            try:
                target = self.duties._target_of(number, TicketId(ticket), duty, self.now)
            except RejectedError:
                continue
            drawn = draws.draw(secret, seed, target.id, TicketId(ticket), duty.kind)
            if drawn < target.threshold:
                found.append((draws.rank_of(drawn, target.scale), duty))
        return [duty for _, duty in sorted(found, key=lambda pair: pair[0])]

    def result(self, ticket: int, duty: DrawnDuty, lie: bool = False) -> DutyResult:
        """The true result of a duty, or another one."""
        number, secret = self.duties.number, self.secret(ticket)
        seed = self.duties.epochs[-1].seed
        assert seed is not None
        target = self.duties._target_of(number, TicketId(ticket), duty, self.now)
        audited = self.attestations.findings.get(duty.attestation, NO_FINDING)
        own = draws.witness_key(secret, seed, target.id, TicketId(ticket), duty.kind)
        keys = (own, *(audited.keys if len(audited.keys) <= 6 else ()))
        found = true_finding(target.round, target.seat, keys)
        work = self.rounds.works[target.round, target.seat][1]
        result = DutyResult(duty, work, found.ends, found.update, found.accumulators, audited)
        return replace(result, update=mark("lie", ticket)) if lie else result

    def open(
        self,
        ticket: int,
        results: Sequence[DutyResult],
        secret: Digest | None = None,
        by: int = -1,
        seed: Digest | None = None,
    ) -> None:
        """Open the newest epoch's call, by its seed unless another one is given."""
        seed = (self.duties.epochs[-1].seed or ZERO) if seed is None else seed
        secret = self.secret(ticket) if secret is None else secret
        who = self.owner(ticket) if by < 0 else self.people[by]
        rows = [result_tuple(result) for result in results]
        self.both(
            lambda: self.duties.open(who, TicketId(ticket), seed, secret, results, self.now),
            "duties",
            "open",
            ticket,
            seed,
            secret,
            rows,
            caller=who,
        )

    def show(self, ticket: int, number: int, secret: Digest | None = None) -> None:
        secret = self.secret(ticket, number) if secret is None else secret
        self.any("show", lambda: self.duties.show(TicketId(ticket), number, secret, self.now), ticket, number, secret)

    def miss(self, ticket: int, number: int, duty: DrawnDuty, via: int | None = None, who: int = 3) -> int:
        via = number if via is None else via
        return int(
            self.any(
                "miss",
                lambda: self.duties.miss(self.people[who], TicketId(ticket), number, via, duty, self.now),
                *(ticket, number, via, duty_tuple(duty)),
                who=who,
            )
        )

    def absent(self, ticket: int, number: int, who: int = 3) -> int:
        return int(
            self.any(
                "absent",
                lambda: self.duties.absent(self.people[who], TicketId(ticket), number, self.now),
                ticket,
                number,
                who=who,
            )
        )

    def forfeit(self, ticket: int, number: int, later: int) -> None:
        self.any(
            "forfeit",
            lambda: self.duties.forfeit(TicketId(ticket), number, later, self.now),
            ticket,
            number,
            later,
        )

    def lapse(self, accusation: Digest, who: int = 3) -> None:
        caller = self.people[who]
        model = lambda: self.attestations.lapse(caller, accusation, self.now)  # noqa: E731
        self.both(model, "attestations", "lapse", accusation, caller=caller)

    def try_(self, accusation: Digest, by: int | None = None) -> None:
        """The book of commitments tells of the game of an accusation of work, which its accuser opened."""
        made = self.attestations.accusations[accusation]
        who = self.owner(made.ticket) if by is None else self.people[by]
        model = lambda: self.attestations.on_tried(accusation, made.against, who)  # noqa: E731
        self.game("onTried", model, accusation, made.against, text(who))

    def judge(self, accusation: Digest, right: bool) -> None:
        """The book of commitments tells of the verdict."""
        model = lambda: self.attestations.on_judged(accusation, right, self.now)  # noqa: E731
        self.game("onJudged", model, accusation, right)

    def prepare(self, attestation: Digest, part: int, finding: ReplayFinding | None = None) -> PreparedClaim:
        """Build X and Y of one part of a finding."""
        finding = self.attestations.findings[attestation] if finding is None else finding
        model = lambda: self.attestations.prepare(attestation, finding, part)  # noqa: E731
        row = finding_tuple(finding)
        claim = self.both(model, "attestations", "prepare", attestation, row, part, caller=self.people[0])
        assert isinstance(claim, PreparedClaim)
        if self.contracts:
            shown = self.contracts["attestations"].call("claimOf", self.claim_ref(attestation, part))
            assert (shown[2], shown[3], shown[5]) == (claim.x, claim.y, claim.steps)
        return claim

    def claim_ref(self, name: Digest, part: int) -> tuple[Any, ...]:
        """A part of an attestation, named by it or by an accusation of it, as games take it."""
        made = self.attestations.attestations[self.attestations.named(name)]
        return int(ClaimKind.ATTESTATION), made.round, made.seat, part, bytes(20), name

    def open_game(self, name: Digest, part: int, who: int) -> None:
        """The game tells that somebody challenges a part of an attestation, or what an accusation accuses."""
        challenger = self.people[who]
        model = lambda: self.attestations.on_opened(name, part, challenger)  # noqa: E731
        self.game("onOpened", model, self.claim_ref(name, part), text(challenger))

    def end_game(self, name: Digest, part: int, convicted: bool) -> None:
        """The game tells of the verdict."""
        model = lambda: self.attestations.on_closed(name, convicted, self.now)  # noqa: E731
        self.game("onClosed", model, self.claim_ref(name, part), convicted)

    def compare(self) -> None:
        """What the contract keeps equals the model."""
        if not self.contracts:
            return
        contract = self.contracts["duties"]
        for number, epoch in enumerate(self.duties.epochs):
            kept = (epoch.seed or ZERO, epoch.start, epoch.deadline, epoch.shift, epoch.call, epoch.on_call)
            kept += (epoch.opened, epoch.repeats, epoch.closed, epoch.fines, epoch.idle)
            assert contract.call("epochOf", number) == kept
        assert contract.call("lastEpoch") == self.duties.last_epoch
        for (number, ticket), a in self.duties.answers.items():
            wanted = (a.secret, a.top_rank, a.answered, a.skipped, a.shown_in, a.in_time)
            assert contract.call("answerOf", number, ticket) == wanted
        book = self.contracts["attestations"]
        for name, m in self.attestations.attestations.items():
            assert book.call("attestationOf", name) == astuple(m)
            assert book.call("windowOf", name) == self.attestations.window_of(name)
        for name, made in self.attestations.accusations.items():
            assert book.call("accusationOf", name) == astuple(made)
        for number in range(len(self.duties.epochs) + 1):
            assert contract.call("overSince", number) == self.duties.over_since(number)
        starts = [epoch.start for epoch in self.duties.epochs]
        for time in sorted({max(0, start + step) for start in starts for step in (-1, 0, 1)}):
            assert contract.call("overAfter", time) == self.duties.over_after(time)
        for tenure in range(1, 9):
            frozen = self.contracts["rounds"].call("frozen", tenure)
            wanted = (self.rounds.accusations[tenure], self.rounds.suspensions[tenure])
            assert frozen == (*wanted, tenure in self.rounds.convicted)
        for number, held in self.tickets.tickets.items():
            shown = self.contracts["tickets"].call("ticketOf", number)
            assert shown[4:8] == (held.shown, held.last_epoch, held.obligations, held.disputes)
            assert book.call("accusationsOf", number) == self.attestations.against[number]
        assert self.contracts["vault"].call("totals") == self.vault.totals()
        for who in self.people:
            assert self.contracts["vault"].call("free", text(who)) == self.vault.free_of(who)


class LateCalls:
    """Calls of duties that are made after the tickets that ask for them."""

    duties: Duties

    def calls_at(self, shift: int, time: int) -> int:
        return self.duties.calls_at(shift, time)

    def newest(self) -> tuple[int, int]:
        return self.duties.newest()

    def over_since(self, epoch: int) -> int:
        return self.duties.over_since(epoch)


def work_duties(round_: int, seats: Sequence[int], kind: DutyKind = DutyKind.WORK) -> list[DrawnDuty]:
    """A duty per commitment of a round."""
    return [DrawnDuty(kind, round_, Seat(seat)) for seat in seats]


def missed(duty: DrawnDuty, number: int, ticket: int, via: int | None = None) -> DrawnDuty:
    """The redraw of a duty that a ticket missed."""
    assert duty.missed == NOTHING_MISSED
    return replace(
        duty,
        kind=DutyKind.MISSED,
        missed=Missed(duty.kind, number, TicketId(ticket), number if via is None else via),
    )
