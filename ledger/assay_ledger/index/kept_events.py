"""What is kept of the events that somebody follows, so that a start reads rows where it would ask for history.

Blocks that were read by their hashes, or lie deep, are kept at once. Of a range near the head a node that is behind
leaves out what it does not have: such blocks are held back until they lie deep, asked for again, and kept if the
answer is the same. Source: docs/adr/0052-kept-events.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from assay.protocol.types import Address
from assay_ledger.index.event_rows import EventRows, FrozenState, kept_for
from assay_ledger.index.kept_blocks import KeptBlock, KeptName, RowsUnusable

SETTLED: Final = 64
"""Blocks behind the head after which every node of a URL is taken to have a block."""

FREEZE_EVENTS: Final = 20_000
"""So many events behind a state that is kept, the next one is kept: they take about a second to fold."""

FREEZE_SHARE: Final = 0.01
"""Most of an actor's time that goes into keeping states, which grow with the run: 2 s after a million events."""

EVENT_S: Final = 2e-6
"""Seconds that an event adds to what it takes to keep a state, before one was kept."""

_LOG = logging.getLogger("assay.agent")
"""What it writes is shown to whoever runs an actor."""

HashAt = Callable[[int], bytes]
"""The hash of the chain's block of a number."""


class KeptEvents:
    """Rows, and what is held back from them. Raises RowsUnusable, after which `give_up` or `forget` is called."""

    def __init__(self, rows: EventRows, clock: Callable[[], float] = time.monotonic) -> None:
        self._rows, self._clock = rows, clock
        self._held: list[KeptBlock] = []
        self._unsure: tuple[int, int] | None = None
        """The first and last block that was read by a range near the head."""
        self._unfrozen = 0
        """Events behind the newest state that is kept."""
        self._since = clock()
        """When the last state was kept, or this began, in seconds."""
        self._took: float | None = None
        """What that took, in seconds."""
        self._was_at_head = False
        """Whether a state was kept at the head, which spares the next start all history."""

    @property
    def top(self) -> int:
        """Number of the newest kept block; -1: there is none."""
        return self._rows.top

    def common(self, number: int, hash_at: HashAt) -> tuple[int, bytes] | None:
        """The newest kept block up to a number that is in the chain still; those above it that are not are forgotten.

        Blocks above `number` stay where nothing speaks against them: the node may be behind.
        """
        missed, reach = -1, 0
        while (found := self._rows.newest(number, reach)) is not None and hash_at(found[0]) != found[1]:
            missed, reach = reach, 2 * reach + 1
        if missed < 0:
            return found
        # Block `missed` is gone. Between it and block `reach`, which is there (or before all), lies the newest of both.
        low, high = missed, reach
        while high - low > 1:
            middle = (low + high) // 2
            at = self._rows.newest(number, middle)
            if at is not None and hash_at(at[0]) != at[1]:
                low = middle
            else:
                high, found = middle, at
        if not self._rows.reads_only:
            self._rows.cut(-1 if found is None else found[0])
        self.let_go()
        return found

    def blocks(self, after: int, upto: int) -> Iterator[KeptBlock]:
        """See EventRows. Raises RowsDamaged too."""
        for block in self._rows.blocks(after, upto):
            self._unfrozen += len(block.logs)
            yield block

    def hold(self, blocks: Sequence[KeptBlock], unsure: tuple[int, int] | None = None) -> None:
        """Keeps blocks that were read, or holds them back if they, or blocks before them, are `unsure`."""
        if self._rows.reads_only:
            return
        if unsure is not None and unsure[1] > self.top:
            first = max(unsure[0], self.top + 1) if self._unsure is None else self._unsure[0]
            self._unsure = first, unsure[1]
        self._held += [block for block in blocks if block.number > self._rows.top]
        if self._unsure is None:
            self._keep(len(self._held))

    def to_confirm(self, number: int) -> tuple[int, int] | None:
        """First and last block of a range that can be asked for again with the head at a number."""
        if self._unsure is None or number < self._unsure[0] + 2 * SETTLED:
            return None
        return self._unsure[0], number - SETTLED

    def confirm(self, last: int, again: Sequence[KeptBlock]) -> bool:
        """Whether the blocks up to `last` that are held back are these; then they are kept."""
        settled = [block for block in self._held if block.number <= last]
        if [block for block in settled if block.logs] != list(again):
            return False
        assert self._unsure is not None
        self._unsure = (last + 1, self._unsure[1]) if self._unsure[1] > last else None
        self._keep(len(settled) if self._unsure else len(self._held))
        return True

    def let_go(self) -> None:
        """Holds nothing back any more: it is read again."""
        self._held, self._unsure = [], None

    def forget(self) -> None:
        """Removes all rows: they are not what they should be, and are made anew."""
        if self._rows.reads_only:
            raise RowsUnusable("The kept events are not what they should be, and are another process' to mend.")
        self.let_go()
        self._rows.cut(-1)

    def say(self, error: RowsUnusable) -> None:
        """Says why events are read from the chain again."""
        _LOG.warning("%s They are read from the chain again.", error.message)

    def give_up(self, error: RowsUnusable) -> None:
        """Says why nothing is kept from now on."""
        _LOG.warning("%s Goes on from the chain alone.", error.message)
        self._rows.close()

    def close(self) -> None:
        """Lets another process have the rows."""
        self._rows.close()

    # --- states

    def frozen(self, version: bytes, upto: int) -> FrozenState | None:
        """The newest state that is kept, after a block up to a number."""
        found = self._rows.frozen(version, upto)
        self._unfrozen = 0
        return found

    def is_freezing_due(self, upto: int, *, at_head: bool) -> bool:
        """Whether a state after all blocks up to a number shall be kept now: the first at the head, then as often as
        FREEZE_SHARE lets; while history is read, too."""
        is_level = not self._held and self.top <= upto
        if self._rows.reads_only or not is_level or self._unfrozen < FREEZE_EVENTS:
            return False
        if at_head and not self._was_at_head:
            self._was_at_head = True
            return True
        takes = max(self._took or 0.0, EVENT_S * self._unfrozen)
        return self._clock() - self._since >= takes / FREEZE_SHARE

    def freeze(self, version: bytes, make: Callable[[], bytes | None]) -> None:
        """Keeps the state after the newest kept block."""
        began = self._clock()
        body = make()
        if body is not None:
            self._rows.freeze(FrozenState(self.top, version, body))
            self._unfrozen = 0
        self._since = self._clock()
        self._took = self._since - began

    def _keep(self, count: int) -> None:
        blocks, self._held = self._held[:count], self._held[count:]
        if blocks:
            self._rows.add(blocks)
            self._unfrozen += sum(len(block.logs) for block in blocks)


def open_kept(url: str, name: KeptName) -> KeptEvents | None:
    """What a database holds under a name; None, with a word to the operator, where it cannot be used."""
    try:
        return KeptEvents(EventRows(url, name))
    except RowsUnusable as error:
        _LOG.warning("%s Goes on from the chain alone.", error.message)
        return None


def read_kept(
    urls: Sequence[str], chain_id: int, run: Address, name_of: Callable[[str], KeptName]
) -> KeptEvents | None:
    """What somebody keeps of a run's events in one of these databases, to be read while they go on: the rows that reach
    farthest of the names that `name_of` gives readers; None where nobody does."""
    found: list[EventRows] = []
    for url in urls:
        try:
            for reader in kept_for(url, chain_id, run):
                with suppress(RowsUnusable):
                    found.append(EventRows(url, name_of(reader), reads_only=True))
        except RowsUnusable:
            continue  # nothing depends on it: the chain has all of it
    found.sort(key=lambda rows: rows.top)
    for rows in found[:-1]:
        rows.close()
    return KeptEvents(found[-1]) if found else None
