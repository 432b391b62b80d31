"""The loop of every actor: read the head, see the run, ask the strategy, carry out one action, start again.

Nothing else moves: no timers, no callbacks, no state that cannot be rebuilt from chain, store and journal.
Source: docs/adr/0007-actors.md.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from structlog.contextvars import bound_contextvars
from web3.exceptions import Web3Exception
from web3.types import TxReceipt

from assay.protocol.errors import AssayError, InvariantError, UnavailableError
from assay.protocol.types import Address
from assay_ledger.agents.game_actions import describe
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.heartbeat import EVERY_S, Activity, HeartbeatWriter
from assay_ledger.agents.looks import LooksTold
from assay_ledger.agents.observing import NOBODY, LoopObserver, correlation, tell
from assay_ledger.chain.client import Chain, Head
from assay_ledger.contract import Call
from assay_ledger.deadline import waiting_at_most
from assay_ledger.index.computing import Compute
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.store.blobs import ArtifactStore, SlotStore
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects

PATIENCE: Final = 6
"""How often something unavailable is asked for again before the actor counts as idle."""

BLOCK_S: Final = 15.0
"""A refused action is tried again after so many seconds where a block would have been waited for: on a chain whose
blocks come with transactions alone, none comes while everybody waits."""

TOO_EARLY: Final = frozenset({"TooEarly", "MaskOpen", "GroupsOpen", "RevealTooEarly"})
"""What a contract says of calls whose time has not come."""

_LOG = logging.getLogger("assay.agent")
_SENT = logging.getLogger("assay.chain")

A = TypeVar("A")
"""What a strategy can choose to do."""


class RunStore(ArtifactStore, SlotStore, Protocol):
    """A run's store: objects and heartbeats."""


@dataclass(slots=True)
class _Parked:
    """An action that was refused, by `message`, and when to try again: chain time, or `clock` of this machine (s)."""

    times: int
    head: int | None = None
    time: int | None = None
    clock: float | None = None
    message: str = ""
    asks_again: bool = False
    """Whether something was unavailable, and may be there at any time."""

    def is_due(self, head: Head, clock: float) -> bool:
        """Is it time to try again?"""
        if self.time is not None:
            return head.timestamp >= self.time
        due_by_head = self.head is not None and head.number >= self.head
        return due_by_head or (self.clock is not None and clock >= self.clock)


class Seen(Protocol):
    """What the loop needs of a view: the newest block that it knows."""

    @property
    def head(self) -> Head: ...


V = TypeVar("V", bound=Seen)


class ActorLoop(ABC, Generic[V, A]):
    """One actor of one run, with its key, its store and its data folder.

    `address` names the run, `fee_cap` is the base fee up to which a charter asks no patience. `compute` runs programs;
    `on_progress(doing, done, total)` is told of long work; `clock` gives seconds that never run back.
    """

    role: str

    def __init__(
        self,
        chain: Chain,
        address: Address,
        fee_cap: int,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        compute: Compute,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.chain = chain
        self.account = keys.account
        self.keys = keys
        self.me = keys.address
        self.compute = compute
        self.local_cache = LocalCache(data_dir / "cache")
        self.objects = Objects(store, self.local_cache)
        self.heartbeat_writer = HeartbeatWriter(store, keys.speaker, address, self.role, clock)
        self.deadline: int | None = None
        """The next chain time that this actor waits for, as of its last idle step."""
        self.leaving = False
        """Take on nothing new; finish what was begun, and get back what it locked."""
        self.lost_gpu = False
        """The CPU answers for what is at stake in place of a GPU that is gone, and may be too slow for a new seat or
        ticket, which is fined for each call that it answers too late."""
        self._fee_cap = fee_cap
        self._clock = clock
        self._on_progress = on_progress
        self.on_rest: Callable[[V], None] = lambda _: None
        """Is told what the actor sees each time that it has nothing to do."""
        self.observer: LoopObserver[V] = NOBODY
        self._looks = LooksTold()
        self._parked: dict[A, _Parked] = {}
        self._told_at = float("-inf")
        self._seen = Head(0, 0)
        self._idle_at: Head | None = None
        self._doing = ""
        self._limit: int | None = None
        chain.outbox(keys.account, data_dir / "outbox.jsonl")
        self._resting = Activity.IDLE
        self._handlers = self.handlers()

    @property
    def doing(self) -> str:
        """What it is at, or waits for, in a few words."""
        return self._doing

    # --- what a kind of run adds

    @abstractmethod
    def see(self) -> V:
        """The run at the newest head. Raises UnavailableError."""

    @abstractmethod
    def keep_copies(self, view: V) -> None:
        """Lets go of copies of what nobody can dispute any more."""

    @abstractmethod
    def patience(self, action: A, view: V) -> float:
        """Seconds that an action may wait for stores in all."""

    @abstractmethod
    def is_in_game(self, action: A) -> bool:
        """Does the action open, answer or end a game?"""

    @abstractmethod
    def highest_base_fee(self, action: A, base_fee: int) -> int | None:
        """The highest base fee at which an action is worth sending, in wei per gas; None for any."""

    # --- what a role adds

    @abstractmethod
    def candidates(self, view: V) -> Iterator[A]:
        """What could be done now, most urgent first."""

    @abstractmethod
    def times(self, view: V) -> Iterator[int]:
        """Chain times at which something may become due."""

    def refresh(self, view: V) -> None:
        """Recompute what the view needs and no event says, before the strategy is asked."""

    def is_finished(self, view: V) -> bool:
        """Will there never be anything to do again?"""
        return False

    # --- the loop

    def step(self) -> bool:
        """Does one thing; False when there is nothing to do at this head.

        Raises UnavailableError when the chain does not answer, InvariantError for a defect of ours.
        """
        view = self.see()
        self._seen = head = view.head
        tell(self.observer.turned, view, self.deadline)
        if head == self._idle_at and not self._is_anything_due(head):
            self.heartbeat_writer.report(head.number, self._resting, self.deadline, self._doing)
            self._looks.are_well()
            return False
        self.keep_copies(view)
        self.refresh(view)
        candidates, defect = self._found(view)
        if defect is None:
            self._parked = {action: parked for action, parked in self._parked.items() if action in candidates}
        now = self._clock()
        due = [a for a in candidates if a not in self._parked or self._parked[a].is_due(head, now)]
        if due and defect is None:
            self._looks.are_well()
        if due:
            self._doing = describe(due[0])
            self.heartbeat_writer.report(head.number, Activity.BUSY, None, self._doing)
            self._idle_at = None
            tell(self.observer.begun, due[0])
            with bound_contextvars(**correlation(due[0])):
                self._try(self.together(due, view), view)
            return True
        if defect is not None:
            raise defect
        self._rest(view)
        self._looks.are_well()
        return False

    def _found(self, view: V) -> tuple[list[A], Exception | None]:
        """What could be done now, most urgent first, and the defect that ended the list before its end.

        What comes before the defect is done first: a case that nobody thought of, in what can wait, loses no game.
        """
        found: list[A] = []
        try:
            for action in self.candidates(view):
                found.append(action)
        except Exception as error:
            return found, error
        return found, None

    def run(self, stop: threading.Event) -> None:
        """Steps until told to stop or nothing is left to do; heartbeats go on while a step takes long."""
        with self.heartbeat_writer.beating():
            try:
                while not stop.is_set():
                    acted = self._looks.tried(self.step)
                    if self._resting is Activity.DONE:
                        return
                    if not acted:
                        self.chain.pace.wait(self.chain.pace.period, stop.is_set)
            finally:
                # Whoever looks from elsewhere knows by this word whether it left anything to be done.
                is_finished = self._resting is Activity.DONE and not stop.is_set()
                self.heartbeat_writer.report(
                    self._seen.number, Activity.DONE, None, "finished" if is_finished else "stopped"
                )
                self.close()

    def close(self) -> None:
        """Lets go of the data folder."""

    def together(self, due: Sequence[A], view: V) -> Sequence[A]:
        """Those of the actions that are due, most urgent first, that are carried out at once."""
        return due[:1]

    def carry_out(self, actions: Sequence[A], view: V) -> Iterator[tuple[A, AssayError | None]]:
        """Carries actions out; each with the error that it was refused by, None where it was done."""
        for action in actions:
            try:
                self.perform(action, view)
            except InvariantError:
                raise
            except AssayError as error:
                yield action, error
            else:
                yield action, None

    def perform(self, action: A, view: V) -> None:
        """Carries an action out. Raises InvariantError (NoSuchAction) for one that is not this role's."""
        self._handlers.carry_out(action, view)

    def handlers(self) -> Handlers[V]:
        """The methods by which this role carries actions out; each class adds its own."""
        return Handlers(self.role)

    # --- for actions

    def send(self, call: Call, *, gas: int | None = None, tail: bytes = b"", seen: int | None = None) -> TxReceipt:
        """Signs, sends and waits for a contract call, `tail` behind its arguments, at the fee that it is worth.

        seen: of what the contracts take any number of times, the block that shows that there is none yet.
        """
        receipt = self.chain.send(self.account, call, gas=gas, tail=tail, limit=self._limit, seen=seen)
        _tell_sent(receipt)
        return receipt

    def send_all(self, calls: Sequence[Call]) -> list[TxReceipt | AssayError]:
        """The same for several calls, none of which depends on another."""
        results = self.chain.send_all(self.account, calls, limit=self._limit)
        for result in results:
            if not isinstance(result, AssayError):
                _tell_sent(result)
        return results

    def progress(self, doing: str, done: int, total: int) -> None:
        """Says how far a long piece of work is, as often as a heartbeat is renewed: each is signed and written."""
        now = self._clock()
        tell(self.observer.begun, doing)
        if now - self._told_at >= EVERY_S:
            self._told_at = now
            self.heartbeat_writer.report(self._seen.number, Activity.BUSY, None, f"{doing} {done}/{total}")
        if self._on_progress is not None:
            tell(self._on_progress, doing, done, total)

    # --- inside

    def _try(self, actions: Sequence[A], view: V) -> None:
        head = view.head
        self._limit = self.highest_base_fee(actions[0], head.base_fee)
        try:
            with ExitStack() as limits:
                limits.enter_context(waiting_at_most(self.patience(actions[0], view)))
                if self.is_in_game(actions[0]):
                    limits.enter_context(self.objects.own_copies_first())
                for action, error in self.carry_out(actions, view):
                    if error is None:
                        self._parked.pop(action, None)
                        tell(self.observer.tried, action, None)
                    else:
                        self._park(action, head, error)
        except InvariantError:
            raise
        except AssayError as error:
            self._park(actions[0], head, error)
        except Web3Exception as error:
            lost = UnavailableError(f"The node did not answer as expected ({type(error).__name__}).", code="RpcError")
            self._park(actions[0], head, lost)

    def _park(self, action: A, head: Head, error: AssayError) -> None:
        """An action that is refused is not an error: somebody was faster, or its time has not come."""
        is_early, before = error.code in TOO_EARLY, self._parked.get(action)
        # What only time makes right is asked again at each block, however often it was: windows last a few blocks.
        times = 1 if before is None else before.times + (not is_early)
        tell(self.observer.tried, action, error)
        # Blocks are not mined in the second that their sender thinks of: once too early is how a window begins. What
        # waits for an epoch is refused in the same words for days.
        is_told = before is not None and before.message == error.message
        level = logging.DEBUG if is_told or (times == 1 and is_early) else logging.INFO
        _LOG.log(level, "%s: %s: %s", self.role, describe(action), error.message, extra={"code": error.code})
        wait = min(2**times, 64)
        parked = _Parked(times, head.number + wait // 2, clock=self._clock() + BLOCK_S * (wait // 2))
        parked.message = error.message
        # Several contracts have a TooEarly of two times; the later one is when it is no longer so.
        named = [v for v in error.details.values() if isinstance(v, int)] if error.code == "TooEarly" else []
        not_before = max(named, default=0)
        if isinstance(error, UnavailableError):
            parked.asks_again = True
            named_s = error.details.get("retry_after_s")
            if isinstance(named_s, float):
                parked.clock, parked.head = self._clock() + named_s, None
            else:
                parked.clock, parked.head = self._clock() + wait / 8, head.number + 1
        elif not_before > head.timestamp:
            parked.time, parked.head, parked.clock = not_before, None, None
        self._parked[action] = parked

    def _is_anything_due(self, head: Head) -> bool:
        now = self._clock()
        return any(p.is_due(head, now) for p in self._parked.values() if p.clock is not None)

    def _rest(self, view: V) -> None:
        """Nothing to do at this head: say so, and until when."""
        head = view.head
        times = [t for t in self.times(view) if t > head.timestamp]
        times += [p.time for p in self._parked.values() if p.time is not None and p.time > head.timestamp]
        self.deadline = min(times, default=None)
        self._idle_at = head
        asks_again = [p for p in self._parked.values() if p.asks_again]
        outbox = self.chain.outbox(self.account)
        is_in_flight = bool(outbox.in_flight)
        if not asks_again:
            # What is still in flight now was sent for something that is over.
            outbox.cancel(self._fee_cap)
        waits = any(p.times < PATIENCE for p in asks_again)
        if waits:
            self._resting, self._doing = Activity.BUSY, "waiting for the store"
        elif self.leaving and is_in_flight:
            # A seat that an earlier process asked for may still be taken: nobody would be there to work in it.
            self._resting, self._doing = Activity.BUSY, "waiting for its transactions"
        elif self.is_finished(view):
            self._resting, self._doing = Activity.DONE, "finished"
        else:
            self._resting, self._doing = Activity.IDLE, "waiting"
        self.heartbeat_writer.report(head.number, self._resting, self.deadline, self._doing)
        tell(self.on_rest, view)


def _tell_sent(receipt: TxReceipt) -> None:
    """For the log of machines: at a terminal what the transaction did is told, once the chain says so."""
    fields = {"block": receipt["blockNumber"], "gas_used": receipt["gasUsed"]}
    _SENT.info("transaction mined", extra={"transaction": "0x" + bytes(receipt["transactionHash"]).hex(), **fields})
