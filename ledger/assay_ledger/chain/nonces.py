"""What one account has signed for each of its nonces, what it offers there, and what became of it.

The chain says what happened; the record says only what must be outbid. Source: docs/adr/0026-transactions.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import requests
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import ContractLogicError, TransactionNotFound, Web3RPCError
from web3.types import TxReceipt

from assay.protocol.errors import AssayError, RejectedError, UnavailableError
from assay_ledger.chain.answers import Failure, failure_of, wait_before
from assay_ledger.chain.fees import (
    TIP_BLOCKS,
    TIP_FLOOR,
    TIP_PERCENTILE,
    Market,
    Offer,
    affordable,
    first_offer,
    may_raise,
    raised,
    tip_of,
)
from assay_ledger.chain.pace import PollPace
from assay_ledger.chain.rejections import gas_short, rejection
from assay_ledger.chain.rpc import NONSENSE
from assay_ledger.chain.sent import Attempt, NonceSlot, Payload, SentFile
from assay_ledger.chain.transaction_signer import TransactionSigner

RAISES: Final = 40
"""Times 1.125 each: by a hundred, over what another process of the same key may have offered for a nonce."""

T = TypeVar("T")

_LOG = logging.getLogger("assay.outbox")


class Wire(Protocol):
    """What an outbox needs of a chain."""

    chain_id: int
    w3: Web3
    pace: PollPace
    sleep: Callable[[float], None]

    def read(self, ask: Callable[[], T], called: bytes = b"") -> T: ...

    def said(self, error: Exception) -> AssayError: ...


LOST_ANSWERS: Final = 3
"""So often a transaction is sent at once before it counts as sent: where no block comes, it would not be sent again."""


OUT_OF_GAS: Final = 16
"""One that reverts and has less than this part of its gas left ran out of it: a contract that calls another keeps a
64th for itself, at each of a few levels, and a call that is refused for a reason has a third and more left."""


class Answer(Enum):
    """What a node made of a signed transaction."""

    TAKEN = "taken"
    """In its pool, or the answer was lost: what becomes of the nonce decides."""
    PASSED = "passed"
    """Its nonce has been used."""
    UNDERPRICED = "underpriced"
    SHORT = "short"
    """The balance does not cover the most that it could cost."""


_ANSWERS: Final = (
    (("already known", "already imported", "known transaction", "alreadyknown"), Answer.TAKEN),
    (("nonce too low", "nonce is too low", "nonce has already been used", "oldnonce"), Answer.PASSED),
    (("insufficient funds", "insufficient balance"), Answer.SHORT),
    (("underpriced", "less than block base fee", "fee too low", "feetoolow", "price too low"), Answer.UNDERPRICED),
)
"""Nodes word the same answers differently (geth, reth, Nethermind, Besu, anvil)."""


def market_of(wire: Wire, tip_floor: int = TIP_FLOOR) -> Market:
    """The fees of a chain's next block: by the fee history, and by the newest block where a node has none."""
    w3 = wire.w3
    base = wire.read(lambda: int(w3.eth.get_block("latest").get("baseFeePerGas", 0)))
    try:
        history = wire.read(lambda: w3.eth.fee_history(TIP_BLOCKS, "latest", [TIP_PERCENTILE]))
        # It also names the base fee of the block to come, at most an eighth above.
        base = max(base, min(int(history["baseFeePerGas"][-1]), base * 9 // 8 + 1))
        return Market(base, tip_of(history.get("reward") or (), base, tip_floor))
    except (AssayError, *NONSENSE) as error:
        _LOG.debug("no fee history: %s", error)
    return Market(base, tip_of((), base, tip_floor))


class Nonces:
    """An account's nonces on one chain. Not for several threads at once; `path` is where what is in flight is kept."""

    def __init__(self, wire: Wire, account: TransactionSigner, path: Path | None, tip_floor: int = TIP_FLOOR) -> None:
        self._wire, self._account, self._tip_floor = wire, account, tip_floor
        self._record = SentFile(account, wire.chain_id, path)
        self._slots = self._record.load()

    def keep_at(self, path: Path) -> None:
        """From now on what is in flight is kept in a file, with what an earlier process left there."""
        if self._record.path is None:
            self._record = SentFile(self._account, self._wire.chain_id, path)
            self._slots = {**self._record.load(), **self._slots}

    @property
    def nothing(self) -> Payload:
        """The cheapest use of a nonce."""
        return Payload(self._account.address.lower())

    @property
    def slots(self) -> dict[int, NonceSlot]:
        """By nonce, what is in flight."""
        return self._slots

    def count(self, block: str | int) -> int:
        """The account's transactions up to a block, or with those in the pool."""
        w3, who = self._wire.w3, self._account.address
        return self._wire.read(lambda: int(w3.eth.get_transaction_count(who, block)))  # type: ignore[arg-type]

    def height(self) -> int:
        """The number of the newest block."""
        number = self._wire.read(lambda: int(self._wire.w3.eth.block_number))
        self._wire.pace.saw(number)
        return number

    def market(self) -> Market:
        """The fees of the next block."""
        return market_of(self._wire, self._tip_floor)

    def settle(self, latest: int) -> None:
        """Forgets what the chain has taken, but for what it has no receipt of yet."""
        self.forget(*[n for n, slot in self._slots.items() if n < latest and slot.missed_at is None])

    def forget(self, *nonces: int) -> None:
        """These are in flight no more."""
        for nonce in nonces:
            del self._slots[nonce]
        if not self._slots:
            self._record.clear()

    def offer(self, nonce: int, call: Payload, limit: int | None, market: Market) -> None:
        """Signs a call for a nonce and sends it, for more than what was offered there before.

        Raises UnavailableError (FeeAboveLimit), FundsError (GasShort), RejectedError.
        """
        slot = self._slots.get(nonce)
        before = None if slot is None else slot.offer
        wanted = first_offer(market, limit) if before is None else raised(before, market, limit)
        for _ in range(RAISES):
            if wanted is None:
                raise above_limit(market, limit)
            attempt = self._sign(nonce, call, wanted)
            match self._broadcast(attempt.raw):
                case Answer.UNDERPRICED:
                    # Somebody offered more for this nonce, perhaps an earlier process of ours.
                    wanted = raised(wanted, market, limit)
                case Answer.SHORT:
                    cheaper = affordable(wanted, market, call.gas, self._balance_beside(nonce) - call.value, before)
                    if cheaper is None or cheaper == wanted:
                        raise gas_short()
                    wanted = cheaper
                case Answer.TAKEN | Answer.PASSED:
                    kept = self._slots.setdefault(nonce, NonceSlot([]))
                    kept.attempts.append(attempt)
                    kept.sent_at = self.height()
                    return
        raise UnavailableError(
            f"The node takes no transaction with nonce {nonce} at any price offered.",
            code="TransactionPending",
            remedy="Another program uses this key: stop it, or wait until its transactions are mined.",
        )

    def is_fixed(self, nonce: int, limit: int | None, market: Market) -> bool:
        """Is it offered for so much that nothing below a limit replaces it, and enough to be mined?"""
        old = self._slots[nonce].offer
        is_below = limit is None or market.base <= limit
        return is_below and old.is_enough(market) and raised(old, market, limit) is None

    def may_raise(self, slot: NonceSlot, market: Market) -> bool:
        """May more be offered only because nothing is mined?"""
        return may_raise(slot.offer, market, slot.call.gas, self.balance())

    def send_again(self, slot: NonceSlot, block: int) -> None:
        """Sends what is in flight once more, to a node that may have lost it."""
        slot.sent_at = block
        with suppress(AssayError):
            self._broadcast(slot.attempts[-1].raw)

    def receipt(self, slot: NonceSlot) -> tuple[Attempt, TxReceipt] | None:
        """Which of a nonce's transactions was mined."""
        for attempt in reversed(slot.attempts):
            if (receipt := self._wire.read(partial(self._receipt_of, attempt))) is not None:
                return attempt, receipt
        return None

    def mined_with(self, nonce: int) -> dict[int, bytes]:
        """Hashes of the account's transactions in the block that used a nonce, by nonce; none where no block shows it.

        A receipt may lag behind what a node counts, and longer where several nodes answer at one URL; a block is whole.
        """
        who = self._account.address.lower()
        try:
            after = self.height()
            before = self._unused_at(nonce, after)
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (before, middle) if self.count(middle) > nonce else (middle, after)
            made: Any = self._wire.read(lambda: self._wire.w3.eth.get_block(after, True)["transactions"])
            return {int(t["nonce"]): bytes(t["hash"]) for t in made if str(t["from"]).lower() == who}
        except (AssayError, *NONSENSE) as error:
            _LOG.debug("what used nonce %d is not known: %s", nonce, error)
            return {}

    def check(self, call: Payload) -> None:
        """Simulates a call on the chain as it is now. Raises RejectedError, UnavailableError."""
        fields: dict[str, Any] = {"from": self._account.address, **_fields(call)}
        self._wire.read(lambda: self._wire.w3.eth.call(fields), call.data[:4])  # type: ignore[arg-type]

    def why(self, call: Payload, receipt: TxReceipt) -> AssayError:
        """The reason of a transaction that was mined and reverted: simulated again on the block before it."""
        name = receipt["transactionHash"].to_0x_hex()
        # What ran out within another contract ends with a refusal that says nothing.
        if receipt["gasUsed"] >= call.gas - call.gas // OUT_OF_GAS:
            return RejectedError(
                f"The transaction {name} ran out of gas: of {call.gas:,} it used {receipt['gasUsed']:,}, and others "
                "before it in its block made it dearer.",
                code="OutOfGas",
                remedy="Nothing but its gas is lost. An actor sends it again by itself; type a command again.",
            )
        fields: dict[str, Any] = {"from": self._account.address, **_fields(call)}
        try:
            self._wire.w3.eth.call(fields, receipt["blockNumber"])  # type: ignore[arg-type]
        except (ContractLogicError, Web3RPCError) as error:
            return rejection(error, call.data)
        except (requests.RequestException, OSError, *NONSENSE):
            pass
        return RejectedError(f"The transaction {name} reverted.", code="Reverted")

    def balance(self) -> int:
        """What the account has, in wei of the chain's coin."""
        who = self._account.address
        return self._wire.read(lambda: int(self._wire.w3.eth.get_balance(who)))

    # --- inside

    def _unused_at(self, nonce: int, block: int) -> int:
        """A block before this one at which a nonce was not used, looked for in ever longer steps."""
        step = 1
        while (before := max(0, block - step)) and self.count(before) > nonce:
            step *= 2
        return before

    def _receipt_of(self, attempt: Attempt) -> TxReceipt | None:
        try:
            receipt = self._wire.w3.eth.get_transaction_receipt(HexBytes(attempt.hash))
        except TransactionNotFound:
            return None
        # Where a node answers nonsense, here is where it shows.
        int(receipt["status"]), int(receipt["blockNumber"]), bytes(receipt["transactionHash"])
        return receipt

    def _sign(self, nonce: int, call: Payload, offer: Offer) -> Attempt:
        fields = {
            "chainId": self._wire.chain_id,
            "type": 2,
            "nonce": nonce,
            "maxPriorityFeePerGas": offer.tip,
            "maxFeePerGas": offer.most,
            **_fields(call),
        }
        raw = bytes(self._account.sign_transaction(fields).raw_transaction)
        self._record.add(raw)
        return Attempt(raw, call, offer)

    def _broadcast(self, raw: bytes) -> Answer:
        for tried in range(1, LOST_ANSWERS + 1):
            try:
                self._wire.w3.eth.send_raw_transaction(HexBytes(raw))
            except Web3RPCError as error:
                text = str(error).lower()
                for words, answer in _ANSWERS:
                    if any(word in text for word in words):
                        return answer
                if tried == LOST_ANSWERS or failure_of(error) is Failure.REFUSED:
                    raise self._wire.said(error) from error
                self._wire.sleep(wait_before(tried, error))
            except (requests.RequestException, OSError, *NONSENSE) as error:
                if tried < LOST_ANSWERS:
                    self._wire.sleep(wait_before(tried, error))
            else:
                return Answer.TAKEN
        # The answers were lost, not necessarily the transaction: what becomes of the nonce decides.
        return Answer.TAKEN

    def _balance_beside(self, nonce: int) -> int:
        """The balance in wei less what the account's other transactions may cost at most."""
        others = (s for n, s in self._slots.items() if n != nonce and s.missed_at is None)
        return self.balance() - sum(s.call.gas * s.offer.most + s.call.value for s in others)


def _fields(call: Payload) -> dict[str, Any]:
    fields: dict[str, Any] = {"data": call.data, "value": call.value, "gas": call.gas}
    return fields if call.to is None else {**fields, "to": to_checksum_address(call.to)}


def above_limit(market: Market, limit: int | None) -> UnavailableError:
    """The error of what waits for a lower base fee."""
    return UnavailableError(
        f"The base fee is {market.base} wei; what is to be done waits for {limit} or less.",
        code="FeeAboveLimit",
        remedy="Nothing is lost: it is sent once the fee has fallen.",
        base_fee=market.base,
        limit=limit,
    )
