"""What each lock of an account is for, what it waits for, and when it can end; the one place that words it. Pure.

Said in the same words by `assay status`, by an actor that leaves and by one that is stopped. Times are chain times in
seconds, as the books stand: a call, an accusation or a game that is still to come makes them later, a stop earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from assay.counts import count
from assay.durations import duration
from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.game.state import reveal_window
from assay.protocol.rounds.epochs import last_drawn
from assay.protocol.rounds.ids import back_lock, fee_lock, tenure_lock
from assay.protocol.rounds.terms import NEVER, GenerationStatus, Tenure
from assay.protocol.rounds.ticket_types import ticket_lock
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Digest, Round
from assay_ledger.agents.keeper import costs_no_fee, is_obliged, release_at
from assay_ledger.agents.money_keeper import epoch_of
from assay_ledger.rounds.records import OpeningRecord
from assay_ledger.rounds.view import RunView
from assay_verifier.ticket_keeping import HeldTicket, owed_calls
from assay_verifier.view_records import ViewRecords

_GAME: Final = b"game".ljust(32, b"\0")
_CHALLENGE: Final = b"challenge".ljust(32, b"\0")


@dataclass(frozen=True, slots=True)
class LockEnd:
    """When a lock can end: `ends_at`, the first second whose block takes the call that ends it, or when what it waits
    for has come, no earlier than `not_before` where that is known. After `lost_after` it is burned."""

    ends_at: int | None = None
    not_before: int | None = None
    lost_after: int | None = None
    waits_for: str | None = None

    @property
    def earliest(self) -> int | None:
        """The earliest chain time at which it can be free; None where none is known."""
        return self.not_before if self.ends_at is None else self.ends_at

    def words(self, now: int) -> str:
        """For people, without a subject."""
        if self.lost_after is not None and self.lost_after < now:
            return "is lost: it was not revealed in time"
        said = [] if self.ends_at is None else [f"can end {when(self.ends_at, now)}"]
        if self.waits_for is not None:
            said.append(f"waits for {self.waits_for}")
        if self.not_before is not None and self.not_before > now:
            said.append(f"{when(self.not_before, now)} at the earliest")
        if self.lost_after is not None:
            said.append(f"burns after chain time {self.lost_after}")
        return "; ".join(said)


@dataclass(frozen=True, slots=True)
class OwnLock:
    """A lock of an account: what it stands behind, with its number where that has one and its name; wei."""

    id: Digest
    kind: str
    number: int | None
    what: str
    amount: int
    end: LockEnd


def when(at: int, now: int) -> str:
    """A chain time as people read it; `at` is the first second in which something can be done."""
    return "now" if at <= now else f"in {duration(at - now)} (chain time {at})"


def game_lock(number: int) -> Digest:
    """The lock of a challenger's bond (GameMoney.sol)."""
    return keccak(_GAME + abi.uint(number))


def challenge_lock(commitment: Digest) -> Digest:
    """The lock of a committed challenge's deposit (Challenges.sol)."""
    return keccak(_CHALLENGE + abi.bytes32(commitment))


def reveal_until(view: RunView, committed_at: int) -> int:
    """The last second to reveal a challenge that was committed at a time."""
    return committed_at + reveal_window(view.charter.chain)


def locks_of(view: RunView, held: Mapping[Digest, int], challenges: Mapping[Digest, int]) -> list[OwnLock]:
    """The locks of `view.me`. held: their wei by name; challenges: when it committed each, by commitment."""
    found = {lock.id: lock for lock in _known(view, challenges)}
    unknown = LockEnd(waits_for="the contract that made it")
    return [
        replace(found.get(name) or OwnLock(name, "other", None, "another lock", 0, unknown), amount=amount)
        for name, amount in held.items()
    ]


def still_locked(view: RunView) -> list[OwnLock]:
    """The same for who has read no events of the vault: what the books say that each lock holds.

    A game's bond as it was locked: refunds of moves come out of it. Deposits of committed challenges are not in them.
    """
    e, found = view.charter.economics, dict[Digest, int]()
    for number, tenure in view.tenures_of(view.me):
        if not tenure.released:
            found[tenure_lock(number)] = 0 if tenure.convicted_at else e.seat_lock
            found[fee_lock(number)] = 0 if tenure.fee_gone else e.seat_fee
    for ticket, held in view.tickets_of(view.me):
        missing = view.books.registry.missing[ticket]
        found[ticket_lock(ticket)] = 0 if held.convicted_at else view.facts.tickets.bond - missing
    for game in view.open_games():
        if game.challenger == view.me:
            found[game_lock(game.game_id)] = e.challenge_bond
    for (node, party), record in view.state.unclosed.items():
        if record.backer == view.me and not view.books.generations.openings[node, party].fallen:
            found[back_lock(node, party)] = e.seat_lock
    return locks_of(view, {name: amount for name, amount in found.items() if amount}, {})


def _known(view: RunView, challenges: Mapping[Digest, int]) -> Iterator[OwnLock]:
    for number, tenure in view.tenures_of(view.me):
        end = seat_end(view, number, tenure)
        yield OwnLock(tenure_lock(number), "seat", number, f"seat {tenure.seat}", 0, end)
        yield OwnLock(fee_lock(number), "seat fee", number, f"fee of seat {tenure.seat}", 0, end)
    records = ViewRecords(view)
    for held in records.held_tickets():
        end = ticket_end(view, records, held)
        yield OwnLock(ticket_lock(held.id), "ticket", int(held.id), f"ticket {held.id}", 0, end)
    for number, game in view.games.items():
        if game.challenger == view.me:
            end = LockEnd(waits_for=f"the verdict of game {number}")
            yield OwnLock(game_lock(number), "game", number, f"bond of game {number}", 0, end)
    for (node, party), opening in view.state.openings.items():
        if opening.backer == view.me:
            end, number = root_end(view, opening), opening.generation
            yield OwnLock(back_lock(node, party), "root", number, f"root of generation {number}", 0, end)
    for commitment, at in challenges.items():
        # Attack: a reveal that a reorganization shows early; so it is refused for as long as one may reach back.
        end = LockEnd(ends_at=at + view.charter.chain.reorg_depth, lost_after=reveal_until(view, at))
        yield OwnLock(challenge_lock(commitment), "challenge", None, "challenge", 0, end)


def seat_end(view: RunView, number: int, tenure: Tenure) -> LockEnd:
    """Of a tenure's lock and fee (`release` in Tenures.sol)."""
    is_left, is_stopped = tenure.until != NEVER, view.state.money.is_stopped
    if not (is_left or view.state.money.is_ended or costs_no_fee(view, tenure)) and (end := _next_commitment(view)):
        return end
    if is_left and not is_obliged(view, tenure):
        at, waits_for = release_at(view, tenure), f"the end of round {tenure.until - 1}"
        if tenure.never_worked:
            longest = duration(view.rules.longest_dispute)
            waits_for += f" and, as it was held and never worked in, as long as a game can last ({longest})"
        return LockEnd(ends_at=at, waits_for=waits_for if at > view.now else None)
    waits = [] if is_left else ["the seat to be left (`assay solver leave`, or its actor once the run is over)"]
    waits += [f"game {game}" for game in _games_of(view, number)] or [count(tenure.games, "game")][: tenure.games]
    not_before = None
    if not is_stopped:
        waits += [count(tenure.accusations, "accusation")][: tenure.accusations]
        waits += [f"{count(tenure.unsettled, 'commitment or root', 'commitments or roots')} to be settled"][
            : tenure.unsettled
        ]
        not_before = _later(view, _settled_at(view, number))
    return LockEnd(waits_for=" and ".join(waits), not_before=not_before)


def _next_commitment(view: RunView) -> LockEnd | None:
    """Of a seat that loses its fee if it is left now, since it has not committed; None where it can commit no more."""
    round_, cost = view.round or Round(0), "after which leaving costs no fee"
    if view.now <= (until := view.commit_until(round_)):
        return LockEnd(waits_for=f"its commitment to round {round_}, {cost}", not_before=until)
    return None if view.is_over else LockEnd(waits_for=f"its commitment to round {round_ + 1}, {cost}")


def _settled_at(view: RunView, tenure: int) -> int:
    """The earliest time at which the last commitment and root of a tenure can be settled."""
    found = [view.now]
    for work in view.state.unsettled.values():
        if work.tenure == tenure:
            home = epoch_of(view, work.round)
            home = len(view.epochs) if home is None else home
            found.append(_undrawn_at(view, home))
    for (node, party), record in view.state.unclosed.items():
        if view.rules.by_seats and view.books.generations.openings[node, party].opener == tenure:
            found.append(record.at + view.rules.challenge + 1)
    return max(found)


def ticket_end(view: RunView, records: ViewRecords, held: HeldTicket) -> LockEnd:
    """Of a ticket's stake (`reclaim` in Tickets.sol); one that fines left short comes back as it is."""
    obliged = f"{count(held.obligations, 'game, claim or fine', 'games, claims or fines')} to be over"
    if view.state.money.is_stopped:
        return LockEnd(waits_for=obliged) if held.obligations else LockEnd(ends_at=view.now)
    # Who retires it now waits as long as a new ticket waits until it counts.
    until = held.until or view.now + view.facts.tickets.seasoning
    not_before = _later(view, max(until, _undrawn_at(view, held.last_epoch + 1)))
    if not held.until:
        text = "the ticket to be retired (`assay verifier leave`, or its actor once the run is over)"
    elif records.epochs[-1].start < held.until:
        text = "the first epoch in which it counts no more; until then it answers its calls"
    elif owed := owed_calls(held, records, len(records.epochs)):
        text = f"the {count(len(owed), 'secret')} that it owes"
    elif held.obligations:
        text = obliged
    elif not records.over_since(held.last_epoch + 1):
        text = f"epoch {held.last_epoch + 1} to be over, so that nothing it did is drawn any more"
    else:
        return LockEnd(ends_at=view.now)
    return LockEnd(waits_for=text, not_before=not_before)


def _undrawn_at(view: RunView, epoch: int) -> int:
    """The earliest time from which on nothing that belongs to an epoch is drawn any more."""
    # The epoch after it fines, or does not, when it closes: until then it may, and drawing ends sooner.
    is_decided = epoch + 1 < len(view.epochs) and view.epochs[epoch + 1].closed
    return _epoch_begins(view, (last_drawn(view.epochs, epoch) if is_decided else epoch + 2) + 1)


def _epoch_begins(view: RunView, number: int) -> int:
    """When an epoch began, or can begin at the earliest."""
    if number < len(view.epochs):
        return view.epochs[number].start
    newest, terms = view.epochs[-1], view.terms
    closes = (newest.deadline if newest.seed is not None else newest.start + terms.delay + terms.length) + 1
    return max(closes, view.now) + (number - len(view.epochs)) * (terms.delay + terms.length + 1)


def _later(view: RunView, at: int) -> int | None:
    """A time, if it is still to come."""
    return at if at > view.now else None


def root_end(view: RunView, record: OpeningRecord) -> LockEnd:
    """Of the lock that its owner put behind a root (`close` in Generations.sol)."""
    opening, generation = view.books.generations.openings[record.node, record.party], record.generation
    if opening.games:
        return LockEnd(waits_for=count(opening.games, "game"))
    if view.state.money.is_stopped:
        return LockEnd(ends_at=view.now)
    if view.status(generation) not in (GenerationStatus.FINAL, GenerationStatus.CUT):
        return LockEnd(waits_for=f"generation {generation} to be final or cut")
    return LockEnd(ends_at=max(opening.at + view.rules.challenge + 1, view.now))


def _games_of(view: RunView, tenure: int) -> list[int]:
    """Open games about the work of a tenure."""
    works = {(work.round, work.seat) for work in view.state.works.values() if work.tenure == tenure}
    mine = [
        game for game in view.open_games() if game.defender == view.me and game.ref.kind is not ClaimKind.ATTESTATION
    ]
    return sorted(game.game_id for game in mine if (game.ref.round, game.ref.seat) in works)
