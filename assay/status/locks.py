"""What each lock of an account is for, and when it can end or what it waits for. Pure.

Times are chain times in seconds. `ends_at` is the first second whose block takes the call that ends the lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.game.state import REVEAL_WINDOW
from assay.protocol.rounds.ids import back_lock, fee_lock, tenure_lock
from assay.protocol.rounds.terms import NEVER, GenerationStatus, Tenure
from assay.protocol.rounds.ticket_types import ticket_lock
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Digest
from assay_ledger.agents.keeper import is_obliged, release_at
from assay_ledger.rounds.records import OpeningRecord
from assay_ledger.rounds.view import RunView
from assay_verifier.ticket_keeping import HeldTicket, owed_calls
from assay_verifier.view_records import ViewRecords

_GAME: Final = b"game".ljust(32, b"\0")
_CHALLENGE: Final = b"challenge".ljust(32, b"\0")


@dataclass(frozen=True, slots=True)
class LockEnd:
    """When a lock can end: at a time, or when what it waits for has come, no earlier than `not_before` where that is
    known. After `lost_after` it is burned."""

    ends_at: int | None = None
    not_before: int | None = None
    lost_after: int | None = None
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class OwnLock:
    """A lock of an account: what it stands behind, with its number where that has one, and wei."""

    id: Digest
    kind: str
    number: int | None
    amount: int
    end: LockEnd


def game_lock(number: int) -> Digest:
    """The lock of a challenger's bond (GameMoney.sol)."""
    return keccak(_GAME + abi.uint(number))


def challenge_lock(commitment: Digest) -> Digest:
    """The lock of a committed challenge's deposit (Challenges.sol)."""
    return keccak(_CHALLENGE + abi.bytes32(commitment))


def reveal_until(view: RunView, committed_at: int) -> int:
    """The last second to reveal a challenge that was committed at a time."""
    chain = view.charter.chain
    return committed_at + REVEAL_WINDOW + chain.reorg_depth + chain.inclusion_delay


def locks_of(view: RunView, held: Mapping[Digest, int], challenges: Mapping[Digest, int]) -> list[OwnLock]:
    """The locks of `view.me`. held: their wei by name; challenges: when it committed each, by commitment."""
    found = {name: (kind, number, end) for name, kind, number, end in _known(view, challenges)}
    unknown = ("other", None, LockEnd(waits_for="the contract that made it"))
    return [OwnLock(name, *_place(found.get(name, unknown), amount)) for name, amount in held.items()]


def _place(found: tuple[str, int | None, LockEnd], amount: int) -> tuple[str, int | None, int, LockEnd]:
    kind, number, end = found
    return kind, number, amount, end


def _known(view: RunView, challenges: Mapping[Digest, int]) -> Iterator[tuple[Digest, str, int | None, LockEnd]]:
    for number, tenure in view.tenures_of(view.me):
        end = seat_end(view, number, tenure)
        yield tenure_lock(number), "seat", number, end
        yield fee_lock(number), "seat fee", number, end
    records = ViewRecords(view)
    for held in records.held_tickets():
        yield ticket_lock(held.id), "ticket", int(held.id), ticket_end(view, records, held)
    for number, game in view.games.items():
        if game.challenger == view.me:
            yield game_lock(number), "game", number, LockEnd(waits_for=f"the verdict of game {number}")
    for (node, party), opening in view.state.openings.items():
        if opening.backer == view.me:
            yield back_lock(node, party), "root", opening.generation, root_end(view, opening)
    for commitment, at in challenges.items():
        # Attack: a reveal that a reorganization shows early; so it is refused for as long as one may reach back.
        end = LockEnd(ends_at=at + view.charter.chain.reorg_depth, lost_after=reveal_until(view, at))
        yield challenge_lock(commitment), "challenge", None, end


def seat_end(view: RunView, number: int, tenure: Tenure) -> LockEnd:
    """Of a tenure's lock and fee (`release` in Tenures.sol)."""
    if tenure.until == NEVER:
        return LockEnd(waits_for="the seat to be left: `assay solver leave`, or its actor once the run is over")
    if not is_obliged(view, tenure):
        return LockEnd(ends_at=release_at(view, tenure))
    waits = [f"game {game}" for game in _games_of(view, number)] or [_count(tenure.games, "game")][: tenure.games]
    if not view.state.money.is_stopped:
        waits += [_count(tenure.accusations, "accusation")][: tenure.accusations]
        waits += [f"{_count(tenure.unsettled, 'commitment')} to be settled"][: tenure.unsettled]
    return LockEnd(waits_for=" and ".join(waits))


def ticket_end(view: RunView, records: ViewRecords, held: HeldTicket) -> LockEnd:
    """Of a ticket's stake (`reclaim` in Tickets.sol)."""
    obliged = f"{_count(held.obligations, 'game, claim or fine', 'games, claims or fines')} to be over"
    if view.state.money.is_stopped:
        return LockEnd(waits_for=obliged) if held.obligations else LockEnd(ends_at=view.now)
    if not held.until:
        # Who retires it now waits as long as a new ticket waits until it counts.
        text = "the ticket to be retired: `assay verifier leave`, or its actor once the run is over"
        return LockEnd(waits_for=text, not_before=view.now + view.facts.tickets.seasoning)
    not_before = held.until if held.until > view.now else None
    if records.epochs[-1].start < held.until:
        return LockEnd(waits_for="an epoch that begins after it has retired", not_before=not_before)
    if owed := owed_calls(held, records, len(records.epochs)):
        return LockEnd(waits_for=f"the {_count(len(owed), 'secret')} that it owes")
    if held.obligations:
        return LockEnd(waits_for=obliged)
    if not records.over_since(held.last_epoch + 1):
        return LockEnd(waits_for=f"epoch {held.last_epoch + 1} to be over, so that nothing it did is drawn any more")
    return LockEnd(ends_at=view.now)


def root_end(view: RunView, record: OpeningRecord) -> LockEnd:
    """Of the lock that its owner put behind a root (`close` in Generations.sol)."""
    opening, generation = view.books.generations.openings[record.node, record.party], record.generation
    if opening.games:
        return LockEnd(waits_for=_count(opening.games, "game"))
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


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
