"""The share of seats' time that ends in a final base, by the solvers' own decisions in compressed chain time.

Nothing is trained: a unit is a span of time at the plan's rate, a root a hash of what it stands for. When a unit ends
or a call is mined, each solver decides by `assay_solver.pace` and `assay_solver.merging`, and what it sends
is mined so many seconds later, in the order of time. The chain behind it is a `RoundStage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil
from typing import Any, Protocol

from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import InvariantError, RejectedError
from assay.protocol.types import Digest, Round, Seat
from assay_solver.merging import (
    ComputeMerge,
    FetchUpdate,
    HoldUpdates,
    MergeAction,
    MergeKnown,
    MergeSeen,
    OpenRoot,
    SealRoot,
    merging,
    times,
)
from assay_solver.pace import JITTER, OwnPace, Pacing, RoundWindow, pacing


@dataclass(frozen=True, slots=True)
class RoundShot:
    """A round as the chain has it now; times in seconds."""

    t0: int
    base: Digest
    train_until: int
    commit_until: int
    mask_at: int
    hold_until: int
    seal_until: int
    merge_until: int
    committed: frozenset[Seat]
    maskable: frozenset[Seat]
    spoke: frozenset[Seat]
    counted: frozenset[Seat]
    is_alive: bool
    sealed: frozenset[Seat]
    opened: frozenset[Seat]

    def seen(self, round_: Round, seat: Seat) -> MergeSeen:
        """The round as the holder of a seat sees it."""
        return MergeSeen(
            round_,
            seat,
            seat in self.maskable,
            self.maskable,
            self.mask_at,
            self.hold_until,
            seat in self.spoke,
            self.counted,
            self.is_alive,
            self.seal_until,
            seat in self.sealed,
            seat in self.opened,
            self.merge_until,
        )


class RoundStage(Protocol):
    """The contracts of a run, or their model, with a holder in each seat. `now` is chain time; calls are mined then."""

    def begin(self, now: int) -> None:
        """Round 0 opens."""
        ...

    def newest(self) -> Round:
        """The round under way."""
        ...

    def shot(self, round_: Round, now: int) -> RoundShot:
        """A round as it is."""
        ...

    def commit(self, seat: Seat, round_: Round, base: Digest, units: int, update: Digest, now: int) -> None:
        """Raises RejectedError, as all calls do."""
        ...

    def hold(self, seat: Seat, round_: Round, held: frozenset[Seat], now: int) -> None: ...
    def seal(self, seat: Seat, round_: Round, root: Digest, now: int) -> None: ...
    def open(self, seat: Seat, round_: Round, root: Digest, now: int) -> None: ...
    def restart(self, now: int) -> None: ...

    def finalize(self, rounds: int) -> Sequence[Round]:
        """Ends all windows; the rounds whose generation is final."""
        ...


@dataclass(frozen=True, slots=True)
class GoodputTerms:
    """What is measured. Times in seconds: C, F, a, the time to merge; inclusion; publication, fetching, merging.

    `delay` is how late each call is mined beyond `inclusion`: 0, or F where every delay is spent in full.
    """

    seats: int = 8
    rounds: int = 20
    commit: int = 3600
    inclusion_delay: int = 600
    hold: int = 1200
    merge: int = 2400
    min_units: int = 30
    max_units: int = 60
    inclusion: int = 12
    delay: int = 0
    publish: float = 1.0
    fetch: float = 1.0
    compute_merge: float = 1.0
    slack: int = 15
    """Seconds of C that the plan leaves beside a full commitment, for the jitter of units and the publication."""
    spread: float = 0.0
    """By how much a unit may take longer, or less, than the plan says, as a share."""

    @property
    def unit(self) -> float:
        """Seconds of one unit at the plan's rate."""
        return (self.commit - self.slack) / self.max_units

    @property
    def grace(self) -> int:
        """g: who has begun a unit when the others stop can still finish it and commit."""
        return ceil(JITTER * self.unit + self.publish + self.inclusion)


@dataclass(frozen=True, slots=True)
class GoodputResult:
    """training_seconds: of units that ended in a final base, of all seats together; chain_seconds: first T0 to last
    base."""

    goodput: float
    training_seconds: float
    chain_seconds: int
    solvers: int
    rounds: int
    refused: Mapping[str, int]
    """Calls that the chain refused, by error."""


@dataclass(slots=True)
class _Solver:
    seat: Seat
    pace: OwnPace
    round: int = -1
    units: int = 0
    is_busy: bool = False
    sent: set[tuple[str, int]] = field(default_factory=set)
    held: dict[int, set[Seat]] = field(default_factory=dict)
    merged: dict[int, tuple[frozenset[Seat], Digest]] = field(default_factory=dict)

    asked: set[tuple[int, Seat]] = field(default_factory=set)


class Goodput:
    """One measurement: solvers in all seats of a stage."""

    def __init__(self, stage: RoundStage, terms: GoodputTerms, start: int) -> None:
        self._stage, self._terms, self._start = stage, terms, start
        pace = OwnPace(terms.inclusion, units=(terms.unit, terms.unit), finishes=(terms.publish,))
        self._solvers = [_Solver(Seat(k), pace) for k in range(terms.seats)]
        self._events: list[tuple[float, int, tuple[Any, ...]]] = []
        self._count = self._trained = 0
        self._shots: dict[Round, RoundShot] = {}
        self._units: dict[tuple[Round, Seat], int] = {}
        self._bases: dict[Round, int] = {}
        self._refused: dict[str, int] = {}

    def run(self) -> GoodputResult:
        """Plays until the last round's generation has its root."""
        self._stage.begin(self._start)
        last = Round(self._terms.rounds - 1)
        self._act_all(self._start)
        while last not in self._bases:
            if not self._events:
                raise InvariantError("Nothing is left to happen, and the run is not over.", code="RunStuck")
            time, _, event = heappop(self._events)
            self._happen(event, time)
        final = set(self._stage.finalize(self._terms.rounds))
        worked = sum(units for (r, seat), units in self._units.items() if r in final and seat in self._counted(r))
        seconds = worked * self._terms.unit
        span = self._bases[last] - self._start
        return GoodputResult(
            seconds / (self._terms.seats * span), seconds, span, self._terms.seats, len(final), self._refused
        )

    # --- events

    def _later(self, time: float, *event: Any) -> None:
        self._count += 1
        heappush(self._events, (time, self._count, event))

    def _happen(self, event: tuple[Any, ...], time: float) -> None:
        kind, *rest = event
        now = int(time)
        if kind == "unit":
            solver, round_, seconds = rest
            solver.is_busy, solver.pace = False, solver.pace.measured(seconds)
            if solver.round == round_:
                solver.units += 1
            self._act(solver, time)
        elif kind == "fetched":
            solver, round_, seat = rest
            solver.held.setdefault(round_, set()).add(seat)
            self._act(solver, time)
        elif kind == "merged":
            solver, round_, counted = rest
            base = self._shot(round_, now).base
            solver.merged[round_] = counted, keccak(base + b"".join(_update(round_, s) for s in sorted(counted)))
            self._act(solver, time)
        elif kind == "call":
            solver, name, arguments = rest
            try:
                getattr(self._stage, name)(*arguments, now)
            except RejectedError as error:
                self._refused[error.code] = self._refused.get(error.code, 0) + 1
                return
            self._mined(solver, name, arguments, now)
            self._act_all(time)
        else:
            self._act_all(time)

    def _mined(self, solver: _Solver, name: str, arguments: tuple[Any, ...], now: int) -> None:
        before = set(self._shots)
        self._shots.clear()
        if name == "commit":
            self._units[arguments[1], solver.seat] = arguments[3]
        # The round is merged once its successor is open, the last one once more than half have opened.
        for round_ in sorted(before):
            opened = len(self._shot(round_, now).opened)
            if round_ not in self._bases and 2 * opened > len(self._shot(round_, now).maskable):
                self._bases[round_] = now

    # --- solvers

    def _act_all(self, time: float) -> None:
        for solver in self._solvers:
            self._act(solver, time)

    def _act(self, solver: _Solver, time: float) -> None:
        """What a solver does at this moment; times of the chain are whole seconds."""
        now, newest = int(time), self._stage.newest()
        for round_ in (Round(newest - 1), newest) if newest else (newest,):
            shot = self._shot(round_, now)
            seen, known = shot.seen(round_, solver.seat), self._known(solver, round_)
            for action in merging(seen, known, now, self._terms.inclusion + self._terms.delay):
                self._carry_out(solver, action, time)
            for wake in times(seen, self._terms.inclusion + self._terms.delay):
                if wake > now and ("wake", wake) not in solver.sent:
                    solver.sent.add(("wake", wake))
                    self._later(wake, "wake")
        self._train(solver, newest, time)

    def _train(self, solver: _Solver, round_: Round, time: float) -> None:
        if solver.is_busy or ("commit", round_) in solver.sent:
            return
        if solver.round != round_:
            solver.round, solver.units = round_, 0
        shot, terms = self._shot(round_, int(time)), self._terms
        window = RoundWindow(
            shot.train_until, terms.grace, shot.mask_at, shot.commit_until, terms.min_units, terms.max_units
        )
        match pacing(window, solver.pace, solver.units, int(time)):
            case Pacing.TRAIN:
                solver.is_busy = True
                self._trained += 1
                seconds = terms.unit * (1 + terms.spread * _chance(solver.seat, self._trained))
                self._later(time + seconds, "unit", solver, round_, seconds)
            case Pacing.COMMIT:
                work = round_, shot.base, solver.units, _update(round_, solver.seat)
                self._send(solver, "commit", round_, (solver.seat, *work), time + terms.publish)

    def _carry_out(self, solver: _Solver, action: MergeAction, time: float) -> None:
        seat, round_ = solver.seat, action.round
        match action:
            case FetchUpdate(_, other):
                if (round_, other) not in solver.asked:
                    solver.asked.add((round_, other))
                    # Its own it has; others' are published before they are committed.
                    self._later(time + (0 if other == seat else self._terms.fetch), "fetched", solver, round_, other)
            case ComputeMerge(_, counted):
                if (f"merge {sorted(counted)}", round_) not in solver.sent:
                    solver.sent.add((f"merge {sorted(counted)}", round_))
                    self._later(time + self._terms.compute_merge, "merged", solver, round_, counted)
            case HoldUpdates(_, _, held):
                self._send(solver, "hold", round_, (seat, round_, held), time)
            case SealRoot():
                self._send(solver, "seal", round_, (seat, round_, solver.merged[round_][1]), time)
            case OpenRoot():
                self._send(solver, "open", round_, (seat, round_, solver.merged[round_][1]), time)

    def _send(self, solver: _Solver, name: str, round_: int, arguments: tuple[Any, ...], time: float) -> None:
        if (name, round_) in solver.sent:
            return
        solver.sent.add((name, round_))
        self._later(time + self._terms.inclusion + self._terms.delay, "call", solver, name, arguments)

    def _known(self, solver: _Solver, round_: Round) -> MergeKnown:
        counted, root = solver.merged.get(round_, (None, ZERO))
        return MergeKnown(frozenset(solver.held.get(round_, ())), frozenset(), counted, root)

    def _shot(self, round_: Round, now: int) -> RoundShot:
        if round_ not in self._shots:
            self._shots[round_] = self._stage.shot(round_, now)
        return self._shots[round_]

    def _counted(self, round_: Round) -> frozenset[Seat]:
        return self._stage.shot(round_, self._bases[round_]).counted


def _update(round_: Round, seat: Seat) -> Digest:
    """Stands for a seat's update of a round."""
    return keccak(b"update" + round_.to_bytes(8, "big") + seat.to_bytes(4, "big"))


def _chance(seat: Seat, number: int) -> float:
    """A number between -1 and 1 that is the same in every measurement."""
    drawn = keccak(seat.to_bytes(4, "big") + number.to_bytes(8, "big"))
    return int.from_bytes(drawn[:4], "big") / (1 << 31) - 1
