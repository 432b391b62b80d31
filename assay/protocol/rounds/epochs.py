"""Turns of the audits, their seeds, and the shift that each calls (contracts/audit/Epochs.sol)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Protocol

from assay.protocol.errors import refuse
from assay.protocol.rounds.duty_types import MAX_REPEATS, DutyTerms, Epoch
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.rounds.timeline import Timeline
from assay.protocol.types import Digest

SHIFT_NODE: Final = Digest(b"assay.shift".ljust(32, b"\0"))
"""The node at whose first position the ticket sits whose shift is called."""


class AuditBeacon(Protocol):
    """Randomness that a time names (IBeacon.sol)."""

    def round_after(self, time: int) -> int:
        """The first round whose time is later."""

    def randomness_of(self, beacon_round: int) -> Digest:
        """The randomness of a round. Raises BeaconNotSubmitted."""


class Epochs:
    """All epochs; `now` is chain time in seconds. The newest one is the only one that is not closed."""

    def __init__(self, tickets: Tickets, beacon: AuditBeacon, terms: DutyTerms) -> None:
        terms.check(tickets.terms.seasoning)
        self.tickets = tickets
        self.beacon = beacon
        self.terms = terms
        self.epochs = [Epoch(terms.start)]
        self._calls: dict[int, Timeline] = {}
        self.last_epoch = 0
        """The last epoch in which duties are drawn; 0 until it is known."""

    @property
    def number(self) -> int:
        """The newest epoch."""
        return len(self.epochs) - 1

    def seed_epoch(self, now: int) -> None:
        """Take the newest epoch's seed and call a shift. Raises RunStopped, EpochSeeded, BeaconNotSubmitted."""
        self._check_running()
        epoch = self.epochs[-1]
        if epoch.seed is not None:
            raise refuse("EpochSeeded", epoch=self.number)
        # Attack: know the seed while what it draws over can still change.
        seed = self.beacon.randomness_of(self.beacon.round_after(epoch.start + self.terms.delay))
        epoch.seed, epoch.deadline = seed, now + self.terms.length
        # Once duties are over an epoch only passes time: the call after the last duties shows what was hidden of them.
        calls_nobody = epoch.idle and self.epochs[-2].idle
        if calls_nobody or not self.tickets.count_at(epoch.start, now):
            return
        # Attack: gather one's tickets in a shift and have its epochs to oneself.
        # A shift is called as often as it is large.
        drawn = self.tickets.position_of(seed, SHIFT_NODE, 0, epoch.start, now)
        epoch.shift = self.tickets.shift_of(drawn)
        epoch.on_call = self.tickets.on_call_at(epoch.shift, epoch.start, now)
        calls = self._calls.setdefault(epoch.shift, Timeline())
        epoch.call = calls.latest() + 1
        calls.push(epoch.start, epoch.call)

    def close_epoch(self, now: int) -> None:
        """Close the newest epoch and begin the next, or repeat it. Raises RunStopped, EpochNotSeeded, TooEarly."""
        self._check_running()
        epoch = self.epochs[-1]
        if epoch.seed is None:
            raise refuse("EpochNotSeeded", epoch=self.number)
        if now <= epoch.deadline:
            raise refuse("TooEarly", now=now, not_before=epoch.deadline + 1)
        attended = bool(epoch.on_call) and 2 * epoch.opened >= epoch.on_call
        # Attack: withhold openings so that an epoch never ends. It repeats with its seed, and no more than twice.
        if not attended and epoch.on_call and epoch.repeats < MAX_REPEATS:
            epoch.repeats += 1
            epoch.deadline = now + self.terms.length
            return
        epoch.closed, epoch.fines = True, attended
        self.epochs.append(Epoch(now, idle=self._is_idle(self.number + 1)))
        self._on_began(now)

    def calls_at(self, shift: int, time: int) -> int:
        """Calls of a shift by epochs that began at a time or before."""
        return self._calls.get(shift, Timeline()).at(time)

    def newest(self) -> tuple[int, int]:
        """The newest epoch and when it began."""
        return self.number, self.epochs[-1].start

    def over_since(self, number: int) -> int:
        """Since when nothing that belongs to an epoch can be drawn any more, in seconds of chain time; 0: it can."""
        return self._epoch(last_drawn(self.epochs, number) + 1).start

    def over_after(self, time: int) -> int:
        """The same of the first epoch that began after a time: a round's own, of its last second to commit."""
        number = bisect_right(self.epochs, time, key=lambda epoch: epoch.start)
        return self.over_since(number) if number < len(self.epochs) else 0

    # --- inside

    def _check_running(self) -> None:
        # Attack: a puppet's game that holds its victim through a wind-down, and fines it for calls that nobody pays.
        if self.tickets.state.is_stopped():
            raise refuse("RunStopped")

    def _is_idle(self, number: int) -> bool:
        return 0 < self.last_epoch < number

    def _on_began(self, now: int) -> None:
        """An epoch has begun, and nobody is called yet."""

    def _is_called(self, ticket: TicketId, epoch: Epoch, now: int) -> bool:
        on_shift = bool(epoch.on_call) and self.tickets.shift_of(ticket) == epoch.shift
        return on_shift and self.tickets.is_serving(ticket, epoch.start, now)

    def _check_called(self, ticket: TicketId, number: int, now: int) -> None:
        if not self._is_called(ticket, self._epoch(number), now):
            raise refuse("NotCalled", ticket=ticket, epoch=number)

    def _epoch(self, number: int) -> Epoch:
        """An epoch, empty where it is still to come."""
        return self.epochs[number] if number < len(self.epochs) else Epoch(0)

    def _check_closed(self, number: int) -> None:
        if not self._epoch(number).closed:
            raise refuse("EpochOpen", epoch=number)

    def _check_fines(self, number: int) -> None:
        self._check_running()
        self._check_closed(number)
        if not self._epoch(number).fines:
            raise refuse("EpochWithoutFines", epoch=number)


def last_drawn(epochs: Sequence[Epoch], number: int) -> int:
    """The last epoch in which what belongs to an epoch is drawn.

    Attack: keep an epoch from fining, so that what was missed before it is shown when nothing draws it again.
    """
    return number + (2 if number + 1 < len(epochs) and epochs[number + 1].fines else 3)


def unopened(epoch: Epoch, ppm: int) -> int:
    """Share of the tickets on call that did not open, in parts per million of `ppm`, rounded down."""
    return ppm * (epoch.on_call - epoch.opened) // epoch.on_call if epoch.on_call else 0
