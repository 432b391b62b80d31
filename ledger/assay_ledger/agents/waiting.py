"""Why a run stands where it stands: what it waits for, what ends that, and when it ends by itself. Pure.

Said everywhere in the same words: where actors run, by `assay run show`, in the explorer and by a local node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from assay.counts import count
from assay.durations import duration
from assay.protocol.economics.round_time import EPOCHS_TO_SETTLE
from assay.protocol.economics.run_bounds import most_unsettled
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from assay_ledger.agents.keeper import missing_beacons
from assay_ledger.agents.money_keeper import due_before_next, has_auditors, seated_next
from assay_ledger.agents.stalls import is_in_vain, winds_down_at
from assay_ledger.rounds.view import RunView


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that a run waits for, in a sentence; `remedy` is what ends it, `until` the chain time, in seconds, at
    which it ends by itself, None where it does not. `stands`: nothing goes on meanwhile."""

    code: str
    text: str
    remedy: str = ""
    until: int | None = None
    stands: bool = True

    @property
    def needs_people(self) -> bool:
        """Whether nothing but somebody who joins, pays or opens the run ends it."""
        return self.code in PEOPLE and self.until is None


IN_VAIN: Final = "InVain"
"""The code of a round that its solvers do not train, since it would be void."""

PEOPLE: Final = frozenset({"TicketsMissing", "SeatsEmpty", "EscrowShort", "NotOpened"})


def waits(view: RunView) -> list[Wait]:
    """What a run waits for, first what stands in the way of everything else; nothing once it has ended."""
    match view.state.money.phase:
        case RunPhase.FUNDING:
            return list(_before_launch(view))
        case RunPhase.RUNNING:
            return [*_beacons(view), *(_at_the_end(view) if _is_all_opened(view) else _in_rounds(view))]
    return []


def stands_still(view: RunView) -> bool:
    """Whether somebody has to do something before a run goes on: time alone does not help."""
    return any(wait.stands and wait.until is None for wait in waits(view))


# --- before the first round


def _before_launch(view: RunView) -> Iterator[Wait]:
    launch, books = view.charter.launch, view.books
    if view.never_opened:
        text = "Nobody opened the run while a round could begin: it never trains, and holds all stakes and funds."
        yield Wait("NeverOpened", text, "Any actor of it cancels it; `assay run cancel` by anybody frees all of them.")
        return
    seated = books.tenures.seated_at(Round(0))
    lacks = [*_pause(view), *_tickets(view), *_seats(seated), *_escrow(view, max(seated, 1))]
    yield from lacks
    if not lacks:
        by_itself = launch.open_from if seated >= launch.seats else None
        free = view.charter.training.seats - seated
        text = f"Everything is there for the first round ({count(free, 'seat is', 'seats are')} free); "
        text += "its sponsor has not opened it."
        yield Wait("NotOpened", text, "The sponsor types `assay run open`.", by_itself)


def _tickets(view: RunView) -> Iterator[Wait]:
    """Too few tickets that count for the first round."""
    least, now, registry = view.charter.launch.tickets, view.now, view.books.registry
    there = registry.count_at(now, now)
    if there >= least:
        return
    seasoned = sorted(t.from_ for t in registry.tickets.values() if t.from_ > now and not (t.until or t.convicted_at))
    text = f"{count(there, 'ticket of auditors counts', 'tickets of auditors count')}, {least} must"
    text += " before a round opens"
    if there + len(seasoned) >= least:
        at = seasoned[least - there - 1]
        text += f"; enough are registered, and count in {duration(at - now)} of chain time."
        yield Wait("TicketsYoung", text, "", at)
        return
    more = least - there - len(seasoned)
    remedy = f"Auditors for {count(more, 'more ticket')}: `assay verifier start --tickets N --deposit AMOUNT`."
    yield Wait("TicketsMissing", f"{text}; {count(len(seasoned), 'is', 'are')} registered and will.", remedy)


def _seats(seated: int) -> Iterator[Wait]:
    if not seated:
        yield Wait("SeatsEmpty", "No seat is held.", "Solvers: `assay solver start --deposit AMOUNT`.")


def _pause(view: RunView) -> Iterator[Wait]:
    """New rounds are paused, by the run's guardian or its owners."""
    until = view.books.paused_until
    if view.now < until:
        text = f"New rounds are paused for {duration(until - view.now)} more of chain time; all else goes on."
        yield Wait("RoundsPaused", text, "", until)


def _escrow(view: RunView, seated: int) -> Iterator[Wait]:
    """An escrow that cannot set aside what a round of so many seats may cost."""
    books, money = view.state.money, view.facts.currency
    free, wanted = books.balance - books.reserved_total, cost_of(view.charter, seated, view.books.price_ppm)
    if free < wanted:
        has, needs = money.brief(max(free, 0)), money.brief(wanted)
        text = f"The escrow has {has} tokens free of the {needs} that the next round sets aside."
        yield Wait("EscrowShort", text, f"`assay run fund {money.at_least(wanted - free)}`; anybody may.")


# --- while it runs


def _beacons(view: RunView) -> Iterator[Wait]:
    """Rounds of the beacon that are due, and that nobody brought."""
    for wanted, _ in missing_beacons(view):
        at = view.books.beacon.time_of(wanted)
        if at <= view.now:
            text = f"Round {wanted} of the beacon is due since {duration(view.now - at)}, and nobody brought it."
            yield Wait("BeaconMissing", text, "Anybody may: `assay run bring-beacon`.", stands=False)


def _is_all_opened(view: RunView) -> bool:
    """Whether the last round has its generation, or can have none."""
    round_ = view.round
    if round_ is None or not view.is_over:
        return round_ is None and view.is_over
    return view.status(round_ + 1) is not GenerationStatus.OPEN or view.now > view.merge_until(round_)


def _in_rounds(view: RunView) -> Iterator[Wait]:
    round_ = view.round
    if round_ is None:
        yield Wait("NotBegun", "The first round has not begun.", "Any actor of the run begins it.")
        return
    state, works = view.round_of(round_), len(view.works(round_))
    if view.now < state.t0:
        text = f"Round {round_} begins in {duration(state.t0 - view.now)}."
        yield Wait("BeforeStart", text, "", state.t0, stands=False)
    elif not view.is_mask_closed(round_) and is_in_vain(view):
        at = winds_down_at(view)
        text = f"Round {round_} opened too late: anybody may wind the run down "
        text += f"in {duration(at - view.now)}" if at > view.now else "now"
        text += ", before a generation is sure to be final, and work would be void with it."
        text += " Solvers do no more for it than holds a seat."
        yield Wait(IN_VAIN, text, "", max(at, view.now + 1))
    elif not view.is_mask_closed(round_):
        text = f"Round {round_} is being trained: {works} of {state.seated} seats have committed."
        yield Wait("Training", text, "", state.mask_at, stands=False)
    elif view.votes(round_ + 1).root is None and view.now <= view.merge_until(round_):
        if state.is_under_half and view.now > view.commit_until(round_):
            text = f"{works} of {state.seated} seats committed to round {round_}, fewer than half: it is void."
            yield Wait("Deserted", text, "Any actor opens a round anew; solvers that stayed away must be started.")
        else:
            text = f"Generation {round_ + 1} is being merged from {count(works, 'update')}."
            yield Wait("Merging", text, "", view.merge_until(round_), stands=False)
    else:
        yield from _before_next(view, round_)


def _before_next(view: RunView, round_: Round) -> Iterator[Wait]:
    """A round whose generation is made or lost, and no next one."""
    seated = seated_next(view)
    lacks = [*_pause(view), *_seats(seated), *_auditors(view, seated), *_unsettled(view), *_escrow(view, seated)]
    for wait in lacks:
        yield Wait(wait.code, f"Round {round_ + 1} cannot open. {wait.text}", wait.remedy, wait.until)
    if not lacks:
        text = f"Round {round_ + 1} can open, as soon as an actor sends for it."
        yield Wait("NextRound", text, "An actor of the run must be running.", stands=False)
    elif (at := winds_down_at(view)) > view.now:
        text = f"If it stays so, the run is wound down in {duration(at - view.now)}."
        yield Wait("WindsDown", text, "", at, stands=False)


def _auditors(view: RunView, seated: int) -> Iterator[Wait]:
    begun, now = view.epochs[-1].start, view.now
    load = seated + sum(r.seated for r in view.books.commitments.rounds if r.t0 >= begun)
    if has_auditors(view, load):
        return
    there = view.books.registry.count_at(now, now)
    if has_auditors(view, seated):
        at = view.epochs[-1].start + view.terms.length
        text = f"{count(there, 'ticket is', 'tickets are')} busy with the {count(load - seated, 'commitment')} "
        text += "that this epoch may bring."
        yield Wait("EpochFull", text, "It opens in the next epoch; more auditors would make room.", max(at, now + 1))
        return
    few = f"{count(there, 'ticket counts', 'tickets count')}, too few for the duties of {count(seated, 'seat')}"
    text = f"{few} (at least {view.charter.launch.tickets})."
    yield Wait("TicketsMissing", text, "Auditors: `assay verifier start --tickets N --deposit AMOUNT`.")


def _unsettled(view: RunView) -> Iterator[Wait]:
    """As much pay is unsettled as the stake of a ticket outweighs."""
    due, most = due_before_next(view), most_unsettled(view.charter)
    if due is not None and due <= view.now:
        return
    before = len(view.books.commitments.rounds) - most
    text = f"{most} rounds of pay are unsettled, as many as a ticket's stake secures; round {before}'s is due"
    if due is not None:
        yield Wait("PayUnsettled", f"{text} in {duration(due - view.now)}.", "", due)
        return
    # Its own epoch, the wait for that one, and the two after it.
    begun = next((e.start for e in view.epochs if e.start > view.commit_until(Round(before))), None)
    length, now = view.terms.length + view.terms.delay, view.now
    at = view.epochs[-1].start + EPOCHS_TO_SETTLE * length if begun is None else begun + 3 * length
    remedy = "Rounds that end sooner than the charter's wait for its audits."
    yield Wait("PayUnsettled", f"{text} once its audits are over.", remedy, max(at, now + 1))


def _at_the_end(view: RunView) -> Iterator[Wait]:
    left, opened, planned = len(view.state.unsettled), len(view.books.commitments.rounds), view.charter.rounds
    if left:
        text = "All rounds were opened" if opened == planned else f"No round opens after {opened} of {planned}"
        why = ", as its owners decided" if view.books.is_sunset() else ", as the charter's last second for it is over"
        text += f"{why * (opened < planned)}; {count(left, 'commitment is', 'commitments are')} settled once "
        text += f"{'its' if left == 1 else 'their'} audits are over."
        yield Wait("Settling", text, "", stands=False)
        return
    money, duties = view.state.money, view.books.duties
    findings, rounds = len(view.state.attestations) - len(money.findings_paid), len(money.reserves)
    if findings or rounds:
        text = f"All work is settled. Once their epochs are over findings are paid (left: {findings}), and what rounds "
        yield Wait("Paying", f"{text}did not cost is freed (left: {rounds}).", "", stands=False)
    elif not 0 < duties.last_epoch < duties.number:
        last = f"epoch {duties.last_epoch}" if duties.last_epoch else "the last epoch with duties"
        yield Wait("LastDuties", f"All is paid; the run ends once {last} is over.", "", stands=False)
    else:
        text = "All is settled and paid: the run ends as soon as an actor sends for it."
        yield Wait("Ending", text, "An actor of the run must be running.", stands=False)
