"""What is known of a run up to a head: its state, its money, every event, and where a reader finds them."""

from __future__ import annotations

from assay.explorer.earnings import ShareEarnings, vouchers_of
from assay.explorer.event_rows import ShownEvents
from assay.explorer.money import Money
from assay.explorer.names import EventNames, names_in
from assay.explorer.shelves import Shelves
from assay.explorer.touched import PageSubject, subjects_in
from assay.explorer.votes import RunVotes
from assay.protocol.types import Seat
from assay.provenance.books import HistoryBooks
from assay_ledger.chain.client import Head
from assay_ledger.contract import Event, Logged
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run


class KnownRun:
    """Grows with the events. `version` counts the changes."""

    def __init__(self, run: Run, version: int = 0) -> None:
        self.state = RunState.of(run.facts)
        self.money = Money(run)
        self.earnings = ShareEarnings(run, vouchers_of(run))
        self.votes = RunVotes(run.charter)
        self.history = HistoryBooks(run)
        self.events = ShownEvents()
        self.names = EventNames()
        self.shelves = Shelves()
        self.version = self.began = version
        self.changed: dict[PageSubject, int] = {}
        """The newest event that is about each."""
        self.counted: dict[tuple[int, int], frozenset[Seat]] = {}
        """Seats that count in groups of rounds, where that can change no more."""

    def take(self, contract: str, found: Logged[Event], time: int) -> None:
        """The next event, of a block at this chain time, in seconds. Raises as `fold`."""
        event, transaction = found.event, found.transaction
        # While a long run is read for the first time pages show it as of the newest event, and not as of 1970.
        if found.block > self.state.head.number:
            self.state.head = Head(found.block, time)
        fold(self.state, event, time, transaction)
        self.money.on_event(event)
        self.earnings.on_event(contract, event, time)
        self.votes.on_event(event, time)
        self.history.on_event(contract, found)
        made = self.shelves.on_event(event, self.state, transaction)
        number = self.events.add(contract, found, time)
        named = list(names_in(event))
        for subject in subjects_in(event, named, self.state):
            self.changed[subject] = number
        names = {transaction, *named} | ({made} if made is not None else set())
        for name in names:
            self.names.add(name, number)
        self.version += 1

    def reach(self, head: Head) -> None:
        """Everything up to this head was taken."""
        if head != self.state.head:
            self.state.head = head
            self.state.books.now = head.timestamp
            self.version += 1
