"""What shares of a model earn: the books of Revenue.sol in one token, told by its events, and who paid each part.

A deposit streams linearly over the four weeks after the week it came in, to whoever holds shares while it does. Amounts
are the token's smallest unit, times seconds of chain time, weeks those since 1970 as the contract counts them.
Whoever looks changes nothing: the figures follow from the events and the time looked at alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import Final, Generic, TypeVar

from assay.protocol.errors import InvariantError

P = TypeVar("P", bound=Hashable)

WEEK: Final = 7 * 86_400
STREAM_WEEKS: Final = 4
STREAM: Final = STREAM_WEEKS * WEEK
SCALE: Final = 1 << 128
"""Of what a smallest unit of shares earns."""

_PRIORITY_BITS: Final = 512
"""Two different quotients of amounts below 2^128 differ by more than 2^-256: none is rounded into another."""


def allot(parts: Sequence[int], total: int) -> list[int]:
    """A total over parts in proportion to them, whole and to the last unit; at most the sum of the parts.

    Jefferson's rule: units are given one after another, so nobody's part falls when the total grows, and of the whole
    sum everybody has exactly its own. Of equals the first goes first.
    """
    whole = sum(parts)
    if not 0 <= total <= whole:
        raise ValueError(f"{total} of {whole} cannot be allotted")
    if total in (0, whole):
        return [0] * len(parts) if total == 0 else list(parts)
    found = [part * total // whole for part in parts]
    queue = [(-(part << _PRIORITY_BITS) // (found[k] + 1), k) for k, part in enumerate(parts) if part]
    heapify(queue)
    for _ in range(total - sum(found)):
        place = queue[0][1]
        found[place] += 1
        heapreplace(queue, (-(parts[place] << _PRIORITY_BITS) // (found[place] + 1), place))
    return found


@dataclass(slots=True)
class RevenueBucket(Generic[P]):
    """What joined the stream that begins with a week."""

    week: int
    amount: int = 0
    paid: dict[P, int] = field(default_factory=dict)
    """The same by who paid it, in the order in which they came."""
    growth: dict[int, int] = field(default_factory=dict)
    """What a smallest unit of shares earned of it, times SCALE, by week."""
    allotted: dict[int, list[int]] = field(default_factory=dict)
    """What had streamed of everybody's part by the ends of weeks, where somebody asked."""

    def join(self, payer: P, amount: int) -> None:
        """More of it; only before it streams."""
        self.amount += amount
        self.paid[payer] = self.paid.get(payer, 0) + amount

    def streamed(self, time: int) -> int:
        """What has streamed until a time, rounded down."""
        since = time - self.week * WEEK
        return 0 if since <= 0 else self.amount if since >= STREAM else self.amount * since // STREAM

    def parts(self, time: int) -> list[int]:
        """The same of everybody's part, in the order of `paid`."""
        # Nobody joins a bucket once it streams, so what was allotted until a time stays so.
        if time % WEEK or time <= self.week * WEEK:
            return allot(list(self.paid.values()), self.streamed(time))
        if time not in self.allotted:
            self.allotted[time] = allot(list(self.paid.values()), self.streamed(time))
        return self.allotted[time]


@dataclass(slots=True)
class EarnedPart:
    """`amount` came to all holders; `per_share`: to a smallest unit of shares, times SCALE."""

    amount: int = 0
    per_share: int = 0

    def add(self, amount: int, per_share: int) -> None:
        """Adds to both."""
        self.amount += amount
        self.per_share += per_share


@dataclass(slots=True)
class EarnedWeek(Generic[P]):
    """What came to the holders of shares in a week, and of whose money; the parts sum to the whole."""

    week: int
    whole: EarnedPart = field(default_factory=EarnedPart)
    by: dict[P, EarnedPart] = field(default_factory=dict)


@dataclass(slots=True)
class StreamPlace:
    """How far a stream was counted: see Revenue.sol, Stream."""

    time: int = 0
    per_share: int = 0
    remainder: int = 0


class RevenueStream(Generic[P]):
    """The revenue of one token. Events come in the order of the chain."""

    def __init__(self) -> None:
        self.buckets: dict[int, RevenueBucket[P]] = {}
        """By the week they begin with."""
        self.supply = 0
        """Smallest units of shares that exist. The contract of shares makes them and destroys none."""
        self.first_share: int | None = None
        """When the first share was made: what streamed before was earned by nobody then, and streams anew."""
        self.deposited = 0
        self._at = StreamPlace()

    def on_deposit(self, parts: Iterable[tuple[P, int]], week: int) -> None:
        """A deposit, by whom its parts were paid, that streams from a week on."""
        for payer, amount in parts:
            self._join(payer, amount, week)
            self.deposited += amount

    def on_stream_anew(self, amount: int, week: int, time: int) -> None:
        """What streamed while there was no share streams again: of everybody's part what it was.

        Raises InvariantError (EventOutOfOrder).
        """
        waited = self.waiting(time)
        if sum(waited.values()) != amount:
            raise InvariantError(
                f"Revenue streams anew by {amount}, and {sum(waited.values())} had streamed to nobody.",
                code="EventOutOfOrder",
            )
        self.first_share = time
        for payer, part in waited.items():
            self._join(payer, part, week)

    def on_mint(self, shares: int, time: int) -> None:
        """Shares were made."""
        for bucket, week, grown in self._growing(self._at, time):
            bucket.growth[week] = bucket.growth.get(week, 0) + grown
        if self.first_share is None:
            self.first_share = time
        self.supply += shares

    # --- what is asked

    def per_share(self, now: int) -> int:
        """What a smallest unit of shares has earned that was there from the beginning, times SCALE: the contract's."""
        place = self._copied()
        for _ in self._growing(place, now):
            pass
        return place.per_share

    def waiting(self, now: int) -> dict[P, int]:
        """What has streamed while there was no share, by who paid it; it streams anew when there is one."""
        found: dict[P, int] = {}
        for bucket in self.buckets.values() if self.first_share is None else ():
            for payer, part in zip(bucket.paid, bucket.parts(now), strict=True):
                if part:
                    found[payer] = found.get(payer, 0) + part
        return found

    def coming(self, now: int) -> int:
        """What has not streamed yet."""
        return sum(bucket.amount - bucket.streamed(now) for bucket in self.buckets.values())

    def weeks(self, now: int, first: int = 0, last: int | None = None) -> list[EarnedWeek[P]]:
        """What was earned in each week in which something streamed, the one that goes on too; from `first` to `last`
        if they are given."""
        end = -(-now // WEEK) if last is None else min(-(-now // WEEK), last + 1)
        found: dict[int, EarnedWeek[P]] = {}
        later: dict[tuple[int, int], int] = {}
        for bucket, week, grown in self._growing(self._copied(), now):
            later[bucket.week, week] = later.get((bucket.week, week), 0) + grown
        for bucket in self.buckets.values():
            for week in range(max(bucket.week, first), min(bucket.week + STREAM_WEEKS, end)):
                grown = bucket.growth.get(week, 0) + later.get((bucket.week, week), 0)
                self._earned(bucket, found.setdefault(week, EarnedWeek(week)), grown, now)
        return [found[week] for week in sorted(found)]

    # --- inside

    def _join(self, payer: P, amount: int, week: int) -> None:
        self.buckets.setdefault(week, RevenueBucket(week)).join(payer, amount)

    def _copied(self) -> StreamPlace:
        return StreamPlace(self._at.time, self._at.per_share, self._at.remainder)

    def _growing(self, place: StreamPlace, time: int) -> Iterator[tuple[RevenueBucket[P], int, int]]:
        """Counts on to a time; of which bucket, in which week, a smallest unit of shares earned how much."""
        start, place.time = place.time, time
        if not self.buckets or not self.supply:
            return
        first, last = max(start // WEEK, min(self.buckets)), min((time - 1) // WEEK, max(self.buckets) + STREAM_WEEKS)
        for week in range(first, last + 1):
            begin, end = max(start, week * WEEK), min(time, (week + 1) * WEEK)
            live = [self.buckets[k] for k in range(week - STREAM_WEEKS + 1, week + 1) if k in self.buckets]
            amounts = [bucket.streamed(end) - bucket.streamed(begin) for bucket in live]
            total = sum(amounts)
            if total == 0:
                continue
            grown, place.remainder = divmod(total * SCALE + place.remainder, self.supply)
            place.per_share += grown
            for bucket, part in zip(live, _split(grown, amounts, total), strict=True):
                yield bucket, week, part

    def _earned(self, bucket: RevenueBucket[P], into: EarnedWeek[P], grown: int, now: int) -> None:
        """What came of a bucket in a week, added to it."""
        if self.first_share is None:
            return
        begin, end = max(into.week * WEEK, self.first_share), min((into.week + 1) * WEEK, now)
        if end <= begin:
            return
        before, after = bucket.parts(begin), bucket.parts(end)
        per_share = _split(grown, list(bucket.paid.values()), bucket.amount)
        for payer, was, now_is, each in zip(bucket.paid, before, after, per_share, strict=True):
            into.whole.add(now_is - was, each)
            into.by.setdefault(payer, EarnedPart()).add(now_is - was, each)


def _split(whole: int, amounts: Sequence[int], total: int) -> Iterator[int]:
    """A number over amounts in proportion: the parts sum to the whole, each within one of its own."""
    reached, given = 0, 0
    for amount in amounts:
        reached += amount
        upto = whole * reached // total if total else 0
        yield upto - given
        given = upto
