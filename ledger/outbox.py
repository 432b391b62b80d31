"""The transactions of one account: offered, offered again for more, replaced, and waited for, several at once.

A transaction that is stuck blocks every later one of its account, so nothing is ever left to itself: what still
matters is offered again for more, what does not is replaced by what does, or by nothing (a transfer of 0 to oneself).
The chain says what happened; the record says only what must be outbid. Source: docs/adr/0026-transactions.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import requests
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import ContractLogicError, TransactionNotFound, Web3RPCError
from web3.types import TxReceipt

from assay.ledger.fees import TIP_BLOCKS, TIP_FLOOR, TIP_PERCENTILE, Market, affordable, first_offer, raised, tip_of
from assay.ledger.pace import Pace
from assay.ledger.rejections import gas_short, rejection
from assay.ledger.sent import Attempt, Call, Record, Slot
from assay.protocol.errors import AssayError, RejectedError, UnavailableError

IN_FLIGHT: Final = 64
"""Transactions of one account at once: some 13 M gas of replies, about what a block takes at a steady base fee."""

STUCK_BLOCKS: Final = 3
"""Blocks without any of this account's transactions, after which the first is offered for more."""

SEND_AGAIN_BLOCKS: Final = 3
"""A node may lose its pool: what it does not name after so many blocks is sent to it again."""

FOREIGN_AFTER_S: Final = 1.0
"""A node may count a transaction before it has its receipt; after so long without one the nonce was somebody else's."""

RAISES: Final = 40
"""Times 1.125 each: by a hundred, over what another process of the same key may have offered for a nonce."""

FIRST_LOOK_S: Final = 0.01

T = TypeVar("T")
Result = TxReceipt | AssayError

_LOG = logging.getLogger("assay.outbox")


class Wire(Protocol):
    """What an outbox needs of a chain."""

    chain_id: int
    w3: Web3
    pace: Pace

    def read(self, ask: Callable[[], T]) -> T: ...


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


class Outbox:
    """The transactions of one account on one chain; `path` is where what is in flight survives a restart.

    Another process may use the same key: it can delay this one, and is outbid; it cannot make it lose its way.
    """

    def __init__(
        self,
        wire: Wire,
        account: LocalAccount,
        path: Path | None = None,
        *,
        receipt_for_s: float = 120.0,
        tip_floor: int = TIP_FLOOR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wire, self._account, self._clock = wire, account, clock
        self._receipt_for_s, self._tip_floor = receipt_for_s, tip_floor
        self._record = Record(account, wire.chain_id, path)
        self._slots = self._record.load()
        self._lock = threading.RLock()
        self._gone: dict[int, float] = {}

    @property
    def in_flight(self) -> dict[int, Call]:
        """What has been sent and not been seen mined, by nonce."""
        return {nonce: slot.call for nonce, slot in sorted(self._slots.items())}

    def send(self, calls: Sequence[Call], limit: int | None = None) -> list[Result]:
        """Sends calls, at most IN_FLIGHT at a time, and waits for all: a receipt or an error for each, in their order.

        They are mined in this order, or later ones not at all. What is in flight already is not sent twice; what else
        is in flight makes room. limit: the highest base fee that is worth it, in wei per gas.

        The errors: UnavailableError (TransactionPending, FeeAboveLimit, RpcError, NodeUnreachable), FundsError
        (GasShort), RejectedError by the custom error's name.
        """
        results: list[Result] = []
        with self._lock:
            for at in range(0, len(calls), IN_FLIGHT):
                results += _Sending(self, calls[at : at + IN_FLIGHT], limit).run()
        return results

    def cancel(self, limit: int | None = None) -> bool:
        """Replaces what is in flight by nothing, since it matters no more; False when nothing is in flight."""
        with self._lock:
            if not self._slots:
                return False
            self.settle(self.count("latest"))
            for nonce, slot in sorted(self._slots.items()):
                market = self.market()
                if slot.call != self.nothing or not slot.offer.is_enough(market):
                    with suppress(AssayError):
                        self.offer(nonce, self.nothing, limit, market)
            return bool(self._slots)

    # --- for a sending under way

    @property
    def nothing(self) -> Call:
        """The cheapest use of a nonce."""
        return Call(self._account.address.lower())

    @property
    def slots(self) -> dict[int, Slot]:
        """By nonce, what is in flight."""
        return self._slots

    def count(self, block: str) -> int:
        """The account's transactions up to a block, or with those in the pool."""
        w3, who = self._wire.w3, self._account.address
        return self._wire.read(lambda: w3.eth.get_transaction_count(who, block))  # type: ignore[arg-type]

    def height(self) -> int:
        """The number of the newest block."""
        number = int(self._wire.read(lambda: self._wire.w3.eth.block_number))
        self._wire.pace.saw(number)
        return number

    def market(self) -> Market:
        """The fees of the next block: by the fee history, and by the newest block where a node has none."""
        w3 = self._wire.w3
        base = int(self._wire.read(lambda: w3.eth.get_block("latest")).get("baseFeePerGas", 0))
        rewards: Sequence[Sequence[int]] = ()
        try:
            history = self._wire.read(lambda: w3.eth.fee_history(TIP_BLOCKS, "latest", [TIP_PERCENTILE]))
            # It also names the base fee of the block to come, at most an eighth above.
            base = max(base, min(int(history["baseFeePerGas"][-1]), base * 9 // 8 + 1))
            rewards = history.get("reward") or ()
        except (AssayError, LookupError, TypeError, ValueError) as error:
            _LOG.debug("no fee history: %s", error)
        return Market(base, tip_of(rewards, base, self._tip_floor))

    def settle(self, latest: int) -> None:
        """Forgets what the chain has taken."""
        for nonce in [n for n in self._slots if n < latest]:
            del self._slots[nonce]
        if not self._slots:
            self._record.clear()

    def offer(self, nonce: int, call: Call, limit: int | None, market: Market) -> None:
        """Signs a call for a nonce and sends it, for more than what was offered there before.

        Raises UnavailableError (FeeAboveLimit), FundsError (GasShort), RejectedError.
        """
        slot = self._slots.get(nonce)
        before = None if slot is None else slot.offer
        wanted = first_offer(market, limit) if before is None else raised(before, market, limit)
        for _ in range(RAISES):
            if wanted is None:
                raise _above_limit(market, limit)
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
                    kept = self._slots.setdefault(nonce, Slot([]))
                    kept.attempts.append(attempt)
                    kept.sent_at = self.height()
                    return
        raise UnavailableError(
            f"The node takes no transaction with nonce {nonce} at any price offered.",
            code="TransactionPending",
            remedy="Another program uses this key: stop it, or wait until its transactions are mined.",
        )

    def send_again(self, slot: Slot, block: int) -> None:
        """Sends what is in flight once more, to a node that may have lost it."""
        slot.sent_at = block
        with suppress(AssayError):
            self._broadcast(slot.attempts[-1].raw)

    def receipt(self, slot: Slot) -> tuple[Attempt, TxReceipt] | None:
        """Which of a nonce's transactions was mined."""
        for attempt in reversed(slot.attempts):
            if (receipt := self._wire.read(partial(self._receipt_of, attempt))) is not None:
                return attempt, receipt
        return None

    def why(self, call: Call, receipt: TxReceipt) -> AssayError:
        """The reason of a transaction that was mined and reverted: simulated again on the block before it."""
        fields: dict[str, Any] = {"from": self._account.address, **_fields(call)}
        try:
            self._wire.w3.eth.call(fields, receipt["blockNumber"])  # type: ignore[arg-type]
        except (ContractLogicError, Web3RPCError) as error:
            return rejection(error)
        except (requests.RequestException, OSError):
            pass
        return RejectedError(f"The transaction {receipt['transactionHash'].to_0x_hex()} reverted.", code="Reverted")

    @property
    def receipt_for_s(self) -> float:
        """How long a sending waits."""
        return self._receipt_for_s

    @property
    def period(self) -> float:
        """Seconds between two looks."""
        return self._wire.pace.period

    def clock(self) -> float:
        """This machine's seconds."""
        return self._clock()

    # --- inside

    def _receipt_of(self, attempt: Attempt) -> TxReceipt | None:
        try:
            return self._wire.w3.eth.get_transaction_receipt(HexBytes(attempt.hash))
        except TransactionNotFound:
            return None

    def _sign(self, nonce: int, call: Call, offer: Any) -> Attempt:
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
        try:
            self._wire.w3.eth.send_raw_transaction(HexBytes(raw))
        except (requests.RequestException, OSError):
            # The answer was lost, not necessarily the transaction: what becomes of the nonce decides.
            return Answer.TAKEN
        except Web3RPCError as error:
            text = str(error).lower()
            for words, answer in _ANSWERS:
                if any(word in text for word in words):
                    return answer
            raise rejection(error) from error
        return Answer.TAKEN

    def _balance_beside(self, nonce: int) -> int:
        """The balance in wei less what the account's other transactions may cost at most."""
        who = self._account.address
        balance = int(self._wire.read(lambda: self._wire.w3.eth.get_balance(who)))
        others = (s for n, s in self._slots.items() if n != nonce)
        return balance - sum(s.call.gas * s.offer.most + s.call.value for s in others)


class _Sending:
    """Some calls on their way: which nonce each has, and what became of it."""

    def __init__(self, box: Outbox, calls: Sequence[Call], limit: int | None) -> None:
        self.box, self.calls, self.limit = box, calls, limit
        self.results: dict[int, Result] = {}
        self.places: dict[int, int] = {}
        self.missing: dict[int, float] = {}
        self.block = 0
        self.latest = 0
        self.progress_at = 0

    def run(self) -> list[Result]:
        end = self.box.clock() + self.box.receipt_for_s
        try:
            self.place(range(len(self.calls)))
            self.wait(end)
        except UnavailableError as error:
            # The node is gone: what was sent may be mined all the same, and whoever asks again looks at the chain.
            for k in range(len(self.calls)):
                self.results.setdefault(k, error)
        return [self.results[k] for k in range(len(self.calls))]

    def place(self, todo: Sequence[int]) -> None:
        """Gives every call a nonce: its own if it is in flight, else that of what matters no more, else a new one."""
        box = self.box
        self.latest = box.count("latest")
        pending = box.count("pending")
        box.settle(min([self.latest, *self.places.values()]))
        market = box.market()
        own = sorted(n for n in box.slots if n >= self.latest)
        taken = set(self.places.values())
        for k in todo:
            same = next((n for n in own if n not in taken and box.slots[n].call == self.calls[k]), None)
            if same is not None:
                self.places[k] = same
                taken.add(same)
        free = [n for n in own if n not in taken]
        new = max(self.latest, pending, *(n + 1 for n in own)) if own else max(self.latest, pending)
        for k in todo:
            if k in self.places:
                continue
            nonce = free[0] if free else new
            try:
                box.offer(nonce, self.calls[k], self.limit, market)
            except AssayError as error:
                self.results[k] = error
                continue
            self.places[k] = nonce
            if free:
                free.pop(0)
            else:
                new += 1
        # What stands in front of these and matters no more must not stay there.
        last = max(self.places.values(), default=-1)
        for nonce in free:
            if nonce < last and box.slots[nonce].call != box.nothing:
                with suppress(AssayError):
                    box.offer(nonce, box.nothing, self.limit, market)
        self.block = self.progress_at = box.height()

    def wait(self, end: float) -> None:
        """Until every call has its result, or time is up."""
        look = FIRST_LOOK_S
        while self.places:
            again = self.collect()
            if again:
                self.place(again)
                continue
            if not self.places:
                return
            if (block := self.box.height()) != self.block:
                self.block = block
                self.look_after(self.box.market())
            if self.box.clock() >= end:
                self.give_up(_pending(self.box.receipt_for_s))
                return
            time.sleep(min(look, self.box.period, max(0.0, end - self.box.clock())))
            look *= 2

    def collect(self) -> list[int]:
        """Takes what was mined; returns calls whose nonce went to something else."""
        box, again = self.box, []
        latest = box.count("latest")
        if latest > self.latest:
            self.latest, self.progress_at = latest, self.block
        for k, nonce in sorted(self.places.items()):
            if nonce >= latest:
                continue
            found = box.receipt(box.slots[nonce])
            if found is None:
                first = self.missing.setdefault(nonce, box.clock())
                if box.clock() - first < FOREIGN_AFTER_S:
                    continue
            del self.places[k]
            if found is None or found[0].call != self.calls[k]:
                again.append(k)
                continue
            receipt = found[1]
            self.results[k] = receipt if receipt["status"] == 1 else box.why(self.calls[k], receipt)
        box.settle(min([latest, *self.places.values()]))
        return again

    def look_after(self, market: Market) -> None:
        """At a new block: more for what cannot be mined or is not, what was lost once more, nothing left in front."""
        box, last = self.box, max(self.places.values())
        if self.limit is not None and market.base > self.limit:
            self.give_up(_above_limit(market, self.limit))
            return
        stuck = self.block - self.progress_at >= STUCK_BLOCKS
        if stuck and self.latest not in box.slots and self.latest <= last:
            # A nonce of another process that nobody mines, or of an earlier one of ours whose record is lost.
            with suppress(AssayError):
                box.offer(self.latest, box.nothing, self.limit, market)
        for nonce, slot in sorted(box.slots.items()):
            if nonce < self.latest or nonce > last:
                continue
            if not slot.offer.is_enough(market) or (stuck and nonce == self.latest):
                with suppress(AssayError):
                    box.offer(nonce, slot.call, self.limit, market)
            elif self.block - slot.sent_at >= SEND_AGAIN_BLOCKS:
                box.send_again(slot, self.block)
        if stuck:
            self.progress_at = self.block

    def give_up(self, error: AssayError) -> None:
        """For now: what was sent stays in flight, and is replaced or offered for more by whoever sends next."""
        for k in self.places:
            self.results[k] = error
        self.places = {}


def _fields(call: Call) -> dict[str, Any]:
    fields: dict[str, Any] = {"data": call.data, "value": call.value, "gas": call.gas}
    return fields if call.to is None else {**fields, "to": to_checksum_address(call.to)}


def _above_limit(market: Market, limit: int | None) -> UnavailableError:
    return UnavailableError(
        f"The base fee is {market.base} wei; what is to be done waits for {limit} or less.",
        code="FeeAboveLimit",
        remedy="Nothing is lost: it is sent once the fee has fallen.",
        base_fee=market.base,
        limit=limit,
    )


def _pending(limit_s: float) -> UnavailableError:
    return UnavailableError(
        f"The transaction was not mined within {limit_s:g} s.",
        code="TransactionPending",
        remedy="Wait for the chain; the transaction may still be mined.",
    )
