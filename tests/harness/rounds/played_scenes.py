"""One claim of each kind, true or false, and the challenger who knows better or does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.ticket_types import ticket_lock
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.rounds.duties import finding_tuple
from tests.harness.rounds.played_programs import end_slots, lie_in, run_programs, start_state
from tests.harness.rounds.played_world import PlayedWorld
from tests.harness.rounds.samples import ETHER

LIAR: Final = Seat(1)
MOST_LABELS: Final = 12


@dataclass(frozen=True)
class PlayedDispute:
    """A game that is open: who plays it over which runs, and what stands behind the claim."""

    number: int
    defender: Address
    challenger: Address
    defence: ReferenceTrace
    attack: ReferenceTrace
    lock: Digest
    is_drawn: bool


class NotDrawn(Exception):
    """Nobody was drawn for what the scene is about; another beacon draws others."""


def dispute(
    kind: ClaimKind,
    is_lie: bool,
    by_accuser: bool,
    part: int = 0,
    label: object = 0,
    world: type[PlayedWorld] = PlayedWorld,
) -> tuple[PlayedWorld, PlayedDispute]:
    """A world with one open game: the claim is a lie, or who challenges it lies."""
    for number in range(MOST_LABELS):
        w = PlayedWorld(number)
        try:
            if kind is ClaimKind.OUTER:
                return w, merge_dispute(w, is_lie, by_accuser)
            if kind is ClaimKind.ATTESTATION:
                return w, finding_dispute(w, is_lie, by_accuser, part)
            return w, work_dispute(w, kind, is_lie, by_accuser)
        except NotDrawn:
            w.end()
        except BaseException:
            w.end()
            raise
    raise AssertionError(f"{MOST_LABELS} beacons drew nobody")


def began(w: PlayedWorld, lie: str = "") -> list[Address]:
    """A run whose first round everybody committed to; one seat perhaps lies."""
    people = w.start()
    w.at(w.model.commitments.rounds[0].t0 + w.terms.commit)
    for who in people:
        w.train(who, lie if w.seat(who) == LIAR else "")
    return people


def work_dispute(w: PlayedWorld, kind: ClaimKind, is_lie: bool, by_accuser: bool) -> PlayedDispute:
    """A game on a commitment."""
    name = "run" if kind is ClaimKind.INTERVAL else "update"
    people = began(w, name if is_lie else "")
    claimed = getattr(w.done[LIAR], name)
    known = getattr(w.truth(LIAR), name)
    if not is_lie:
        p = run_programs()
        moved = (p.parameters, end_slots(w.done[LIAR].run))
        known = lie_in(claimed.program, start_state(w.scalars(LIAR)) if name == "run" else moved, claimed.steps)
    who, accusation = _accused(w, not is_lie) if by_accuser else (w.add_person(100 * ETHER), ZERO)
    w.at(max(w.now, w.model.commitments.rounds[0].mask_at + 1))
    assert w.prepare(kind, Round(0), LIAR, w.done[LIAR].work) == ""
    ref = ClaimRef(kind, Round(0), LIAR, 0, NO_ADDRESS, accusation)
    lock = tenure_lock(w.tenures[people[LIAR]])
    return _open(w, ref, who, people[LIAR], claimed, known, lock, by_accuser)


def opened_root(w: PlayedWorld, is_lie: bool) -> tuple[list[Address], ClaimRef, ReferenceTrace, ReferenceTrace]:
    """Who trains, the claim of a root that one of them opened, the run that it claims, and another one: the true one
    where it is a lie."""
    people = began(w)
    w.hold_all(people)
    state = w.merge_state()
    true, false = ReferenceTrace(run_programs().merge, state), lie_in(run_programs().merge, state, 1)
    opened = {who: false if is_lie and w.seat(who) == LIAR else true for who in people}
    w.at(max(w.now, w.model.commitments.hold_until(Round(0), 0)) + 1)
    for who in people:
        assert w.seal(who, opened[who], Round(0)) == ""
    w.tick(1)
    for who in people:
        assert w.open(who, opened[who], Round(0)) == ""
    w.prepare_merge()
    claimed = opened[people[LIAR]]
    ref = ClaimRef(ClaimKind.OUTER, Round(0), LIAR, 0, NO_ADDRESS, claimed.state_root(1))
    return people, ref, claimed, true if is_lie else false


def merge_dispute(w: PlayedWorld, is_lie: bool, by_accuser: bool) -> PlayedDispute:
    """A game on an opened root, by somebody who trains or by a third party."""
    people, ref, claimed, known = opened_root(w, is_lie)
    who = people[0] if by_accuser else w.add_person(100 * ETHER)
    lock = tenure_lock(w.tenures[people[LIAR]])
    return _open(w, ref, who, people[LIAR], claimed, known, lock, by_accuser)


def finding_dispute(w: PlayedWorld, is_lie: bool, by_accuser: bool, part: int) -> PlayedDispute:
    """A game on a part of an attestation: 0 its own key, 1 its update."""
    began(w)
    books = w.run.duties.attestations
    _wait(w)
    number = _epoch(w, is_lie, part)
    names = [name for name, made in books.attestations.items() if made.epoch == number]
    accusation, who = ZERO, w.add_person(100 * ETHER)
    if by_accuser:
        later = _epoch(w, not is_lie, part)
        made = [(a, m) for a, m in books.accusations.items() if not m.is_work and m.epoch == later]
        if not made:
            raise NotDrawn
        accusation, accused = made[0]
        names, who = [accused.against], w.run.tickets.owner_of(accused.ticket)
    if not names:
        raise NotDrawn
    name = names[0]
    attested, finding = books.attestations[name], books.findings[name]
    row = finding_tuple(finding)
    said = w.do(lambda: books.prepare(name, finding, part), "Attestations", "prepare", name, row, part)
    assert said == ""
    seat, key = attested.seat, finding.keys[0]
    if part == 0:
        true, false = w.replay(seat, key), w.false_replay(seat, key)
    else:
        true, false = w.truth(seat).update, w.false_update(seat)
    claimed, known = (false, true) if is_lie else (true, false)
    ref = ClaimRef(ClaimKind.ATTESTATION, Round(0), seat, part, NO_ADDRESS, accusation if by_accuser else name)
    owner = w.run.tickets.owner_of(attested.ticket)
    return _open(w, ref, who, owner, claimed, known, ticket_lock(attested.ticket), by_accuser)


def _wait(w: PlayedWorld) -> None:
    """Let epochs pass until the one that round 0 belongs to."""
    while w.own_epoch(0) != w.epoch:
        w.play_epoch()


def _epoch(w: PlayedWorld, with_lies: bool, part: int) -> int:
    """An epoch in which all tickets lie alike, or none; its number."""
    w.blind = set(w.chains) if with_lies and part == 0 else set()
    w.liars = set(w.chains) if with_lies and part == 1 else set()
    return w.play_epoch()


def _accused(w: PlayedWorld, falsely: bool) -> tuple[Address, Digest]:
    """Who was drawn for the liar's commitment accuses it; the accuser and its accusation."""
    _wait(w)
    _epoch(w, falsely, 1)
    against = w.model.commitments.works[Round(0), LIAR].digest
    for name, made in w.run.duties.attestations.accusations.items():
        if made.against == against:
            return w.run.tickets.owner_of(made.ticket), name
    raise NotDrawn


def _open(
    w: PlayedWorld,
    ref: ClaimRef,
    who: Address,
    defender: Address,
    claimed: ReferenceTrace,
    known: ReferenceTrace,
    lock: Digest,
    is_direct: bool,
) -> PlayedDispute:
    number = w.open_direct(who, ref) if is_direct else w.open_committed(who, ref, known.state_root(known.steps))
    return PlayedDispute(number, defender, who, claimed, known, lock, is_direct and ref.kind is not ClaimKind.OUTER)
