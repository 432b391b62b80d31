"""A run of release contracts on a node of its own, driven by unlocked accounts at exact chain times."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eth_abi import decode, encode
from eth_account import Account
from eth_hash.auto import keccak

from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.deploy import deploy_run, deploy_seed
from assay_ledger.deployment.places import GOVERNOR, LEAVES, ROUND_CONTRACTS
from tests.harness.contracts import harness
from tests.harness.contracts.arena import arena_charter
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.games import config
from tests.harness.programs import counting
from tests.harness.rounds.samples import ETHER, START

GAS = 16_000_000
BESIDE = ("RunDeployer", "RunCharter", "Arbiter", "PrevrandaoSeed", "TestToken")
"""Contracts that a run needs beside its modules."""


class Rejected(Exception):
    """A transaction reverted: the custom error's name and values."""

    def __init__(self, name: str, values: tuple[Any, ...], data: bytes) -> None:
        self.name, self.values = name, values
        super().__init__(f"{name}{values}" if name else f"0x{data.hex()}")


class RunWorld:
    """One node, one run, `accounts` unlocked people with tokens and an allowance to the vault."""

    def __init__(
        self,
        folder: Path,
        terms: RunCharter | None = None,
        *,
        accounts: int = 12,
        tokens: int = 100_000,
        token: str = "TestToken",
    ) -> None:
        self.node = Anvil(accounts=accounts, genesis_time=START)
        self._connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=60)
        self.people = [Address(bytes.fromhex(Account.from_key(k).address[2:])) for k in self.node.dev_keys]
        self.now = START
        self.first_state = ""
        self._ids = 0
        with fresh_artifacts(folder, [*ROUND_CONTRACTS.values(), *GOVERNOR.values(), *LEAVES.values(), *BESIDE, token]):
            chain = Chain(self.node.url)
            deployer = Account.from_key(self.node.dev_keys[0])
            token_address, _ = chain.deploy(deployer, token)
            counted = counting().program
            self.charter = replace(
                terms or arena_charter(counted, counted, config(), 64),
                token=token_address,
                beacon=deploy_seed(chain, deployer),
                sponsor=self.people[0],
                revenue_tokens=(token_address,),
            )
            self.run = deploy_run(chain, deployer, self.charter)
        self.addresses: dict[str, Address] = {name: getattr(self.run.modules, name) for name in ROUND_CONTRACTS}
        self.addresses |= {"charter": self.run.address, "token": token_address}
        contract_names = {**ROUND_CONTRACTS, "charter": "RunCharter", "token": "TestToken"}
        self.artifacts = {key: harness.artifact(name) for key, name in contract_names.items()}
        self.now = int(self.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        for person in self.people:
            self.send(person, "token", "mint", person, tokens * ETHER)
            self.send(person, "token", "approve", self.addresses["vault"], 2**256 - 1)

    def close(self) -> None:
        self._connection.close()
        self.node.close()

    # --- chain

    def rpc(self, method: str, *params: Any) -> Any:
        """One JSON-RPC call on a connection that stays open."""
        self._ids += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": list(params)})
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            data = str(answer["error"].get("data", ""))
            if data.startswith("0x"):
                raise self._rejected(bytes.fromhex(data[2:]))
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def send(self, sender: Address, contract: str, function: str, *args: Any, at: int | None = None) -> dict[str, Any]:
        """A transaction mined at chain time `at` (default: one second on). Returns the receipt; raises Rejected."""
        self.now = at if at is not None else self.now + 1
        self.rpc("evm_setNextBlockTimestamp", self.now)
        data = self.calldata(contract, function, *args)
        fields = {"from": _hex(sender), "to": _hex(self.addresses[contract]), "data": _hex(data), "gas": hex(GAS)}
        transaction = self.rpc("eth_sendTransaction", fields)
        # Automatic mining runs beside the answer; it never takes longer than a few requests.
        receipt: dict[str, Any] = next(
            filter(None, (self.rpc("eth_getTransactionReceipt", transaction) for _ in range(10_000)))
        )
        if receipt["status"] != "0x1":
            trace = self.rpc("debug_traceTransaction", transaction, {"tracer": "callTracer"})
            raise self._rejected(bytes.fromhex(trace.get("output", "0x")[2:]))
        return receipt

    def call(self, contract: str, function: str, *args: Any) -> Any:
        """The result of a view function; structs as tuples, addresses as bytes. Raises Rejected."""
        data = self.calldata(contract, function, *args)
        output = self.rpc("eth_call", {"to": _hex(self.addresses[contract]), "data": _hex(data)}, "latest")
        entry = self.artifacts[contract].entry("function", function, len(args))
        values = decode([harness._type(o) for o in entry["outputs"]], bytes.fromhex(output[2:]))
        plain = tuple(_plain(v) for v in values)
        return plain[0] if len(plain) == 1 else plain

    def calldata(self, contract: str, function: str, *args: Any) -> bytes:
        entry = self.artifacts[contract].entry("function", function, len(args))
        types = [harness._type(i) for i in entry["inputs"]]
        return keccak(f"{function}({','.join(types)})".encode())[:4] + encode(types, args)

    def events(self, receipt: Mapping[str, Any], contract: str, name: str) -> list[SimpleNamespace]:
        """The events of this name in a receipt."""
        entry = self.artifacts[contract].entry("event", name)
        types = [harness._type(i) for i in entry["inputs"]]
        topic = _hex(keccak(f"{name}({','.join(types)})".encode()))
        return [_event(entry, log) for log in receipt["logs"] if log["topics"][0] == topic]

    def _rejected(self, data: bytes) -> Rejected:
        for built in self.artifacts.values():
            name, values = harness._error(data, built.abi)
            if name:
                return Rejected(name, tuple(_plain(v) for v in values), data)
        return Rejected("", (), data)


def _event(entry: Mapping[str, Any], log: Mapping[str, Any]) -> SimpleNamespace:
    indexed = [i for i in entry["inputs"] if i["indexed"]]
    plain = [i for i in entry["inputs"] if not i["indexed"]]
    data = decode([harness._type(i) for i in plain], bytes.fromhex(log["data"][2:]))
    values = dict(zip((i["name"] for i in plain), data, strict=True))
    for item, topic in zip(indexed, log["topics"][1:], strict=True):
        values[item["name"]] = decode([harness._type(item)], bytes.fromhex(topic[2:]))[0]
    return SimpleNamespace(**{name: _plain(v) for name, v in values.items()})


def _hex(data: bytes) -> str:
    return "0x" + data.hex()


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("0x") and len(value) == 42:
        return Address(bytes.fromhex(value[2:]))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(_plain(v) for v in value)
    return value
