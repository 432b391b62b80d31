"""A long run that nobody played: its charter, and events as its contracts would emit them, in an order that the real
fold takes. Roots are digests of their names; every seat and ticket does its work, and every tenth round has a
dispute and an accusation.

What readers of the explorer wait for depends on how much happened, not on what was trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final, cast

from assay.amounts import TEST_MONEY
from assay.protocol.digests import ZERO, keccak, program_digest
from assay.protocol.economics.chain_profiles import CHAINS
from assay.protocol.errors import UnavailableError
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side, Stage
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import AccusationStatus, DutyKind, ReplayFinding
from assay.protocol.rounds.escrow import ESCROW_LOCK, RunPhase
from assay.protocol.rounds.terms import SeatWork, WorkStatus
from assay.protocol.rounds.ticket_types import TicketId, next_link, ticket_lock
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import NO_PROGRAM, RunModules
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay.sponsor.charters import Genesis, Pace, make_run_charter
from assay_ledger.bindings import (
    attestations,
    commitments,
    duties,
    escrow,
    game,
    generations,
    grants,
    payments,
    shares,
    tenures,
    tickets,
    vault,
)
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Event, Logged
from assay_ledger.rounds.facts import PREVRANDAO_TIMES, RunFacts
from assay_ledger.rounds.run import Run

ToldEvent = tuple[str, Logged[Event], int]
"""A contract's name, its event, the chain time in seconds."""

SEATS: Final = 64
"""As many tickets."""

ROUNDS: Final = 1_500
START: Final = 1_700_000_000
ROUND_S: Final = 4 * 3600
TOKEN: Final = 10**18
CHAIN_ID: Final = 31_337
EVERY: Final = 10
"""Rounds from one dispute to the next."""


class ImaginedRun(Run):
    """A run whose terms are known and whose node never answers. group_size: above 64 seats, of seats in a group."""

    def __init__(self, seats: int = SEATS, group_size: int = 0) -> None:
        # Nothing is read of a chain, so the constructor of a run that lies on one is not called.
        self.chain = cast(Chain, _NoNode())
        self.address, self.first_block = _address("charter"), 0
        self.charter = make_run_charter(
            _genesis(group_size),
            name="imagined",
            sponsor=_address("sponsor"),
            token=_address("token"),
            beacon=_address("beacon"),
            chain=CHAINS["local"].chain(Wei(10**9), Wei(0)),
            now=START,
            rounds=ROUNDS,
            seats=seats,
            pace=Pace(units=8, least=4, steps=25, commit=3600),
        )
        self.run_id = self.charter.run
        self.modules = RunModules(**{name: _address(name) for name in RunModules.__slots__})
        self.facts = RunFacts.of(CHAIN_ID, self.address, self.charter, PREVRANDAO_TIMES, TEST_MONEY)


class _NoNode:
    """A chain that cannot be asked."""

    chain_id = CHAIN_ID
    turn = 0

    def read(self, _ask: object, _called: bytes = b"") -> object:
        raise UnavailableError("An imagined run has no node.", code="NodeUnreachable")

    ask = code_at = read

    def newest(self) -> object:
        raise UnavailableError("An imagined run has no node.", code="NodeUnreachable")


def imagined_events(run: Run, wanted: int) -> Iterator[ToldEvent]:
    """At least so many events: whole rounds, until there are enough."""
    story = _Story(run)
    told = list(story.begin())
    made = len(told)
    yield from told
    for number in range(ROUNDS):
        if made >= wanted:
            return
        told = list(story.round(Round(number)))
        made += len(told)
        yield from told


class _Story:
    """Tells one event after another; `_at` is the chain time in seconds."""

    def __init__(self, run: Run) -> None:
        self._run, self._terms, self._seats = run, run.charter.economics, run.charter.training.seats
        self._block, self._at, self._logs = 1, START, count()
        self._holders = [_address(f"solver {k}") for k in range(self._seats)]
        self._owners = [_address(f"auditor {k}") for k in range(self._seats)]
        self._chains = [_secrets(f"ticket {k}") for k in range(self._seats)]
        self._games = count(1)

    def begin(self) -> Iterator[ToldEvent]:
        """Seats, tickets, escrow."""
        vaulted = self._run.modules.escrow
        yield self._tell("vault", vault.Deposited(vaulted, Wei(10**9 * TOKEN)))
        yield self._tell("vault", vault.Locked(ESCROW_LOCK, vaulted, Wei(10**9 * TOKEN)))
        yield self._tell("escrow", escrow.Funded(self._run.charter.sponsor, Wei(10**9 * TOKEN)))
        for k, who in enumerate(self._holders, 1):
            self._block += 1
            yield self._tell("vault", vault.Deposited(who, Wei(2 * self._terms.seat_lock)))
            yield self._tell("vault", vault.Locked(ids.tenure_lock(k), who, self._terms.seat_lock))
            yield self._tell("tenures", tenures.TenureBegan(k, who, Seat(k - 1), 0))
        for k, who in enumerate(self._owners, 1):
            self._block += 1
            seasoned = self._at + self._run.charter.timing.seasoning
            yield self._tell("vault", vault.Deposited(who, Wei(2 * self._terms.ticket_bond)))
            yield self._tell("vault", vault.Locked(ticket_lock(TicketId(k)), who, self._terms.ticket_bond))
            anchor = self._chains[k - 1][0]
            yield self._tell("tickets", tickets.TicketRegistered(TicketId(k), who, seasoned, anchor))
        yield self._tell("escrow", escrow.PhaseChanged(RunPhase.RUNNING, self._run.charter.sponsor))
        self._at += 2 * self._run.charter.timing.seasoning
        # No ticket counts for the first epoch, so it calls none.
        yield self._tell("duties", duties.EpochBegan(0, _digest("no seed"), 0, 0, self._at))
        yield self._tell("duties", duties.EpochClosed(0, False))

    def round(self, number: Round) -> Iterator[ToldEvent]:
        """A round from its opening to its last payment, with the epoch that audits it."""
        self._block += 1
        yield self._tell("commitments", commitments.RoundBegan(number, number, self._at, self._seats))
        works = [_work(number, seat) for seat in range(self._seats)]
        for seat, work in enumerate(works):
            self._block += 1
            acc = _digest(f"acc {number} {seat}")
            yield self._tell("commitments", commitments.WorkCommitted(number, Seat(seat), seat + 1, work, acc, False))
        self._at += 3 * ROUND_S // 4
        everybody = Wei((1 << self._seats) - 1)
        for seat in range(self._seats):
            self._block += 1
            yield self._tell("commitments", commitments.Held(number, 0, 1 << seat, everybody))
        yield from self._merge(Round(number + 1))
        if number % EVERY == EVERY - 1:
            yield from self._dispute(number, Seat(number // EVERY % self._seats))
        self._at += ROUND_S // 4
        yield from self._audit(int(number), number + 1, works)
        for seat in range(self._seats):
            yield from self._settle(number, seat)

    # --- inside

    def _merge(self, generation: Round) -> Iterator[ToldEvent]:
        parameters, momentum = _digest(f"parameters {generation}"), _digest(f"momentum {generation}")
        root = ids.root_of(int(generation), parameters, momentum)
        for seat in range(self._seats):
            self._block += 1
            seal = _digest(f"seal {generation} {seat}")
            yield self._tell("generations", generations.RootSealed(generation, Seat(seat), seal))
        for seat in range(self._seats):
            self._block += 1
            yield self._tell("generations", generations.RootOpened(generation, Seat(seat), root, parameters, momentum))
        yield self._tell("generations", generations.Merged(generation, root))
        yield self._tell("generations", generations.Finalized(int(generation)))
        for seat in range(self._seats):
            self._block += 1
            party, pay = ids.party_of(seat), self._terms.merge_pay
            yield self._tell("generations", generations.OpeningClosed(int(generation), party))
            yield self._tell("payments", payments.OpeningPaid(int(generation), party, pay))
            yield from self._paid(self._holders[seat], pay)

    def _audit(self, number: int, epoch: int, works: list[SeatWork]) -> Iterator[ToldEvent]:
        self._block += 1
        seed = _digest(f"seed {number}")
        yield self._tell("duties", duties.EpochBegan(epoch, seed, 0, self._seats, self._at + ROUND_S))
        for k, owner in enumerate(self._owners, 1):
            self._block += 1
            ticket, seat = TicketId(k), k % self._seats
            yield self._tell("tickets", tickets.SecretShown(ticket, epoch, 0, self._chains[k - 1][number + 1]))
            work = works[seat]
            target = ids.work_digest(Round(number), Seat(seat), seat + 1, work)
            name = draws.attestation_id(epoch, ticket, DutyKind.WORK, target)
            finding = ReplayFinding(work.ends, work.update, (_digest("key"),), (_digest(f"acc {number} {k}"),))
            yield self._tell(
                "attestations",
                attestations.Attested(epoch, ticket, name, target, Round(number), Seat(seat), finding),
            )
            if k == 1 and number % EVERY == EVERY - 1:
                yield from self._accuse(name, target)
            yield from self._paid(owner, self._terms.wage)
            yield self._tell(
                "payments", payments.FindingPaid(name, ticket, self._terms.wage, self._terms.shares_per_duty)
            )
            yield from self._credited(name, owner)
        yield self._tell("duties", duties.EpochClosed(epoch, True))

    def _accuse(self, finding: Digest, work: Digest) -> Iterator[ToldEvent]:
        """An accusation that its accuser does not bring to a game."""
        name = draws.accusation_id(finding, work)
        yield self._tell("attestations", attestations.Accused(name, finding, work, True))
        yield self._tell("attestations", attestations.AccusationMoved(name, AccusationStatus.LAPSED))

    def _settle(self, number: Round, seat: int) -> Iterator[ToldEvent]:
        self._block += 1
        pay, who, name = Wei(8 * self._terms.unit_price), self._holders[seat], _digest(f"grant {number} {seat}")
        yield self._tell("commitments", commitments.WorkSettled(number, Seat(seat), WorkStatus.FINAL))
        paid = payments.WorkPaid(number, Seat(seat), seat + 1, WorkStatus.FINAL, pay, self._terms.shares_per_unit)
        yield self._tell("payments", paid)
        yield from self._paid(who, pay)
        yield from self._credited(name, who)
        yield self._tell("grants", grants.Vested(name, who, who, self._terms.shares_per_unit))
        minted = shares.Transfer(Address(bytes(20)), who, self._terms.shares_per_unit)
        yield self._tell("shares", minted)

    def _dispute(self, number: Round, seat: Seat) -> Iterator[ToldEvent]:
        """Somebody challenges a merge that is true, says nothing more, and loses."""
        game_id, challenger = next(self._games), self._holders[(seat + 1) % self._seats]
        root = ids.root_of(number + 1, _digest(f"parameters {number + 1}"), _digest(f"momentum {number + 1}"))
        ref = ClaimRef(ClaimKind.OUTER, number, seat, outer_root=root)
        self._block += 1
        claim, defender = _digest(f"claim {game_id}"), self._holders[seat]
        yield self._tell("game", game.GameOpened(game_id, claim, challenger, defender, ref))
        moves = (Side.CHALLENGER, Side.DEFENDER)
        for k in range(20):
            yield self._tell(
                "game", game.Moved(game_id, (challenger, defender)[k % 2], Stage.STEPS, moves[k % 2], self._at + 600)
            )
            self._block += 1
        yield self._tell("game", game.Verdict(game_id, claim, challenger, Outcome.DEFAULT, 0, 0, 0, 0, 0, 0))

    def _paid(self, who: Address, amount: Wei) -> Iterator[ToldEvent]:
        yield self._tell("vault", vault.Seized(ESCROW_LOCK, who, amount))

    def _credited(self, name: Digest, who: Address) -> Iterator[ToldEvent]:
        until = self._at + self._run.charter.timing.vesting
        yield self._tell("grants", grants.Credited(name, who, self._terms.shares_per_unit, until))

    def _tell(self, contract: str, event: Event) -> ToldEvent:
        tx = keccak(self._block.to_bytes(8))
        return contract, Logged(event, self._block, next(self._logs), tx), self._at


def _work(number: int, seat: int) -> SeatWork:
    ends = tuple(_digest(f"end {k} {number} {seat}") for k in range(3))
    marks = _digest(f"marks {number} {seat}")
    return SeatWork(8, marks, cast(tuple[Digest, Digest, Digest], ends), _digest(f"update {number} {seat}"))


def _secrets(name: str) -> list[Digest]:
    """A chain of secrets, its anchor first."""
    chain = [_digest(name)]
    for _ in range(ROUNDS):
        chain.append(next_link(chain[-1]))
    return chain[::-1]


def _genesis(group_size: int) -> Genesis:
    def program(label: str) -> ProgramRef:
        tree = _digest(label)
        return ProgramRef(program_digest(label.encode(), tree), tree, label.encode())

    return Genesis(
        step=program("step"),
        update=program("update"),
        merge=program("merge"),
        witness=program("witness"),
        parameters=_digest("parameters"),
        momentum=_digest("momentum"),
        zero_optimizer=_digest("zeros"),
        zero_update=_digest("no update"),
        data=_digest("data"),
        data_length=1 << 20,
        learning_rate=0x3A83126F,
        group_size=group_size,
        partial_sum=program("partial sum") if group_size else NO_PROGRAM,
        zero_partial=_digest("no sum") if group_size else ZERO,
    )


def _address(name: str) -> Address:
    return Address(keccak(name.encode())[12:])


def _digest(name: str) -> Digest:
    return keccak(name.encode())
