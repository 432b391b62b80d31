"""A node with a pool as public ones have it: a JSON-RPC proxy before a real anvil, which executes every block.

anvil drops what it cannot mine at once; here it is held, and what a pool does with it can be seen: nonces in order and
gaps, replacements for a tenth more, transactions lost, a node that restarts, blocks of 30 M gas at any base fee.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from assay.protocol.digests import keccak
from assay_ledger.chain.node import GAS_LIMIT, Anvil, direct

GWEI = 10**9


class Refused(Exception):
    """What the pool answers with an error."""


@dataclass(frozen=True)
class Held:
    """A transaction in the pool."""

    raw: str
    sender: str
    nonce: int
    most: int
    tip: int
    gas: int
    value: int

    @property
    def hash(self) -> str:
        """As the chain names it."""
        return "0x" + keccak(bytes.fromhex(self.raw[2:])).hex()


class Mempool:
    """The proxy. `base` is the base fee of the blocks to come.

    While it `is_mining` and holds something, or `mines_empty`, a block comes every `every_s`, `block_s` chain seconds
    after the last; with `only_asked` no block comes before somebody has asked something since the last one, so that
    chain time does not run on while whoever asks computes, on a slow machine for long. `on_taken(held)` is told of
    every transaction that the pool accepts. Receipts come `late_s` after their blocks; with `forgets_states` the node
    knows what accounts have counted at the newest block alone. Of `lags` calls to come that name no block each is
    estimated on the block before, as by another node behind the same URL; with `names_no_blocks` none is estimated that
    names one. `asked` counts requests by method.
    """

    def __init__(
        self, node: Anvil, *, block_s: int = 12, every_s: float = 0.02, base: int = GWEI, only_asked: bool = False
    ) -> None:
        self.node, self.base, self.every_s, self.only_asked = node, base, every_s, only_asked
        self.pool: dict[tuple[str, int], Held] = {}
        self.taken: list[Held] = []
        self.blocks: list[list[Held]] = []
        self.on_taken: Callable[[Held], None] = lambda _: None
        self.is_down = False
        self.is_mining = True
        self.mines_empty = False
        self.late_s = 0.0
        self.forgets_states = False
        self.lags = 0
        self.names_no_blocks = False
        self.asked: Counter[str] = Counter()
        self._calls = 0
        self._mined: dict[str, float] = {}
        self._lock = threading.RLock()
        node.rpc("evm_setAutomine", False)
        node.rpc("anvil_setBlockTimestampInterval", block_s)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True),
            threading.Thread(target=self._keep_mining, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    # --- what a test does to it

    def lose_everything(self) -> None:
        """The node restarts: its pool is empty."""
        with self._lock:
            self.pool.clear()

    def mine(self) -> list[Held]:
        """One block: what can pay its base fee, nonces in order, the best tips first, up to the gas limit."""
        with self._lock:
            base = self.base  # which a test may change meanwhile
            self.node.rpc("anvil_setNextBlockBaseFeePerGas", hex(base))
            chosen = self._choose(base)
            for held in chosen:
                self.node.rpc("eth_sendRawTransaction", held.raw)
                del self.pool[held.sender, held.nonce]
            self._mined |= {held.hash: time.monotonic() for held in chosen}
            self.node.rpc("evm_mine")
            self.blocks.append(chosen)
            # What was passed by another transaction of the same nonce is gone.
            for sender, nonce in list(self.pool):
                if nonce < self._count(sender):
                    del self.pool[sender, nonce]
            return chosen

    def mine_until(self, timestamp: int) -> None:
        """Chain time (s) is `timestamp` at least: an empty block is there, if no block of the pool came so late."""
        with self._lock:  # or the pool's own block passes it between the look and the block
            head = cast("dict[str, str]", self.node.rpc("eth_getBlockByNumber", "latest", False))
            if timestamp > int(head["timestamp"], 16):
                self.node.rpc("evm_mine", hex(timestamp))

    def close(self) -> None:
        """Ends the proxy, not the node."""
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()

    # --- what it answers

    def answer(self, method: str, params: list[Any]) -> Any:
        """The result of a call. Raises Refused."""
        self.asked[method] += 1
        self._calls += 1
        if method == "eth_sendRawTransaction":
            return self._take(params[0])
        if method == "eth_getTransactionCount" and params[1] == "pending":
            with self._lock:
                nonce = self._count(params[0])
                while (params[0].lower(), nonce) in self.pool:
                    nonce += 1
                return hex(nonce)
        if method == "eth_getTransactionCount" and params[1] != "latest" and self.forgets_states:
            raise Refused("missing trie node")
        if method == "eth_estimateGas" and self.names_no_blocks and params[1:] not in ([], ["latest"], ["pending"]):
            raise Refused("too many arguments, want at most 1")
        if method == "eth_estimateGas" and self.lags and params[1:] in ([], ["latest"], ["pending"]):
            self.lags -= 1
            before = int(str(self.node.rpc("eth_blockNumber")), 16) - 1
            return self._forward(method, [params[0], hex(before)])
        if method == "eth_getTransactionReceipt":
            mined = self._mined.get(params[0], float("-inf"))
            return None if time.monotonic() < mined + self.late_s else self._forward(method, params)
        if method == "eth_feeHistory":
            history = self._forward(method, params)
            return {**history, "baseFeePerGas": [*history["baseFeePerGas"][:-1], hex(self.base)]}
        return self._forward(method, params)

    def _take(self, raw: str) -> str:
        fields = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
        sender = str(Account.recover_transaction(raw)).lower()
        most, tip = fields["maxFeePerGas"], fields["maxPriorityFeePerGas"]
        held = Held(raw, sender, fields["nonce"], most, tip, fields["gas"], fields["value"])
        with self._lock:
            if held.nonce < self._count(sender):
                raise Refused("nonce too low")
            old = self.pool.get((sender, held.nonce))
            if old is not None and old.raw == raw:
                raise Refused("already known")
            if old is not None and (held.most * 10 < old.most * 11 or held.tip * 10 < old.tip * 11):
                raise Refused("replacement transaction underpriced")
            others = [h for h in self.pool.values() if h.sender == sender and h.nonce != held.nonce]
            cost = sum(h.gas * h.most + h.value for h in (*others, held))
            if cost > int(str(self._forward("eth_getBalance", [sender, "latest"])), 16):
                raise Refused("insufficient funds for gas * price + value")
            self.pool[sender, held.nonce] = held
            self.taken.append(held)
            self.on_taken(held)  # before a block can have it
        return held.hash

    def _choose(self, base: int) -> list[Held]:
        ready: list[Held] = []
        for sender in sorted({s for s, _ in self.pool}):
            nonce = self._count(sender)
            while (held := self.pool.get((sender, nonce))) is not None and held.most >= base:
                ready.append(held)
                nonce += 1
        chosen, gas = [], 0
        for held in sorted(ready, key=lambda h: (-min(h.tip, h.most - base), h.sender, h.nonce)):
            if gas + held.gas <= GAS_LIMIT:
                chosen.append(held)
                gas += held.gas
        # A sender's transactions go in the order of their nonces, as far as they are there.
        numbers: dict[str, list[int]] = {}
        for held in chosen:
            numbers.setdefault(held.sender, []).append(held.nonce)
        kept = []
        for sender, found in sorted(numbers.items()):
            nonce = self._count(sender)
            while nonce in found:
                kept.append(self.pool[sender, nonce])
                nonce += 1
        return kept

    def _count(self, sender: str) -> int:
        return int(str(self.node.rpc("eth_getTransactionCount", sender, "latest")), 16)

    def _forward(self, method: str, params: list[Any]) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.node.url, body, {"Content-Type": "application/json"})
        with direct().open(request, timeout=30) as response:
            answer = json.load(response)
        if "error" in answer:
            raise Passed(answer["error"])
        return answer["result"]

    def _keep_mining(self) -> None:
        seen = -1
        while not self._ended.wait(self.every_s):
            calls = self._calls
            if self.is_mining and (self.pool or self.mines_empty) and not (self.only_asked and calls == seen):
                seen = calls
                self.mine()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Passed(Exception):
    """An error of the node behind, as it gave it."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error))
        self.error = error


def _handler(mempool: Mempool) -> type[BaseHTTPRequestHandler]:
    class MempoolHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if mempool.is_down:
                self.close_connection = True
                return
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": body["id"]}
            try:
                answer["result"] = mempool.answer(body["method"], list(body.get("params", [])))
            except Refused as error:
                answer["error"] = {"code": -32000, "message": str(error)}
            except Passed as error:
                answer["error"] = error.error
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    return MempoolHandler
