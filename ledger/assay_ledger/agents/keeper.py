"""What anybody may do for a run, and when this actor does it: rounds, seats, epochs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import NEVER, GenerationStatus, Presence, Tenure
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import BeaconRound, Round
from assay_ledger.agents.keeping import GRACE_S, Task, wait
from assay_ledger.agents.money_keeper import due_before_next, may_open, money_tasks, pots_wait
from assay_ledger.agents.round_actions import (
    CloseEpoch,
    CloseOpening,
    CutGeneration,
    DropOpening,
    Evict,
    FinalizeGeneration,
    LapseAccusation,
    ReleaseTenure,
    RemoveTicket,
    Restart,
    RoundAction,
    SeedEpoch,
    SubmitBeacon,
)
from assay_ledger.rounds import nodes
from assay_ledger.rounds.records import OpeningRecord
from assay_ledger.rounds.view import RunView


def due(view: RunView) -> Iterator[RoundAction]:
    """Tasks that are this actor's now, those that others wait for first."""
    return (task.action for task in tasks(view) if task.at <= view.now)


def times(view: RunView) -> Iterator[int]:
    """Chain times at which a task may become this actor's."""
    yield from (task.at for task in tasks(view) if task.at > view.now)
    if view.round is not None and view.now <= view.commit_until(view.round):
        yield view.commit_until(view.round) + 1
        # Above 64 seats the beacon of the mask's close draws who merges.
        yield view.round_of(view.round).mask_at + 1


def tasks(view: RunView) -> Iterator[Task]:
    """Everything that may be done for the run, now or as soon as time has passed."""
    yield from _beacon(view)
    yield from _epoch(view)
    yield from _restart(view)
    yield from _standing(view)
    yield from _seats(view)
    yield from _audits(view)
    yield from money_tasks(view)


def goes_on(view: RunView) -> bool:
    """Whether epochs are still needed: rounds may open, or what was done waits for its audits, its pay or its stake.

    A run whose epochs stop before every round and finding is settled is wound down, and pays nobody; a stop ends them.
    """
    tickets, money = view.books.registry.tickets.values(), view.state.money
    if money.is_stopped:
        return False
    unpaid = money.phase is RunPhase.RUNNING and len(money.findings_paid) < len(view.state.attestations)
    leaves = any(t.until and not t.convicted_at for t in tickets)
    waits = view.state.unsettled or money.reserves or unpaid or leaves or pots_wait(view)
    return not view.is_over or bool(waits)


def missing_beacons(view: RunView) -> Iterator[tuple[BeaconRound, int]]:
    """Rounds of the beacon that a draw waits for and nobody submitted, each with the number that turns the order.

    Not the round's own number: epochs of equal length would always have the same actor pay for it.
    """
    books, number = view.books, len(view.epochs) - 1
    found = []
    if view.epochs[-1].seed is None and goes_on(view):
        found.append((books.beacon.round_after(view.epochs[-1].start + view.terms.delay), number))
    if not view.rules.by_seats and view.round is not None:
        state = view.round_of(view.round)
        if view.is_mask_closed(view.round) and view.votes(view.round + 1).root is None:
            found.append((books.beacon.round_after(state.mask_at + view.rules.beacon_delay), int(view.round)))
    yield from ((BeaconRound(wanted), turn) for wanted, turn in found if wanted not in books.randomness.known)


def _beacon(view: RunView) -> Iterator[Task]:
    """Rounds of the beacon that a draw waits for."""
    for wanted, turn in missing_beacons(view):
        yield Task(view.books.beacon.time_of(wanted) + wait(view, turn), SubmitBeacon(wanted))


def _epoch(view: RunView) -> Iterator[Task]:
    number, epoch = len(view.epochs) - 1, view.epochs[-1]
    if not goes_on(view):
        return
    if epoch.seed is not None:
        yield Task(epoch.deadline + 1 + wait(view, number), CloseEpoch(number, epoch.repeats))
        return
    wanted = view.books.beacon.round_after(epoch.start + view.terms.delay)
    if wanted in view.books.randomness.known:
        # From when it was known on: where it came late, everybody's turn has come since it was due. Next to whoever
        # brought it, so that one actor that is dead is waited for once.
        yield Task(view.books.randomness.since[wanted] + wait(view, number + 1), SeedEpoch(number))


def _restart(view: RunView) -> Iterator[Task]:
    """A round that cannot be finished, or one that could not be opened."""
    round_ = view.round
    if round_ is None or view.state.money.is_stopped:
        return
    if view.votes(round_ + 1).root is None and not view.books.generations.segments.is_cut(round_ + 1):
        # It is cut though no round can follow: else what was opened for it is locked for good.
        is_deserted = view.round_of(round_).is_under_half
        at = view.commit_until(round_) if is_deserted else view.merge_until(round_)
    elif not view.is_over and view.books.tenures.seated_at(Round(round_ + 1)) and may_open(view):
        # It may have waited for an epoch, whose tickets have room for its duties.
        begun = view.epochs[-1].start if view.epochs[-1].start <= view.now else 0
        if (due := due_before_next(view)) is None:
            return
        at = max(view.state.halted_at, begun, view.books.paused_until, due - 1)
    else:
        return
    yield Task(at + 1 + wait(view, round_), Restart(round_))


def _standing(view: RunView) -> Iterator[Task]:
    """Generations that can be final, or must fall, and what stands behind them."""
    for generation in view.state.merged:
        if view.status(generation) is not GenerationStatus.MERGED:
            continue
        round_ = Round(generation - 1)
        sums = [ids.node_of(generation, group) for group in nodes.counted_groups(view, round_)]
        for node in (*sums, generation):
            # A generation is final after its sums and its base.
            below = [view.round_of(round_).parent, *sums] if node == generation else []
            yield from _node(view, node, below)
    for record in view.state.unclosed.values():
        yield from _opening(view, record)


def _node(view: RunView, node: Node, below: list[Node]) -> Iterator[Task]:
    """A node that rounds build on: nobody stands behind it any more, or a window of its leading root is over."""
    final_at, root, number = view.state.final_at, view.votes(node).root, ids.generation_of(node)
    if node in final_at or root is None:
        return
    made = view.books.generations.nodes[node, root]
    if not made.standing:
        yield Task(made.rescue_until + 1 + wait(view, number), CutGeneration(node))
        return
    standing = [o for o in view.openings(node) if o.root == root and _stands(view, o)]
    if standing and not made.games and all(each in final_at for each in below):
        first = standing[0]
        if _is_cut_short(view, first):
            return
        at = max([first.at + view.rules.challenge, *(final_at[each] for each in below)]) + 1
        yield Task(at + wait(view, number), FinalizeGeneration(node, first.party))


def _is_cut_short(view: RunView, record: OpeningRecord) -> bool:
    """Whether the run was stopped before the opening's window was over: its root never becomes final by it."""
    return 0 < view.state.money.stopped_at <= record.at + view.rules.challenge


def may_be_final(view: RunView, generation: int) -> bool:
    """Whether a generation is final or can be: after a stop by openings alone whose windows it did not cut short.

    Attack: a root that is backed when a run has stopped, or just before. It never falls and never becomes final, nor
    does what stands on it, and who opened that waits for ever.
    """
    if not view.state.money.is_stopped or view.status(generation) is not GenerationStatus.MERGED:
        return view.status(generation) is not GenerationStatus.CUT
    round_ = Round(generation - 1)
    sums = (ids.node_of(generation, group) for group in nodes.counted_groups(view, round_))
    stands = all(node in view.state.final_at or _has_stood(view, node) for node in (*sums, generation))
    return stands and may_be_final(view, view.round_of(round_).parent)


def _has_stood(view: RunView, node: Node) -> bool:
    """Whether an opening of the leading root stands whose window was over before the run was stopped."""
    leads = (record for record in view.openings(node) if record.root == view.votes(node).root)
    return any(_stands(view, record) and not _is_cut_short(view, record) for record in leads)


def _stands(view: RunView, record: OpeningRecord) -> bool:
    """Whether nobody was convicted for an opening, here or elsewhere."""
    opening = view.books.generations.openings[record.node, record.party]
    return not (opening.fallen or nodes.opener_of(view, opening).convicted_at)


def _opening(view: RunView, record: OpeningRecord) -> Iterator[Task]:
    """Drop or close an opening."""
    generation = record.generation
    opening, status = view.books.generations.openings[record.node, record.party], view.status(generation)
    opener, is_over = nodes.opener_of(view, opening), status in (GenerationStatus.FINAL, GenerationStatus.CUT)
    if not is_over and not opening.fallen and opener.convicted_at:
        yield Task(opener.convicted_at + wait(view, generation), DropOpening(record.node, record.party))
    # In a run that was stopped what can never be final is closed at once: a backer's lock hangs on it, or a ticket's.
    is_in_vain = _is_cut_short(view, record) or not may_be_final(view, generation)
    if not is_over and not opening.games and is_in_vain:
        late = 0 if opener.who == view.me else GRACE_S + wait(view, generation)
        yield Task(view.state.money.stopped_at + late, CloseOpening(record.node, record.party))
    if is_over and not opening.games:
        late = 0 if opener.who == view.me else GRACE_S + wait(view, generation)
        over = max(opening.at + view.rules.challenge, view.state.final_at.get(generation, 0))
        yield Task(over + 1 + late, CloseOpening(record.node, record.party))


def _seats(view: RunView) -> Iterator[Task]:
    """Holders that stayed away, and locks of one's own that are free.

    Nobody waits for a seat of a run that was stopped: who is still in it keeps its fee.
    """
    if view.round is not None and not view.state.money.is_stopped:
        for number, tenure in sorted(view.books.tenures.tenures.items()):
            if tenure.until != NEVER:
                continue
            for round_ in (view.round, Round(view.round - 1)):
                if round_ >= 0 and view.books.tenures.is_evictable(tenure, round_, view.now):
                    yield Task(view.commit_until(round_) + 1 + wait(view, number), Evict(number, round_))
                    break
    for number, tenure in view.tenures_of(view.me):
        if tenure.until == NEVER or tenure.released or is_obliged(view, tenure):
            continue
        yield Task(release_at(view, tenure), ReleaseTenure(number))


def is_obliged(view: RunView, tenure: Tenure) -> bool:
    """Whether something that is not over holds the locks of a tenure: in a run that was stopped only a game does."""
    audited = tenure.unsettled or tenure.accusations
    return bool(tenure.games or (audited and not view.state.money.is_stopped))


def release_at(view: RunView, tenure: Tenure) -> int:
    """From which chain time on, in seconds, the locks of a tenure are free that has ended and owes nothing."""
    last = Round(tenure.until - 1)
    hangs = tenure.from_ < tenure.until and not (tenure.convicted_at or view.state.money.is_stopped)
    if hangs and tenure.never_worked:
        return max(view.commit_until(last) + view.rules.longest_dispute + 1, view.now)
    if hangs and view.presence(last, tenure.seat) is Presence.UNKNOWN:
        committed_until = view.commit_until(last)
        if view.work(last, tenure.seat) is None:
            return committed_until + 1
        return max(committed_until, view.hold_until(last, view.rules.place(tenure.seat)[0])) + 1
    return view.now


def backs_a_root(view: RunView) -> bool:
    """Whether this actor put its stake behind a root, and it is there."""
    openings, mine = view.books.generations.openings, (r for r in view.state.unclosed.values() if r.backer == view.me)
    return any(not openings[record.node, record.party].fallen for record in mine)


def costs_no_fee(view: RunView, tenure: Tenure) -> bool:
    """Whether a seat can be given up without its fee: this round's commitment is made, or the tenure has not begun.

    A tenure that ends with a round to which nothing was committed loses it, and one that never committed waits for its
    lock besides.
    """
    return view.round is None or view.round < tenure.from_ or tenure.last == view.round + 1


def _audits(view: RunView) -> Iterator[Task]:
    """Accusations without a game, and tickets that fines have left short."""
    for name, made in view.books.duties.attestations.accusations.items():
        if made.status is not AccusationStatus.RECORDED:
            continue
        if made.is_work:
            convicted_at = view.books.tenures.existing(made.accused).convicted_at
        else:
            convicted_at = view.books.registry.tickets[TicketId(made.accused)].convicted_at
        # Whose accused was convicted elsewhere is excused; what a stop left without a game lapses without a fine.
        if ended_at := convicted_at or view.state.money.stopped_at:
            yield Task(ended_at + wait(view, made.epoch), LapseAccusation(name))
        elif made.epoch + 2 < len(view.epochs):
            yield Task(view.epochs[made.epoch + 2].start + wait(view, made.epoch), LapseAccusation(name))
    for ticket, held in sorted(view.books.registry.tickets.items()):
        if held.short_since and not held.until:
            at = held.short_since + view.facts.tickets.seasoning + 1
            yield Task(at + wait(view, ticket), RemoveTicket(ticket))
