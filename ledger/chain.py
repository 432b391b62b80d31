"""The chain as every actor reaches it: one RPC connection, signed transactions, named errors.

Bytes from the node are hostile: they are decoded against our ABIs, and what does not decode is an error with a name. A
revert is raised as `RejectedError` whose code is the Solidity custom error's name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar, cast

import requests
from eth_abi.abi import decode as abi_decode
from eth_abi.exceptions import DecodingError
from eth_account.signers.local import LocalAccount
from eth_utils.abi import function_abi_to_4byte_selector, get_abi_input_types
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter
from web3 import HTTPProvider, Web3
from web3.contract import Contract
from web3.exceptions import ContractCustomError, ContractLogicError, ContractPanicError, TimeExhausted, Web3RPCError
from web3.types import BlockData, RPCEndpoint, TxParams, TxReceipt

from assay.ledger.artifacts import load_artifact
from assay.protocol.errors import AssayError, FundsError, RejectedError, UnavailableError
from assay.protocol.types import Address

TRANSACTION_GAS_CAP: Final = 16_777_216
"""EIP-7825: no transaction may ask for more gas."""

CALLDATA_CAP: Final = 128 * 1024
"""What common transaction pools accept, in bytes."""

RETRY_FOR_S: Final = 30.0
RECEIPT_FOR_S: Final = 120.0
GAS_MARGIN: Final = 1.5
"""Over the estimate, which is made for another block's time than the one the call will run in; unused gas is free."""

T = TypeVar("T")

_CONTRACTS: Final = (
    "Deployer",
    "Charter",
    "Vault",
    "Rounds",
    "Outers",
    "Audit",
    "Settlement",
    "Game",
    "ModelShares",
    "Vesting",
    "Revenue",
    "TestToken",
    "ERC20",
)


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
    """A connection to an EVM chain. Reads are retried for RETRY_FOR_S; transactions are sent once and waited for.

    Raises UnavailableError (NodeUnreachable), RejectedError (code = custom error), FundsError (GasShort).
    """

    def __init__(
        self,
        url: str,
        *,
        retry_for_s: float = RETRY_FOR_S,
        timeout_s: float = 30.0,
        receipt_for_s: float = RECEIPT_FOR_S,
    ) -> None:
        self.url = url
        self._retry_for_s = retry_for_s
        self._receipt_for_s = receipt_for_s
        session = requests.Session()
        # Proxies named in the environment are for the world outside; an RPC URL is taken as it is written.
        session.trust_env = False
        self.w3 = Web3(HTTPProvider(url, request_kwargs={"timeout": timeout_s}, session=session))
        self.chain_id: int = self.read(lambda: self.w3.eth.chain_id)
        self._send_lock = threading.Lock()

    def read(self, ask: Callable[[], T]) -> T:
        """`ask()` with retries while the node is unreachable; reverts come back as RejectedError."""
        try:
            for attempt in Retrying(
                retry=retry_if_exception_type((requests.RequestException, OSError)),
                stop=stop_after_delay(self._retry_for_s),
                wait=wait_exponential_jitter(multiplier=0.1, max=2.0),
                reraise=True,
            ):
                with attempt:
                    return ask()
        except (requests.RequestException, OSError) as error:
            raise UnavailableError(
                f"The chain at {self.url} does not answer ({type(error).__name__}).",
                code="NodeUnreachable",
                remedy="Check the RPC URL and that the node is running, then try again; nothing is lost.",
            ) from error
        except (ContractLogicError, Web3RPCError) as error:
            raise _rejection(error) from error
        raise AssertionError("unreachable: Retrying returns or raises")

    def head(self) -> Head:
        """The newest block."""
        return Head.of(self.read(lambda: self.w3.eth.get_block("latest")))

    def calldata(self, transaction: bytes) -> bytes:
        """What a transaction was sent with."""
        return bytes(self.read(lambda: self.w3.eth.get_transaction(HexBytes(transaction)))["input"])

    def contract(self, name: str, address: Address | str | None = None) -> Contract:
        """A compiled contract of ours at an address."""
        where = None if address is None else to_checksum_address(address)
        return cast(Contract, self.w3.eth.contract(address=where, abi=load_artifact(name).abi))

    def call(self, function: Any, *, sender: Address | str | None = None) -> Any:
        """The result of a view function."""
        params: TxParams = {} if sender is None else {"from": to_checksum_address(sender)}
        return self.read(lambda: function.call(params))

    def send(self, account: LocalAccount, function: Any, *, gas: int | None = None, tail: bytes = b"") -> TxReceipt:
        """Signs and sends a contract call, with `tail` behind its arguments, and waits for its receipt.

        The call is simulated first, so a revert costs nothing and comes back with its name.
        """
        params: TxParams = {"from": account.address, "value": 0}  # type: ignore[typeddict-item]
        if gas is None:
            estimate = self.read(lambda: function.estimate_gas(params))
            gas = min(int(estimate * GAS_MARGIN) + 50_000, TRANSACTION_GAS_CAP)
        wanted = gas
        call = self.read(lambda: function.build_transaction({**params, "gas": wanted, "gasPrice": 0, "nonce": 0}))
        return self._submit(account, {"to": call["to"], "data": HexBytes(call["data"]) + tail, "gas": wanted})

    def code_at(self, address: Address | str) -> bytes:
        """The code at an address; empty where there is none."""
        return bytes(self.read(lambda: self.w3.eth.get_code(to_checksum_address(address))))

    def send_data(self, account: LocalAccount, to: Address, data: bytes) -> TxReceipt:
        """Sends bytes to a contract that has no ABI, simulated first like `send`."""
        params: TxParams = {"from": account.address, "to": to_checksum_address(to), "data": data}
        estimate = self.read(lambda: self.w3.eth.estimate_gas(params))
        gas = min(int(estimate * GAS_MARGIN) + 50_000, TRANSACTION_GAS_CAP)
        return self._submit(account, {"to": to_checksum_address(to), "data": data, "gas": gas})

    def deploy(self, account: LocalAccount, name: str, *arguments: Any) -> tuple[Address, TxReceipt]:
        """Creates a contract; returns its address and the receipt."""
        artifact = load_artifact(name)
        factory = self.w3.eth.contract(abi=artifact.abi, bytecode=artifact.bytecode)
        data = factory.constructor(*arguments).data_in_transaction
        params: TxParams = {"from": account.address, "data": data}
        estimate = self.read(lambda: self.w3.eth.estimate_gas(params))
        receipt = self._submit(
            account, {"data": data, "gas": min(int(estimate * GAS_MARGIN) + 50_000, TRANSACTION_GAS_CAP)}
        )
        return Address(bytes.fromhex(str(receipt["contractAddress"])[2:])), receipt

    def transfer(self, account: LocalAccount, to: Address | str, wei: int) -> TxReceipt:
        """Sends the chain's own coin, which pays for gas."""
        return self._submit(account, {"to": to_checksum_address(to), "value": wei, "gas": 21_000})

    def rpc(self, method: str, *params: object) -> Any:
        """A call of a method that web3 does not name; for local nodes."""
        answer = self.read(lambda: self.w3.provider.make_request(RPCEndpoint(method), list(params)))
        if "error" in answer:
            raise UnavailableError(f"{method} failed: {answer['error']}", code="RpcError")
        return answer["result"]

    def _submit(self, account: LocalAccount, fields: dict[str, Any]) -> TxReceipt:
        with self._send_lock:
            nonce = self.read(lambda: self.w3.eth.get_transaction_count(account.address, "pending"))
            base = self.read(lambda: self.w3.eth.get_block("latest")).get("baseFeePerGas", 0)
            tip = 1
            fields = {
                "chainId": self.chain_id,
                "type": 2,
                "nonce": nonce,
                "value": 0,
                "maxPriorityFeePerGas": tip,
                "maxFeePerGas": 2 * int(base) + tip,
                **fields,
            }
            raw = account.sign_transaction(fields).raw_transaction
            try:
                tx_hash = self.w3.eth.send_raw_transaction(raw)
            except (requests.RequestException, OSError):
                # The answer was lost, not necessarily the transaction: the receipt below decides.
                tx_hash = HexBytes(self.w3.keccak(raw))
            except Web3RPCError as error:
                raise _rejection(error) from error
        limit = self._receipt_for_s
        try:
            receipt = self.read(
                lambda: self.w3.eth.wait_for_transaction_receipt(tx_hash, timeout=limit, poll_latency=0.01)
            )
        except TimeExhausted as error:
            # It may still be mined: whoever asks again looks at the chain first. An actor must outlive a slow chain.
            raise UnavailableError(
                f"The transaction {tx_hash.to_0x_hex()} was not mined within {limit:g} s.",
                code="TransactionPending",
                remedy="Wait for the chain; the transaction may still be mined.",
            ) from error
        if receipt["status"] != 1:
            raise self._why(fields, account, receipt)
        return receipt

    def _why(self, fields: dict[str, Any], account: LocalAccount, receipt: TxReceipt) -> AssayError:
        """The reason of a transaction that was mined and reverted: it is simulated again on the block before it."""
        call = {k: fields[k] for k in ("to", "data", "value", "gas") if k in fields}
        try:
            self.w3.eth.call({"from": account.address, **call}, receipt["blockNumber"])  # type: ignore[typeddict-item]
        except (ContractLogicError, Web3RPCError) as error:
            return _rejection(error)
        return RejectedError(f"The transaction {receipt['transactionHash'].to_0x_hex()} reverted.", code="Reverted")


@cache
def _error_table() -> dict[bytes, dict[str, Any]]:
    """Selector to ABI of every custom error that a contract of a run can raise."""
    table: dict[bytes, dict[str, Any]] = {}
    for name in _CONTRACTS:
        try:
            abi = load_artifact(name).abi
        except AssayError:
            continue
        for entry in abi:
            if entry["type"] == "error":
                table[function_abi_to_4byte_selector(entry)] = entry  # type: ignore[arg-type]
    return table


def decode_revert(data: bytes) -> tuple[str, dict[str, Any]] | None:
    """Name and named values of a custom error, or None for bytes that are none of ours."""
    entry = _error_table().get(data[:4])
    if entry is None:
        return None
    try:
        values = abi_decode(get_abi_input_types(entry), data[4:])  # type: ignore[arg-type]
    except DecodingError:
        return None
    names = [item["name"] or str(k) for k, item in enumerate(entry["inputs"])]
    return entry["name"], {n: _plain(v) for n, v in zip(names, values, strict=True)}


def _rejection(error: Exception) -> AssayError:
    data = getattr(error, "data", None)
    if isinstance(error, ContractCustomError | ContractLogicError) and isinstance(data, str) and data.startswith("0x"):
        decoded = decode_revert(bytes.fromhex(data[2:]))
        if decoded is not None:
            name, values = decoded
            shown = ", ".join(f"{k} = {v}" for k, v in values.items())
            return RejectedError(
                f"The contract refused: {name}({shown}).",
                code=name,
                remedy=f"See `assay explain {name}`.",
                **{str(k): v for k, v in values.items()},
            )
    if isinstance(error, ContractPanicError):
        return RejectedError(f"The contract stopped: {error}.", code="Panic")
    text = str(error)
    if "insufficient funds" in text.lower():
        return FundsError(
            "The account cannot pay for gas.", code="GasShort", remedy="Send it some of the chain's own coin."
        )
    if isinstance(error, ContractLogicError):
        return RejectedError(f"The contract refused: {text}.", code="Reverted")
    return UnavailableError(f"The node answered with an error: {text[:300]}", code="RpcError")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    return value


def address_of(account: LocalAccount) -> Address:
    """The 20 bytes of an account's address."""
    return Address(bytes.fromhex(account.address[2:]))


def sum_gas(receipts: Iterable[TxReceipt]) -> int:
    """Gas used by these transactions together."""
    return sum(int(r["gasUsed"]) for r in receipts)
