"""Blocks whose logs are kept, as plain values, with the digests by which it is seen that none was lost or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Any, Final, cast

from eth_utils.address import to_checksum_address
from web3.types import LogReceipt

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Address
from assay_ledger.contract import Contract

FORMAT: Final = 1
"""Of rows and their digests; rows of another are left alone."""

NO_CHECK: Final = bytes(32)
"""Before the first block."""

_TOPIC: Final = 32

KeptLog = tuple[int, int, bytes, bytes, bytes]
"""Index in the block, number of the contract in `KeptName.contracts`, topics one after another, data, transaction."""


class RowsUnusable(UnavailableError):
    """Kept events cannot be read or written, or are not what was written."""

    code = "EventsNotKept"
    remedy = "Nothing is lost: events are read from the chain. A damaged database may be removed; it is made anew."


class RowsDamaged(RowsUnusable):
    """Rows are not those that were written: one was lost or changed."""


@dataclass(frozen=True, slots=True)
class KeptBlock:
    """A block by number and hash, its chain time in seconds (0: not known, it has no logs), and all logs followed."""

    number: int
    hash: bytes
    time: int = 0
    logs: tuple[KeptLog, ...] = ()

    def check(self, before: bytes) -> bytes:
        """A digest of this block and of all before it that have logs, `before` being theirs."""
        made = blake2b(before, digest_size=32)
        made.update(self.number.to_bytes(8, "big") + self.hash + self.time.to_bytes(8, "big"))
        for index, contract, topics, data, transaction in self.logs:
            made.update(b"%d %d %d %d " % (index, contract, len(topics), len(data)) + topics + data + transaction)
        return made.digest()


@dataclass(frozen=True, slots=True)
class KeptName:
    """Whose rows they are: events of these contracts, by address in order, from a first block on, for one reader."""

    chain_id: int
    run: Address
    first_block: int
    contracts: tuple[Address, ...]
    reader: str

    @staticmethod
    def of(chain_id: int, run: Address, first_block: int, contracts: Mapping[str, Contract], reader: str) -> KeptName:
        """That of a run's followed contracts."""
        return KeptName(chain_id, run, first_block, tuple(sorted(c.address for c in contracts.values())), reader)

    @property
    def digest(self) -> bytes:
        """32 bytes that only the same name has."""
        told = FORMAT, self.chain_id, self.run.hex(), self.first_block, [c.hex() for c in self.contracts], self.reader
        return sha256(repr(told).encode()).digest()


def blocks_of(
    logs: Sequence[LogReceipt], contracts: Mapping[str, int], time_of: Callable[[LogReceipt], int]
) -> list[KeptBlock]:
    """Logs, in the order of the chain, by their blocks; `contracts` are numbers by checksummed address.

    Raises ValueError for two blocks of one number, KeyError for a stranger's log.
    """
    found: list[KeptBlock] = []
    rows: list[KeptLog] = []
    for place, log in enumerate(logs):
        row = int(log["logIndex"]), contracts[log["address"].lower()], b"".join(log["topics"])
        rows.append((*row, bytes(log["data"]), bytes(log["transactionHash"])))
        number, hash_ = int(log["blockNumber"]), bytes(log["blockHash"])
        after = logs[place + 1] if place + 1 < len(logs) else None
        if after is not None and after["blockNumber"] == number:
            if after["blockHash"] != log["blockHash"]:
                raise ValueError(f"two blocks of number {number}")
            continue
        found.append(KeptBlock(number, hash_, time_of(log), tuple(rows)))
        rows = []
    return found


def logs_of(block: KeptBlock, contracts: Sequence[str]) -> Iterator[LogReceipt]:
    """The logs of a block as a node tells them; `contracts` are addresses by their numbers."""
    for index, contract, topics, data, transaction in block.logs:
        log: dict[str, Any] = {
            "address": contracts[contract],
            "topics": [topics[at : at + _TOPIC] for at in range(0, len(topics), _TOPIC)],
            "data": data,
            "blockNumber": block.number,
            "blockHash": block.hash,
            "blockTimestamp": block.time,
            "transactionHash": transaction,
            "logIndex": index,
        }
        yield cast(LogReceipt, log)


def numbered(contracts: Iterable[Address]) -> list[str]:
    """Contracts as nodes name them, at the places that are their numbers."""
    return [to_checksum_address(contract).lower() for contract in contracts]
