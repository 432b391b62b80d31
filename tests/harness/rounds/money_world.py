"""People of a whole run: they fund, train, audit, dispute and settle, on its contracts and its model at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.bounties import pot_lock
from assay.protocol.rounds.duty_types import NO_FINDING, DrawnDuty, DutyKind, DutyResult, Missed
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId, chain_of, ticket_lock
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from tests.harness.rounds.duties import result_tuple
from tests.harness.rounds.money_chain import DENSE, SOLVERS, MoneyCalls
from tests.harness.rounds.samples import ETHER, fields, mark, work_of
from tests.harness.rounds.stage import text
from tests.harness.rounds.world import RoundWorld

BOUNTY_PPM = 970_000


class MoneyWorld(MoneyCalls, RoundWorld):
    """A sponsor, solvers and auditors of one run."""

    def __init__(self, charter: RunCharter = DENSE, label: object = 0) -> None:
        super().__init__(charter)
        self.label = label
        """Which randomness the beacon has."""
        self.people: list[Address] = []
        self.tenures: dict[Address, int] = {}
        self.games = []
        self.sponsor = self.charter.sponsor
        self.works: dict[tuple[Round, Seat], SeatWork] = {}
        self.chains: dict[int, list[Digest]] = {}
        self._deposit(self.sponsor, 10**6 * ETHER)

    def _deposit(self, who: Address, amount: int) -> None:
        caller, token, vault = "0x" + who.hex(), self.chain.token, self.chain.contracts["Vault"]
        self.chain.evm.evm.set_balance(caller, 10**24)
        token.call("mint", caller, amount)
        token.call("approve", vault.address, amount, caller=caller)
        vault.call("deposit", amount, caller=caller)
        self.vault.deposit(who, amount)

    # --- the escrow

    def set_payee(self, owner: Address, payee: Address, by: Address) -> str:
        return self.do(
            lambda: self.vault.set_payee(owner, payee, by), "Vault", "setPayee", text(owner), text(payee), who=by
        )

    def request_exit(self, owner: Address, amount: int, by: Address) -> str:
        """As the owner itself, or as whoever takes itself for its payee."""
        if by == owner:
            ask = lambda: self.vault.request_exit(owner, amount, self.now)  # noqa: E731
            return self.do(ask, "Vault", "requestExit", amount, who=by)
        ask = lambda: self.vault.request_exit_for(owner, amount, by, self.now)  # noqa: E731
        return self.do(ask, "Vault", "requestExitFor", text(owner), amount, who=by)

    def withdraw(self, owner: Address, by: Address) -> str:
        take = lambda: self.vault.withdraw(owner, self.now)  # noqa: E731
        if by == owner:
            return self.do(take, "Vault", "withdraw", who=by)
        return self.do(take, "Vault", "withdrawFor", text(owner), who=by)

    def fund(self, who: Address, amount: int) -> str:
        return self.do(lambda: self.run.escrow.fund(who, amount), "Escrow", "fund", amount, who=who)

    def launch(self, who: Address) -> str:
        return self.do(lambda: self.run.escrow.launch(who, self.now), "Escrow", "launch", who=who)

    def cancel(self, who: Address) -> str:
        return self.do(lambda: self.run.escrow.cancel(who, self.now), "Escrow", "cancel", who=who)

    def wind_down(self) -> str:
        return self.do(lambda: self.run.escrow.wind_down(self.now), "Escrow", "windDown")

    def finish(self) -> str:
        return self.do(lambda: self.run.escrow.finish(self.now), "Escrow", "finish")

    def refund(self, who: Address) -> str:
        return self.do(lambda: self.run.escrow.refund(who), "Escrow", "refund", "0x" + who.hex())

    # --- a run

    def add_ticket(self, who: Address) -> TicketId:
        """A ticket whose chain of secrets the world keeps."""
        chain = chain_of(mark(("secret", len(self.chains))), 60)
        made: list[TicketId] = []
        said = self.do(
            lambda: made.append(self.run.tickets.register(who, chain[0], self.now)),
            "Tickets", "register", chain[0], who=who,
        )  # fmt: skip
        assert said == ""
        self.chains[made[0]] = chain
        return made[0]

    def gather(self, solvers: int = SOLVERS, tickets: int = 6, escrow: int = 1000 * ETHER) -> list[Address]:
        """The run is funded, seats are held, tickets count."""
        assert self.fund(self.sponsor, escrow) == ""
        people = [self.add_person(10**5 * ETHER) for _ in range(solvers)]
        for who in people:
            assert self.join(who) == ""
        for _ in range(tickets):
            self.add_ticket(self.add_person(10**5 * ETHER))
        self.tick(self.charter.timing.seasoning)
        return people

    def start(self, **gathered: Any) -> list[Address]:
        """The sponsor opens it."""
        people = self.gather(**gathered)
        assert self.launch(self.sponsor) == ""
        return people

    def commit(
        self,
        who: Address,
        work: SeatWork | None = None,
        round_: Round | None = None,
        base: Digest | None = None,
        seat: Seat | None = None,
    ) -> str:
        """Commit to the round under way; the world keeps the work."""
        r = self.round if round_ is None else round_
        work = work or work_of((who, r))
        said = super().commit(who, work, r, base, seat)
        if not said:
            self.works[r, self.seat(who)] = work
        return said

    def finalize(self, generation: int, seat: int = 0) -> str:
        """An opening's window is over: its generation is final."""
        party, books = ids.seat_party(Seat(seat)), self.model.generations
        return self.do(
            lambda: books.finalize(generation, party, self.now), "Generations", "finalize", generation, party
        )

    def close_opening(self, generation: int, seat: int) -> str:
        party, books = ids.seat_party(Seat(seat)), self.model.generations
        return self.do(lambda: books.close(generation, party, self.now), "Generations", "close", generation, party)

    def restart(self) -> str:
        return self.do(lambda: self.model.generations.restart(self.now), "Generations", "restart")

    # --- epochs

    @property
    def epoch(self) -> int:
        """The newest epoch."""
        return self.run.duties.number

    def seed(self) -> None:
        """Submit the beacon's round of the newest epoch and seed it."""
        start = self.run.duties.epochs[-1].start
        number = self.neighbours.round_after(start + self.charter.timing.seed_delay)
        self.at(max(self.now, self.neighbours.time_of(number)))
        self.neighbours.known[number] = mark(("audit", self.label, number))
        self.call("RoundsBench", "submit", number, self.neighbours.known[number])
        assert self.do(lambda: self.run.duties.seed_epoch(self.now), "Duties", "seedEpoch") == ""

    def close_epoch(self) -> None:
        self.at(max(self.now, self.run.duties.epochs[-1].deadline + 1))
        assert self.do(lambda: self.run.duties.close_epoch(self.now), "Duties", "closeEpoch") == ""

    def secret(self, ticket: int) -> Digest:
        """Of the newest epoch's call."""
        held = self.run.tickets.tickets[TicketId(ticket)]
        first = self.run.duties.calls_at(self.run.tickets.shift_of(TicketId(ticket)), held.from_ - 1)
        return self.chains[ticket][self.run.duties.epochs[-1].call - first]

    def drawn(self, ticket: int) -> list[DrawnDuty]:
        """The duties of a ticket in the newest epoch, by rank, as many as it has room for."""
        number, duties = self.epoch, self.run.duties
        seed, secret = duties.epochs[-1].seed, self.secret(ticket)
        assert seed is not None
        found: dict[Digest, tuple[int, DrawnDuty]] = {}
        for duty in self.named_duties():
            try:
                target = duties._target_of(number, TicketId(ticket), duty, self.now)
            except RejectedError:
                continue
            drawn = draws.draw(secret, seed, target.id, TicketId(ticket), duty.kind)
            if drawn < target.threshold:
                # A claim is drawn again once, however many missed it.
                name = draws.attestation_id(number, TicketId(ticket), duty.kind, target.id)
                found.setdefault(name, (draws.rank_of(drawn, target.scale), duty))
        ranked = sorted(found.values(), key=lambda pair: pair[0])
        return [duty for _, duty in ranked][: self.charter.economics.capacity]

    def named_duties(self) -> list[DrawnDuty]:
        """All that might be drawn in the newest epoch."""
        number = self.epoch
        named = [DrawnDuty(DutyKind.WORK, r, seat) for r, seat in self.works]
        named += [DrawnDuty(DutyKind.REAUDIT, attestation=name) for name in self.run.duties.attestations.attestations]
        named += [
            DrawnDuty(DutyKind.MISSED, r, seat, missed=Missed(DutyKind.WORK, number - 1, TicketId(by), number - 1))
            for r, seat in self.works
            for by in self.chains
        ]
        return named

    def result(self, ticket: int, duty: DrawnDuty, lie: bool = False) -> DutyResult:
        """What a replay finds: the commitment, as it was made; or something else."""
        target = self.run.duties._target_of(self.epoch, TicketId(ticket), duty, self.now)
        work = self.works[Round(target.round), target.seat]
        audited = self.run.duties.attestations.findings.get(duty.attestation, NO_FINDING)
        keys = (mark("own"), *(audited.keys if len(audited.keys) <= 6 else ()))
        accumulators = [mark(("acc", ticket, self.epoch)), *audited.accumulators][: len(keys)]
        update = mark(("lie", ticket, self.epoch)) if lie else work.update
        if duty.attestation != ZERO and not lie:
            return DutyResult(duty, work, audited.ends, audited.update, tuple(accumulators), audited)
        return DutyResult(duty, work, work.ends, update, tuple(accumulators), audited)

    def open_call(self, ticket: int, lies: Iterable[Seat] = (), results: bool = True) -> str:
        """Answer the newest call with all duties, lying about the work of some seats."""
        secret, held = self.secret(ticket), self.run.tickets.tickets[TicketId(ticket)]
        made: Sequence[DutyResult] = []
        seed = self.run.duties.epochs[-1].seed or ZERO
        if results:
            found, wrong = self.drawn(ticket), set(lies)
            made = [self.result(ticket, duty, duty.attestation == ZERO and duty.seat in wrong) for duty in found]
        return self.do(
            lambda: self.run.duties.open(held.owner, TicketId(ticket), seed, secret, made, self.now),
            "Duties", "open", ticket, seed, secret, [result_tuple(r) for r in made], who=held.owner,
        )  # fmt: skip

    def play_epoch(self, lies: dict[int, set[Seat]] | None = None, silent: int = 0) -> int:
        """An epoch in which every ticket on call but one answers; its number."""
        number = self.epoch
        self.seed()
        self.answer(lies, silent)
        self.close_epoch()
        return number

    def answer(self, lies: dict[int, set[Seat]] | None = None, silent: int = 0) -> None:
        """Every ticket on call but one answers."""
        for ticket in set(self.chains) - {silent}:
            if self.run.duties._is_called(TicketId(ticket), self.run.duties.epochs[-1], self.now):
                assert self.open_call(ticket, (lies or {}).get(ticket, ())) == ""

    # --- disputes

    def open_verdict(self, ref: tuple[Any, ...], who: Address) -> str:
        """A game on a claim."""
        kind, round_, seat, part, _, name = ref
        attestations = self.run.duties.attestations

        def model() -> None:
            if kind == ClaimKind.ATTESTATION:
                attestations.on_opened(name, part, who)
                return
            digest = self.model.commitments.works[round_, seat].digest
            self.model.commitments.check_open(kind, round_, seat, name != ZERO)
            if name != ZERO:
                attestations.on_tried(name, digest, who)
            self.model.commitments.on_opened(round_, seat)

        return self.do(model, "VerdictStage", "open", ref, who=who)

    def end_verdict(self, ref: tuple[Any, ...], convicted: bool, to_pot: bool, who: Address) -> None:
        """Its verdict, and where the bounty goes."""
        kind, round_, seat, _, _, name = ref
        attestations = self.run.duties.attestations
        pots = self.run.bounties.address
        beneficiary = pots if to_pot else who
        if kind == ClaimKind.ATTESTATION:
            lock = ticket_lock(attestations.attestations[attestations.named(name)].ticket)
        else:
            lock = ids.tenure_lock(self.model.commitments.works[round_, seat].tenure)
        amount = self.vault.lock_amount(lock)
        self.call("VerdictStage", "finish", ref, convicted, "0x" + beneficiary.hex())
        if kind == ClaimKind.ATTESTATION:
            first = attestations.on_closed(name, convicted, self.now)
        else:
            first = self.model.commitments.on_closed(round_, seat, convicted, self.now)
            if name != ZERO:
                attestations.on_judged(name, convicted, self.now)
        if not first:
            return
        bounty = Wei(amount * BOUNTY_PPM // 1_000_000)
        self.vault.burn(lock, Wei(amount - bounty))
        self.vault.seize(lock, beneficiary, bounty)
        if to_pot:
            self.run.bounties.on_bounty(lock, bounty)

    def prepare_work(self, round_: Round, seat: Seat) -> None:
        """X and Y of a commitment's work are built."""
        kind, work = ClaimKind.INTERVAL, self.works[round_, seat]
        said = self.do(
            lambda: self.model.commitments.prepare(kind, round_, seat, work),
            "Commitments", "prepare", int(kind), round_, seat, fields(work),
        )  # fmt: skip
        assert said == ""

    # --- settling

    def settle_work(self, round_: int, seat: int, epoch: int) -> str:
        return self.do(
            lambda: self.run.payments.settle_work(Round(round_), Seat(seat), epoch, self.now),
            "Payments", "settleWork", round_, seat, epoch,
        )  # fmt: skip

    def settle_duty(self, name: Digest) -> str:
        return self.do(lambda: self.run.payments.settle_duty(name, self.now), "Payments", "settleDuty", name)

    def settle_opening(self, generation: int, party: Digest) -> str:
        settle = lambda: self.run.payments.settle_opening(generation, party, self.now)  # noqa: E731
        return self.do(settle, "Payments", "settleOpening", generation, party)

    def settle_round(self, round_: int, epoch: int) -> str:
        return self.do(
            lambda: self.run.payments.settle_round(Round(round_), epoch, self.now),
            "Payments", "settleRound", round_, epoch,
        )  # fmt: skip

    def enter(self, accusation: Digest) -> str:
        return self.do(lambda: self.run.bounties.enter(accusation), "Bounties", "enter", accusation)

    def close_pot(self, accusation: Digest, epoch: int) -> str:
        pots = self.run.bounties
        return self.do(lambda: pots.close(accusation, epoch, self.now), "Bounties", "close", accusation, epoch)

    def take(self, accusation: Digest) -> str:
        return self.do(lambda: self.run.bounties.take(accusation), "Bounties", "take", accusation)

    def lapse(self, accusation: Digest) -> str:
        """Somebody ends an accusation without a game."""
        who, books = self.people[-1], self.run.duties.attestations
        return self.do(lambda: books.lapse(who, accusation, self.now), "Attestations", "lapse", accusation, who=who)

    def reclaim(self, ticket: int) -> str:
        who = self.run.tickets.tickets[TicketId(ticket)].owner
        return self.do(lambda: self.run.tickets.reclaim(who, TicketId(ticket)), "Tickets", "reclaim", ticket, who=who)

    def own_epoch(self, round_: int) -> int:
        """The first epoch that began after the round took its last commitment."""
        epochs = range(len(self.run.duties.epochs))
        return next((e for e in epochs if self.run.duties._belongs(round_, e)), len(epochs))

    # --- what must be the same

    def check_money(self) -> None:
        """Vault, escrow, pots and what was paid are the same on both, and nothing came from nowhere."""
        assert self.vault.is_conserved() and self.vault.paid.total() == self.vault.withdrawn
        assert tuple(self.call("Vault", "totals")) == self.vault.totals()
        escrow = self.run.escrow
        kept = (escrow.phase, escrow.balance, escrow.reserved_total, escrow.live_rounds)
        shown = [self.call("Escrow", name) for name in ("phase", "balance", "reservedTotal", "liveRounds")]
        assert tuple(shown) == kept
        assert escrow.balance >= escrow.reserved_total or escrow.phase > 1
        assert self.call("Escrow", "mostUnsettled") == escrow.most_unsettled
        for who in (self.sponsor, *self.people):
            place = "0x" + who.hex()
            assert self.call("Vault", "free", place) == self.vault.free_of(who)
            assert self.call("Vault", "payeeOf", place) == text(self.vault.payee_of(who))
            # No token leaves but to a payee: everybody staked all that it had.
            assert self.chain.token.call("balanceOf", place) == self.vault.paid[who]
            assert self.call("Escrow", "fundedOf", place) == escrow.funded_of(who)
            assert self.call("Grants", "pendingOf", place) == self.run.grants.pending[who]
            assert self.call("ModelShares", "balanceOf", place) == self.run.grants.shares[who]
        for round_, seat in self.model.commitments.works:
            shown_open = self.call("Commitments", "isDisputable", round_, seat)
            assert shown_open == self.model.commitments.is_disputable(round_, seat)
        for lock, pot in self.run.bounties.pots.items():
            shown_pot, amount = self.call("Bounties", "potOf", lock)
            assert shown_pot == (pot.epoch, pot.entered, pot.taken, pot.closed)
            assert amount == self.vault.lock_amount(pot_lock(lock))
