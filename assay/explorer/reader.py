"""Follows one run for readers: every event once, books and records, money, gas of transactions. All of it is the
chain's.

A command asks the node and shows what it said. A server follows it (`follow`): pages show what is known, at once, and
one thread asks for what is new. The lock is held while blocks are folded and pages are read, never while a node or a
store is asked, so no page shows half of a block and none waits for a machine elsewhere.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Self

from hexbytes import HexBytes
from web3.types import LogReceipt

from assay.bundle.document import Bundle
from assay.bundle.export import gather
from assay.bundle.replay import ReplayedDispute, replay
from assay.explorer.bonds import GatewayBonds
from assay.explorer.earnings import ShareEarnings
from assay.explorer.event_rows import EventRow as EventRow
from assay.explorer.event_rows import ShownEvents
from assay.explorer.known import KnownRun
from assay.explorer.lookups import Lookups, odd
from assay.explorer.money import Money
from assay.explorer.names import EventNames
from assay.explorer.prices import GatewayPrices
from assay.explorer.shelves import Shelves
from assay.explorer.touched import PageSubject
from assay.explorer.votes import RunVotes
from assay.protocol.errors import AssayError, InvariantError
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Address
from assay_ledger.chain.client import Head
from assay_ledger.contract import Event, Logged
from assay_ledger.deployment.answers import AnswerGates
from assay_ledger.deployment.code import RunCode, code_of
from assay_ledger.deployment.vouchers import followed_contracts
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.counted import left_out_of
from assay_ledger.rounds.index import KeepsEvents, RunIndex
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import ArtifactStore

REFRESH_S: Final = 1.0
"""The chain is asked for new blocks at most this often."""

SLICE: Final = 2_000
"""About so many events are folded before pages get their turn."""

SILENT_S: Final = 10.0
"""A node that has not answered for so long is said to be silent."""

LET_GO_S: Final = 2.0
"""So long an end waits for the thread that asks to let go of what is kept."""

REPLAYS_KEPT: Final = 64
"""Each holds all that was shown in a game."""


class RunReader:
    """Follows one run. `names` are what people call addresses, where somebody knows."""

    def __init__(
        self,
        run: Run,
        store: ArtifactStore | None = None,
        names: Mapping[Address, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        keeps: KeepsEvents | None = None,
        bonds: AnswerGates | None = None,
        gateways: Sequence[str] = (),
    ) -> None:
        """`keeps`: the database that keeps events, without which a start reads them from the chain; `bonds`: contracts
        of bonded gateways to show; `gateways`: URLs of those whose prices are shown.
        """
        self.run = run
        self.bonds = None if bonds is None else GatewayBonds(bonds)
        self.prices = GatewayPrices(gateways) if gateways else None
        self.store = store
        self.names = {run.charter.sponsor: "the sponsor", **(names or {})}
        self.node, self.replays = Lookups("node"), Lookups("replays", REPLAYS_KEPT)
        self.files = Lookups("files", 1_000)
        self.is_following = False
        """Whether a thread asks for what is new."""
        self.trouble: AssayError | None = None
        """Why the node's last answer to that thread was none."""
        self._clock = clock
        self._lock = threading.RLock()
        self._heard: float | None = None
        self._stop = threading.Event()
        self._first = threading.Event()
        self._follower: threading.Thread | None = None
        self._known = KnownRun(run)
        self._index = _PatientIndex(run, self, keeps)

    @contextmanager
    def reading(self) -> Iterator[Self]:
        """What is known, unchanged while the block lasts; of the newest block unless a thread follows the run."""
        with self._lock:
            if not self.is_following and (self._heard is None or self._clock() - self._heard >= REFRESH_S):
                self._index.sync()
                self._heard = self._clock()
            yield self

    def close(self) -> None:
        """Lets another process have what is kept."""
        self._index.close()

    # --- following

    def follow(self) -> None:
        """Starts the threads that ask; `stop` ends them."""
        self.is_following = True
        for lookups in self._lookups:
            lookups.start()
        self._follower = threading.Thread(target=self._follow, name="explorer-follow", daemon=True)
        self._follower.start()

    def stop(self) -> None:
        """No question is asked any more after those that are on their way, and then others may have what is kept."""
        self._stop.set()
        if self._follower is not None:
            self._follower.join(LET_GO_S)
        for lookups in self._lookups:
            lookups.stop()

    @property
    def _lookups(self) -> list[Lookups]:
        return [self.node, self.replays, self.files, *(() if self.prices is None else (self.prices.lookups,))]

    def wait_first(self, seconds: float) -> bool:
        """Waits until the run was read once to its head; whether it was."""
        return self._first.wait(seconds)

    @property
    def silent_s(self) -> int | None:
        """For how many seconds the node has not answered; None while it does."""
        if not self.is_following or self._heard is None:
            return None
        silent = self._clock() - self._heard
        return None if silent < SILENT_S else int(silent)

    @property
    def is_reading(self) -> bool:
        """Whether the run was never read to its head yet."""
        return self.is_following and not self._first.is_set()

    @property
    def version(self) -> tuple[int, ...]:
        """Changes whenever a page may."""
        return self._known.version, *self.answered

    @property
    def answered(self) -> tuple[int, ...]:
        """Changes whenever something that was asked for besides events is there."""
        prices = () if self.prices is None else self.prices.version
        return self.node.version, self.replays.version, self.files.version, *prices

    def version_of(self, subject: PageSubject) -> tuple[int, int]:
        """Changes with every event that is about this."""
        return self._known.began, self._known.changed.get(subject, -1)

    def _follow(self) -> None:
        self._heard = self._clock()
        while not self._stop.is_set():
            try:
                self._index.sync()
            except Exception as error:  # the thread outlives whatever an event is made of
                self.trouble = error if isinstance(error, AssayError) else odd(error)
            else:
                self.heard()
            self._stop.wait(REFRESH_S)
        self._index.close()

    def heard(self) -> None:
        """What is known is all that the node knows by now."""
        self._heard, self.trouble = self._clock(), None
        if not self._first.is_set():
            # A million events are some ten million objects that stay: looking through them for garbage takes a second
            # or two, in which no page is answered.
            gc.freeze()
            self._first.set()

    def take(self, known: KnownRun, told: list[tuple[str, Logged[Event], int]], head: Head | None) -> None:
        """Events in the order of the chain, a slice of whole blocks at a time; `known` is shown once it has a head."""
        start = 0
        while start < len(told):
            end = min(len(told), start + SLICE)
            while end < len(told) and told[end][1].block == told[end - 1][1].block:
                end += 1
            with self._lock:
                for each in told[start:end]:
                    known.take(*each)
            start = end
        if head is not None:
            with self._lock:
                known.reach(head)
                if known is not self._known:
                    self._known = known
                    self.replays.forget()
                    self.node.forget(lambda key: key != "code")

    # --- what is known

    @property
    def known(self) -> KnownRun:
        """Everything, up to one head."""
        return self._known

    @property
    def state(self) -> RunState:
        """Books and records."""
        return self._known.state

    @property
    def money(self) -> Money:
        """Who has, earned, lost and owns what."""
        return self._known.money

    @property
    def earnings(self) -> ShareEarnings:
        """What shares earned, and who paid at which gateway."""
        return self._known.earnings

    @property
    def votes(self) -> RunVotes:
        """What the owners of shares decided, and vote about."""
        return self._known.votes

    @property
    def events(self) -> ShownEvents:
        """Every event, in the order of the chain."""
        return self._known.events

    @property
    def event_names(self) -> EventNames:
        """Which events name what."""
        return self._known.names

    @property
    def shelves(self) -> Shelves:
        """What belongs to what."""
        return self._known.shelves

    @property
    def view(self) -> RunView:
        """The run as an outsider sees it."""
        return RunView(self.run.charter, self.run.facts, NO_ADDRESS, self.state)

    # --- what is asked for besides

    def code(self) -> RunCode | None:
        """What is at the addresses of the run, which never changes; None while it is being looked at."""
        return self.node.find("code", lambda: code_of(self.run))

    def gas_of(self, tx_hash: bytes) -> int | None:
        """Gas that a transaction used; None while the node is being asked."""
        chain, name = self.run.chain, HexBytes(tx_hash)
        return self.node.find(
            ("gas", tx_hash), lambda: chain.read(lambda: int(chain.w3.eth.get_transaction_receipt(name)["gasUsed"]))
        )

    def evidence_of(self, game: GameRecord) -> Bundle:
        """The transactions of a game, over or not. Raises what `gather` raises, UnavailableError (BeingFetched)."""
        return self._replayed(game)[0]

    def replay_of(self, game: GameRecord) -> ReplayedDispute:
        """The game as its signed transactions make it, over or not. Raises what `assay.bundle` raises, and
        UnavailableError (BeingFetched)."""
        return self._replayed(game)[1]

    def _replayed(self, game: GameRecord) -> tuple[Bundle, ReplayedDispute]:
        state, number = self.state, game.game_id

        def ask() -> tuple[Bundle, ReplayedDispute]:
            bundle = gather(self.run, state, number)
            return bundle, replay(bundle)

        # Of a game that goes on only the newest is kept.
        key = (number, len(game.moves), game.is_over)
        found = self.replays.get(key, ask)
        self.replays.forget(lambda other: other[0] == number and other != key)
        return found


class _PatientIndex(RunIndex):
    """Keeps events until their block is whole, so that the lock is held for no question to the node. What is known
    stays in view while a reorganization is read again."""

    def __init__(self, run: Run, reader: RunReader, keeps: KeepsEvents | None) -> None:
        self._reader = reader
        self._told: list[tuple[str, Logged[Event], int]] = []
        self._time = 0
        super().__init__(run, [self._on_event], followed_contracts(run), keeps=keeps)

    def begin(self) -> None:
        """See Follower."""
        super().begin()
        known = self._reader.known
        # The first is in view from the beginning, so that a long run is seen growing.
        self._next_known = known if not known.version else KnownRun(self.run, known.version + 1)
        self._told.clear()

    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        """See Follower."""
        self._time = self.time_of(log)

    def freeze(self) -> None:
        """See Follower: pages show every event, so all of them are read again from the rows."""

    def reached(self, head: Head) -> None:
        """See Follower."""
        super().reached(head)
        self._hand_over(head)

    def left_out(self) -> str:
        """See Follower: what is in view is the state."""
        return left_out_of(self._next_known.state, self.run)

    def _on_event(self, contract: str, found: Logged[Event]) -> None:
        if len(self._told) >= SLICE and found.block != self._told[-1][1].block:
            self._hand_over(None)
        self._told.append((contract, found, self._time))

    def _hand_over(self, head: Head | None) -> None:
        told, self._told = self._told, []
        try:
            self._reader.take(self._next_known, told, head)
        except LookupError as error:
            raise InvariantError(f"Events make no sense together ({error!r}).", code="EventOutOfOrder") from error
