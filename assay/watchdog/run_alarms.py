"""What the watchdog says of a run beside its games: stakes, seats, duties, epochs, escrow, roots. Pure.

Times are seconds of chain time, amounts wei. A party that we watch for is taken to be honest, so whoever accuses it
lies, and what it stakes is at risk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, Final

from assay.counts import count
from assay.protocol.rounds import ids
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.rounds.terms import NEVER, Presence, Tenure
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round
from assay.watchdog.alarms import Alarm, AlarmKind
from assay_ledger.agents.keeper import missing_beacons
from assay_ledger.agents.keeping import GRACE_S
from assay_ledger.agents.money_keeper import has_auditors, seated_next
from assay_ledger.rounds.told_generations import node_of, party_of
from assay_ledger.rounds.view import RunView

ALIVE = (AccusationStatus.RECORDED, AccusationStatus.TRIED)
TRIED = (AccusationStatus.TRIED,)

NEWEST: Final = 5
"""So many rounds of a seat are looked at: three absences of whatever kind in a row evict it."""

UNCOUNTED_ROUNDS: Final = 2
"""So many updates in a row without weight are told: a single one may have been late."""


def judge_stakes(view: RunView, who: Address) -> Iterator[Alarm]:
    """What an address has at risk: seats and tickets that are accused or in a game, tickets that a fine left short."""
    books, money = view.books, view.facts.currency
    # What a stop leaves without a game has none any more.
    alive = TRIED if view.state.money.is_stopped else ALIVE
    accused = [a for a in books.duties.attestations.accusations.values() if a.status in alive]
    lock, bond = view.charter.economics.seat_lock, view.charter.economics.ticket_bond
    for number, tenure in view.tenures_of(who):
        against = sum(a.is_work and a.accused == number for a in accused)
        if (against or tenure.games) and not tenure.convicted_at:
            text = f"{money.show(lock)} tokens are at risk: "
            text += f"{count(against, 'accusation')} and {count(tenure.games, 'game')} are open on its work"
            figures = (("accusations", against), ("games", tenure.games), ("lock", str(lock)))
            yield Alarm(AlarmKind.STAKE_AT_RISK, f"tenure {number}", text, figures)
    for ticket, held in view.tickets_of(who):
        against = sum(not a.is_work and a.accused == ticket for a in accused)
        if against and not held.convicted_at:
            text = f"{money.show(bond)} tokens are at risk: {against} accusations of its findings are open"
            yield Alarm(
                AlarmKind.STAKE_AT_RISK,
                f"ticket {ticket}",
                text,
                (("accusations", against), ("lock", str(bond))),
            )
        if held.short_since and not held.convicted_at and not view.state.money.is_ended:
            short = books.registry.missing[ticket]
            text = f"fines left its stake {money.show(short)} tokens short: whoever likes may remove it; top it up"
            yield Alarm(AlarmKind.STAKE_SHORT, f"ticket {ticket}", text, (("short", str(short)),))


def judge_seats(view: RunView, who: Address) -> Iterator[Alarm]:
    """Absences of an address's seats that one more round makes an eviction, and work that the others did not count.

    Told as long as the newest rounds that are over show it.
    """
    if view.round is None or view.is_over or view.state.money.phase is not RunPhase.RUNNING:
        return
    for number, tenure in view.tenures_of(who):
        if tenure.until != NEVER or tenure.convicted_at:
            continue
        rounds = range(max(tenure.from_, view.round - NEWEST), view.round + 1)
        seen = [(Round(r), found) for r in rounds if (found := view.presence(Round(r), tenure.seat))]
        yield from _absences(view, number, tenure, seen)
        uncounted = _trailing(seen, lambda presence: presence in (Presence.UNCOUNTED, Presence.UNHELD))
        if len(uncounted) >= UNCOUNTED_ROUNDS:
            text = (
                f"its updates of rounds {uncounted[0]} to {uncounted[-1]} had no weight: others said that they do not "
                "hold them. Can they read from its store in time?"
            )
            figures = (("rounds", len(uncounted)),)
            yield Alarm(AlarmKind.WORK_UNCOUNTED, f"seat {tenure.seat}", text, figures)


def _absences(view: RunView, number: int, tenure: Tenure, seen: list[tuple[Round, Presence]]) -> Iterator[Alarm]:
    """Absences that one more of them makes an eviction (`is_evictable`)."""
    absent, books = _trailing(seen, lambda presence: presence.is_absence), view.books.tenures
    if not absent or books.is_evictable(tenure, absent[-1], view.now):
        return
    missed = view.presence(absent[-1], tenure.seat) is Presence.MISSED and not books.is_waived(absent[-1])
    if len(absent) < 2 and not missed:
        return
    fee = view.facts.currency.show(view.charter.economics.seat_fee)
    what = "it did not commit to" if missed else "it was absent, or its update held by nearly nobody, up to"
    text = f"{what} round {absent[-1]}: one more such round evicts it, at the price of its fee of {fee} tokens"
    yield Alarm(AlarmKind.SEAT_AT_RISK, f"tenure {number}", text, (("absences", len(absent)),))


def _trailing(seen: list[tuple[Round, Presence]], wanted: Callable[[Presence], bool]) -> list[Round]:
    """The newest rounds in a row of which something holds, in order."""
    return [round_ for round_, _ in reversed(list(takewhile(lambda pair: wanted(pair[1]), reversed(seen))))]


def judge_duties(view: RunView, who: Address, near: float) -> Iterator[Alarm]:
    """Calls of an address's tickets that are not answered. `near`: the share of the time left at which one is due.

    One that was missed is told as long as its secret may still be asked for: until that one is shown, or a later one.
    """
    if view.state.money.is_stopped:
        return  # audits ended with the run
    for ticket, held in view.tickets_of(who):
        for number, epoch in enumerate(view.epochs):
            if held.convicted_at or held.shown >= epoch.call or not view.is_called(ticket, number):
                continue
            left = epoch.deadline - view.now
            about = f"ticket {ticket} in epoch {number}"
            figures: tuple[tuple[str, Any], ...] = (("seconds_left", left),)
            if epoch.fines:
                text = "it did not open its call in time: show the secret, or its whole stake burns"
                yield Alarm(AlarmKind.DEADLINE_MISSED, about, text, figures)
            elif epoch.closed:
                continue  # fewer than half opened: nobody is fined for it
            elif left < 0:
                text = "it did not open its call in time: it is fined once the epoch is closed; show the secret then"
                yield Alarm(AlarmKind.DEADLINE_MISSED, about, text, figures)
            elif left <= near * view.terms.length:
                text = (
                    f"it has {left} s of chain time left to open its call, {left / view.terms.length:.0%} of the epoch"
                )
                if not view.books.registry.can_answer(ticket):
                    # A drained ticket has no voice, and is fined for its silence all the same.
                    short = view.books.registry.missing[ticket]
                    up = view.facts.currency.show(short)
                    text += f"; fines left it less than nine tenths of its stake: fill up {up} tokens first"
                    figures = (*figures, ("short", str(short)))
                yield Alarm(AlarmKind.DUTY_DUE, about, text, figures)


def judge_epoch(view: RunView) -> Iterator[Alarm]:
    """An epoch that nobody seeds, or nobody closes, though anybody may: nothing is audited meanwhile."""
    number = len(view.epochs) - 1
    epoch, patience = view.epochs[number], view.charter.chain.inclusion_delay
    if view.state.money.phase is not RunPhase.RUNNING:
        return
    due = epoch.start + view.terms.delay if epoch.seed is None else epoch.deadline
    late = view.now - due
    if late > patience:
        what = "has no seed" if epoch.seed is None else "is not closed"
        text = f"it {what} {late} s after anybody may see to it: no work settles meanwhile"
        yield Alarm(AlarmKind.EPOCH_OVERDUE, f"epoch {number}", text, (("seconds_late", late),))


def judge_beacon(view: RunView) -> Iterator[Alarm]:
    """A round of the beacon that a draw waits for, and nobody brought though everybody's turn has come."""
    if view.state.money.phase is not RunPhase.RUNNING:
        return
    for wanted, _ in missing_beacons(view):
        late = view.now - view.books.beacon.time_of(wanted)
        if late > GRACE_S:
            text = f"nobody brought it {late} s after it was due: nothing is drawn meanwhile; anybody may submit it"
            yield Alarm(AlarmKind.BEACON_LATE, f"beacon round {wanted}", text, (("seconds_late", late),))


def judge_escrow(view: RunView) -> Iterator[Alarm]:
    """An escrow that cannot set the next round's pay aside, or too few tickets for its duties: no round opens.

    A round that only waits for the next epoch, since those before it have taken this one's room, is not told.
    """
    money, charter = view.state.money, view.charter
    if money.phase is not RunPhase.RUNNING or view.is_over:
        return
    seated = seated_next(view)
    free, wanted = money.balance - money.reserved_total, cost_of(charter, seated, view.books.price_ppm)
    if free < wanted:
        has, needs = view.facts.currency.show(free), view.facts.currency.show(wanted)
        text = f"the escrow has {has} tokens free of the {needs} that the next round sets aside: it will not open"
        yield Alarm(AlarmKind.ESCROW_LOW, "escrow", text, (("free", str(free)), ("wanted", str(wanted))))
    if not has_auditors(view, seated):
        there = view.books.registry.count_at(view.now, view.now)
        text = f"{count(there, 'ticket counts', 'tickets count')}, too few for the duties of a round of "
        text += f"{count(seated, 'seat')}: it will not open"
        yield Alarm(AlarmKind.ESCROW_LOW, "tickets", text, (("tickets", there), ("least", charter.launch.tickets)))


def judge_roots(view: RunView) -> Iterator[Alarm]:
    """Games about a root that has the majority: if it falls, its generation and all work on it are cut.

    Above 64 seats also about the sum of a group, which the generation was merged from.
    """
    for number, game in sorted(view.games.items()):
        if game.is_over or game.ref.kind is not ClaimKind.OUTER:
            continue
        node = node_of(game.ref)
        opening = view.books.generations.openings[node, party_of(game.ref)]
        if opening.root == view.votes(node).root:
            text = f"game {number} disputes the root that has the majority: work on it is void if it falls"
            figures = (("game", number), ("root", "0x" + opening.root.hex()))
            about = f"generation {ids.generation_of(node)}"
            if ids.is_group(node):
                about = f"the sum of group {ids.group_of(node)} in {about}"
            yield Alarm(AlarmKind.ROOT_CHALLENGED, about, text, figures)
