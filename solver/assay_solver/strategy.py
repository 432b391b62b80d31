"""What a solver does next: pure, from what it sees and what it has.

What other seats wait for comes first: openings, words, seals, the commitment. Fetching and tasks
that anybody may do come before the next unit, since a unit takes long. Source: docs/adr/0033-second-round.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.protocol.rounds.ids import Node, generation_of, group_of, is_group, seat_party
from assay.protocol.rounds.terms import GenerationStatus, Tenure
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents import keeping, patience
from assay_ledger.agents.keeper import costs_no_fee
from assay_ledger.agents.round_actions import Choice
from assay_ledger.agents.stalls import is_in_vain
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds import nodes
from assay_ledger.rounds.records import OpeningRecord
from assay_ledger.rounds.view import BaseLists, RunView
from assay_solver.actions import (
    BackRoot,
    ChallengeRoot,
    CheckNode,
    CommitWork,
    LeaveTenure,
    PrepareMerge,
    ServeBase,
    TakeSeat,
    TrainUnit,
)
from assay_solver.memory import FinishedWork, MergeKey
from assay_solver.merging import Abstain, ComputeMerge, FetchUpdate, MergeKnown, MergeSeen, merging
from assay_solver.merging import times as merge_times
from assay_solver.pace import JITTER, OwnPace, Pacing, RoundWindow, pacing
from assay_solver.seats import why_no_seat

RECENT = 2
"""Rounds that are looked at: the one under way, and the one before, whose openings and commitment may still be due."""


@dataclass(frozen=True, slots=True)
class OwnRounds:
    """What a solver has: units it trained, work it published, updates it fetched, merges it computed."""

    pace: OwnPace
    lead: int
    """How long before a window ends its last word goes out, in seconds."""
    leaving: bool = False
    forgiven: int = 0
    free: int | None = None
    lost_gpu: bool = False
    """All three: see `seats.why_no_seat`."""
    units: Mapping[tuple[Round, Seat, Digest], int] = field(default_factory=dict)
    finished: Mapping[tuple[Round, Digest], FinishedWork] = field(default_factory=dict)
    merges: Mapping[MergeKey, BaseLists] = field(default_factory=dict)
    held: Mapping[Round, frozenset[Seat]] = field(default_factory=dict)
    lost: Mapping[Round, frozenset[Seat]] = field(default_factory=dict)
    served: frozenset[int] = frozenset()
    """Generations that it knows the store to have."""
    nodes: Mapping[Node, Digest] = field(default_factory=dict)
    """Above 64 seats: roots of nodes that it computed, since others differ about them."""


def candidates(view: RunView, own: OwnRounds, tasks: Iterable[Choice]) -> Iterator[Choice]:
    """Actions, most urgent first; `tasks`: what anybody does for the run, as far as it is this actor's turn."""
    merges = [a for r in recent(view) for a in merging(seen(view, r), known(view, own, r), view.now, own.lead)]
    yield from (a for a in merges if not isinstance(a, FetchUpdate | Abstain))
    work = list(_work(view, own))
    yield from (a for a in work if isinstance(a, CommitWork))
    # Who says that it cannot compute a root has just asked once more for what it lacks.
    yield from (a for a in merges if isinstance(a, FetchUpdate | Abstain))
    yield from _uphold(view, own)
    yield from _seat(view, own)
    yield from tasks
    yield from (a for a in work if isinstance(a, TrainUnit))
    yield from _serve(view, own)


def times(view: RunView, own: OwnRounds) -> Iterator[int]:
    """Chain times at which something may become due."""
    for r in recent(view):
        yield from merge_times(seen(view, r), own.lead)
    for record in view.state.unclosed.values():
        round_ = Round(record.generation - 1)
        if view.round is not None and round_ > view.round - RECENT:
            yield from (record.at + keeping.wait(view, round_), _patience_until(view, record))


def share(action: Choice, view: RunView, own: OwnRounds) -> float | None:
    """Seconds that an action may wait for stores of what its window leaves; None where none runs against it.

    Attack: a store that is slow enough never to be silent, so that a solver's word, seal or commitment comes too late.
    """
    match action:
        case FetchUpdate(round=round_):
            there, mine = seen(view, round_), known(view, own, round_)
            speak_until = there.hold_until - own.lead
            until = speak_until if view.now < speak_until else _root_until(view, round_)
            return patience.share(until - view.now, len(there.maskable - mine.held - mine.lost))
        case ComputeMerge(round=round_):
            return patience.share(_root_until(view, round_) - view.now, 1)
        case TrainUnit(round=round_) | CommitWork(round=round_):
            return patience.share(view.commit_until(round_) - view.now, 2)
    return None


def _root_until(view: RunView, round_: Round) -> int:
    """Until when the root is wanted that this solver computes: to be sealed, and what was sealed to be opened."""
    seal_until = view.seal_until(round_)
    return seal_until if view.now < seal_until else view.merge_until(round_)


def recent(view: RunView) -> list[Round]:
    """Rounds of this actor's seats that may still be merged, the newest last; none where others do it.

    Nor in a run that was stopped: nothing that is opened then becomes final.
    """
    newest = view.round
    if newest is None or not view.rules.by_seats or view.state.money.is_stopped:
        return []
    rounds = map(Round, range(max(newest - RECENT + 1, 0), newest + 1))
    return [r for r in rounds if view.tenure_in(r) is not None]


def seen(view: RunView, round_: Round) -> MergeSeen:
    """A round as the holder of one of its seats sees it."""
    tenure = view.tenure_in(round_)
    assert tenure is not None
    seat, state, group = tenure[1].seat, view.round_of(round_), view.group(round_, 0)
    work, votes = group.maskable.get(seat), view.votes(round_ + 1)
    abstained = seat in votes.seals and votes.seals[seat] is None  # so that nothing is there to open
    return MergeSeen(
        round=round_,
        seat=seat,
        is_position=work is not None and work.tenure == tenure[0],
        maskable=frozenset(map(Seat, group.maskable)),
        mask_at=state.mask_at,
        hold_until=view.hold_until(round_),
        spoke=seat in group.words,
        counted=view.counted(round_)[0],
        is_alive=not state.is_under_half and not view.books.generations.segments.is_cut(round_ + 1),
        seal_until=view.seal_until(round_),
        has_sealed=seat in votes.seals,
        has_opened=(round_ + 1, seat_party(seat)) in view.books.generations.openings or abstained,
        merge_until=view.merge_until(round_),
    )


def known(view: RunView, own: OwnRounds, round_: Round) -> MergeKnown:
    """What this solver has of a round's merge."""
    counted = view.counted(round_)[0]
    lists = own.merges.get((round_, nodes.over_of(view, round_ + 1)))
    held, lost = own.held.get(round_, frozenset()), own.lost.get(round_, frozenset())
    return MergeKnown(held, lost, None if lists is None else counted, None if lists is None else lists.root)


def _seat(view: RunView, own: OwnRounds) -> Iterator[Choice]:
    """A seat while there is one, until it leaves or no round opens any more."""
    tenure = view.tenure
    if tenure is None:
        stays_out = own.leaving or view.is_over or view.state.money.is_ended
        if not stays_out and not why_no_seat(view, own.forgiven, own.free, lost_gpu=own.lost_gpu):
            yield TakeSeat()
    elif view.state.money.is_ended or _may_go(view, own, tenure[1]):
        yield LeaveTenure(tenure[0])


def _may_go(view: RunView, own: OwnRounds, tenure: Tenure) -> bool:
    """Whether a solver goes that loses no fee by it, and lets no root stand that it knows to be false."""
    if view.is_over:
        return _is_work_over(view, tenure)
    return own.leaving and costs_no_fee(view, tenure) and not _has_to_challenge(view, own)


def _is_work_over(view: RunView, tenure: Tenure) -> bool:
    """Whether staying serves nothing in a run whose last round was opened."""
    # Attack: a false root of the last generation, which is the model, once everybody honest has left: a merge is
    # challenged from a seat (CL-9). Its lock is held until then anyway.
    if view.round is not None and any(nodes.is_open(view, g) for g in range(view.round + 1, 0, -1)):
        return False
    return costs_no_fee(view, tenure) or view.round is None or view.now > view.commit_until(view.round)


def is_unworked(view: RunView, round_: Round) -> bool:
    """Whether this actor has a seat in a round, and has not committed to it, and still can."""
    tenure = view.tenure_in(round_)
    if tenure is None or view.work(round_, tenure[1].seat) is not None or view.now >= view.commit_until(round_):
        return False
    return view.status(view.round_of(round_).parent) is not GenerationStatus.CUT


def unworked(view: RunView) -> Iterator[Round]:
    """Rounds that this actor still can commit to, and has not, the newest first."""
    for round_ in map(Round, range(-1 if view.round is None else view.round, -1, -1)):
        if view.now >= view.commit_until(round_):
            return
        if is_unworked(view, round_):
            yield round_


def _work(view: RunView, own: OwnRounds) -> Iterator[Choice]:
    """One more unit or the commitment of every round that takes one, the newest first.

    The next round begins without who is late, and the window of the one before goes on: what is done of it is paid.
    Nothing is done in a run that was stopped; in one that may stop before it moves, no more than holds a seat.
    """
    if view.state.money.is_stopped:
        return
    is_vain = is_in_vain(view)
    for round_ in unworked(view):
        if not is_vain or _missed_before(view, round_):
            yield from _work_in(view, own, round_, is_least=is_vain)


def _missed_before(view: RunView, round_: Round) -> bool:
    """Whether this actor has not committed to the round before, so that missing one more may lose its seat."""
    tenure = view.tenure_in(round_)
    return tenure is not None and tenure[1].from_ < round_ and tenure[1].last < round_


def _work_in(view: RunView, own: OwnRounds, round_: Round, *, is_least: bool) -> Iterator[Choice]:
    """One more unit of a round, or its commitment, of the least if that is wanted: once, and to the base that it was
    trained from."""
    tenure = view.tenure_in(round_)
    assert tenure is not None and view.round is not None
    seat, state, rules = tenure[1].seat, view.round_of(round_), view.rules
    done = own.finished.get((round_, state.base))
    if done is not None:
        if done.seat == seat:
            yield CommitWork(round_, seat, state.base)
        return
    if round_ <= view.round - RECENT:
        return  # what was not finished by then is given up
    most = rules.min_units if is_least else rules.max_units
    window = RoundWindow(
        state.t0 + rules.commit, rules.grace, state.mask_at, view.commit_until(round_), rules.min_units, most
    )
    units = own.units.get((round_, seat, state.base), 0)
    match pacing(window, own.pace, units, view.now):
        case Pacing.TRAIN if round_ == view.round or _has_time_behind(view, own):
            yield TrainUnit(round_, seat, state.base, units)
        case Pacing.COMMIT:
            yield CommitWork(round_, seat, state.base)


def _has_time_behind(view: RunView, own: OwnRounds) -> bool:
    """Whether a unit of an older round keeps nobody waiting: a position of the newest speaks, seals and opens.

    Each of these stages goes on for the grace once most have done so; a unit that is over by then misses none of them.
    """
    assert view.round is not None
    tenure = view.tenure_in(view.round)
    work = None if tenure is None else view.work(view.round, tenure[1].seat)
    return work is None or work.late or JITTER * own.pace.unit + own.pace.inclusion <= view.rules.grace


def _serve(view: RunView, own: OwnRounds) -> Iterator[ServeBase]:
    """The newest generation, by who opened its root, in turn: who joins, or prunes the store, needs nothing older.

    One that misses its turn costs joiners a merge, since the next turn is another's. Above 64 seats auditors do it.
    """
    newest = view.newest
    if not view.rules.by_seats or not newest or newest in own.served:
        return
    root = view.votes(newest).root
    openers = [record.position for record in view.openings(newest) if record.root == root and record.backer is None]
    tenure = view.tenure_in(Round(newest - 1))
    if openers and tenure is not None and openers[newest % len(openers)] == tenure[1].seat:
        yield ServeBase(newest)


def _uphold(view: RunView, own: OwnRounds) -> Iterator[Choice]:
    """Challenge roots that are not what this solver computed, and back the one that is where its claims fall.

    After a stop no game opens, and what is backed never becomes final.
    """
    if view.state.money.is_stopped:
        return
    if not view.rules.by_seats:
        yield from (CheckNode(node) for node in disputed(view) if node not in own.nodes)
    for node, root in _computed(view, own):
        yield from _challenge(view, node, root)
        yield from _back(view, node, root)


def _computed(view: RunView, own: OwnRounds) -> Iterator[tuple[Node, Digest]]:
    """Nodes that are neither final nor cut, with their roots as this solver computed them."""
    if not view.rules.by_seats:
        yield from ((node, root) for node, root in own.nodes.items() if nodes.is_open(view, node))
        return
    newest = -1 if view.round is None else view.round
    for round_ in (r for r in map(Round, range(newest + 1)) if nodes.is_open(view, r + 1)):
        lists = own.merges.get((round_, nodes.over_of(view, round_ + 1)))
        if lists is not None and view.counted(round_)[1]:
            yield round_ + 1, lists.root


def disputed(view: RunView) -> list[Node]:
    """Nodes above 64 seats of which different roots were opened, and it is this solver's turn to look which is true.

    Auditors merge there; a solver computes only where they differ, and where nobody else's game is about all but one.
    """
    opened: dict[Node, set[Digest]] = {}
    for (node, _), record in view.state.openings.items():
        if nodes.is_open(view, node) and _may_dispute(view, record):
            opened.setdefault(node, set()).add(record.root)
    return sorted(node for node, roots in opened.items() if len(roots) > 1)


def _challenge(view: RunView, node: Node, mine: Digest) -> Iterator[Choice]:
    if view.tenure is None:
        return  # who has no seat is refused (CL-9)
    for record in view.openings(node):
        if record.root != mine and _may_dispute(view, record):
            yield ChallengeRoot(root_ref(record)) if node in view.books.generations.inputs else PrepareMerge(node)


def _has_to_challenge(view: RunView, own: OwnRounds) -> bool:
    """Whether a root was opened that this solver knows to be false, and has not challenged while it could."""
    return any(
        record.root != mine and _is_disputable(view, record)
        for node, mine in _computed(view, own)
        for record in view.openings(node)
    )


def _is_disputable(view: RunView, record: OpeningRecord) -> bool:
    """Whether an opening may be challenged, now or in its turn, and this actor has no game about it."""
    opening = view.books.generations.openings[record.node, record.party]
    is_gone = opening.fallen or opening.closed or nodes.opener_of(view, opening).convicted_at
    if is_gone or view.now > record.at + view.rules.challenge:
        return False
    return not any(game.challenger == view.me for game in _games_about(view, record))


def _games_about(view: RunView, record: OpeningRecord) -> list[GameRecord]:
    return [game for game in view.games.values() if game.ref == root_ref(record)]


def _may_dispute(view: RunView, record: OpeningRecord) -> bool:
    """Whether an opening may be challenged, and nobody else's game about it is to be waited for."""
    due_at = record.at + keeping.wait(view, record.generation - 1)
    if view.now < due_at or not _is_disputable(view, record):
        return False
    # Attack: a puppet of the opener challenges first, plays until the window has closed, and loses on purpose.
    games = _games_about(view, record)
    return all(game.is_over for game in games) or view.now >= _patience_until(view, record)


def _patience_until(view: RunView, record: OpeningRecord) -> int:
    """Until when somebody else's game is waited for: the middle of a root's window, so that at least half is left."""
    return record.at + view.rules.challenge // keeping.PATIENCE


def root_ref(record: OpeningRecord) -> ClaimRef:
    """The claim that an opening of a root makes: its seat's, above 64 seats its ticket's, or its backer's."""
    position, backer = Seat(record.position or 0), record.backer or NO_ADDRESS
    part = group_of(record.node) + 1 if is_group(record.node) else 0
    return ClaimRef(ClaimKind.OUTER, Round(record.generation - 1), position, part, backer, record.root)


def _back(view: RunView, node: Node, mine: Digest) -> Iterator[Choice]:
    made = view.books.generations.nodes.get((node, mine))
    if made is None or view.votes(node).root != mine or made.standing or not made.rescue_until:
        return
    turn = keeping.wait(view, generation_of(node) - 1)
    if made.rescue_until - view.rules.rescue + turn <= view.now < made.rescue_until:
        yield BackRoot(node, mine)
