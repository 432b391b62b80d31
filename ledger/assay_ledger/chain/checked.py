"""What is used of a node's answers has the form that it needs: anything else is an error here, not later.

Each raises KeyError, TypeError or ValueError, which `answers` calls nonsense.
"""

from __future__ import annotations

from typing import Any, cast

from web3.types import BlockData, LogReceipt


def checked_chain_id(said: int) -> int:
    """A chain's number. Raises ValueError for one that no transaction could be signed for."""
    if not 0 < said < 1 << 64:
        raise ValueError(f"{said} is no number of a chain")
    return int(said)


def checked_block(said: dict[str, Any]) -> BlockData:
    """What is read of a block, in plain numbers and bytes. Raises KeyError, TypeError or ValueError."""
    used: dict[str, Any] = {name: int(said[name], 16) for name in ("number", "timestamp")}
    used |= {name: _bytes(said[name]) for name in ("hash", "parentHash")}
    if (base_fee := said.get("baseFeePerGas")) is not None:
        used["baseFeePerGas"] = int(base_fee, 16)
    return cast(BlockData, used)


def listed(said: Any) -> list[dict[str, Any]]:
    """A list. Raises TypeError."""
    if not isinstance(said, list):  # {} would be no logs at all, and what happened would be lost
        raise TypeError("no list")
    return said


def checked_log(found: dict[str, Any]) -> LogReceipt:
    """What is used of a log, in plain bytes; `blockTimestamp` stays as the node wrote it, where it did."""
    used = {
        "address": found["address"],
        "topics": [_bytes(topic) for topic in found["topics"]],
        "data": _bytes(found["data"]),
        "blockNumber": int(found["blockNumber"], 16),
        "blockHash": _bytes(found["blockHash"]),
        "transactionHash": _bytes(found["transactionHash"]),
        "logIndex": int(found["logIndex"], 16),
    }
    if "blockTimestamp" in found:
        used["blockTimestamp"] = found["blockTimestamp"]
    return cast(LogReceipt, used)


def _bytes(text: str) -> bytes:
    """Bytes as nodes write them. Raises ValueError."""
    if text[:2] != "0x":
        raise ValueError("no hex digits")
    return bytes.fromhex(text[2:])
