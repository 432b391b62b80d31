"""One run as its contracts tell it: calls and events, encoded here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from eth_abi import decode, encode
from web3 import HTTPProvider, Web3

Page = dict[str, Any]

BLOCKS_PER_QUERY = 5_000

REF = "(uint8,uint64,uint32,uint32,address,bytes32)"
TRAINING = f"({','.join(['uint32'] * 10 + ['bytes32'] * 6)})"
TERMS = (
    f"(bytes32,address,address,address,uint64,uint64,{TRAINING},({','.join(['uint48'] * 16)}),"
    f"(uint128,bool,{','.join(['uint128'] * 9 + ['uint32'] * 7)}),(uint48,uint32,uint32),(uint64,uint64,uint64,uint32),"
    f"(uint48,uint48,uint48,uint128,uint128,uint128),{','.join(['(bytes32,bytes32,bytes)'] * 5)},address[],"
    f"(address,{','.join(['uint48'] * 5 + ['uint32'] * 4)}))"
)
SEATS, MAX_UNITS, STEPS_PER_UNIT, RATE, PARAMETERS, MOMENTUM, DATA = 0, 5, 6, 9, 10, 11, 15
"""Where these stand in TRAINING."""

MODULES = (
    "charter vault tickets tenures commitments generations duties attestations escrow payments bounties game "
    "challenges shares grants revenue governor beacon"
)
WORK = "(uint32,bytes32,bytes32[3],bytes32)"
FINDING = "(bytes32[3],bytes32,bytes32[],bytes32[])"
GENERATION = "(uint8,bytes32,bytes32,bytes32,uint32,uint32,uint48)"

EVENTS = {
    # contract, event: indexed types, other types, names in that order
    ("game", "GameOpened"): (["uint256", "bytes32", "address"], ["address", REF], "id claim challenger defender ref"),
    ("game", "Verdict"): (
        ["uint256", "bytes32", "address"],
        ["uint8", "uint8", "uint32", "uint64", "uint64", "int256", "int256"],
        "id claim loser outcome family node element term expected claimed",
    ),
    ("game", "Moved"): (["uint256", "address"], ["uint8", "uint8", "uint64"], "id mover stage turn deadline"),
    ("game", "LockTaken"): (["uint256", "bytes32"], ["uint256"] * 3, "id lock bounty burned reserved"),
    ("commitments", "RoundBegan"): (["uint64"], ["uint64", "uint48", "uint32"], "round parent t0 seated"),
    ("commitments", "WorkCommitted"): (
        ["uint64", "uint32", "uint32"],
        [WORK, "bytes32", "bool"],
        "round seat tenure work acc late",
    ),
    ("tickets", "TicketRegistered"): (["uint32", "address"], ["uint48", "bytes32"], "ticket owner from anchor"),
    ("attestations", "Attested"): (
        ["uint24", "uint32", "bytes32"],
        ["bytes32", "uint64", "uint32", FINDING],
        "epoch ticket attestation target round seat finding",
    ),
    ("revenue", "Deposited"): (["address", "address"], ["uint256", "uint256"], "token who amount week"),
    ("revenue", "Claimed"): (["address"] * 3, ["uint256"], "token who to amount"),
    ("vault", "Deposited"): (["address"], ["uint256"], "who amount"),
    ("vault", "Withdrawn"): (["address", "address"], ["uint256"], "who to amount"),
    ("vault", "Flushed"): ([], ["uint256"], "amount"),
    ("vault", "ExitRequested"): (["address"], ["uint256", "uint64"], "who amount not_before"),
    ("vault", "Locked"): (["bytes32", "address"], ["uint256"], "lock who amount"),
    ("vault", "Seized"): (["bytes32", "address"], ["uint256"], "lock who amount"),
    ("vault", "Burned"): (["bytes32"], ["uint256"], "lock amount"),
    ("escrow", "Funded"): (["address"], ["uint256"], "who amount"),
    ("escrow", "Refunded"): (["address"], ["uint256", "uint256"], "who funded amount"),
    ("tickets", "TicketFined"): (["uint32", "address"], ["uint256"], "ticket to amount"),
}


class RecordedRun:
    """One run on a chain."""

    def __init__(self, url: str, run: str) -> None:
        os.environ["NO_PROXY"] = "*"
        self.eth = Web3(HTTPProvider(url, request_kwargs={"timeout": 60})).eth
        self.run = Web3.to_checksum_address(run)
        names = MODULES.split()
        addresses = self.call(self.run, "roundModules()", [], [f"({','.join(['address'] * len(names))})"])
        self.at = {n: Web3.to_checksum_address(a) for n, a in zip(names, addresses, strict=True)}
        self.terms = self.call(self.run, "runTerms()", [], [TERMS])
        if Web3.keccak(encode([TERMS], [self.terms])) != self.call(self.run, "run()", [], ["bytes32"]):
            raise SystemExit("the terms do not hash to the run's identity")
        self.token = Web3.to_checksum_address(self.terms[2])
        self.training = self.terms[6]

    def call(self, to: str, signature: str, arguments: list[Any], outputs: list[str]) -> Any:
        """A view function's result."""
        inputs = _split(signature[signature.index("(") + 1 : -1])
        data = Web3.keccak(text=signature)[:4] + encode(inputs, arguments)
        values = decode(outputs, bytes(self.eth.call({"to": to, "data": data})))
        return values[0] if len(values) == 1 else values

    def events(self, contract: str, name: str) -> Iterator[Page]:
        """Every event of a name, in order; `tx` is its transaction."""
        indexed, plain, names = EVENTS[contract, name]
        topic = Web3.keccak(text=f"{name}({','.join(indexed + plain)})")
        head = self.eth.block_number
        for low in range(0, head + 1, BLOCKS_PER_QUERY):
            high = min(low + BLOCKS_PER_QUERY - 1, head)
            query = {"address": self.at[contract], "fromBlock": low, "toBlock": high, "topics": [topic]}
            for log in self.eth.get_logs(query):
                values = [decode([t], bytes(raw))[0] for t, raw in zip(indexed, log["topics"][1:], strict=True)]
                values += decode(plain, bytes(log["data"]))
                yield dict(zip(names.split(), values, strict=True)) | {"tx": bytes(log["transactionHash"])}

    def gas(self, tx: bytes) -> int:
        """Gas that a transaction used."""
        return int(self.eth.get_transaction_receipt(tx)["gasUsed"])

    def selector(self, tx: bytes) -> bytes:
        """The first four bytes of a transaction's calldata."""
        return bytes(self.eth.get_transaction(tx)["input"])[:4]

    def balance(self, token: str, owner: str) -> int:
        """An ERC-20 balance."""
        return int(self.call(token, "balanceOf(address)", [owner], ["uint256"]))


def _split(types: str) -> list[str]:
    return [t for t in types.split(",") if t]
