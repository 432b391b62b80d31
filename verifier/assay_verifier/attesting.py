"""What drawn auditors do in a round, pure: replay, bind hidden results, reveal the draw, reveal the results, accuse.

Verifiers and whistleblowers differ in when they may do what, and in what they are drawn for.
Source: docs/protocol.md, section 6; docs/adr/0003-draws.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Digest, Role, Seat, Wei
from assay_ledger.agents.actions import (
    Action,
    Attest,
    CommitChallenge,
    Receipt,
    Register,
    Replay,
    Retire,
    RevealChallenge,
    RevealDraw,
    RevealLeaves,
)
from assay_ledger.agents.keeper import attestation_ref, challenge_once, commitment_refs, worth_challenging
from assay_ledger.index.records import RoundRecord
from assay_ledger.index.view import RunView

LAST_MOMENT_S = 120
"""How long before its deadline a root is bound without the results that could not be computed."""

RESULT_BLOCKS = 2
"""Blocks between the commitment to a third-party challenge and its reveal."""


def participation(view: RunView, role: Role, stake: Wei | None, leaving: bool) -> Iterator[Action]:
    """Register where that is wanted, retire when leaving."""
    me = view.state.attesters.get(view.me)
    if me is None:
        over = len(view.state.rounds) >= view.charter.rounds or view.now > view.charter.expiry
        if stake is not None and not leaving and not over:
            yield Register(role, stake)
    elif leaving and me.retires_with is None:
        yield Retire()


def receipts(view: RunView) -> Iterator[Action]:
    """Fetch and hash the commitments of the latest round."""
    record = view.state.round
    me = view.state.attesters.get(view.me)
    if record is None or me is None or me.convicted_at is not None or view.now >= record.times.receipts_until:
        return
    if view.stake_at(me, record.number):
        for seat, commitment in sorted(record.commitments.items()):
            if view.me not in commitment.receipts:
                yield Receipt(record.number, seat, commitment.digest)


def attest(view: RunView, until: int) -> Iterator[Action]:
    """Compute every drawn duty of the latest round and bind the results, until a chain time."""
    record = view.state.round
    if record is None or view.me in record.attendance or record.number not in view.memory.duties:
        return
    if view.now >= until or _is_convicted(view):
        return
    drawn = view.memory.duties[record.number]
    me = view.state.attesters[view.me]
    seed = record.seed if me.role is Role.VERIFIER else record.whistle_seed
    if seed is None or (me.role is Role.WHISTLEBLOWER and not drawn):
        return
    missing = [duty for duty in drawn if view.result(duty) is None]
    if record.number not in view.memory.leaves:
        yield from (Replay(record.number, duty.seat, duty.number) for duty in missing)
        if missing and view.now < until - LAST_MOMENT_S:
            return
    yield Attest(record.number, seed)


def leaves_are_stale(view: RunView, record: RoundRecord, draw: Digest) -> bool:
    """Were a round's leaves, not bound yet, made for another draw, or with fewer answers than there are now?

    Another draw may hold the same duties and more; in the same draw, what had no answer in time stays without.
    """
    leaves = view.memory.leaves.get(record.number)
    if leaves is None or view.me in record.attendance:
        return False
    kept = {(leaf.leaf.claim_id, leaf.leaf.duty) for leaf in leaves}
    duties = view.memory.duties[record.number]
    answered = {(duty.id, duty.number) for duty in duties if view.result(duty) is not None}
    return view.memory.draws[record.number] != draw or bool(answered - kept)


def reveal_draw(view: RunView, after: int, until: int) -> Iterator[Action]:
    """Reveal the draw once everybody who could copy is bound."""
    record = view.state.round
    mine = None if record is None else record.attendance.get(view.me)
    if record is None or mine is None or mine.y is not None or record.number not in view.memory.y:
        return
    if after < view.now < until:
        yield RevealDraw(record.number)


def reveal_leaves(view: RunView, until: int) -> Iterator[Action]:
    """Reveal the results after T5; an attester without duties has nothing to reveal."""
    record = view.state.round
    mine = None if record is None else record.attendance.get(view.me)
    if record is None or mine is None or mine.y is None or mine.leaves or _is_convicted(view):
        return
    if record.times.t5 < view.now < until and view.memory.leaves.get(record.number):
        yield RevealLeaves(record.number)


def verifiers_have_revealed(record: RoundRecord, view: RunView) -> bool:
    """Are the results of every verifier that revealed its draw out, or can no more come?"""
    verifiers = [a for a in record.attendance.values() if a.role is Role.VERIFIER and a.y is not None]
    return view.now > record.times.leaves_until or all(a.leaves or not any(a.root) for a in verifiers)


def accuse_solvers(view: RunView) -> Iterator[Action]:
    """Challenge commitments whose claims differ from one's own revealed results, as a party."""
    for record, seat, refs in false_claims(view):
        yield from challenge_once(view, refs, commitment_refs(view, record, seat))


def accuse_solvers_as_third_party(view: RunView) -> Iterator[Action]:
    """The same as a third party, after the verifiers had their time: what is hidden cannot be copied."""
    for committed in view.memory.committed.values():
        if committed.block is None or view.now < committed.time + view.charter.chain.reorg_depth:
            continue
        if view.block >= committed.block + RESULT_BLOCKS:
            yield RevealChallenge(committed.ref, committed.own_root, committed.salt)
    for record, seat, refs in false_claims(view):
        if view.now <= record.times.leaves_until:
            continue
        ref = next(iter(worth_challenging(view, refs, commitment_refs(view, record, seat))), None)
        if ref is not None and (ref not in view.memory.committed or view.memory.committed[ref].block is None):
            yield CommitChallenge(ref, record.attendance[view.me].leaves[seat, ref.duty])


def false_claims(view: RunView) -> Iterator[tuple[RoundRecord, Seat, list[ClaimRef]]]:
    """Per commitment that may still be challenged: the claims that one's own revealed results contradict."""
    for record in view.state.rounds:
        mine = record.attendance.get(view.me)
        if mine is None or not record.times.t5 < view.now <= record.times.challenge_until:
            continue
        for seat, commitment in sorted(record.commitments.items()):
            if commitment.convicted:
                continue
            duties = [view.duty(record, commitment, j) for s, j in sorted(mine.leaves) if s == seat]
            refs = [d.ref for d in duties if mine.leaves[seat, d.number] != d.y]
            if refs:
                yield record, seat, refs


def accuse_attesters(view: RunView) -> Iterator[Action]:
    """Challenge attestations that differ from one's own revealed results."""
    for record in view.state.rounds:
        mine = record.attendance.get(view.me)
        if mine is None or not record.times.t5 < view.now <= record.times.challenge_until:
            continue
        for who, other in sorted(record.attendance.items()):
            if who == view.me or view.state.attesters[who].convicted_at is not None:
                continue
            places = sorted(p for p in other.leaves if p in mine.leaves and other.leaves[p] != mine.leaves[p])
            refs = [attestation_ref(view, record, who, *place) for place in places]
            everything = [attestation_ref(view, record, who, *place) for place in sorted(other.leaves)]
            if refs:
                yield from challenge_once(view, refs, everything)


def times(view: RunView, role: Role) -> Iterator[int]:
    """Chain times that concern an attester beyond those of every participant."""
    record = view.state.round
    if record is None:
        return
    t = record.times
    if role is Role.VERIFIER:
        yield from (t.t3 - LAST_MOMENT_S, t.t3 + 1, t.t5 + 1)
    else:
        yield from (t.t5 - LAST_MOMENT_S, t.t5 + 1, t.leaves_until + 1)
    if any(committed.block is not None for committed in view.memory.committed.values()):
        yield view.now + 1


def _is_convicted(view: RunView) -> bool:
    me = view.state.attesters.get(view.me)
    return me is not None and me.convicted_at is not None
