"""Seats, rounds and commitments (Seats.sol, Rounds.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eth_abi.abi import encode

from assay.protocol.digests import ZERO, keccak, state_digest
from assay.protocol.game.state import DisputedClaim
from assay.protocol.model import ids
from assay.protocol.model.books import RunBooks
from assay.protocol.model.errors import not_after, not_before, refuse
from assay.protocol.model.games import ClaimView
from assay.protocol.model.types import NO_CLAIM, Commitment, Last
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.run.schedule import Times
from assay.protocol.trees.state import initial_state
from assay.protocol.types import SEATS, Address, Digest, Role, Round, Seat, Status

NO_ONE: Final = Address(bytes(20))


class Rounds:
    """The books of solvers. `ledger` is the run; time is an argument of every method that depends on it."""

    def __init__(self, ledger: RunBooks) -> None:
        self.ledger = ledger
        self.holders: list[Address] = [NO_ONE] * SEATS
        self.leaving: set[Address] = set()
        self.opened_at: list[int] = []
        self.rosters: list[tuple[Address, ...]] = []
        self.commitments: dict[tuple[Round, Seat], Commitment] = {}
        self.receipts: dict[tuple[Round, Seat], dict[Address, int]] = {}
        self.last: dict[Address, Last] = {}

    # --- seats

    def join(self, who: Address, now: int) -> Seat:
        """Raises AlreadySeated, RunOver, SeatsFull, InsufficientFree."""
        if who in self.holders:
            raise refuse("AlreadySeated", solver=who)
        if self.is_over(now):
            raise refuse("RunOver")
        free = [seat for seat in range(SEATS) if self.holders[seat] == NO_ONE]
        if not free:
            raise refuse("SeatsFull", seats=SEATS)
        fee = self.ledger.charter.economics.seat_fee
        if fee:
            self.ledger.vault.lock(ids.seat_lock(who), who, fee)
        self.holders[free[0]] = who
        return Seat(free[0])

    def leave_seat(self, who: Address, now: int) -> None:
        """Raises NotSeated."""
        if who not in self.holders:
            raise refuse("NotSeated", caller=who)
        seat = Seat(self.holders.index(who))
        if not self._owes(seat):
            self._vacate(seat, fee_lost=False)
        elif now > self.times(self.latest).t1:
            self._vacate(seat, fee_lost=True)
        else:
            self.leaving.add(who)

    def open_round(self, now: int) -> Round:
        """Raises RunOver, TooEarly, NoOuterRoot, NoSeats, EscrowShort."""
        if self.is_over(now):
            raise refuse("RunOver")
        round_ = Round(len(self.opened_at))
        if round_:
            not_before(now, self.times(self.latest).t7)
        if not self.ledger.outers.standing_count(round_):
            raise refuse("NoOuterRoot", round=round_)
        owing = {Seat(k) for k in range(SEATS) if self._owes(Seat(k))}
        going = owing | {Seat(k) for k in range(SEATS) if self.holders[k] in self.leaving}
        roster = tuple(NO_ONE if Seat(k) in going else self.holders[k] for k in range(SEATS))
        seated = sum(who != NO_ONE for who in roster)
        if not seated:
            raise refuse("NoSeats")
        self.ledger.settlement.on_round_opened(round_, seated)
        for seat in sorted(going):
            self._vacate(seat, fee_lost=seat in owing)
        self.rosters.append(roster)
        self.opened_at.append(now)
        return round_

    def is_over(self, now: int) -> bool:
        """Whether no round will open any more."""
        return len(self.opened_at) == self.ledger.charter.rounds or now > self.ledger.charter.expiry

    @property
    def latest(self) -> Round:
        """The round under way, -1 before the first."""
        return Round(len(self.opened_at) - 1)

    def times(self, round_: Round) -> Times:
        """Raises RoundNotOpen."""
        if not 0 <= round_ < len(self.opened_at):
            raise refuse("RoundNotOpen", round=round_)
        return Times.of(self.ledger.charter.windows, self.opened_at[round_])

    def is_seated(self, round_: Round, who: Address) -> bool:
        """Whether this address was on a round's roster."""
        return who != NO_ONE and 0 <= round_ < len(self.rosters) and who in self.rosters[round_]

    def _owes(self, seat: Seat) -> bool:
        """Was its holder on the latest roster, and is its commitment missing?"""
        if self.latest < 0 or self.holders[seat] == NO_ONE:
            return False
        seated = self.rosters[self.latest][seat] == self.holders[seat]
        return seated and (self.latest, seat) not in self.commitments

    def _vacate(self, seat: Seat, *, fee_lost: bool) -> None:
        who, fee = self.holders[seat], self.ledger.charter.economics.seat_fee
        self.holders[seat] = NO_ONE
        self.leaving.discard(who)
        if fee and fee_lost:
            self.ledger.vault.burn(ids.seat_lock(who), fee)
        elif fee:
            self.ledger.vault.release(ids.seat_lock(who))

    # --- commitments

    def commit(
        self,
        who: Address,
        round_: Round,
        seat: Seat,
        roots: Sequence[Digest],
        end_lists: Sequence[Digest],
        update: Digest,
        base: Digest,
        now: int,
    ) -> Commitment:
        """Raises RoundNotOpen, TooLate, NotSeated, AlreadyCommitted, BaseNotStanding, WrongCount, StartMismatch,
        EndMismatch, InsufficientFree."""
        not_after(now, self.times(round_).t1)
        if not 0 <= seat < SEATS or self.rosters[round_][seat] != who:
            raise refuse("NotSeated", round=round_, seat=seat, caller=who)
        if (round_, seat) in self.commitments:
            raise refuse("AlreadyCommitted", round=round_, seat=seat)
        if not self.ledger.outers.is_alive(round_, base, now):
            raise refuse("BaseNotStanding", round=round_, base=base)
        wanted = self.ledger.charter.training.intervals + 1
        if len(roots) != wanted:
            raise refuse("WrongCount", got=len(roots), wanted=wanted)
        optimizer, start = self.start_of(round_, seat, base)
        if roots[0] != start:
            raise refuse("StartMismatch", got=roots[0], wanted=start)
        end = state_digest(tuple(end_lists))
        if roots[-1] != end:
            raise refuse("EndMismatch", got=roots[-1], wanted=end)
        self.ledger.vault.lock(ids.commitment_lock(round_, seat), who, self.ledger.charter.economics.claim_lock)
        commitment = Commitment(
            solver=who,
            digest=commitment_digest(round_, seat, roots, end_lists, update, base),
            base=base,
            start_optimizer=optimizer,
            roots=tuple(roots),
            parameters=end_lists[0],
            optimizer=end_lists[1],
            update=update,
        )
        self.commitments[round_, seat] = commitment
        last = self.last.setdefault(who, Last(round_, seat))
        last.round, last.seat = round_, seat
        last.blank_from = last.blank_again if last.blank_again > round_ else 0
        return commitment

    def receipt(self, who: Address, round_: Round, seat: Seat, digest: Digest, now: int) -> None:
        """Raises RoundNotOpen, TooLate, CommitmentNotFound, CommitmentMismatch, NotAVerifier, AlreadyReceipted."""
        not_after(now, self.times(round_).receipts_until)
        commitment = self._existing(round_, seat)
        if commitment.digest != digest:
            raise refuse("CommitmentMismatch", got=digest, wanted=commitment.digest)
        verifier = self.ledger.audit.attesters.get(who)
        stake = self.ledger.audit.stake_at(who, round_)
        if verifier is None or verifier.role is not Role.VERIFIER or verifier.convicted_at or not stake:
            raise refuse("NotAVerifier", caller=who, round=round_)
        receipts = self.receipts.setdefault((round_, seat), {})
        if who in receipts:
            raise refuse("AlreadyReceipted", round=round_, seat=seat, verifier=who)
        receipts[who] = stake

    def is_complete(self, round_: Round, seat: Seat) -> bool:
        """Receipts of more than half of the verifier stake of T0."""
        got = sum(self.receipts.get((round_, seat), {}).values())
        return 2 * got > self.ledger.audit.total_at(Role.VERIFIER, round_)

    def start_of(self, round_: Round, seat: Seat, base: Digest) -> tuple[Digest, Digest]:
        """The optimizer list and the state root that a seat's work starts from."""
        entry = self.ledger.outers.roots.get((round_, base))
        parameters = entry.parameters if entry else ZERO
        commitment = self.commitments.get((round_, seat))
        optimizer = commitment.start_optimizer if commitment else self._start_optimizer(round_, seat)
        scalars = self.ledger.charter.round_scalars(round_, seat)
        return optimizer, initial_state(parameters, optimizer, scalars)

    def check_close(self, round_: Round, seat: Seat, now: int) -> Status:
        """How a commitment has ended. Raises CommitmentNotFound, AlreadyClosed, GamesOpen, TooEarly, BaseNotFinal."""
        commitment = self._existing(round_, seat)
        if commitment.closed:
            raise refuse("AlreadyClosed", round=round_, seat=seat)
        if commitment.open_games:
            raise refuse("GamesOpen", count=commitment.open_games)
        return self._status_of(round_, seat, commitment, now)

    def close(self, round_: Round, seat: Seat, now: int) -> tuple[Status, Address]:
        """End a commitment and release what is left of its lock. Raises what `check_close` raises."""
        status, commitment = self.check_close(round_, seat, now), self.commitments[round_, seat]
        commitment.closed = True
        if status is not Status.CONVICTED:
            self.ledger.vault.release(ids.commitment_lock(round_, seat))
        return status, commitment.solver

    def duty_of(self, round_: Round, seat: Seat, duty: int) -> tuple[Digest, Digest, Digest]:
        """Claim id, X and Y root behind a duty. Raises ClaimNotFound."""
        commitment = self.commitments.get((round_, seat))
        intervals = self.ledger.charter.training.intervals
        if commitment is None or not self.is_complete(round_, seat) or not 0 <= duty <= intervals:
            raise refuse("ClaimNotFound", round=round_, seat=seat, duty=duty)
        if duty < intervals:
            kind, x, y = ClaimKind.INTERVAL, commitment.roots[duty], commitment.roots[duty + 1]
        else:
            start = self.ledger.outers.roots[round_, commitment.base].parameters
            kind, x = ClaimKind.UPDATE, state_digest((start, commitment.parameters))
            y = state_digest((commitment.update,))
        return self.ledger.claim_id(kind, commitment.solver, x, y), x, y

    # --- claims

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        """What a game sees; `NO_CLAIM` (challengeable until 0) where there is none."""
        if not self._is_claim(ref):
            return NO_CLAIM
        commitment, charter = self.commitments[ref.round, ref.seat], self.ledger.charter
        claim, x, y = self.duty_of(ref.round, ref.seat, ref.duty)
        updates, times = ref.kind is ClaimKind.UPDATE, self.times(ref.round)
        disputed = DisputedClaim(
            id=claim,
            claimant=commitment.solver,
            x=x,
            y=y,
            program=charter.update.root if updates else charter.step.root,
            steps=1 if updates else charter.training.steps_per_interval,
            lock_id=ids.commitment_lock(ref.round, ref.seat),
        )
        money = charter.economics
        return ClaimView(
            *(disputed, times.t5 + 1, times.challenge_until, money.claim_lock, commitment.convicted),
            bounty_ppm=money.bounty_ppm,
        )

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        """Whether `who` revealed another end root for this duty."""
        if not self._is_claim(ref):
            return False
        seen = self.ledger.audit.end_roots.get((ref.round, ref.seat, ref.duty, who))
        return seen is not None and seen != self.duty_of(ref.round, ref.seat, ref.duty)[2]

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        """Raises ClaimNotFound, ClaimSettled."""
        if not self._is_claim(ref):
            raise refuse("ClaimNotFound", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        commitment = self.commitments[ref.round, ref.seat]
        if commitment.closed:
            raise refuse("ClaimSettled", kind=ref.kind, round=ref.round, seat=ref.seat, duty=ref.duty)
        commitment.open_games += 1

    def on_closed(self, ref: ClaimRef, convicted: bool) -> bool:
        """Whether this conviction is the first."""
        commitment = self.commitments[ref.round, ref.seat]
        commitment.open_games -= 1
        if not convicted or commitment.convicted:
            return False
        commitment.convicted = True
        last, next_round = self.last[commitment.solver], len(self.opened_at)
        last.blank_again = next_round
        last.blank_from = last.blank_from or next_round
        return True

    def _is_claim(self, ref: ClaimRef) -> bool:
        if (ref.round, ref.seat) not in self.commitments or not self.is_complete(ref.round, ref.seat):
            return False
        intervals = self.ledger.charter.training.intervals
        if ref.kind is ClaimKind.INTERVAL:
            return 0 <= ref.duty < intervals
        return ref.kind is ClaimKind.UPDATE and ref.duty == intervals

    def _existing(self, round_: Round, seat: Seat) -> Commitment:
        commitment = self.commitments.get((round_, seat))
        if commitment is None:
            raise refuse("CommitmentNotFound", round=round_, seat=seat)
        return commitment

    def _status_of(self, round_: Round, seat: Seat, commitment: Commitment, now: int) -> Status:
        if commitment.convicted:
            return Status.CONVICTED
        times = self.times(round_)
        if not self.is_complete(round_, seat):
            not_before(now, times.receipts_until + 1)
            return Status.VOID
        not_before(now, times.challenge_until + 1)
        base = self.ledger.outers.status_of(round_, commitment.base, now)
        if base is Status.OPEN:
            raise refuse("BaseNotFinal", round=round_, base=commitment.base)
        return base

    def _start_optimizer(self, round_: Round, seat: Seat) -> Digest:
        solver = self.rosters[round_][seat] if 0 <= round_ < len(self.rosters) else NO_ONE
        last = self.last.get(solver)
        zero_optimizer = self.ledger.charter.training.zero_optimizer
        if last is None or (last.blank_from and last.blank_from <= round_):
            return zero_optimizer
        commitment = self.commitments[last.round, last.seat]
        # An incomplete commitment does not exist: its solver starts where that one had started.
        complete = self.is_complete(last.round, last.seat)
        return commitment.optimizer if complete else commitment.start_optimizer


def commitment_digest(
    round_: Round, seat: Seat, roots: Sequence[Digest], end_lists: Sequence[Digest], update: Digest, base: Digest
) -> Digest:
    """What receipts name: K(round, seat, roots, endLists, update, base)."""
    types = ["uint64", "uint32", "bytes32[]", "bytes32[3]", "bytes32", "bytes32"]
    return keccak(encode(types, [round_, seat, list(roots), list(end_lists), update, base]))
