"""What anybody may do for a run's money, and when this actor does it: see `keeper`. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

from assay.protocol.digests import ZERO
from assay.protocol.economics.limits import PPM
from assay.protocol.economics.run_bounds import most_unsettled
from assay.protocol.economics.run_times import until_final
from assay.protocol.rounds.duty_types import Accusation, AccusationStatus
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.payments import EPOCHS_TO_CLAIM
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.types import Digest, Round
from assay_ledger.agents.keeping import GRACE_S, Task, wait
from assay_ledger.agents.money_actions import (
    CancelRun,
    CloseBounty,
    CollectFine,
    EnterBounty,
    FinishRun,
    FreeRound,
    LaunchRun,
    SettleFinding,
    SettleOpening,
    SettleSeat,
    TakeBounty,
    VestShares,
    WindDown,
)
from assay_ledger.agents.stalls import moves_until, winds_down_at
from assay_ledger.rounds import nodes
from assay_ledger.rounds.money_records import PotRecord
from assay_ledger.rounds.records import WorkRecord
from assay_ledger.rounds.view import RunView


def money_tasks(view: RunView) -> Iterator[Task]:
    """Everything that may be done for the run's money."""
    phase = view.state.money.phase
    if phase is RunPhase.FUNDING:
        if not view.is_over:
            yield from _launch(view)
        # Bad luck: a run that never opens. Nobody would have its stake back until somebody typed it.
        if view.round is None:
            yield Task(view.charter.expiry + 1 + wait(view, 0), CancelRun())
    if phase is RunPhase.RUNNING:
        for work in view.state.unsettled.values():
            yield from _settle(view, work)
        yield from _findings(view)
        yield from _openings(view)
        yield from _rounds(view)
        yield from _finish(view)
    # A run that is over needs it only where its epochs stopped before its last tickets could leave.
    stays = any(not held.convicted_at for held in view.books.registry.tickets.values())
    stopped_at = max(winds_down_at(view), moves_until(view))
    if phase is RunPhase.RUNNING or (phase is RunPhase.OVER and stays):
        yield Task(stopped_at + wait(view, 0), WindDown())
    elif phase is RunPhase.OVER and pots_wait(view):
        # Or before a pot could be closed, and all tickets have left: a stop does what those epochs would have.
        closed_at = view.epochs[-1].start + view.charter.timing.stall + 1
        yield Task(max(stopped_at, closed_at) + wait(view, 0), WindDown())
    yield from _debts(view)
    for accusation, made in view.books.duties.attestations.accusations.items():
        yield from _bounty(view, accusation, made)
    for grant, record in view.state.money.vesting.items():
        if record.owner == view.me:
            yield Task(record.vests_at, VestShares(grant))


def epoch_of(view: RunView, round_: Round) -> int | None:
    """The epoch that a round belongs to: the first that began after its last commitment; None while none has."""
    number = bisect_right(view.epochs, view.commit_until(round_), key=lambda epoch: epoch.start)
    return number if number < len(view.epochs) else None


def may_open(view: RunView) -> bool:
    """Whether the escrow lets a round open (`reserve` in Escrow.sol): enough tickets for its duties, and its pay."""
    money, seated = view.state.money, seated_next(view)
    if money.phase is RunPhase.FUNDING and view.round is not None:
        return True  # rounds of a run that no escrow launched: another gate decides, and is asked by the call itself
    begun = view.epochs[-1].start
    load = seated + sum(r.seated for r in view.books.commitments.rounds if r.t0 >= begun)
    if money.phase is not RunPhase.RUNNING or not has_auditors(view, load):
        return False
    return _is_paid(view, seated)


def carries_another(view: RunView) -> bool:
    """Whether the run has room for one seat more (`carries` in Escrow.sol)."""
    phase, seated = view.state.money.phase, seated_next(view) + 1
    if phase is not RunPhase.RUNNING:
        return phase is RunPhase.FUNDING
    return _is_paid(view, seated) and _can_audit(view, seated)


def due_before_next(view: RunView) -> int | None:
    """Second from which on the round U before the next one is due (`_isDue` in Escrow.sol); None while it is audited.

    0 where fewer rounds have opened.
    """
    before = len(view.books.commitments.rounds) - most_unsettled(view.charter)
    if before < 0:
        return 0
    last = view.commit_until(Round(before))
    over = view.books.duties.over_after(last)
    return max(over, last + until_final(view.charter.timing) + 1) if over else None


def seated_next(view: RunView) -> int:
    """Seats held in the round that opens next."""
    return view.books.tenures.seated_at(Round(len(view.books.commitments.rounds)))


def has_auditors(view: RunView, load: int) -> bool:
    """Whether the tickets that count answer for twice the duties expected of so many commitments in one epoch."""
    return _can_audit(view, load) and _counting(view) >= view.charter.launch.tickets


def _can_audit(view: RunView, load: int) -> bool:
    e = view.charter.economics
    return e.capacity * (_counting(view) // e.shifts) * (PPM - e.reaudit_ppm) >= 2 * load * e.audit_ppm


def _counting(view: RunView) -> int:
    """Tickets that count now."""
    return view.books.registry.count_at(view.now, view.now)


def _is_paid(view: RunView, seated: int) -> bool:
    """Whether the escrow holds what a round of so many seats sets aside, beside what others have."""
    money = view.state.money
    return money.balance >= money.reserved_total + cost_of(view.charter, seated, view.books.price_ppm)


def _launch(view: RunView) -> Iterator[Task]:
    launch, books = view.charter.launch, view.books
    tickets = books.registry.count_at(view.now, view.now)
    seats = books.tenures.seated_at(Round(0))
    staked = tickets * view.charter.economics.ticket_bond + seats * view.charter.economics.seat_lock
    enough = tickets >= launch.tickets and seats >= launch.seats
    if enough and staked >= sum(view.state.money.funded.values()):
        yield Task(launch.open_from + wait(view, 0), LaunchRun())


def _settle(view: RunView, work: WorkRecord) -> Iterator[Task]:
    """A commitment that nothing disputes, once its base is final or cut and its audits are over."""
    made = view.books.commitments.works[work.round, work.seat]
    tenure, parent = view.books.tenures.existing(work.tenure), view.round_of(work.round).parent
    if made.games or tenure.accusations:
        return
    epoch, status = epoch_of(view, work.round), view.status(parent)
    since = 0 if epoch is None else view.books.duties.over_since(epoch)
    if tenure.convicted_at:
        at = tenure.convicted_at
    elif status is GenerationStatus.CUT:
        at = view.state.halted_at
    elif status is GenerationStatus.FINAL and since:
        at = max(since, view.state.final_at[parent])
    else:
        return
    late = 0 if tenure.holder == view.me else GRACE_S + wait(view, work.round + work.seat)
    yield Task(at + late, SettleSeat(work.round, work.seat, epoch or 0))


def _findings(view: RunView) -> Iterator[Task]:
    """Findings whose windows ended; in the end also those that earn nothing, since a run is over without any left."""
    attestations, late = view.books.duties.attestations, GRACE_S + wait(view, view.books.duties.number)
    for name, record in view.state.unpaid_findings.items():
        payee, parent = view.books.registry.payee_of(record.ticket), view.round_of(record.round).parent
        if payee is None or view.status(parent) is GenerationStatus.CUT:
            if view.is_over:
                yield Task(view.state.money.freed_at + late, SettleFinding(name))
            continue
        ended = attestations.window_of(name)
        if ended and not attestations.against[record.ticket] and parent in view.state.final_at:
            since = max(ended, view.state.final_at[parent])
            yield Task(since if payee == view.me else since + late, SettleFinding(name))


def _debts(view: RunView) -> Iterator[Task]:
    """Fines that waited for verdicts: for who proved them, or whom they keep from leaving."""
    registry = view.books.registry
    for (ticket, number), debt in registry.debts.items():
        held = registry.tickets[ticket]
        if not held.disputes and (debt.to is None or view.me in (debt.to, held.owner)):
            late = wait(view, ticket) if debt.to is None else 0
            yield Task(registry.quiet_at[ticket] + late, CollectFine(ticket, number))


def has_unpaid_openings(view: RunView) -> bool:
    """Whether a root that this actor opened is final, and waits for its pay alone."""
    is_running = view.state.money.phase is RunPhase.RUNNING
    return is_running and any(opener.who == view.me for opener, _ in _payable(view))


def _openings(view: RunView) -> Iterator[Task]:
    yield from (task for _, task in _payable(view))


def _payable(view: RunView) -> Iterator[tuple[nodes.OpeningOwner, Task]]:
    """Openings of final roots that hold no lock any more, and whose they are."""
    final_at = view.state.final_at
    for (node, party), record in view.state.unpaid_openings.items():
        opening, generation = view.books.generations.openings[node, party], record.generation
        payable = opening.opener and opening.closed and opening.root == view.votes(node).root and node in final_at
        if not payable or generation not in final_at:
            continue
        opener = nodes.opener_of(view, opening)
        if not opener.is_accused:
            late = 0 if opener.who == view.me else GRACE_S + wait(view, generation)
            at = max(record.at + view.rules.challenge, final_at[generation])
            # Above 64 seats openings are counted, so that none is paid while another may come.
            at = at if view.rules.by_seats else max(at, view.merge_until(Round(generation - 1)))
            yield opener, Task(at + 1 + late, SettleOpening(node, party))


def _rounds(view: RunView) -> Iterator[Task]:
    """What settled rounds did not cost."""
    duties, money = view.books.duties, view.state.money
    for round_ in money.reserves:
        epoch = epoch_of(view, round_)
        since = 0 if epoch is None else duties.over_since(epoch + EPOCHS_TO_CLAIM)
        settled = money.work_settled[round_] == view.round_of(round_).committed and _are_openings_over(view, round_)
        if epoch is not None and since and settled:
            yield Task(since + wait(view, round_), FreeRound(round_, epoch))


def _are_openings_over(view: RunView, round_: Round) -> bool:
    """Whether every opening of a round's root was paid that can be."""
    generation = round_ + 1
    status = view.status(generation)
    if status is GenerationStatus.OPEN:
        return view.now > view.merge_until(round_)
    if status is GenerationStatus.FINAL:
        made, paid = view.books.generations.nodes, Counter(node for node, _ in view.state.money.openings_paid)
        final = [node for node in nodes.nodes_of(view, generation) if node in view.state.final_at]
        return all(paid[node] == made[node, view.votes(node).root or ZERO].openings for node in final)
    return status is GenerationStatus.CUT


def _finish(view: RunView) -> Iterator[Task]:
    """A run that is over and has settled everything."""
    money, duties = view.state.money, view.books.duties
    is_paid = not money.reserves and len(money.findings_paid) == len(view.state.attestations)
    if 0 < duties.last_epoch < duties.number and is_paid:
        yield Task(money.freed_at + wait(view, 0), FinishRun())


def _bounty(view: RunView, accusation: Digest, made: Accusation) -> Iterator[Task]:
    """One's part in what a conviction left; and, once all could enter, that the parts are fixed."""
    money, attestations = view.state.money, view.books.duties.attestations
    pot = _pot_of(view, accusation, made)
    if pot is None or view.books.registry.payee_of(made.ticket) != view.me:
        return
    entered = accusation in money.entered
    if not entered:
        ended = attestations.window_of(made.by)
        if ended:
            yield Task(ended, EnterBounty(accusation))
        return
    if pot.closed:
        yield Task(view.now, TakeBounty(accusation))
        return
    _, convicted_at = _accused(view, made)
    later, over = _entered_by(view, convicted_at)
    if over:
        timing = view.charter.timing
        at = over + timing.longest_dispute + timing.epoch + 1
        yield Task(at + wait(view, made.epoch), CloseBounty(accusation, later))


def pots_wait(view: RunView) -> bool:
    """Whether epochs have to close until what a conviction left can be shared by who was right."""
    if all(pot.closed for pot in view.state.money.pots.values()):
        return False
    accusations = view.books.duties.attestations.accusations
    waiting = (pot for name, made in accusations.items() if (pot := _pot_of(view, name, made)) and not pot.closed)
    return any(not _entered_by(view, pot.filled_at)[1] for pot in waiting)


def _entered_by(view: RunView, convicted_at: int) -> tuple[int, int]:
    """The first epoch that began after a conviction, and since when no game of an earlier accuser opens; 0: it does.

    A stop ends what epochs would have.
    """
    later = next((number for number, epoch in enumerate(view.epochs) if epoch.start > convicted_at), None)
    over = 0 if later is None else view.books.duties.over_since(later + 2)
    return later or 0, over or view.state.money.stopped_at


def is_owed(view: RunView) -> bool:
    """Whether this actor's tickets, those too whose stake it took back, will be paid wages or a part of a bounty."""
    accusations = view.books.duties.attestations.accusations
    earned_by = {made.ticket for name, made in accusations.items() if _pot_of(view, name, made) is not None}
    if view.state.money.phase is RunPhase.RUNNING:
        for record in view.state.unpaid_findings.values():
            if view.status(view.round_of(record.round).parent) is not GenerationStatus.CUT:
                earned_by.add(record.ticket)
    return any(view.books.registry.payee_of(ticket) == view.me for ticket in earned_by)


def _pot_of(view: RunView, accusation: Digest, made: Accusation) -> PotRecord | None:
    """What a conviction left, as long as this accusation may still have a part of it; None: it has none, or no more."""
    lock, convicted_at = _accused(view, made)
    money, pot = view.state.money, view.state.money.pots.get(lock)
    if pot is None or view.books.registry.payee_of(made.ticket) is None or accusation in money.parts_taken:
        return None
    if accusation in money.entered:
        return pot if made.epoch == pot.epoch else None
    # What no game upheld is worth nothing where a stop came before its window ended.
    is_tested = not money.is_stopped or view.books.duties.over_since(made.epoch + 1)
    is_excused = made.status is AccusationStatus.EXCUSED and is_tested
    is_right = (made.status is AccusationStatus.UPHELD or is_excused) and made.at < convicted_at
    is_late = pot.closed or (pot.entered and made.epoch > pot.epoch)
    return pot if is_right and not is_late else None


def _accused(view: RunView, made: Accusation) -> tuple[Digest, int]:
    """The lock that stood behind the accused, and when it was convicted; 0: it was not."""
    if made.is_work:
        return tenure_lock(made.accused), view.books.tenures.existing(made.accused).convicted_at
    ticket = TicketId(made.accused)
    held = view.books.registry.tickets.get(ticket)
    return ticket_lock(ticket), held.convicted_at if held else 0
