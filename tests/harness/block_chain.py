"""A chain of blocks in memory, as far as a follower asks one, and a follower that remembers every event it applied."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

from web3.types import BlockData, LogReceipt

from assay.protocol.digests import keccak
from assay.protocol.types import Address, Round
from assay_ledger.bindings.generations import Cut, GenerationsContract
from assay_ledger.chain.client import Chain, Head
from assay_ledger.contract import Event, Logged
from assay_ledger.index.follower import Follower
from assay_ledger.index.kept_blocks import KeptName
from assay_ledger.index.kept_events import KeptEvents, open_kept
from assay_ledger.index.listeners import Listener

CONTRACT = GenerationsContract(Address(b"\x07" * 20))
T = TypeVar("T")


@dataclass(frozen=True)
class MadeBlock:
    """A block; `values` are the rounds that its events name."""

    number: int
    hash: bytes
    parent: bytes
    values: tuple[int, ...]

    @property
    def data(self) -> BlockData:
        """The block as a node gives it."""
        made = {"number": self.number, "hash": self.hash, "parentHash": self.parent, "timestamp": 1000 + self.number}
        return cast(BlockData, made)

    @property
    def logs(self) -> list[LogReceipt]:
        """Its logs as `Chain` gives them."""
        return [
            cast(
                LogReceipt,
                {
                    "address": "0x" + CONTRACT.address.hex(),
                    "topics": [bytes(Cut.topic()), value.to_bytes(32, "big")],
                    "data": b"",
                    "blockNumber": self.number,
                    "blockHash": self.hash,
                    "transactionHash": keccak(self.hash + bytes([k])),
                    "logIndex": k,
                },
            )
            for k, value in enumerate(self.values)
        ]


@dataclass
class BlockChain:
    """Blocks from 0 on; `head` may stand below the newest, as a node's that is behind. `asked` counts range queries."""

    blocks: list[MadeBlock] = field(default_factory=list)
    behind: int = 0
    asked: list[tuple[int, int]] = field(default_factory=list)
    short_by: int = 0
    """Of the newest blocks so many are left out of ranges, without a word."""
    forks: int = 0
    turn: int = 0

    def __post_init__(self) -> None:
        self.mine([()])

    @property
    def _seen(self) -> list[MadeBlock]:
        return self.blocks[: max(1, len(self.blocks) - self.behind)]

    def mine(self, contents: Iterable[Sequence[int]]) -> None:
        """Blocks with these events follow."""
        for values in contents:
            parent = self.blocks[-1].hash if self.blocks else bytes(32)
            number = len(self.blocks)
            hash_ = keccak(repr((parent, number, tuple(values), self.forks)).encode())
            self.blocks.append(MadeBlock(number, hash_, parent, tuple(values)))

    def replace(self, count: int, contents: Iterable[Sequence[int]]) -> None:
        """The newest blocks are gone; others come."""
        self.forks += 1
        self.blocks = self.blocks[: max(1, len(self.blocks) - count)]
        self.mine(contents)

    # --- what a follower asks

    def newest(self) -> BlockData:
        return self._seen[-1].data

    def block(self, hash_: bytes) -> BlockData:
        return next(block.data for block in self._seen if block.hash == hash_)

    def block_at(self, number: int) -> BlockData:
        return self._seen[number].data

    def has_block(self, hash_: bytes) -> bool:
        return any(block.hash == hash_ for block in self._seen)

    def read(self, ask: Callable[[], T], called: bytes = b"") -> T:
        return ask()

    def logs(self, contracts: Sequence[str], first: int, last: int) -> list[LogReceipt]:
        self.asked.append((first, last))
        told = self._seen[: len(self._seen) - self.short_by]
        return [log for block in told[first : last + 1] for log in block.logs]

    def logs_of(self, contracts: Sequence[str], block: bytes) -> list[LogReceipt]:
        return next(found.logs for found in self._seen if found.hash == block)


class Remembers(Follower):
    """What it applied, as values and where they were."""

    def __init__(
        self, chain: BlockChain, kept: KeptEvents | None = None, listeners: Sequence[Listener] = (), told_from: int = 0
    ) -> None:
        self.found: list[tuple[int, int]] = []
        self.head = 0
        self.thawed = 0
        contracts = {"generations": CONTRACT}
        super().__init__(cast(Chain, chain), contracts, 0, listeners, lambda: None, kept, told_from)

    def begin(self) -> None:
        self.found, self.head = [], 0

    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        assert isinstance(found.event, Cut)
        self.found.append((found.block, int(found.event.generation)))

    def reached(self, head: Head) -> None:
        self.head = head.number

    def freeze(self) -> bytes | None:
        return json.dumps(self.found).encode()

    def thaw(self, body: bytes) -> bool:
        self.found = [tuple(pair) for pair in json.loads(body)]
        self.thawed += 1
        return True

    def version(self) -> bytes:
        return b"1"


def truth(chain: BlockChain) -> list[tuple[int, int]]:
    """What the whole chain says, as far as the node has it."""
    return [(block.number, int(Round(value))) for block in chain._seen for value in block.values]


def kept_at(url: str, reader: str = "tests", chain_id: int = 1) -> KeptEvents | None:
    """What a database keeps of the chain."""
    name = KeptName.of(chain_id, Address(b"\x01" * 20), 0, {"generations": CONTRACT}, reader)
    return open_kept(url, name)
