"""The foot of an actor's terminal: what it does now, what it must do next and by when, and what it has earned.

Elsewhere nothing of this is said: there lines alone tell what happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from assay.amounts import SHARES, Currency
from assay.cli.common import talk
from assay.durations import duration
from assay.observing import logs
from assay_ledger.bindings import bounties, payments

if TYPE_CHECKING:
    from assay.protocol.types import Address
    from assay.status.deadlines import OwnDeadline
    from assay_ledger.contract import Event
    from assay_ledger.rounds.view import RunView


class LiveRole:
    """Drawn anew twice a second in a thread of its own, below what the actor says; `doing` is asked then."""

    def __init__(self, doing: Callable[[], str], money: Currency, clock: Callable[[], float] = time.monotonic) -> None:
        """`money`: how amounts of the run's token are written."""
        self._doing, self._money, self._clock = doing, money, clock
        self._part = ""
        self._next: OwnDeadline | None = None
        self._now, self._seen_at = 0, 0.0
        self._pay = self._shares = 0
        self._live = Live(console=talk, get_renderable=self._drawn, transient=True, refresh_per_second=2)

    def __enter__(self) -> LiveRole:
        if talk.is_terminal and not logs.is_json():
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def on_progress(self, doing: str, done: int, total: int) -> None:
        """How far its long work is."""
        self._part = f"{doing} ({done} of {total})" if done < total else ""

    def on_look(self, view: RunView) -> None:
        """What it must do next, as a view shows it."""
        from assay.status.deadlines import deadlines_of

        self._part, self._now, self._seen_at = "", view.now, self._clock()
        self._next = next(iter(deadlines_of(view, {})), None)

    def on_event(self, event: Event, me: Address) -> None:
        """What it earned by an event that is about it."""
        match event:
            case payments.WorkPaid() | payments.FindingPaid():
                self._earn(event.pay, event.shares)
            case payments.OpeningPaid():
                self._earn(event.pay, 0)
            case bounties.PartPaid() if event.to == me:
                self._earn(event.amount, 0)

    def line(self) -> str:
        """All of it in one line."""
        parts = [f"now: {self._part or self._doing() or 'looking'}"]
        if self._next is not None:
            # By the wall since the last look: chain time goes on while a long piece of work is done.
            left = max(0, self._next.until - self._now - round(self._clock() - self._seen_at))
            parts.append(f"next, within {duration(left)}: {self._next.text}")
        if self._pay or self._shares:
            parts.append(f"earned: {self._money.brief(self._pay)} tokens, {SHARES.brief(self._shares)} shares")
        return " | ".join(parts)

    def _earn(self, pay: int, shares: int) -> None:
        self._pay += pay
        self._shares += shares

    def _drawn(self) -> Text:
        return Text(self.line(), style="dim")
