"""What a gateway takes for an answer: the most that it can cost is charged before, and settled once it is known.

An answer costs a price for each token of prompt and answer; nothing before its first token is drawn, nothing where the
gateway itself fails. Source: docs/adr/0064-paid-serving.md.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from assay.protocol.digests import keccak
from assay.protocol.errors import AssayError, RejectedError, UnavailableError
from assay.protocol.payments.voucher import VoucherDomain
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.vouchers.cashier import Cashier
from assay_ledger.vouchers.signed import MAX_TEXT, SignedVoucher

HEADER: Final = "X-Assay-Voucher"

PAYER_OPEN: Final = 16
"""Requests of one payer that are answered at once, or wait. Attack: one payer, from many addresses, in every row."""

ANSWERS_HELD: Final = 256
"""Payers whose last answer is held, or what was drawn of it, for whoever asks again with the same voucher."""

GOES_ON: Final = 3
"""Times that an answer is gone on with after it broke off. Attack: who hangs up at every token, and has prompt and
answer read anew for the price of the next one."""

_THREADS: Final = 16
"""That wait for the chain."""


class PaymentRequired(RejectedError):
    """A request's voucher does not pay for it; the details say which one would."""

    remedy = "Send a voucher that does: the error's `payment` says of what amount."


class PayerBusy(UnavailableError):
    """A payer has as many requests open as one may have."""

    remedy = "Ask again once one of them is answered; nothing was charged."


class AnswerUnderWay(UnavailableError):
    """The very request that this voucher pays for is being answered."""

    remedy = "Ask again when it is; the same voucher pays for it."


@dataclass(frozen=True, slots=True)
class TillTerms:
    """Where a gateway is paid, in which token, and wei for each token of a prompt and of an answer."""

    domain: VoucherDomain
    gateway: Address
    token: Address
    price: Wei

    def cost(self, prompt: int, answer: int) -> Wei:
        """Of so many tokens."""
        return Wei(self.price * (prompt + answer))

    def document(self) -> dict[str, str | int]:
        """What a payer must know; amounts are decimal strings of wei."""
        return {
            "header": HEADER,
            "chain_id": self.domain.chain_id,
            "contract": "0x" + self.domain.contract.hex(),
            "gateway": "0x" + self.gateway.hex(),
            "token": "0x" + self.token.hex(),
            "price": str(self.price),
        }


def seed_of(signed: SignedVoucher, request: Digest) -> int:
    """The seed of an answer that was asked for without one; request: the digest of the body.

    Attack: one voucher sent again and again until its answer pleases, or a gateway that draws again and again and gives
    the longest answer: what a voucher pays for has one answer.
    """
    return int.from_bytes(keccak(signed.signature + request)[:8], "big")


@dataclass(slots=True)
class TakenAnswer:
    """An answer that was paid for, as far as it was drawn. charged: what it cost in wei; gone_on: how often before."""

    tokens: Sequence[int]
    charged: Wei
    is_whole: bool
    gone_on: int = 0


@dataclass(eq=False, slots=True)
class Charge:
    """The most that one answer may cost, taken of one voucher. Belongs to the event loop; settled exactly once."""

    till: Till
    signed: SignedVoucher
    request: Digest
    prompt: int
    answer: TakenAnswer | None = None
    """Where this very request was answered before: what was said then, which is said once more for nothing."""
    begun: TakenAnswer | None = None
    """Where its answer broke off: what was drawn and paid for. It goes on from there."""
    is_read: bool = True
    """Whether prompt and answer were read: who has only waited for a turn has not gone on."""
    settled: Future[dict[str, str]] | None = None

    @property
    def seed(self) -> int:
        """Of an answer that was asked for without one."""
        return seed_of(self.signed, self.request)

    def settle(self, tokens: Sequence[int], *, is_whole: bool) -> Future[dict[str, str]]:
        """What so many drawn tokens cost; on disk, and told as the answer's `payment`, when the future is done.

        is_whole: the answer is held for whoever asks for it again. Raises SettledLater, by the future.
        """
        return self.till.settle(self, tokens, is_whole=is_whole)

    def drop(self, tokens: Sequence[int], *, is_whole: bool = False) -> None:
        """The same where nobody waits for the answer any longer."""
        if self.answer is None:
            self.till.settle(self, tokens, is_whole=is_whole)


class Till:
    """Takes vouchers for answers. Its methods belong to the event loop; the chain is waited for in threads."""

    def __init__(self, cashier: Cashier, terms: TillTerms, most_open: int = PAYER_OPEN) -> None:
        self.terms, self._cashier, self._most_open = terms, cashier, most_open
        self._threads = ThreadPoolExecutor(_THREADS, "till")
        self._open: Counter[Address] = Counter()
        self._asked: set[tuple[Address, Wei]] = set()
        self.earned = 0
        """Wei charged so far."""
        self._held: OrderedDict[Address, tuple[Wei, Digest, TakenAnswer]] = OrderedDict()
        self._broken: OrderedDict[Address, tuple[Wei, Digest, TakenAnswer]] = OrderedDict()
        """Apart from whole ones: of two requests of a payer one is answered while the other has broken off."""

    def close(self) -> None:
        """Nobody is asked any more; what was begun is on disk once the vouchers are closed."""
        self._threads.shutdown()

    def read(self, headers: Sequence[str], body: bytes) -> tuple[SignedVoucher, Digest] | None:
        """A request's voucher and its digest; None where it has no voucher. Neither disk nor chain is asked.

        Raises PaymentRequired.
        """
        if not headers:
            return None
        try:
            if len(headers) > 1 or len(headers[0]) > MAX_TEXT:
                raise RejectedError("A request has one voucher, of 1 KiB at most.", code="VoucherUnreadable")
            signed = SignedVoucher.of_text(headers[0])
            self._cashier.check(signed)
        except RejectedError as error:
            raise self._required(error, None) from None
        return signed, keccak(body)

    async def charge(
        self, found: tuple[SignedVoucher, Digest] | None, prompt: int, most: int, room: Callable[[], None]
    ) -> Charge:
        """Takes the most that an answer of `most` tokens may cost. room: raises where it could not be given anyway.

        Raises PaymentRequired, PayerBusy, AnswerUnderWay, VouchersNotKept, ChainDark, and what `room` raises.
        """
        price = self.terms.cost(prompt, most)
        if found is None:
            missing = RejectedError(
                f"An answer is paid for by a voucher in the header {HEADER}.",
                code="VoucherMissing",
                remedy="Deposit and sign one (`assay gateway deposit`, `voucher`), or let `assay inference relay`.",
            )
            raise self._required(missing, price)
        signed, request = found
        payer, place = signed.voucher.payer, (signed.voucher.payer, signed.voucher.amount)
        if place in self._asked:
            raise AnswerUnderWay("This voucher's request is being answered.")
        begun = self._held_of(signed, request)
        if begun is not None and begun.is_whole:
            return Charge(self, signed, request, prompt, begun)
        if begun is not None:
            price = Wei(price - begun.charged)
        room()
        if self._open[payer] >= self._most_open:
            raise PayerBusy(f"{self._most_open} requests of this payer are open already.")
        self._enter(place)
        charge = Charge(self, signed, request, prompt, begun=begun)
        taking = asyncio.create_task(self._take(signed, price, request, goes_on=begun is not None))
        try:
            await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Who hangs up amid the sync owes nothing, and the charge must not stay open.
            asyncio.get_running_loop().create_task(self._forget(charge, place, taking))
            raise
        except BaseException:
            self._leave(place)
            raise
        return charge

    def settle(self, charge: Charge, tokens: Sequence[int], *, is_whole: bool) -> Future[dict[str, str]]:
        """See Charge."""
        voucher = charge.signed.voucher
        if charge.answer is not None:
            return self._paid(charge, charge.answer.charged)
        if charge.settled is not None:
            return charge.settled
        drawn, begun = array("I", tokens), charge.begun
        before = Wei(0) if begun is None else begun.charged
        cost = max(before, self.terms.cost(charge.prompt, len(drawn)) if drawn else Wei(0))
        if drawn:
            gone_on = 0 if begun is None else begun.gone_on + charge.is_read
            self._hold(charge, TakenAnswer(drawn, cost, is_whole, gone_on))
        self._leave((voucher.payer, voucher.amount))
        charge.settled = self._paid(charge, cost)
        self.earned += cost - before
        return charge.settled

    def _held_of(self, signed: SignedVoucher, request: Digest) -> TakenAnswer | None:
        """What is held of the answer to this very request; None also where it broke off too often."""
        for found in (self._held, self._broken):
            held = found.get(signed.voucher.payer)
            if held is not None and held[:2] == (signed.voucher.amount, request):
                return held[2] if held[2].is_whole or held[2].gone_on < GOES_ON else None
        return None

    def _hold(self, charge: Charge, answer: TakenAnswer) -> None:
        """An answer that broke off goes on for the payer's highest voucher alone, and takes no later one's place."""
        payer, amount = charge.signed.voucher.payer, charge.signed.voucher.amount
        is_last = payer not in self._broken or self._broken[payer][0] <= amount
        if not answer.is_whole and not is_last:
            return
        if is_last:
            self._broken.pop(payer, None)
        held = self._held if answer.is_whole else self._broken
        held[payer] = (amount, charge.request, answer)
        held.move_to_end(payer)
        while len(held) > ANSWERS_HELD:
            held.popitem(last=False)

    async def _take(self, signed: SignedVoucher, price: Wei, request: Digest, *, goes_on: bool) -> None:
        """Returns once the voucher is on disk; PaymentRequired says why it is not."""
        loop = asyncio.get_running_loop()
        try:
            deposit = self._cashier.known(signed.voucher)
            if deposit is None:
                deposit = await loop.run_in_executor(self._threads, self._cashier.look, signed)
            accepted = self._cashier.accept(signed, price, request, deposit, is_most=True, goes_on=goes_on)
            if (await asyncio.wrap_future(accepted)).is_repeat:
                raise RejectedError(
                    "This voucher was accepted for this request before, and its answer is held no longer.",
                    code="VoucherUsed",
                    remedy="Sign a higher amount: it is what you have paid this gateway in all.",
                )
        except RejectedError as error:
            raise await loop.run_in_executor(self._threads, self._required, error, price, signed) from None

    def _paid(self, charge: Charge, cost: Wei) -> Future[dict[str, str]]:
        """What the cost is told as, once it is on disk."""
        voucher, told = charge.signed.voucher, Future[dict[str, str]]()
        rest = Wei(cost if charge.begun is None else cost - charge.begun.charged)
        told.set_running_or_notify_cancel()

        def tell(spent: Future[Wei]) -> None:
            if (error := spent.exception()) is not None:
                told.set_exception(error)
            else:
                told.set_result({"charged": str(cost), "spent": str(spent.result()), "voucher": str(voucher.amount)})

        self._cashier.settle(voucher, rest).add_done_callback(tell)
        return told

    async def _forget(self, charge: Charge, place: tuple[Address, Wei], taking: asyncio.Task[None]) -> None:
        try:
            await taking
        except AssayError:
            self._leave(place)
        except BaseException:
            self._leave(place)
            raise
        else:
            charge.drop(())

    def _enter(self, place: tuple[Address, Wei]) -> None:
        self._asked.add(place)
        self._open[place[0]] += 1

    def _leave(self, place: tuple[Address, Wei]) -> None:
        self._asked.discard(place)
        self._open[place[0]] -= 1
        if not self._open[place[0]]:
            del self._open[place[0]]

    def _required(
        self, error: RejectedError, price: Wei | None, signed: SignedVoucher | None = None
    ) -> PaymentRequired:
        """The refusal with what the next voucher must have. Only who has signed is told what its payer has spent."""
        payment: dict[str, Any] = {**self.terms.document(), "cost": None if price is None else str(price)}
        if signed is not None and price is not None:
            spent, highest, covered = self._cashier.standing(signed.voucher)
            amount = max(highest + 1, spent + price)
            payment |= {"spent": str(spent), "highest": str(highest), "covered": str(covered), "amount": str(amount)}
        return PaymentRequired(error.message, code=error.code, remedy=error.remedy, payment=payment)
