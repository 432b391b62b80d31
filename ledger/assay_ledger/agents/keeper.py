"""What participants do in any role: play their games, draw seeds, take outer steps, open rounds and settle.

Pure: from a view to candidate actions in order of priority, and to the chain times at which something may change.
Several actors may do the same keeper task: the one whose index is round mod number of actors goes first, the others
wait STAGGER_S of chain time for each place behind it; losing a race is not an error. Source: docs/adr/0007-actors.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Role, Round, Seat, Status, Wei
from assay_ledger.agents import playing
from assay_ledger.agents.actions import (
    Action,
    Challenge,
    ComputeOuter,
    DrawSeed,
    DrawWhistleSeed,
    FinalizeOuter,
    OpenRound,
    PostOuter,
    ReleaseDuties,
    ReleaseWork,
    SettleDuties,
    SettleRound,
    SettleWork,
    VoidOuter,
)
from assay_ledger.index.records import GameRecord, OuterRecord, RoundRecord
from assay_ledger.index.view import OuterStep, RunView, turn_of

STAGGER_S = 30
GRACE_S = 600
"""Chain time for which others wait before they settle somebody's work in its place."""


def play(view: RunView) -> Iterator[Action]:
    """Moves that are due, nearest clock first, and games whose other side is overdue."""
    games = view.state.open_games_of(view.me)
    return playing.moves(games, view.me, view.now, _is_expensive(view), view.facts.clocks)


def _is_expensive(view: RunView) -> bool:
    """Whether gas costs more than what games refund."""
    return view.state.head.base_fee > view.charter.chain.fee_cap


def draw_seeds(view: RunView) -> Iterator[Action]:
    """Seeds of the latest round, once their time has come."""
    record = view.state.round
    if record is None or not any(c.complete for c in record.commitments.values()):
        return
    times = record.times
    wait = STAGGER_S * turn_of(_seed_order(view, record), view.me, record.number)
    if record.seed is None and times.t2 + wait <= view.now <= times.t3:
        yield DrawSeed(record.number)
    watched = view.attesters(Role.WHISTLEBLOWER, record.number)
    if record.whistle_seed is None and watched and times.t4 + wait <= view.now <= times.t5:
        yield DrawWhistleSeed(record.number)


def outer_steps(view: RunView) -> Iterator[Action]:
    """Recompute every fixed outer step on the way from genesis, uphold the right roots, challenge the wrong ones."""
    base: Digest | None = view.facts.genesis
    for record in view.state.rounds:
        if base is None or view.now < record.times.t7:
            return
        inclusion = record.inclusions.get(base)
        if inclusion is None:
            yield from _post(view, record, base)
            return
        step = view.memory.outers.get(inclusion[1])
        if step is None:
            yield ComputeOuter(record.number, base, inclusion[1])
            return
        yield from _challenge_outers(view, record, base, step.root)
        if not view.is_upheld(Round(record.number + 1), step.root, base):
            yield from _post(view, record, base)
        base = step.root


def affordable_rescues(view: RunView, free: Wei | None, keep: Wei) -> int | None:
    """How many rescues one's free stake pays for beside what must be kept; None while it is not known."""
    return None if free is None else max(0, free - keep) // view.charter.economics.price


def rescue(view: RunView, at_most: int | None = None) -> Iterator[Action]:
    """Put one's own lock behind every right root of which a poster has lost its standing, `at_most` so many.

    Also behind one that another party has posted again: that party may lose on purpose too, when it is too late
    for another. Those come first whose turn this actor has first: participants with little stake share the roots.
    A root without a poster when half of its window is over is rescued whatever that costs: all work on it
    would be void.
    """
    found: list[tuple[RoundRecord, Digest]] = []
    last: list[tuple[RoundRecord, Digest]] = []
    base = view.facts.genesis
    for record in view.state.rounds:
        step = _step_from(view, record, base)
        if step is None:
            break
        posted = record.outers.get(step.root)
        running = posted is not None and view.now <= posted.rescue_until
        if posted is not None and running and view.me not in posted.posters and not _is_final(posted):
            found.append((record, base))
            if posted.fallen and view.now >= _half_time(view, posted):
                last.append((record, base))
        base = step.root
    found.sort(key=lambda entry: turn_of(view.participants, view.me, entry[0].number))
    for place, (record, base) in enumerate(found):
        if at_most is None or place < at_most or (record, base) in last:
            yield PostOuter(record.number, base)


def _half_time(view: RunView, outer: OuterRecord) -> int:
    return outer.rescue_until - view.charter.windows.rescue // 2


def may_rescue(view: RunView) -> bool:
    """Is there a root that somebody may still put a lock behind?"""
    return any(view.now <= outer.rescue_until for record in view.state.rounds for outer in record.outers.values())


def _is_final(outer: OuterRecord) -> bool:
    return Status.FINAL in outer.posters.values()


def _step_from(view: RunView, record: RoundRecord, base: Digest) -> OuterStep | None:
    """Where the outer step of a round from a base ends; None while it is not fixed or not computed."""
    inclusion = record.inclusions.get(base)
    return None if inclusion is None else view.memory.outers.get(inclusion[1])


def _post(view: RunView, record: RoundRecord, base: Digest) -> Iterator[Action]:
    """Post a round's outer step if it is this actor's turn, and the contract still takes it."""
    step = _step_from(view, record, base)
    posted = None if step is None else record.outers.get(step.root)
    if posted is not None and (view.me in posted.posters or 0 < posted.rescue_until < view.now):
        return
    known = step is not None and view.is_alive(Round(record.number + 1), step.root)
    passed = record.number + 2 < len(view.state.rounds) and any(not o.fallen for o in record.outers.values())
    if not view.is_alive(record.number, base) or (not known and (passed or view.me not in view.participants)):
        return
    if view.now >= record.times.t7 + STAGGER_S * turn_of(view.participants, view.me, record.number):
        yield PostOuter(record.number, base)


def _challenge_outers(view: RunView, record: RoundRecord, base: Digest, root: Digest) -> Iterator[Action]:
    """No draw is needed against a wrong outer step: everybody recomputes it, and each participant may challenge."""
    if view.me not in view.participants:
        return
    for outer in sorted(record.outers.values(), key=lambda o: o.root):
        if outer.root == root:
            continue
        for poster, status in sorted(outer.posters.items()):
            ref = ClaimRef(ClaimKind.OUTER, record.number, party=poster, outer_root=outer.root)
            # Another poster of the same root may start from a base that is void anyway.
            if status is Status.OPEN and poster != view.me and outer.bases[poster] == base:
                yield from challenge_once(view, [ref])


def challenge_once(view: RunView, refs: list[ClaimRef], lock: list[ClaimRef] | None = None) -> Iterator[Action]:
    """Challenge one of several false claims; `lock` are all claims behind the same lock, false or not.

    A conviction takes the lock once, so one won game is enough. While somebody else's game against that lock is open,
    its end is awaited as long as time remains to open one's own: somebody else may lose on purpose, so its game alone
    is never relied upon.
    """
    ref = next(iter(worth_challenging(view, refs, lock or refs)), None)
    if ref is not None:
        yield Challenge(ref)


def worth_challenging(view: RunView, refs: list[ClaimRef], lock: list[ClaimRef]) -> Iterator[ClaimRef]:
    """Those of some false claims that this actor should open a game on now; see `challenge_once`."""
    games = _games(view, lock)
    if any(g.convicted for g in games) or any(not g.is_over and g.challenger == view.me for g in games):
        return
    if any(not g.is_over for g in games) and view.now < patience(view, refs[0].round):
        return
    played = {g.ref for g in games if g.challenger == view.me}
    yield from (ref for ref in refs if ref not in played)


def patience(view: RunView, round_: Round) -> int:
    """Until when somebody else's game on a claim is waited for: the middle of the window."""
    return view.state.rounds[round_].times.t7 + view.charter.windows.challenge // 2


def open_round(view: RunView, seats: int = 1, verifiers: int = 1) -> Iterator[Action]:
    """Open the next round once the last one is over and its outer root stands; the first once enough are there.

    Without a verifier whose stake counts no commitment could be complete.
    """
    number = Round(len(view.state.rounds))
    if number >= view.charter.rounds or view.now > view.charter.expiry or view.me not in _openers(view):
        return
    if number == 0:
        enough = len(view.state.holders) >= seats and len(view.attesters(Role.VERIFIER, number)) >= verifiers
        if enough:
            yield OpenRound(number)
        return
    base = view.verified_base(number)
    record = view.state.rounds[-1]
    if base is None or not view.is_standing(number, base) or not view.attesters(Role.VERIFIER, number):
        return
    if view.now >= record.times.t7 + STAGGER_S * turn_of(_openers(view), view.me, number):
        yield OpenRound(number)


def _openers(view: RunView) -> list[Address]:
    return sorted({*view.state.holders.values(), *view.attesters(Role.VERIFIER, Round(len(view.state.rounds)))})


def settle(view: RunView) -> Iterator[Action]:
    """End what is beyond challenge: one's own at once, other people's after GRACE_S."""
    for record in view.state.rounds:
        yield from _finalize(view, record)
        if record.settled:
            continue
        over = record.times.challenge_until
        for seat, commitment in sorted(record.commitments.items()):
            late = 0 if commitment.solver == view.me else GRACE_S
            refs = commitment_refs(view, record, seat)
            if commitment.status is not Status.OPEN or any(not g.is_over for g in _games(view, refs)):
                continue
            base = commitment.base
            fixed = view.is_final(record.number, base) or not view.is_alive(record.number, base)
            if commitment.convicted:
                due = view.now > record.times.t7 + late
            elif not commitment.complete:
                due = view.now > record.times.receipts_until + late
            else:
                due = view.now > over + late and fixed
            if due:
                yield SettleWork(record.number, seat)
        for who, attendance in sorted(record.attendance.items()):
            late = 0 if who == view.me else GRACE_S
            if attendance.leaves and not attendance.settled and view.now > over + late:
                refs_of = [g for g in view.state.games.values() if g.ref.party == who and not g.is_over]
                if not any(g.ref.kind is ClaimKind.ATTESTATION and g.ref.round == record.number for g in refs_of):
                    yield SettleDuties(record.number, who)
        turn = over + STAGGER_S * turn_of(view.participants, view.me, record.number)
        if _is_settled(record) and view.now > turn:
            yield SettleRound(record.number)
    yield from _release(view)


def _finalize(view: RunView, record: RoundRecord) -> Iterator[Action]:
    """Outer claims whose window is over, one's own first."""
    opened = record.times.t7 + view.charter.windows.challenge
    for outer in sorted(record.outers.values(), key=lambda o: o.root):
        for poster, status in sorted(outer.posters.items()):
            late = 0 if poster == view.me else GRACE_S
            ref = ClaimRef(ClaimKind.OUTER, record.number, party=poster, outer_root=outer.root)
            games = _games(view, [ref])
            if status is not Status.OPEN or view.now <= opened + late:
                continue
            if any(not g.is_over or g.convicted for g in games):
                continue
            if view.is_final(record.number, outer.bases[poster]):
                yield FinalizeOuter(record.number, outer.root, poster)
            elif not view.is_alive(record.number, outer.bases[poster]):
                yield VoidOuter(record.number, outer.root, poster)


def _release(view: RunView) -> Iterator[Action]:
    """One's own credits that have vested."""
    for record in view.state.rounds:
        if view.now < record.times.t7 + view.facts.vesting:
            continue
        seat = next((s for s, c in record.commitments.items() if c.solver == view.me), None)
        worked = seat is not None and record.commitments[seat].status is Status.FINAL
        if seat is not None and worked and ("work", record.number) not in view.memory.released:
            yield ReleaseWork(record.number, seat)
        attendance = record.attendance.get(view.me)
        if attendance is not None and attendance.settled and ("duties", record.number) not in view.memory.released:
            yield ReleaseDuties(record.number, view.me)


def _games(view: RunView, refs: list[ClaimRef]) -> list[GameRecord]:
    return [view.state.games[k] for k in view.games_on(refs)]


def commitment_refs(view: RunView, record: RoundRecord, seat: Seat) -> list[ClaimRef]:
    """All claims behind a commitment's lock."""
    n = view.charter.training.intervals
    intervals = [ClaimRef(ClaimKind.INTERVAL, record.number, seat, j) for j in range(n)]
    return [*intervals, ClaimRef(ClaimKind.UPDATE, record.number, seat, n)]


def _is_settled(record: RoundRecord) -> bool:
    """Is nothing of this round waiting for settlement?"""
    worked = all(c.status is not Status.OPEN for c in record.commitments.values())
    return worked and all(a.settled or not a.leaves for a in record.attendance.values())


def times(view: RunView) -> Iterator[int]:
    """Chain times at which something may become due for a participant; those that have passed are among them."""
    for record in view.state.rounds:
        t = record.times
        wait = STAGGER_S * turn_of(_seed_order(view, record), view.me, record.number)
        if record.seed is None:
            yield t.t2 + wait
        elif record.whistle_seed is None:
            yield t.t4 + wait
        late = STAGGER_S * turn_of(view.participants, view.me, record.number)
        if record is view.state.round or not record.outers:
            yield from (t.t7, t.t7 + late, t.t7 + STAGGER_S * turn_of(_openers(view), view.me, record.number))
        if not record.settled or any(Status.OPEN in o.posters.values() for o in record.outers.values() if not o.fallen):
            over = t.challenge_until
            yield from (t.t7 + 1, over + 1, over + GRACE_S + 1, over + late + 1)
            yield from (outer.rescue_until + 1 for outer in record.outers.values())
            yield from (_half_time(view, outer) for outer in record.outers.values() if outer.rescue_until)
            if any(not g.is_over for g in view.state.games.values() if g.ref.round == record.number):
                yield patience(view, record.number)
        if any(c.solver == view.me for c in record.commitments.values()) or view.me in record.attendance:
            yield t.t7 + view.facts.vesting
    yield from playing.times(view.state.open_games_of(view.me), _is_expensive(view), view.facts.clocks)
    for committed in view.memory.committed.values():
        yield committed.time + view.charter.chain.reorg_depth


def _seed_order(view: RunView, record: RoundRecord) -> list[Address]:
    attesters = [w for role in (Role.VERIFIER, Role.WHISTLEBLOWER) for w in view.attesters(role, record.number)]
    return sorted({*attesters, *view.state.holders.values()})


def attestation_ref(view: RunView, record: RoundRecord, who: Address, seat: Seat, duty: int) -> ClaimRef:
    """The claim that an attestation makes about one duty of a commitment."""
    return view.duty(record, record.commitments[seat], duty).attestation(who)
