"""The transactions of one account: sent together, looked after at every block, and waited for.

A transaction that is stuck blocks every later one of its account, so nothing is ever left to itself: what still
matters is offered again for more, what does not is replaced by what does, or by nothing (a transfer of 0 to oneself).
Source: docs/adr/0026-transactions.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from web3.types import TxReceipt

from assay.protocol.errors import AssayError, RejectedError, UnavailableError
from assay_ledger.chain.fees import TIP_FLOOR, Market
from assay_ledger.chain.gas_left import GasLeft
from assay_ledger.chain.nonces import Nonces, Wire, above_limit
from assay_ledger.chain.pace import PollPace
from assay_ledger.chain.sent import Payload
from assay_ledger.chain.transaction_signer import TransactionSigner

IN_FLIGHT: Final = 64
"""Transactions of one account at once: some 13 M gas of replies, about what a block takes at a steady base fee."""

STUCK_BLOCKS: Final = 3
"""Blocks without any of this account's transactions, after which the first is offered for more."""

SEND_AGAIN_BLOCKS: Final = 3
"""A node may lose its pool: what it does not name after so many blocks is sent to it again."""

LATE_RECEIPT_S: Final = 1.0
"""A node may count a transaction before it has its receipt; after so long the blocks are asked whose the nonce was."""

FOREIGN_AFTER_BLOCKS: Final = 64
"""Where no block shows who used a nonce, it was somebody else once a receipt is missing for so many."""

RECENT_BLOCKS: Final = 16
"""So long after an account's transaction a node that answers may lack it."""

FIRST_LOOK_S: Final = 0.01

BALANCE_S: Final = 60.0
"""Between two looks at whether the account's coins last."""

_LOG = logging.getLogger("assay.outbox")

Result = TxReceipt | AssayError


class Outbox:
    """The transactions of one account on one chain; `path` is where what is in flight survives a restart.

    Another process may use the same key: it can delay this one, and is outbid; it cannot make it lose its way.
    """

    def __init__(
        self,
        wire: Wire,
        account: TransactionSigner,
        path: Path | None = None,
        *,
        receipt_for_s: float = 120.0,
        tip_floor: int = TIP_FLOOR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wire, self._clock, self._receipt_for_s = wire, clock, receipt_for_s
        self._nonces = Nonces(wire, account, path, tip_floor)
        self._lock = threading.RLock()
        self._gas, self._looked_at = GasLeft(), float("-inf")
        self._mined_at: int | None = None

    def keep_at(self, path: Path) -> None:
        """From now on what is in flight is kept in a file, unless it is already."""
        with self._lock:
            self._nonces.keep_at(path)

    @property
    def in_flight(self) -> dict[int, Payload]:
        """What has been sent and not been seen mined, by nonce."""
        return {n: slot.call for n, slot in sorted(self._nonces.slots.items()) if slot.missed_at is None}

    def send(self, calls: Sequence[Payload], limit: int | None = None) -> list[Result]:
        """Sends calls, at most IN_FLIGHT at a time, and waits for all: a receipt or an error for each, in their order.

        They are mined in this order, or later ones not at all. What is in flight already is not sent twice; what else
        is in flight makes room. limit: the highest base fee that is worth it, in wei per gas.

        The errors: UnavailableError (TransactionPending, FeeAboveLimit, RpcError, NodeUnreachable), FundsError
        (GasShort), RejectedError by the custom error's name.
        """
        results: list[Result] = []
        with self._lock:
            for at in range(0, len(calls), IN_FLIGHT):
                sending = _Sending(self._nonces, calls[at : at + IN_FLIGHT], limit, self._clock)
                results += sending.run(self._receipt_for_s, self._wire.pace)
            self._look_at_receipts(results)
        return results

    def named_block(self, head: int) -> int | None:
        """The block at which to ask what was refused once more; None where this account has sent nothing lately.

        One of several nodes behind a URL may lack the account's last block, and refuse what follows from it: the
        approval that a deposit needs.
        """
        mined = self._mined_at
        return None if mined is None or head > mined + RECENT_BLOCKS else max(head, mined)

    def _look_at_receipts(self, results: Sequence[Result]) -> None:
        for result in results:
            if not isinstance(result, AssayError):
                self._mined_at = max(self._mined_at or 0, int(result["blockNumber"]))
                self._gas.paid(int(result["gasUsed"]) * int(result.get("effectiveGasPrice", 0)))
        if self._clock() - self._looked_at < BALANCE_S:
            return
        self._looked_at = self._clock()
        with suppress(AssayError):
            if (left := self._gas.alarm(self._nonces.balance())) is not None:
                who = self._nonces.nothing.to
                _LOG.warning("the coins of %s last for about %d more transactions: send it some", who, left)

    def cancel(self, limit: int | None = None) -> bool:
        """Replaces what is in flight by nothing, since it matters no more; False when nothing is in flight."""
        with self._lock:
            nonces = self._nonces
            if not self.in_flight:
                return False
            nonces.settle(nonces.count("latest"))
            for nonce in self.in_flight:
                slot = nonces.slots[nonce]
                market = nonces.market()
                if slot.call != nonces.nothing or not slot.offer.is_enough(market):
                    with suppress(AssayError):
                        nonces.offer(nonce, nonces.nothing, limit, market)
            return bool(self.in_flight)


class _Sending:
    """Some calls on their way: which nonce each has, and what became of it."""

    def __init__(self, nonces: Nonces, calls: Sequence[Payload], limit: int | None, clock: Callable[[], float]) -> None:
        self.nonces, self.calls, self.limit, self.clock = nonces, calls, limit, clock
        self.results: dict[int, Result] = {}
        self.places: dict[int, int] = {}
        self.late: dict[int, tuple[float, float]] = {}
        """By nonce without a receipt: when the blocks are asked next, and how long after that again."""
        self.mined: dict[int, bytes] = {}
        """By nonce, what the blocks that were asked hold of this account."""
        self.block = 0
        self.latest = self.counted = 0
        """What was counted at the most, and at the newest look: less where a reorganization took something back, or
        where a node that answers is behind."""
        self.progress_at = 0

    def run(self, seconds: float, pace: PollPace) -> list[Result]:
        """Waits for so many seconds at most, looking as often as the pace of the chain asks for."""
        end = self.clock() + seconds
        try:
            self.place(range(len(self.calls)))
            self.wait(end, pace)
            self.give_up(_pending(seconds))
        except UnavailableError as error:
            # The node is gone: what was sent may be mined all the same, and the caller looks at the chain before it
            # asks again.
            for k in range(len(self.calls)):
                self.results.setdefault(k, error)
        return [self.results[k] for k in range(len(self.calls))]

    def place(self, todo: Sequence[int]) -> None:
        """Gives every call a nonce: its own if it is in flight, else that of what matters no more, else a new one."""
        nonces = self.nonces
        self.latest = self.counted = nonces.count("latest")
        pending = nonces.count("pending")
        market = nonces.market()
        for nonce, slot in nonces.slots.items():
            if nonce >= self.latest:  # also what a reorganization took back
                slot.missed_at = None
                self.mined.pop(nonce, None)
        taken = set(self.places.values())
        # What was mined since somebody waited for it, or has no receipt yet, is not sent again either.
        for k in todo:
            same = next((n for n in sorted(nonces.slots) if n not in taken and self.is_at(n, self.calls[k])), None)
            if same is not None:
                self.places[k] = same
                taken.add(same)
        nonces.settle(min([self.latest, *self.places.values()]))
        own = sorted(n for n in nonces.slots if n >= self.latest)
        free = [n for n in own if n not in taken]
        new = max(self.latest, pending, *(n + 1 for n in own)) if own else max(self.latest, pending)
        for k in todo:
            if k in self.places:
                continue
            # What cannot be replaced below the limit can be mined below it: it is sent again, and left in front.
            while free and nonces.is_fixed(free[0], self.limit, market):
                nonces.send_again(nonces.slots[free[0]], nonces.height())
                free.pop(0)
            only = self.calls[k].nonce
            # Attack on oneself: two processes of one key that both saw no seat take two.
            if only is not None and (only != self.latest or (only in nonces.slots and only not in free)):
                self.results[k] = _moved(only)
                continue
            nonce = only if only is not None else free[0] if free else new
            try:
                nonces.offer(nonce, self.calls[k], self.limit, market)
            except AssayError as error:
                self.results[k] = error
                continue
            self.places[k] = nonce
            if nonce in free:
                free.remove(nonce)
            new = max(new, nonce + 1)
        # What stands in front of these and matters no more must not stay there.
        last = max(self.places.values(), default=-1)
        for nonce in free:
            if nonce < last and nonces.slots[nonce].call != nonces.nothing:
                with suppress(AssayError):
                    nonces.offer(nonce, nonces.nothing, self.limit, market)
        self.block = self.progress_at = nonces.height()
        nonces.forget(*[n for n in nonces.slots if n not in self.places.values() and self.is_given_up(n)])
        # Whoever waits less than a block at a time, again and again, sees none come while it waits.
        for nonce in self.places.values():
            slot = nonces.slots[nonce]
            if nonce >= self.latest and self.block - slot.sent_at >= SEND_AGAIN_BLOCKS:
                nonces.send_again(slot, self.block)

    def is_at(self, nonce: int, call: Payload) -> bool:
        """Is that what has this nonce? What was mined before the block that a call follows from is another one."""
        return self.nonces.slots[nonce].call == call and (call.nonce is None or nonce >= call.nonce)

    def wait(self, end: float, pace: PollPace) -> None:
        """Until every call has its result, or time is up."""
        look = FIRST_LOOK_S
        while self.places:
            again = self.collect()
            if again:
                self.place(self.allowed(again))
                continue
            if not self.places:
                return
            if (block := self.nonces.height()) != self.block:
                self.block = block
                self.look_after(self.nonces.market())
            if self.clock() >= end:
                return
            pace.wait(min(look, pace.period, max(0.0, end - self.clock())))
            look *= 2

    def collect(self) -> list[int]:
        """Takes what was mined; returns calls whose nonce went to something else."""
        nonces, again = self.nonces, []
        self.counted = latest = nonces.count("latest")
        if latest > self.latest:
            self.latest, self.progress_at = latest, self.block
        is_asked = False
        for k, nonce in sorted(self.places.items()):
            if nonce >= latest:
                self.uncount(nonce)
                continue
            found = nonces.receipt(nonces.slots[nonce])
            if found is None:
                # At most once a look: where nodes are slow to say that they do not know, a batch has 64 of them.
                is_asked = is_asked or self.ask_block(nonce)
                if not self.is_foreign(nonce):
                    continue
            nonces.forget(self.places.pop(k))
            if found is None or found[0].call != self.calls[k]:
                again.append(k)
                continue
            receipt = found[1]
            self.results[k] = receipt if receipt["status"] == 1 else nonces.why(self.calls[k], receipt)
        nonces.settle(min([latest, *self.places.values()]))
        return again

    def uncount(self, nonce: int) -> None:
        """What is said of a nonce that is not counted, or no more, does not hold: it may be used by another block."""
        self.mined.pop(nonce, None)
        slot = self.nonces.slots[nonce]
        if slot.missed_at is not None:
            slot.missed_at = self.block

    def ask_block(self, nonce: int) -> bool:
        """Asks the blocks whose a nonce was that has no receipt, if that is due; was it?"""
        slot, now = self.nonces.slots[nonce], self.clock()
        if slot.missed_at is None:
            slot.missed_at = self.nonces.height()
        due, again = self.late.setdefault(nonce, (now + LATE_RECEIPT_S, LATE_RECEIPT_S))
        if now < due or nonce in self.mined:
            return False
        self.mined |= self.nonces.mined_with(nonce)
        self.late[nonce] = self.clock() + 2 * again, 2 * again
        return True

    def is_foreign(self, nonce: int) -> bool:
        """Did a nonce whose receipt is missing go to a transaction of another process? By the blocks: receipts lag."""
        if nonce in self.mined:
            return self.mined[nonce] not in [attempt.hash for attempt in self.nonces.slots[nonce].attempts]
        return self.is_given_up(nonce)

    def is_given_up(self, nonce: int) -> bool:
        """Is a receipt missing for longer than any node is behind?"""
        missed_at = self.nonces.slots[nonce].missed_at
        return missed_at is not None and self.block - missed_at >= FOREIGN_AFTER_BLOCKS

    def allowed(self, calls: Sequence[int]) -> list[int]:
        """Of calls whose nonce went to something else, which may have done the same, those that are not refused now."""
        left = []
        for k in calls:
            try:
                self.nonces.check(self.calls[k])
                left.append(k)
            except RejectedError as error:
                self.results[k] = error
        return left

    def look_after(self, market: Market) -> None:
        """At a new block: more for what cannot be mined or is not, what was lost once more, nothing left in front."""
        nonces, last = self.nonces, max(self.places.values())
        if self.limit is not None and market.base > self.limit:
            self.give_up(above_limit(market, self.limit))
            return
        stuck = self.block - self.progress_at >= STUCK_BLOCKS
        if stuck and self.latest not in nonces.slots and self.latest <= last:
            # A nonce of another process that is not mined, or of an earlier one of ours whose record is lost.
            with suppress(AssayError):
                nonces.offer(self.latest, nonces.nothing, self.limit, market)
        for nonce, slot in sorted(nonces.slots.items()):
            # If it is counted by others, and only this node is behind, what is sent again here is passed already.
            if nonce < self.counted or nonce > last:
                continue
            waits = stuck and nonce == self.counted and nonces.may_raise(slot, market)
            if waits or not slot.offer.is_enough(market):
                with suppress(AssayError):
                    nonces.offer(nonce, slot.call, self.limit, market)
            elif self.block - slot.sent_at >= SEND_AGAIN_BLOCKS:
                nonces.send_again(slot, self.block)
        if stuck:
            self.progress_at = self.block

    def give_up(self, error: AssayError) -> None:
        """For now: what was sent stays in flight, and is replaced or offered for more by the next call."""
        for k in self.places:
            self.results[k] = error
        self.places = {}


def _moved(nonce: int) -> UnavailableError:
    return UnavailableError(
        f"This account's nonce {nonce} went to something else after the chain was last looked at.",
        code="AccountMoved",
        remedy="Nothing was sent, and it is looked at anew; if it goes on, another process uses this key.",
    )


def _pending(limit_s: float) -> UnavailableError:
    return UnavailableError(
        f"The transaction was not mined within {limit_s:g} s.",
        code="TransactionPending",
        remedy="It may still be mined: look whether it was before the same is asked for again, or it is done twice.",
    )
