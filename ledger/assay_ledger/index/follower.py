"""Follows the events of some contracts, block by block, and starts again where a reorganization replaces blocks read.

One query per new head over all contracts. Events of a run's own contracts are true by consensus; nothing else is read.
Behind one URL are often several nodes, some a few blocks behind the one that named the head. Asked for a range they
leave out what they do not have yet, without a word; so the newest blocks are asked for by their hashes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from web3.types import BlockData, LogReceipt

from assay.protocol.errors import AssayError, InvariantError, UnavailableError
from assay_ledger.chain.client import Chain, Head
from assay_ledger.chain.rpc import NONSENSE
from assay_ledger.contract import Contract, Event, Logged
from assay_ledger.index.games import BLOCKS_PER_QUERY

TAIL: Final = 4
"""Blocks that are read by hash: as many as nodes behind one URL are apart. Each but the first costs two requests."""

Listener = Callable[[str, Logged[Event]], None]


def _nothing() -> None:
    """Nobody keeps anything of its own."""


class ListenerFailed(Exception):
    """A listener raised what is its cause, which says nothing about the node."""


class Once:
    """Tells a listener every event once, however often blocks are read, and though its transaction is mined again."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._told: set[bytes] = set()
        """A hash of each, 32 bytes."""

    def __call__(self, contract: str, found: Logged[Event]) -> None:
        told = sha256(repr((contract, found.transaction, found.event)).encode()).digest()
        if told not in self._told:
            self._told.add(told)
            self._listener(contract, found)


class Follower(ABC):
    """Keeps something that follows from events up to date with the chain."""

    def __init__(
        self,
        chain: Chain,
        contracts: Mapping[str, Contract],
        first_block: int,
        listeners: Sequence[Listener] = (),
        restarted: Callable[[], None] = _nothing,
    ) -> None:
        """`listeners` are told every event, with the name of its contract; `restarted` is called when what they were
        told may be of blocks that are gone, before the first event comes again. Who keeps nothing is told once by
        `Once`."""
        self.chain = chain
        self._first_block = first_block
        self._listeners = tuple(listeners)
        self._restarted = restarted
        self._addresses = [to_checksum_address(contract.address) for contract in contracts.values()]
        self._kinds = {
            (bytes(contract.address), bytes(kind.topic())): (name, kind)
            for name, contract in contracts.items()
            for kind in contract.EVENTS
        }
        self._next = first_block
        self._last: tuple[int, bytes] | None = None
        """Number and hash of the last block read."""
        self._is_applying = False

    @abstractmethod
    def begin(self) -> None:
        """Forgets everything: the first event comes next."""

    @abstractmethod
    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        """One event, in the order of the chain."""

    @abstractmethod
    def reached(self, head: Head) -> None:
        """Everything up to this head was applied."""

    def follow(self) -> None:
        """Applies what is new: one request while there is no new block, two after each, and two for each more in TAIL.

        Raises UnavailableError, and what a listener raises. What a node did not answer, or answered without sense, or
        a listener did not take, in the middle of some blocks leaves nothing half read: it begins again from the first.
        """
        try:
            self._follow()
        except ListenerFailed as failed:
            self._restart()
            assert failed.__cause__ is not None
            raise failed.__cause__ from None
        except (*NONSENSE, InvariantError) as error:
            self._restart()
            raise UnavailableError(
                f"The node's blocks or events make no sense together ({type(error).__name__}: {error}).",
                code="RpcError",
                remedy="Try again, or name another node; nothing is lost.",
            ) from error
        except AssayError:
            if self._is_applying:
                self._restart()
            raise

    def _restart(self) -> None:
        self._next, self._last, self._is_applying = self._first_block, None, False
        self.begin()
        self._restarted()

    def _follow(self) -> None:
        block = self.chain.newest()
        number, hash_ = int(block["number"]), bytes(block["hash"])
        if self._last is not None and hash_ == self._last[1]:
            return
        if self._last is not None and not self._continues(block, *self._last):
            if number < self._last[0] and self.chain.has_block(self._last[1]):
                return  # another node, which is behind
            self._restart()
        tail = self._newest(block)
        while self._next < tail[0][0]:
            high = min(tail[0][0] - 1, self._next + BLOCKS_PER_QUERY - 1)
            self._apply_all(self.chain.logs(self._addresses, self._next, high), high)
        logs = [log for _, at in tail for log in self.chain.logs_of(self._addresses, at)]
        self._apply_all(logs, number)
        self.reached(Head.of(block))
        self._last = number, hash_

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
        found = self.chain.read(lambda: self.chain.w3.eth.get_block(min(last, number)))
        return bytes(found["hash"]) == hash_

    def _apply(self, log: LogReceipt) -> None:
        topic = bytes(log["topics"][0]) if log["topics"] else b""
        known = self._kinds.get((bytes(HexBytes(log["address"])), topic))
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
