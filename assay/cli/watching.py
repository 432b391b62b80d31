"""`assay status --watch`: what an actor does now, its last rounds, deadlines and income, as they change.

A node is asked for its newest block, and for more only where that is another one; the store for one heartbeat. On a
terminal the picture stays in its place; elsewhere a line is printed when it says something new.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from assay.cli.common import print_json
from assay.explorer.documents import Document
from assay.protocol.errors import RejectedError, UnavailableError
from assay_ledger.agents.heartbeat import DEAD_AFTER_S, Heartbeat, read_heartbeats
from assay_ledger.rounds import nodes

if TYPE_CHECKING:
    from assay.explorer.reader import RunReader
    from assay.protocol.types import Address
    from assay_ledger.rounds.records import WorkRecord
    from assay_ledger.rounds.run import Run
    from assay_ledger.rounds.view import RunView
    from assay_ledger.store.blobs import SlotStore

LAST_ROUNDS: Final = 5
EVERY_S: Final = 2.0


class Pause(Protocol):
    """Waits between two looks."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is over."""
        ...


@dataclass(slots=True)
class PulseReader:
    """What an actor says of itself, and since when it says nothing new: a process that was killed leaves its word."""

    slots: SlotStore | None
    run: Address
    who: Address
    clock: Callable[[], float] = time.monotonic
    _last: Heartbeat | None = field(default=None, init=False)
    _since: float = field(default=0.0, init=False)

    def line(self) -> str:
        """In a sentence. Never raises what a store is at fault for."""
        if self.slots is None:
            return "Now: not known without --store"
        try:
            beat = read_heartbeats(self.slots, self.run, [self.who]).get(self.who)
        except UnavailableError as error:
            return f"Now: not known, {error.message}"
        if beat is None:
            return "Now: no actor of this key has spoken in this run's store"
        if self._last is None or beat.counter != self._last.counter:
            self._last, self._since = beat, self.clock()
        doing = beat.doing or beat.activity.value
        if self.clock() - self._since > DEAD_AFTER_S and beat.activity.value != "done":
            return f"Now: SILENT for more than {DEAD_AFTER_S:.0f} s; last {beat.role}: {doing}"
        return f"Now: {beat.role}, {beat.activity.value}: {doing} (block {beat.head})"


def last_rounds(view: RunView) -> list[Document]:
    """The newest commitments of `view.me`: what was committed, and what became of the round."""
    works = sorted(view.state.works.items(), key=lambda item: item[1].round)
    found: list[Document] = [
        {
            "round": int(work.round),
            "seat": int(work.seat),
            "units": work.work.units,
            "update": weight_of(view, work),
            "generation": view.status(work.round + 1).name.lower(),
            "settled": key not in view.state.unsettled,
        }
        for key, work in works
        if view.books.tenures.existing(work.tenure).holder == view.me
    ]
    return found[-LAST_ROUNDS:]


def weight_of(view: RunView, work: WorkRecord) -> str:
    """Whether an update is part of its round's merge: open, late, counted; uncounted, as too few others held it, or
    unsummed, as the sum of its group is no part."""
    group, place = view.rules.place(work.seat)
    if place not in view.group(work.round, group).maskable:
        return "late"
    counted, is_closed = view.counted(work.round, group)
    if not is_closed:
        return "open"
    if work.seat not in counted:
        return "uncounted"
    if view.rules.by_seats:
        return "counted"
    if view.now <= nodes.groups_until(view, work.round):
        return "open"
    return "counted" if group in nodes.counted_groups(view, work.round) else "unsummed"


UPDATES: Final = {
    "open": "its update waits for the others' word",
    "late": "its update came too late to count, and is paid",
    "counted": "its update counts",
    "uncounted": "its update does NOT count: others did not hold it in time",
    "unsummed": "its update does NOT count: the sum of its group was left out",
}


def round_lines(rows: list[Document]) -> Iterator[str]:
    """The same for people."""
    if rows:
        yield "Last rounds"
    for row in rows:
        paid = "settled" if row["settled"] else "not settled yet"
        yield (
            f"  round {row['round']}, seat {row['seat']}: {row['units']} units; {UPDATES[row['update']]}; "
            f"generation {row['round'] + 1} is {row['generation']}; {paid}"
        )


def watch(
    run: Run,
    who: Address,
    slots: SlotStore | None,
    pause: Pause,
    look: Callable[[RunReader], Document],
    lines: Callable[[Document], Iterable[str]],
    *,
    as_json: bool = False,
) -> None:
    """Looks until `pause` is over. A node that does not answer is said and asked again; nothing ends by it.

    look: the status by a reader of the run, as `lines` tell it.
    """
    from assay.explorer.reader import RunReader
    from assay_ledger.rounds.view import RunView

    reader, pulse = RunReader(run), PulseReader(slots, run.address, who)
    block, found, rounds, fault = -1, None, list[Document](), ""
    told_at, said = 0, None
    with screen_for(as_json=as_json) as show:
        while True:
            before = fault
            try:
                head, fault = run.chain.head().number, ""
                if head != block:
                    found = look(reader)
                    rounds = last_rounds(RunView(run.charter, run.facts, who, reader.state))
                    block, told_at = found["block"], _told_at(found, told_at or found["now"])
            except UnavailableError as error:
                fault = f"The node does not answer: {error.message}"
            except RejectedError as error:
                # A node that is behind knows less than the contracts will.
                fault = f"The node refuses to say: {error.message}"
            now = pulse.line()
            if as_json:
                document = _news(found, rounds, now, fault)
                if document is None and fault not in ("", before):
                    typer.echo(fault, err=True)  # there is no document to say it in yet
                if document is not None and document[0] != said:
                    said = document[0]
                    print_json(document[1])
            else:
                # In a file a fault is the last line until it is said that it is over.
                top = [now, *([fault] if fault else ["The node answers again."] if before else [])]
                # What this command adds comes first: a low terminal shows no more than its rows.
                top += round_lines(rounds)
                live = [] if found is None else lines(found)
                # Told from one and the same time, a line changes only where something did.
                still = [] if found is None else lines(found | {"now": told_at})
                show.show([*top, *live], [*top, *still])
            if pause.wait(EVERY_S):
                return


def _told_at(found: Document, before: int) -> int:
    """The chain time that lines are told from: `before`, or the newest since at which something could be done, or was
    lost, which time alone changes."""
    told = [found["leaving"], *found["locks"], *found["tickets"], *found["earned"]["vesting"]]
    names = ("ends_at", "not_before", "lost_after", "since", "until")
    times = [each[name] for each in told if each is not None for name in names if each.get(name) is not None]
    # What is lost, or counts no more, is so from the next second on.
    due = [at for time in times for at in (time, time + 1) if before < at <= found["now"]]
    return max(due, default=before)


def _news(found: Document | None, rounds: list[Document], now: str, fault: str) -> tuple[Any, Document] | None:
    """What makes a document another one, and the document."""
    if found is None:
        return None
    document = found | {"doing": now.removeprefix("Now: "), "last_rounds": rounds, "fault": fault or None}
    return {name: value for name, value in document.items() if name not in ("block", "now")}, document


def screen_for(*, as_json: bool) -> _PlainLines | _Screen:
    """What shows lines on stdout: a picture where a terminal can move its cursor, else lines as they change."""
    console = Console(highlight=False)
    # On a dumb terminal a picture would be drawn once, when all is over.
    is_drawn = sys.stdout.isatty() and not as_json and not console.is_dumb_terminal
    return _Screen(console) if is_drawn else _PlainLines()


class _PlainLines:
    """Lines as they change."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __enter__(self) -> _PlainLines:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, live: list[str], still: list[str]) -> None:
        """Prints those that say something else than the last time."""
        for text, key in zip(live, still, strict=True):
            if key not in self._said:
                typer.echo(text)
        self._said = set(still)


class _Screen:
    """A picture in its place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, screen=False)

    def __enter__(self) -> _Screen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, live: list[str], _still: list[str]) -> None:
        """Draws it anew, and says what a terminal is too low for."""
        width, height = self._live.console.size
        rows = [row for line in live for row in fitted(line, width)]
        if len(rows) > height:
            kept = rows[: max(height - 2, 0)]
            rows = [*kept, f"({len(rows) - len(kept)} more rows: a higher terminal shows them, as does no --watch)"]
        self._live.update(Group(*(Text(row) for row in rows)), refresh=True)


def fitted(line: str, width: int) -> list[str]:
    """A line as rows of a terminal: between words, and what goes on stands further in."""
    return textwrap.wrap(line, width, subsequent_indent=" " * 6, break_on_hyphens=False) or [""]
