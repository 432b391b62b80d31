"""The harness's chain on a real node: every call a transaction, gas as its receipt says it."""

from __future__ import annotations

import http.client
import json
from types import TracebackType
from typing import Any, Self

from eth_abi import decode, encode

from assay_ledger.chain.node import Anvil
from tests.harness.contracts.harness import CompiledContract, EvmContract, Reverted, _type, artifact, intrinsic_gas

GAS = 16_000_000


class NodeChain:
    """A node that lets anybody send; has what `harness.Evm` has as far as contracts need it."""

    counts_calldata = False
    """Whether a call's gas is that of the whole transaction."""

    def __init__(self, timestamp: int) -> None:
        self.node = Anvil(accounts=1, genesis_time=timestamp)
        self._connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=60)
        self.caller = str(self.rpc("eth_accounts")[0]).lower()
        self.rpc("anvil_autoImpersonateAccount", True)
        self._funded: set[str] = set()
        self.next_time: int | None = None
        self.base_fee = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self.node.close()

    def rpc(self, method: str, *params: Any) -> Any:
        """One JSON-RPC call."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)})
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def set_env(self, number: int, timestamp: int, base_fee: int = 0) -> None:
        """The next transaction's chain time and base fee; block numbers are the node's own."""
        self.next_time, self.base_fee = timestamp, base_fee

    def nonce(self) -> int:
        """How many transactions the deployer has sent."""
        return int(self.rpc("eth_getTransactionCount", self.caller, "latest"), 16)

    def deploy(self, name: str, *args: Any, source: str | None = None) -> NodeContract:
        """Deploy a contract with constructor arguments."""
        built = artifact(name, source)
        constructor = next((e for e in built.abi if e["type"] == "constructor"), {"inputs": []})
        receipt = self.send(self.caller, None, built.bytecode + encode([_type(i) for i in constructor["inputs"]], args))
        assert receipt["status"] == "0x1", name
        return NodeContract(self, built, receipt["contractAddress"])

    def send(self, sender: str, to: str | None, data: bytes) -> dict[str, Any]:
        """A transaction and its receipt."""
        if sender not in self._funded:
            self.rpc("anvil_setBalance", sender, hex(10**24))
            self._funded.add(sender)
        if self.next_time is not None:
            self.rpc("evm_setNextBlockTimestamp", self.next_time)
            self.next_time = None
        fields = {"from": sender, "data": "0x" + data.hex(), "gas": hex(GAS)}
        if self.base_fee:
            self.rpc("anvil_setNextBlockBaseFeePerGas", hex(self.base_fee))
            fields["gasPrice"] = hex(2 * self.base_fee)
        transaction = self.rpc("eth_sendTransaction", fields if to is None else fields | {"to": to})
        receipts = (self.rpc("eth_getTransactionReceipt", transaction) for _ in range(10_000))
        receipt: dict[str, Any] = next(filter(None, receipts))
        return receipt

    def revert_data(self, transaction: str) -> bytes:
        """What a failed transaction returned."""
        trace = self.rpc("debug_traceTransaction", transaction, {"tracer": "callTracer"})
        return bytes.fromhex(trace.get("output", "0x")[2:])


class NodeContract(EvmContract):
    """A contract on a node."""

    def __init__(self, chain: NodeChain, built: CompiledContract, address: str) -> None:
        self.node_chain, self.artifact, self.address = chain, built, address
        self.gas = 0
        self.logs: list[dict[str, Any]] = []

    def call(self, function: str, *args: Any, caller: str | None = None, value: int = 0, gas: int = GAS) -> Any:
        """A transaction, or a call of a view function; as in `harness.EvmContract`."""
        entry, data = self.artifact.entry("function", function, len(args)), self.calldata(function, *args)
        if entry["stateMutability"] not in ("view", "pure"):
            receipt = self.node_chain.send(caller or self.node_chain.caller, self.address, data)
            if receipt["status"] != "0x1":
                raise Reverted(self.node_chain.revert_data(receipt["transactionHash"]), self.artifact.abi)
            self.logs = receipt["logs"]
            before = 0 if self.node_chain.counts_calldata else intrinsic_gas(data)
            self.gas = int(receipt["gasUsed"], 16) - before
            return None
        output = self.node_chain.rpc("eth_call", {"to": self.address, "data": "0x" + data.hex()}, "latest")
        values = decode([_type(o) for o in entry["outputs"]], bytes.fromhex(output[2:]))
        return values[0] if len(values) == 1 else values
