"""A stage of `goodput` on the executable model of the contracts: tenures, commitments and generations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.bench.goodput import GoodputTerms, RoundShot
from assay.protocol.digests import ZERO, keccak, state_digest
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.clock import commit_until, merge_until
from assay.protocol.rounds.ledger import RoundLedger
from assay.protocol.rounds.terms import GenerationStatus, RoundTerms, SeatWork, Votes
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.rounds.vault import Vault
from assay.protocol.types import Address, Digest, Round, Seat, Wei

SALT = keccak(b"salt")


@dataclass(frozen=True, slots=True)
class _OpenGate:
    """A run with escrow and tickets enough; its seats draw no tickets."""

    def may_open(self, seated: int, now: int) -> bool:
        """See Rights."""
        return True

    def carries(self, seated: int, now: int) -> bool:
        """See Rights."""
        return True

    def is_stopped(self) -> bool:
        """See Rights."""
        return False

    def stopped_at(self) -> int:
        """See Rights."""
        return 0

    def reserve(self, round_: Round, seated: int, now: int) -> None:
        """See Rights."""

    def round_after(self, time: int) -> int:
        """See BeaconBook."""
        return time

    def time_of(self, beacon_round: int) -> int:
        """See BeaconBook."""
        return beacon_round

    def randomness_of(self, beacon_round: int) -> Digest:
        """See BeaconBook."""
        return ZERO

    def calls_at(self, shift: int, time: int) -> int:
        """See Calls."""
        return 0

    def over_since(self, epoch: int) -> int:
        """See Calls."""
        return 0

    def over_after(self, time: int) -> int:
        """See EpochEnds."""
        return 0

    def newest(self) -> tuple[int, int]:
        """See Calls."""
        return 0, 0


def round_terms(terms: GoodputTerms) -> RoundTerms:
    """The terms of rounds that are measured; at most one level of seats."""
    return RoundTerms(
        seats=terms.seats, group_size=64, positions=15, top_positions=63, min_units=terms.min_units,
        max_units=terms.max_units, steps_per_unit=1, learning_rate=0, shards=1 << 16, shard_length=1,
        rounds=terms.rounds, expiry=1 << 40, commit=terms.commit, inclusion=terms.inclusion_delay, grace=terms.grace,
        hold=terms.hold, merge=terms.merge, group_merge=0, beacon_delay=0, challenge=86_400, rescue=3600,
        longest_dispute=7 * 86_400, run=ZERO, step_program=ZERO, update_program=ZERO, outer_program=ZERO,
        witness_program=ZERO, partial_program=ZERO, zero_partial=ZERO, data=ZERO, zero_optimizer=ZERO,
        zero_update=ZERO, parameters=keccak(b"parameters"),
        momentum=keccak(b"momentum"), seat_lock=Wei(1), seat_fee=Wei(0), drawn_bounty_ppm=0, third_bounty_ppm=0,
    )  # fmt: skip


class ModelStage:
    """See RoundStage."""

    def __init__(self, terms: GoodputTerms, start: int) -> None:
        self._terms = round_terms(terms)
        gate, vault = _OpenGate(), Vault(1)
        tickets = Tickets(vault, gate, TicketTerms(bond=Wei(1), seasoning=0, shifts=1))
        self._books = RoundLedger(self._terms, vault, gate, tickets, gate, gate)
        self._people = [Address((k + 1).to_bytes(20, "big")) for k in range(terms.seats)]
        for who in self._people:
            vault.deposit(who, 1 << 20)
            self._books.tenures.join(who, start)

    def begin(self, now: int) -> None:
        """See RoundStage."""
        self._books.generations.begin(now)

    def newest(self) -> Round:
        """See RoundStage."""
        return Round(len(self._books.commitments.rounds) - 1)

    def shot(self, round_: Round, now: int) -> RoundShot:
        """See RoundStage."""
        commitments, generations = self._books.commitments, self._books.generations
        state, group = commitments.round_of(round_), commitments.group_of(round_, 0)
        votes = generations.votes.get(round_ + 1, Votes())
        opened = {s for s in map(Seat, range(self._terms.seats)) if self._has_opened(round_, s)}
        is_cut = generations.status_of(round_ + 1) is GenerationStatus.CUT
        return RoundShot(
            t0=state.t0,
            base=state.base,
            train_until=state.t0 + self._terms.commit,
            commit_until=commit_until(self._terms, state),
            mask_at=state.mask_at,
            hold_until=commitments.hold_until(round_, 0),
            seal_until=votes.seal_until or merge_until(self._terms, state),
            merge_until=merge_until(self._terms, state),
            committed=frozenset(map(Seat, group.committed)),
            maskable=frozenset(map(Seat, group.maskable)),
            spoke=frozenset(map(Seat, group.words)),
            counted=frozenset(map(Seat, commitments.counted_of(round_, 0, now)[0])),
            is_alive=not is_cut and not state.is_under_half,
            sealed=frozenset(map(Seat, votes.seals)),
            opened=frozenset(opened),
        )

    def commit(self, seat: Seat, round_: Round, base: Digest, units: int, update: Digest, now: int) -> None:
        """See RoundStage."""
        work = SeatWork(units, ZERO, (ZERO, ZERO, ZERO), update)
        self._books.commitments.commit(self._people[seat], round_, seat, seat + 1, base, work, now)

    def hold(self, seat: Seat, round_: Round, held: frozenset[Seat], now: int) -> None:
        """See RoundStage."""
        acc = self._books.commitments.group_of(round_, 0).acc
        self._books.commitments.hold(self._people[seat], round_, 0, [seat], acc, frozenset(held), now)

    def seal(self, seat: Seat, round_: Round, root: Digest, now: int) -> None:
        """See RoundStage."""
        who = self._people[seat]
        over = self._books.generations.over_of(round_ + 1, now)
        seal = ids.seal_digest(round_, seat, state_digest((root, root)), over, SALT, who)
        self._books.generations.seal(who, round_, seat, seal, now)

    def open(self, seat: Seat, round_: Round, root: Digest, now: int) -> None:
        """See RoundStage."""
        self._books.generations.open(self._people[seat], round_, seat, root, root, SALT, now)

    def restart(self, now: int) -> None:
        """See RoundStage."""
        self._books.generations.restart(now)

    def finalize(self, rounds: int) -> Sequence[Round]:
        """See RoundStage."""
        generations, final = self._books.generations, []
        for round_ in map(Round, range(rounds)):
            openers = [s for s in map(Seat, range(self._terms.seats)) if self._has_opened(round_, s)]
            if generations.status_of(round_ + 1) is not GenerationStatus.MERGED:
                continue
            generations.finalize(round_ + 1, ids.seat_party(openers[0]), 1 << 41)
            final.append(round_)
        return final

    def _has_opened(self, round_: Round, seat: Seat) -> bool:
        return (round_ + 1, ids.seat_party(seat)) in self._books.generations.openings
