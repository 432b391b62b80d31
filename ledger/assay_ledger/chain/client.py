"""The chain as every actor reaches it: one RPC connection, signed transactions, named errors.

Bytes from the node are hostile: they are decoded against our ABIs, and what does not decode is an error with a name. A
revert is raised as `RejectedError` whose code is the Solidity custom error's name.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import requests
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from tenacity import RetryCallState, Retrying
from web3 import Web3
from web3.exceptions import BlockNotFound, ContractLogicError, TimeExhausted, TransactionNotFound, Web3RPCError
from web3.types import BlockData, LogReceipt, RPCEndpoint, TxParams, TxReceipt, Wei

from assay.protocol.errors import AssayError, RejectedError, UnavailableError
from assay.protocol.types import Address
from assay_ledger.chain.answers import Failure, failure_of, may_pass, patience_with, pause, raised_in, reason, remedy_of
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.chain.checked import checked_block, checked_chain_id, checked_log, listed
from assay_ledger.chain.endpoints import EndpointPool
from assay_ledger.chain.fees import TIP_FLOOR
from assay_ledger.chain.log_ranges import LogRanges, RangeRefused
from assay_ledger.chain.node_urls import redacted, urls_in, without_keys
from assay_ledger.chain.outbox import Outbox
from assay_ledger.chain.pace import PollPace
from assay_ledger.chain.quota import Quota
from assay_ledger.chain.rejections import rejection
from assay_ledger.chain.rpc import NONSENSE, RequestListener, provider
from assay_ledger.chain.sent import Payload
from assay_ledger.chain.transaction_signer import TransactionSigner
from assay_ledger.contract import Call, E, Logged, Query, Search

TRANSACTION_GAS_CAP: Final = 16_777_216
"""EIP-7825: no transaction may ask for more gas."""

CALL_S: Final = 10.0
"""For one request, from connection to last byte: far below the shortest turn, above what a node needs for many logs."""

RETRY_FOR_S: Final = 30.0
RECEIPT_FOR_S: Final = 120.0
GAS_MARGIN: Final = 1.5
"""Over the estimate, which is made for another block's time than the one the call will run in; unused gas is free."""

GAS_SPARE: Final = 150_000
"""Beside it, for what others do in between: an opening that gives a root its majority opens the next round as well,
152,000 more on a node in a governed run, and so does one that was estimated before another of its block."""

ASKED_IN_TURN: Final = 3
"""So often for a block that one of several nodes behind a URL may not have yet, and another has."""

PASSED_ON: Final = (TimeExhausted, TransactionNotFound)
"""Answers, not nonsense: something is not there yet."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Head:
    """The newest block: its number, chain time in seconds, and base fee in wei per gas."""

    number: int
    timestamp: int
    base_fee: int = 0

    @staticmethod
    def of(block: BlockData) -> Head:
        """The head that a block is."""
        return Head(int(block["number"]), int(block["timestamp"]), int(block.get("baseFeePerGas", 0)))


class Chain:
    """A connection to an EVM chain. Reads are retried for RETRY_FOR_S; transactions go through an outbox per account.

    `url`: one node, or several with commas between, the most trusted first. `tip_floor`: the least tip offered, in wei
    per gas. `sleep`: how seconds are waited. `per_second`: the most requests to a node, 0 for any; `quotas`: another
    connection's instead. `place`: the URLs as they may be shown. `pool`: where there are several, or a quota.

    Raises UnavailableError (NodeUnreachable), RejectedError (code = custom error), FundsError (GasShort).
    """

    def __init__(
        self,
        url: str,
        *,
        retry_for_s: float = RETRY_FOR_S,
        timeout_s: float = CALL_S,
        receipt_for_s: float = RECEIPT_FOR_S,
        tip_floor: int = TIP_FLOOR,
        sleep: Callable[[float], None] = time.sleep,
        per_second: float = 0.0,
        quotas: Sequence[Quota] = (),
    ) -> None:
        urls = urls_in(url)
        self.url, self.place = url, ", ".join(redacted(one) for one in urls)
        self._retry_for_s, self.sleep = retry_for_s, sleep
        self._ranges = LogRanges()
        self._receipt_for_s, self._tip_floor = receipt_for_s, tip_floor
        self.pace = PollPace()
        options: dict[str, Any] = {"per_second": per_second, "quotas": quotas, "sleep": sleep}
        self.pool = EndpointPool(urls, timeout_s, **options) if len(urls) > 1 or per_second or quotas else None
        self._provider = self.pool or provider(url, timeout_s)
        self.w3 = Web3(self._provider)
        # It asks for the chain's number twice beside every call, which counts where requests do, and refuses blocks of
        # chains that write more than 32 bytes into extraData. What is signed names the number that was read here.
        self.w3.middleware_onion.remove("validation")
        self.chain_id = self.read(lambda: checked_chain_id(self.w3.eth.chain_id))
        self._lock = threading.Lock()
        self._outboxes: dict[str, Outbox] = {}

    def tell_requests(self, listener: RequestListener) -> None:
        """From now on a listener is told of every request to the node; see RequestListener."""
        self._provider.tell_requests(listener)

    def read(self, ask: Callable[[], T], called: bytes = b"") -> T:
        """`ask()`, again while that may help; reverts, of the calldata `called`, as RejectedError.

        Raises UnavailableError: NodeUnreachable, RpcError, RangeRefused (`answers` says which failure is which).
        """
        try:
            for attempt in Retrying(retry=may_pass, stop=self._is_enough, wait=pause, sleep=self.sleep, reraise=True):
                with attempt:
                    return self._asked(ask)
        except PASSED_ON:
            raise
        except (requests.RequestException, OSError, *NONSENSE) as error:
            raise self.said(error, called) from error
        raise AssertionError("unreachable: Retrying returns or raises")

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except (requests.RequestException, OSError, *NONSENSE) as error:
            if self.pool is not None:
                self.pool.blame(error)
            raise

    def _is_enough(self, state: RetryCallState) -> bool:
        patience = patience_with(failure_of(raised_in(state)), self._retry_for_s)
        return max(state.seconds_since_start or 0.0, state.idle_for) + state.upcoming_sleep >= patience

    def said(self, error: Exception, called: bytes = b"") -> AssayError:
        """The error that a person sees for one of a node's."""
        failure, why = failure_of(error), without_keys(reason(error), self.url)
        if failure is Failure.TOO_MUCH:
            return RangeRefused(f"The chain at {self.place} refuses so much at once ({why}).")
        if failure is Failure.REFUSED and isinstance(error, ContractLogicError | Web3RPCError):
            refused = rejection(error, called)
            if isinstance(refused, UnavailableError):
                return UnavailableError(f"The chain at {self.place} refuses ({why}).", code="RpcError")
            refused.message = without_keys(refused.message, self.url)
            refused.args = (refused.message,)
            return refused
        if failure is Failure.NONSENSE or not isinstance(error, requests.RequestException | OSError | Web3RPCError):
            return UnavailableError(
                f"The chain at {self.place} gives an answer that makes no sense ({why}).",
                code="RpcError",
                remedy=remedy_of(error),
            )
        return UnavailableError(
            f"The chain at {self.place} does not answer ({why}).",
            code="NodeUnreachable",
            remedy="Check the RPC URL and that the node is running, then try again; nothing is lost.",
        )

    def head(self) -> Head:
        """The newest block."""
        return Head.of(self.newest())

    @property
    def turn(self) -> int:
        """A number that is another one as soon as another node is asked."""
        return 0 if self.pool is None else self.pool.turn

    def refuse(self, turn: int, why: str) -> bool:
        """Sets the node of a turn aside, whose searches are not whole; False where there is no other."""
        return self.pool is not None and self.pool.refuse(turn, why)

    def newest(self) -> BlockData:
        """What is read of the newest block."""
        block = self._block("eth_getBlockByNumber", "latest")
        self.pace.saw(int(block["number"]))
        return block

    def block(self, hash_: bytes) -> BlockData:
        """The block with a hash. Raises UnavailableError (NodeUnreachable) for one that the node does not have."""
        return self._block("eth_getBlockByHash", "0x" + hash_.hex())

    def block_at(self, number: int) -> BlockData:
        """The block with a number. Raises UnavailableError (NodeUnreachable) for one that the node does not have."""
        return self._block("eth_getBlockByNumber", hex(number))

    def _block(self, method: str, which: str) -> BlockData:
        """Web3's own method looks at all that a block has, which takes as long again as the request."""

        def ask() -> BlockData:
            found = self._result_of(method, which, False)
            if found is None:
                raise BlockNotFound(f"Block with id {which!r} not found.")
            return checked_block(found)

        return self.read(ask)

    def has_block(self, hash_: bytes) -> bool:
        """Whether the node, or one of several that answer at its URL in turn, has a block."""
        which = "0x" + hash_.hex()
        asked = (self.read(lambda: self._result_of("eth_getBlockByHash", which, False)) for _ in range(ASKED_IN_TURN))
        return any(found is not None for found in asked)

    def calldata(self, transaction: bytes) -> bytes:
        """What a transaction was sent with."""
        return self.read(lambda: bytes(HexBytes(self.w3.eth.get_transaction(HexBytes(transaction))["input"])))

    def ask(self, query: Query[T], *, sender: Address | str | None = None, at: int | None = None) -> T:
        """The result of a view function, in block `at`, in the newest if None.

        What does not decode is an UnavailableError (RpcError).
        """
        return self.read(lambda: query.decode(self._result(query.to, query.data, sender, at)), query.data[:4])

    def simulate(self, call: Call, *, sender: Address | str) -> bytes:
        """What a call that changes the chain would return. Raises RejectedError where it would be refused."""
        return self.read(lambda: self._result(call.to, call.data, sender), call.data[:4])

    def _result(self, to: Address, data: bytes, sender: Address | str | None, at: int | None = None) -> bytes:
        params: TxParams = {"to": to_checksum_address(to), "data": data}
        if sender is not None:
            params["from"] = to_checksum_address(sender)
        return bytes(self.w3.eth.call(params, "latest" if at is None else at))

    def events(self, search: Search[E], first: int, last: int | None = None) -> list[Logged[E]]:
        """The events that a search finds from block `first` to block `last`, the newest if None, oldest first."""
        topics = [None if topic is None else "0x" + topic.hex() for topic in search.topics]
        criteria = {"address": to_checksum_address(search.contract), "topics": topics}

        def ask(low: int, high: int) -> list[Logged[E]]:
            logs = self._logs(criteria | {"fromBlock": hex(low), "toBlock": hex(high)})
            return self.read(lambda: [Logged.of(search.kind, log) for log in logs])

        until = self.head().number if last is None else last
        return self._of_any_node(lambda: self._ranges.read(ask, first, until))

    def logs(self, contracts: Sequence[str], first: int, last: int) -> list[LogReceipt]:
        """All logs of some contracts, by checksummed address, from block `first` to block `last`, oldest first.

        As web3's own method gives them; that one takes 2.6 ms of CPU to look at 28 addresses, every time, and this 0.4.
        """

        def ask(low: int, high: int) -> list[LogReceipt]:
            return self._logs({"address": list(contracts), "fromBlock": hex(low), "toBlock": hex(high)})

        return self._of_any_node(lambda: self._ranges.read(ask, first, last))

    def logs_of(self, contracts: Sequence[str], block: bytes) -> list[LogReceipt]:
        """The same of one block by its hash: a node that does not have it says so, where of a range it gives less."""
        return self._of_any_node(lambda: self._logs({"address": list(contracts), "blockHash": "0x" + block.hex()}))

    def _of_any_node(self, searched: Callable[[], T]) -> T:
        """What a search finds, of the next node where one refuses even a single block."""
        for _ in range(0 if self.pool is None else self.pool.count - 1):
            turn = self.turn
            try:
                return searched()
            except RangeRefused:
                self.refuse(turn, "it refuses to search even a single block")
                self._ranges = LogRanges()
        return searched()

    def _logs(self, criteria: dict[str, Any]) -> list[LogReceipt]:
        return self.read(lambda: [checked_log(found) for found in listed(self._result_of("eth_getLogs", criteria))])

    def outbox(self, account: TransactionSigner, path: Path | None = None) -> Outbox:
        """An account's transactions; the first `path` that is given keeps what is in flight over a restart."""
        with self._lock:
            if account.address not in self._outboxes:
                self._outboxes[account.address] = Outbox(
                    self, account, path, receipt_for_s=self._receipt_for_s, tip_floor=self._tip_floor
                )
            elif path is not None:
                self._outboxes[account.address].keep_at(path)
            return self._outboxes[account.address]

    def send(
        self,
        account: TransactionSigner,
        call: Call,
        *,
        gas: int | None = None,
        tail: bytes = b"",
        limit: int | None = None,
        seen: int | None = None,
    ) -> TxReceipt:
        """Signs and sends a contract call, with `tail` behind its arguments, and waits for its receipt.

        The call is simulated first, so a revert costs nothing and comes back with its name. limit: the highest base fee
        that is worth it, in wei per gas; None pays any. seen: the number of the block that the call follows from; it is
        sent only while the account has done nothing since (UnavailableError, AccountMoved), whoever else has its key.
        """
        payload = self.prepare(account, call, gas)
        nonce = None if seen is None else self.read(lambda: self.w3.eth.get_transaction_count(account.address, seen))
        return self._one(account, replace(payload, data=payload.data + tail, nonce=nonce), limit)

    def send_all(
        self, account: TransactionSigner, calls: Sequence[Call], *, limit: int | None = None
    ) -> list[TxReceipt | AssayError]:
        """Several contract calls at once, as many per block as it takes: a receipt or an error for each, in order.

        Each is simulated first on what the chain is now, so none may depend on another.
        """
        results: dict[int, TxReceipt | AssayError] = {}
        payloads: dict[int, Payload] = {}
        for k, call in enumerate(calls):
            try:
                payloads[k] = self.prepare(account, call)
            except AssayError as error:
                results[k] = error
        results |= dict(zip(payloads, self.outbox(account).send(list(payloads.values()), limit), strict=True))
        return [results[k] for k in range(len(calls))]

    def prepare(self, account: TransactionSigner, call: Call, gas: int | None = None) -> Payload:
        """A contract call as it is sent, simulated unless its gas is given."""
        if gas is None:
            gas = _with_margin(self._estimate(account, call.to, call.data, call.value, call.data[:4]))
        return Payload("0x" + call.to.hex(), call.data, call.value, gas)

    def _estimate(
        self, account: TransactionSigner, to: Address | None, data: bytes, value: int = 0, called: bytes = b""
    ) -> int:
        """Gas that a transaction would use. Raises RejectedError where it would be refused."""
        params: TxParams = {"from": account.address, "value": Wei(value), "data": data}
        if to is not None:
            params["to"] = to_checksum_address(to)
        try:
            return self.read(lambda: self.w3.eth.estimate_gas(params), called)
        except RejectedError:
            if (block := self.outbox(account).named_block(self.head().number)) is not None:
                with suppress(UnavailableError):
                    return self.read(lambda: self.w3.eth.estimate_gas(params, block), called)
            raise

    def code_at(self, address: Address | str, at: int | None = None) -> bytes:
        """The code at an address, in block `at`, in the newest if None; empty where there is none."""
        where = to_checksum_address(address)
        return bytes(self.read(lambda: self.w3.eth.get_code(where, "latest" if at is None else at)))

    def send_data(self, account: TransactionSigner, to: Address, data: bytes) -> TxReceipt:
        """Sends bytes to a contract that has no ABI, simulated first like `send`."""
        gas = _with_margin(self._estimate(account, to, data))
        return self._one(account, Payload("0x" + to.hex(), data, 0, gas), None)

    def deploy(self, account: TransactionSigner, name: str, *arguments: Any) -> tuple[Address, TxReceipt]:
        """Creates a contract; returns its address and the receipt."""
        artifact = load_artifact(name)
        factory = self.w3.eth.contract(abi=artifact.abi, bytecode=artifact.bytecode)
        data = bytes(HexBytes(factory.constructor(*arguments).data_in_transaction))
        receipt = self._one(account, Payload(None, data, 0, _with_margin(self._estimate(account, None, data))), None)
        return Address(bytes.fromhex(str(receipt["contractAddress"])[2:])), receipt

    def transfer(self, account: TransactionSigner, to: Address | str, wei: int) -> TxReceipt:
        """Sends the chain's own coin, which pays for gas."""
        return self._one(account, Payload(to_checksum_address(to).lower(), b"", wei), None)

    def rpc(self, method: str, *params: object) -> Any:
        """A call of a method that web3 does not name; for local nodes."""
        return self.read(lambda: self._result_of(method, *params))

    def _result_of(self, method: str, *params: object) -> Any:
        answer = self.w3.provider.make_request(RPCEndpoint(method), list(params))
        if not answer.get("error"):
            return answer["result"]
        if "result" in answer:
            raise ValueError("a result and an error")
        raise Web3RPCError(str(answer["error"]), rpc_response=answer)

    def _one(self, account: TransactionSigner, payload: Payload, limit: int | None) -> TxReceipt:
        (result,) = self.outbox(account).send([payload], limit)
        if isinstance(result, AssayError):
            raise result
        return result


def _with_margin(estimate: int) -> int:
    return min(int(estimate * GAS_MARGIN) + GAS_SPARE, TRANSACTION_GAS_CAP)


def address_of(account: TransactionSigner) -> Address:
    """The 20 bytes of an account's address."""
    return Address(bytes.fromhex(account.address[2:]))
