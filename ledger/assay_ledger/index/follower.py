"""Follows the events of some contracts, block by block, and starts again where a reorganization replaces blocks read.

One query per new head over all contracts. Events of a run's own contracts are true by consensus; nothing else is read.
Behind one URL are often several nodes, some a few blocks behind the one that named the head. Asked for a range they
leave out what they do not have yet, without a word; so the newest blocks are asked for by their hashes.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from eth_utils.address import to_checksum_address
from web3.types import BlockData, LogReceipt

from assay.protocol.errors import AssayError, InvariantError, UnavailableError
from assay_ledger.chain.client import Chain, Head
from assay_ledger.chain.rpc import NONSENSE
from assay_ledger.contract import Contract, Event, Logged
from assay_ledger.index.games import BLOCKS_PER_QUERY
from assay_ledger.index.history import HistoryPatience, counted_elsewhere, rows_too_few
from assay_ledger.index.kept_blocks import KeptBlock, RowsDamaged, RowsUnusable, blocks_of, logs_of, numbered
from assay_ledger.index.kept_events import SETTLED, KeptEvents
from assay_ledger.index.listeners import Listener, ListenerFailed, nobody_restarts

TIMES_KEPT: Final = 64
"""Blocks whose times are remembered: events of a block come together."""

TAIL: Final = 4
"""Blocks that are read by hash: as many as nodes behind one URL are apart. Each but the first costs two requests."""

NEVER_TOLD: Final = 1 << 62
"""A block that nobody reaches: who has no listeners needs no event of the past."""


class Follower(ABC):
    """Keeps something that follows from events up to date with the chain."""

    def __init__(
        self,
        chain: Chain,
        contracts: Mapping[str, Contract],
        first_block: int,
        listeners: Sequence[Listener] = (),
        restarted: Callable[[], None] = nobody_restarts,
        kept: KeptEvents | None = None,
        told_from: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`listeners` are told every event, with the name of its contract; `restarted` is called when what they were
        told may be of blocks that are gone, before the first event comes again. Who keeps nothing is told once by
        `Once`. `kept`: what was read before, and is read from there. `told_from`: the first block whose events all
        listeners need; of earlier ones a state that is kept may take the place. `clock` gives seconds that never run
        back."""
        self.chain = chain
        self._first_block = first_block
        self._listeners = tuple(listeners)
        self._restarted = restarted
        self._addresses = [to_checksum_address(contract.address) for contract in contracts.values()]
        self._kinds = {
            (at, bytes(kind.topic())): (name, kind)
            for name, contract in contracts.items()
            for at in numbered([contract.address])
            for kind in contract.EVENTS
        }
        self._contracts = numbered(sorted(contract.address for contract in contracts.values()))
        self._numbers = {at: number for number, at in enumerate(self._contracts)}
        self._kept, self._told_from = kept, told_from if self._listeners else NEVER_TOLD
        self._failed = False
        """Whether the last look ended in events that make no sense together."""
        self._times: OrderedDict[bytes, int] = OrderedDict()
        self._next = first_block
        self._last: tuple[int, bytes] | None = None
        """Number and hash of the last block read."""
        self._is_applying = False
        self._patience = HistoryPatience(clock)
        self._aside: KeptEvents | None = None
        """Rows that are not read while a node is judged by what it tells alone."""
        self._has_rows = False
        """Whether what was kept is part of what was made of all events."""
        self._read_since = chain.turn
        """The turn of nodes in which the reading began."""
        self._compared: int | None = None
        """That in which what came of all events was compared with what the contracts count."""

    @abstractmethod
    def begin(self) -> None:
        """Forgets everything: the first event comes next."""

    @abstractmethod
    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        """One event, in the order of the chain."""

    @abstractmethod
    def reached(self, head: Head) -> None:
        """Everything up to this head was applied."""

    def left_out(self) -> str:
        """What the contracts count at the head and the events that were applied do not tell, in words, or nothing."""
        return ""

    def left_out_of_logs(self) -> str:
        """The same, of logs from which nothing could be made."""
        return ""

    def freeze(self) -> bytes | None:
        """What was made of all events, for `thaw`; None where that cannot be kept."""
        return None

    def thaw(self, body: bytes) -> bool:
        """Goes on from what `freeze` gave, by the same `version`; False, and nothing changes, if that cannot be."""
        return False

    def version(self) -> bytes:
        """Names the code that alone understands what `freeze` gives."""
        return b""

    def follow(self) -> None:
        """Applies what is new: one request while there is no new block, two after each, and two for each more in TAIL.

        Raises UnavailableError (HistoryMissing), and what a listener raises. What a node did not answer, or answered
        without sense, or a listener did not take, in the middle of some blocks leaves nothing half read: it begins
        again from the first, or from what is kept. A database that fails is said once, and stops nothing.
        """
        self._patience.check()
        try:
            self._follow_from_rows()
        except ListenerFailed as failed:
            self._restart()
            assert failed.__cause__ is not None
            raise failed.__cause__ from None
        except (*NONSENSE, InvariantError) as error:
            # Rows that a node's lie once went into would fail for ever; one look's nonsense shall not cost them.
            if self._is_applying and self._failed:
                self._without_rows(RowsDamaged("The kept events make no sense with what the chain says now."))
            self._failed = self._is_applying
            is_of_logs, turn = self._is_applying and self._is_of_one_node(), self._read_since
            self._restart()
            if is_of_logs and (left_out := self.left_out_of_logs()):
                self._take_back()
                self._refuse(turn, left_out)
                self.follow()
                return
            raise UnavailableError(
                f"The node's blocks or events make no sense together ({type(error).__name__}: {error}).",
                code="RpcError",
                remedy="Try again, or name another node; nothing is lost.",
            ) from error
        except AssayError:
            if self._is_applying:
                self._restart()
            raise
        self._failed = False

    def close(self) -> None:
        """Lets another process have what is kept; harmless when repeated."""
        self._take_back()
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _follow_from_rows(self) -> None:
        while True:
            try:
                return self._follow()
            except RowsUnusable as error:
                self._without_rows(error)
                if self._is_applying or isinstance(error, RowsDamaged):
                    self._restart()

    def _without_rows(self, error: RowsUnusable) -> None:
        """Rows that are not what they were are made anew; a database that fails is left alone from now on."""
        kept, self._kept = self._kept, None
        if kept is None:
            return
        if isinstance(error, RowsDamaged):
            try:
                kept.forget()
            except RowsUnusable as worse:
                error = worse
            else:
                kept.say(error)
                self._kept = kept
                return
        kept.give_up(error)

    def _restart(self) -> None:
        self._next, self._last, self._is_applying = self._first_block, None, False
        self._has_rows, self._read_since, self._compared = False, self.chain.turn, None
        if self._kept is not None:
            self._kept.let_go()
        self.begin()
        self._restarted()

    def _follow(self) -> None:
        block = self.chain.newest()
        number, hash_ = int(block["number"]), bytes(block["hash"])
        if self._last is not None and hash_ == self._last[1]:
            if not self._is_whole():
                self._follow()
            return
        if self._last is not None and not self._continues(block, *self._last):
            if number < self._last[0] and self.chain.has_block(self._last[1]):
                return  # another node, which is behind
            self._restart()
        self._catch_up(block)
        newest = self._read(block) if self._next <= number else []
        self.reached(Head.of(block))
        self._last = number, hash_
        if self._kept is not None:
            self._kept.hold(newest)
            self._confirm(number)
        if self._is_whole():
            self._freeze(at_head=True)
        else:
            self._follow()

    def _read(self, head: BlockData) -> list[KeptBlock]:
        """Asks for everything from the next block to the head, and applies it; the newest blocks, to be kept."""
        number, tail = int(head["number"]), self._newest(head)
        while self._next < tail[0][0]:
            low, high = self._next, min(tail[0][0] - 1, self._next + BLOCKS_PER_QUERY - 1)
            settled = number - SETTLED
            if self._kept is not None and low <= settled:
                high = min(high, settled)
            logs = self.chain.logs(self._addresses, low, high)
            # Whatever a node may fail at comes before the state changes: what is applied is held, without a gap.
            blocks = self._blocks(logs)
            self._apply_all(logs, high)
            self._compared = None if low <= settled else self._compared
            if self._kept is not None:
                self._kept.hold(blocks, None if high <= settled else (low, high))
                self._freeze(at_head=high == settled)
        by_hash = [(at, self.chain.logs_of(self._addresses, at[1])) for at in tail]
        if any(bytes(log["blockHash"]) != at[1] for at, logs in by_hash for log in logs):
            raise ValueError("a log of another block than was asked for")
        newest = [block for at, logs in by_hash for block in self._blocks(logs) or [KeptBlock(*at)]]
        self._apply_all([log for _, logs in by_hash for log in logs], number)
        return newest

    # --- whether it is all

    def _is_whole(self) -> bool:
        """Whether what was made of all events is as much as the contracts count in the newest block, asked once for
        each node and after every reading of deep blocks; if not, it begins again. Raises HistoryMissing.

        Attack: a node that has removed old blocks, or hides them, finds no events in them and says no word; who
        believes it takes no part in what it hides, and keeps less than there is for ever.
        """
        turn = self.chain.turn
        if self._compared == turn:
            return True
        if not (left_out := self.left_out()):
            self._compared = turn
            self._patience.is_whole()
            return self._are_rows_whole()
        assert self._last is not None
        number, hash_ = self._last
        found = bytes(self.chain.block_at(number)["hash"])
        if (self.chain.turn, found) != (turn, hash_):
            raise counted_elsewhere(number)
        is_of_one = self._is_of_one_node()
        if not is_of_one and self._kept is not None:
            # Attack: a node that counts too much has an honest actor throw its rows away, the only ones there may be.
            self._kept.let_go()
            self._aside, self._kept = self._kept, None
        elif self._aside is None:
            self._without_rows(rows_too_few(left_out))
        elif is_of_one:
            self._take_back()
        self._restart()
        self._refuse(turn if is_of_one else None, left_out)
        return False

    def _are_rows_whole(self) -> bool:
        """Whether no node was judged alone, or rows that are wrong are gone, and all is to be read into new ones."""
        if self._aside is not None:
            self._take_back()
            self._without_rows(rows_too_few("a node that tells all of them was found"))
            self._restart()
        return self._last is not None

    def _take_back(self) -> None:
        """Rows that were put aside are read again."""
        if self._aside is not None:
            self._kept, self._aside = self._aside, None

    def _is_of_one_node(self) -> bool:
        """Whether everything that was applied was told by the node that is asked now."""
        return not self._has_rows and self.chain.turn == self._read_since

    def _refuse(self, turn: int | None, left_out: str) -> None:
        """Asks the node of a turn no more, None for what several told together; raises HistoryMissing where there is no
        other, or for a while after some readings."""
        why = f"its searches leave out events of the run ({left_out}): it seems to have removed old blocks"
        is_last = turn is not None and not self.chain.refuse(turn, why)
        if is_last or self._patience.is_out():
            self._take_back()
            self._patience.pause(f"The node at {self.chain.place} does not tell all of the run: {why}.")

    # --- what is kept

    def _catch_up(self, head: BlockData) -> None:
        """Applies kept blocks that are not applied and are in the chain of the head."""
        kept = self._kept
        if kept is None or kept.top < self._next:
            return
        before = kept.top
        common = kept.common(int(head["number"]), lambda number: self._hash_at(number, head))
        if kept.top < before and self._next > self._first_block:
            # Rows were passed over while a node was behind, and have gone: nothing stands for them.
            self._restart()
        if common is None or common[0] < self._next:
            return
        frozen = kept.frozen(self.version(), common[0]) if self._next == self._first_block else None
        if frozen is not None and frozen.number < self._told_from and self.thaw(frozen.body):
            self._next = frozen.number + 1
        self._is_applying = self._has_rows = True
        for block in kept.blocks(self._next - 1, common[0]):
            for log in logs_of(block, self._contracts):
                self._apply(log)
        self._next, self._last, self._is_applying = common[0] + 1, common, False

    def _confirm(self, number: int) -> None:
        """Asks again for what a node that was behind may have cut short."""
        kept = self._kept
        wanted = None if kept is None else kept.to_confirm(number)
        if kept is None or wanted is None:
            return
        if not kept.confirm(wanted[1], self._blocks(self.chain.logs(self._addresses, *wanted))):
            self._restart()
            self._follow()

    def _freeze(self, *, at_head: bool) -> None:
        if self._kept is not None and self._kept.is_freezing_due(self._next - 1, at_head=at_head):
            self._kept.freeze(self.version(), self.freeze)

    def _blocks(self, logs: Sequence[LogReceipt]) -> list[KeptBlock]:
        return [] if self._kept is None else blocks_of(logs, self._numbers, self.time_of)

    def _hash_at(self, number: int, head: BlockData) -> bytes:
        if number == int(head["number"]):
            return bytes(head["hash"])
        return bytes(self.chain.block_at(number)["hash"])

    def time_of(self, log: LogReceipt) -> int:
        """The chain time of a log's block, in seconds: as newer nodes say with the log, else the block is asked."""
        said = cast(dict[str, Any], log).get("blockTimestamp")
        if said is not None:
            return int(said, 16) if isinstance(said, str) else int(said)
        block = bytes(log["blockHash"])
        if block not in self._times:
            self._times[block] = int(self.chain.block(block)["timestamp"])
            while len(self._times) > TIMES_KEPT:
                self._times.popitem(last=False)
        return self._times[block]

    def _newest(self, block: BlockData) -> list[tuple[int, bytes]]:
        """Number and hash of the newest blocks that were not read, TAIL at most, the oldest first."""
        tail = [(int(block["number"]), bytes(block["hash"]))]
        while len(tail) < TAIL and tail[0][0] > self._next:
            block = self.chain.block(bytes(block["parentHash"]))
            if int(block["number"]) != tail[0][0] - 1:
                raise ValueError(f"the parent of block {tail[0][0]} has the number {block['number']}")
            tail.insert(0, (tail[0][0] - 1, bytes(block["hash"])))
        return tail

    def _apply_all(self, logs: Sequence[LogReceipt], last: int) -> None:
        """All logs of the blocks from the next one to `last`."""
        if any(not self._next <= log["blockNumber"] <= last for log in logs):
            raise ValueError("a log of a block that was not asked for")
        self._is_applying = True
        for log in logs:
            self._apply(log)
        self._next, self._is_applying = last + 1, False

    def _continues(self, block: BlockData, last: int, hash_: bytes) -> bool:
        """Whether the last block read is still part of the chain that ends in `block`."""
        number = int(block["number"])
        if number == last + 1:
            return bytes(block["parentHash"]) == hash_
        return bytes(self.chain.block_at(min(last, number))["hash"]) == hash_

    def _apply(self, log: LogReceipt) -> None:
        topic = bytes(log["topics"][0]) if log["topics"] else b""
        known = self._kinds.get((log["address"].lower(), topic))
        if known is None:
            return
        contract, kind = known
        found = Logged.of(kind, log)
        self.apply(found, log)
        for listener in self._listeners:
            try:
                listener(contract, found)
            except Exception as error:
                raise ListenerFailed from error
