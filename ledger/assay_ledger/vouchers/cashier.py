"""What a gateway asks of each request that pays: whose voucher, for how much, covered by what, and kept on disk."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import Future
from threading import BoundedSemaphore, Lock
from typing import Final

from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.payments.voucher import PayerDeposit, Voucher
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.bindings.vouchers import VouchersContract
from assay_ledger.chain.client import Chain
from assay_ledger.vouchers.kept import Accepted, KeptVouchers
from assay_ledger.vouchers.signed import SignedVoucher, check_signature

FRESH_S: Final = 60.0
"""Seconds for which a deposit is not asked for anew. A request for a refund may stay unseen for so long: what was
covered at the last look can be redeemed for the whole refund delay, an hour at least."""

REMEMBERED: Final = 4096
"""Deposits whose last answer is remembered."""

ASKED_AGAIN_S: Final = 1.0
"""A deposit that did not cover a voucher is asked for again after so long. Attack: vouchers without a deposit, which
make a gateway ask its node for each."""

DARK_S: Final = 5.0
"""So long nobody asks the chain again after it did not answer. Attack: requests that all wait for it, and hold every
thread of those whose deposit is known."""

ASKING: Final = 8
"""Questions to the chain at once, and for how many seconds one more waits for its turn."""
ASKING_S: Final = 1.0


class ChainDark(UnavailableError):
    """The chain says nothing about a payer's deposit. Nothing was charged."""

    remedy = "Ask again in some seconds with the same voucher; nothing was charged."


class Cashier:
    """Takes vouchers for one gateway; safe for threads. `tokens`: those that it wants to be paid in."""

    def __init__(
        self,
        chain: Chain,
        contract: VouchersContract,
        kept: KeptVouchers,
        tokens: Collection[Address],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chain, self._contract, self._kept = chain, contract, kept
        self._tokens, self._clock = frozenset(tokens), clock
        self._seen: OrderedDict[tuple[Address, Address], tuple[float, PayerDeposit]] = OrderedDict()
        self._lock, self._asking = Lock(), BoundedSemaphore(ASKING)
        self._dark_until = float("-inf")

    def accept(
        self,
        signed: SignedVoucher,
        price: Wei,
        request: Digest,
        deposit: PayerDeposit,
        *,
        is_most: bool = False,
        goes_on: bool = False,
    ) -> Future[Accepted]:
        """Takes `price` wei for a request; once it is done, what pays for it is on disk. deposit: as `known` or `look`
        said just now. `is_most`, `goes_on`: see KeptVouchers, and for what the future raises.

        Raises RejectedError (VoucherForeign, VoucherUnsigned, TokenNotTaken).
        """
        self.check(signed)
        return self._kept.accept(signed, price, request, deposit, is_most=is_most, goes_on=goes_on)

    def known(self, voucher: Voucher) -> PayerDeposit | None:
        """A payer's deposit, where the chain need not be asked: it was a while ago, or a moment ago if it is short."""
        found = self._remembered(voucher)
        if found is not None and (voucher.amount <= found[0].covered or found[1] <= ASKED_AGAIN_S):
            return found[0]
        return None

    def look(self, signed: SignedVoucher) -> PayerDeposit:
        """The same, by asking the chain if need be. Raises what `check` does, and ChainDark."""
        self.check(signed)
        return self.known(signed.voucher) or self._asked(signed.voucher)

    def settle(self, voucher: Voucher, cost: Wei) -> Future[Wei]:
        """See KeptVouchers."""
        return self._kept.settle(voucher, cost)

    def standing(self, voucher: Voucher) -> tuple[Wei, Wei, Wei]:
        """What the payer of a voucher has spent, its highest one, and what its deposit covers.

        Waits for disk and chain. Raises ChainDark, VouchersNotKept.
        """
        found = self._remembered(voucher)
        deposit = self._asked(voucher) if found is None else found[0]
        spent, highest = self._kept.spent(voucher.token, voucher.payer) or (deposit.redeemed, deposit.redeemed)
        return spent, highest, deposit.covered

    def check(self, signed: SignedVoucher) -> None:
        """What needs neither chain nor disk. Raises RejectedError (VoucherForeign, VoucherUnsigned, TokenNotTaken)."""
        voucher = signed.voucher
        if voucher.token not in self._tokens:
            raise RejectedError(
                f"This gateway takes no payment in 0x{voucher.token.hex()}.",
                code="TokenNotTaken",
                remedy="Pay in one of: " + ", ".join(sorted("0x" + token.hex() for token in self._tokens)) + ".",
            )
        # Before the chain is asked anything. Attack: unsigned vouchers that keep the node busy.
        check_signature(signed, self._kept.domain, self._kept.gateway)

    def _remembered(self, voucher: Voucher) -> tuple[PayerDeposit, float] | None:
        """A payer's deposit as it was asked for last, and how many seconds ago, unless that is long ago."""
        place = voucher.token, voucher.payer
        with self._lock:
            if place not in self._seen:
                return None
            asked_at, deposit = self._seen[place]
            age = self._clock() - asked_at
            if age > FRESH_S:
                return None
            self._seen.move_to_end(place)
        return deposit, age

    def _asked(self, voucher: Voucher) -> PayerDeposit:
        now, place = self._clock(), (voucher.token, voucher.payer)
        deposit = self._answer(voucher, now)
        with self._lock:
            self._seen[place] = (now, deposit)
            self._seen.move_to_end(place)
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return deposit

    def _answer(self, voucher: Voucher, now: float) -> PayerDeposit:
        if now < self._dark_until:
            raise ChainDark("The chain did not answer a moment ago.")
        if not self._asking.acquire(timeout=ASKING_S):
            raise ChainDark("Too many wait for the chain's answer already.")
        try:
            question = self._contract.deposit_of(voucher.payer, self._kept.gateway, voucher.token)
            found: PayerDeposit = self._chain.ask(question)
        except UnavailableError as error:
            self._dark_until = self._clock() + DARK_S
            raise ChainDark(f"The chain does not answer: {error.message}") from error
        finally:
            self._asking.release()
        return found
