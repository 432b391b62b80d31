"""What a gateway takes for an answer: once for each voucher, by so many requests of one payer, and nothing for none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.inference.gateway import till as tills
from assay.inference.gateway.app import _Answer
from assay.inference.gateway.asked import CompletionAsked
from assay.inference.gateway.batcher import GatewayBusy
from assay.inference.gateway.till import AnswerUnderWay, Charge, PayerBusy, PaymentRequired, Till, TillTerms
from assay.inference.sampling import GREEDY
from assay.protocol.types import Wei
from assay_ledger.bindings.vouchers import VouchersContract
from assay_ledger.chain.client import Chain
from assay_ledger.vouchers.cashier import Cashier
from assay_ledger.vouchers.kept import KeptVouchers
from tests.harness.payments.kept_samples import DOMAIN, FULL, GATEWAY, TOKEN, payer, signed

PRICE = 10


class RichChain(Chain):
    """Says of every payer that its deposit is large, and asks no node."""

    def __init__(self) -> None:
        pass

    def ask(self, *_args: Any, **_more: Any) -> Any:
        return FULL


class PlayedTill:
    """A till, its vouchers on disk, and requests of 2 tokens for 3 more."""

    def __init__(self, folder: Path, most_open: int) -> None:
        self.kept = KeptVouchers(folder, DOMAIN, GATEWAY)
        cashier = Cashier(RichChain(), VouchersContract(DOMAIN.contract), self.kept, [TOKEN])
        self.till = Till(cashier, TillTerms(DOMAIN, GATEWAY, TOKEN, Wei(PRICE)), most_open)

    async def charge(
        self, who: int, amount: int, body: bytes = b"{}", room: Callable[[], None] = lambda: None
    ) -> Charge:
        return await self.till.charge(self.till.read([signed(who, amount).to_text()], body), 2, 3, room)

    async def answered(self, who: int, amount: int, body: bytes = b"{}") -> dict[str, str]:
        charge = await self.charge(who, amount, body)
        return await asyncio.wrap_future(charge.settle((7, 8, 9), is_whole=True))

    async def hung_up(self, who: int, amount: int) -> None:
        """A request that ends while its voucher is written, or its deposit asked for; and leaves its place."""
        asking = asyncio.create_task(self.charge(who, amount))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        for _ in range(500):
            if self.till._open:
                await asyncio.sleep(0.01)
        assert not self.till._open and not self.till._asked, "its place is held"

    def spent(self, who: int) -> int | None:
        found = self.kept.spent(TOKEN, payer(who).address)
        return None if found is None else found[0]

    def close(self) -> None:
        self.till.close()
        self.kept.close()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[PlayedTill]:
    made = PlayedTill(tmp_path, most_open=2)
    yield made
    made.close()


def done(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_an_answer_is_given_again_while_it_is_held_and_never_drawn_again(
    played: PlayedTill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tills, "ANSWERS_HELD", 1)

    async def play() -> None:
        assert (await played.answered(0, 50))["spent"] == "50"
        again = await played.charge(0, 50)
        assert again.answer is not None and list(again.answer.tokens) == [7, 8, 9]
        assert (await asyncio.wrap_future(again.settle((), is_whole=True)))["charged"] == "50"
        await played.answered(1, 50)
        with pytest.raises(PaymentRequired) as refused:
            await played.charge(0, 50)
        assert refused.value.code == "VoucherUsed" and played.spent(0) == 50

    done(play())


def test_an_answer_that_broke_off_goes_on_for_its_voucher_and_costs_its_rest(played: PlayedTill) -> None:
    async def play() -> None:
        (await played.charge(0, 50)).drop((7,))
        assert played.spent(0) == 30, "the prompt's two tokens and one that was drawn"
        again = await played.charge(0, 50)
        assert again.begun is not None and list(again.begun.tokens) == [7] and again.answer is None
        assert played.spent(0) == 50, "the most that the rest may cost is taken"
        assert await asyncio.wrap_future(again.settle((7, 8), is_whole=True)) == {
            "charged": "40",
            "spent": "40",
            "voucher": "50",
        }
        whole = await played.charge(0, 50)
        assert whole.answer is not None and list(whole.answer.tokens) == [7, 8] and played.till.earned == 40

    done(play())


def test_an_answer_goes_on_three_times_and_for_the_newest_voucher_alone(played: PlayedTill) -> None:
    """Attack: who hangs up at every token has prompt and answer read anew for the price of the next one."""

    async def play() -> None:
        for _ in range(1 + tills.GOES_ON):
            (await played.charge(0, 50)).drop((7,))
        with pytest.raises(PaymentRequired) as refused:
            await played.charge(0, 50)
        assert refused.value.code == "VoucherUsed" and played.spent(0) == 30
        late = await played.charge(0, 80)
        (await played.charge(0, 130, b"another")).drop((7,))
        late.drop((7,))
        with pytest.raises(PaymentRequired):
            await played.charge(0, 80)
        assert (await played.charge(0, 130, b"another")).begun is not None

    done(play())


def test_an_answer_that_broke_off_and_a_whole_one_take_no_place_of_each_other(played: PlayedTill) -> None:
    """Bad luck: a relay of two clients, one of which hangs up; what it had paid for was let go for the other's end."""

    async def play() -> None:
        first = await played.charge(0, 50)
        (await played.charge(0, 100, b"another")).drop((7,))
        first.settle((7, 8, 9), is_whole=True)
        assert (await played.charge(0, 50)).answer is not None
        again = await played.charge(0, 100, b"another")
        assert again.begun is not None and list(again.begun.tokens) == [7]
        again.drop((7, 8))
        assert (await played.charge(0, 50)).answer is not None, "it is held until the payer's next one"
        await played.answered(0, 200, b"a third")
        assert not played.till._broken, "of what broke off nothing can go on any more"

    done(play())


def test_who_gives_up_before_its_turn_has_gone_on_no_time(played: PlayedTill) -> None:
    """Bad luck: a gateway with many who wait, and a client that asks again every ten seconds: it paid anew."""
    terms: Any = SimpleNamespace(seconds=60.0)
    busy: Any = SimpleNamespace(submit=lambda _: None)

    async def tried(*, is_read: bool) -> None:
        charge = await played.charge(0, 50)
        assert charge.begun is not None and list(charge.begun.tokens) == [7]
        answer = _Answer(terms, CompletionAsked(model="m", prompt=[1, 2], max_tokens=3), [1, 2], GREEDY, charge)
        answer.begin(busy)
        answer._wish.is_read = is_read
        answer.give_up()

    async def play() -> None:
        (await played.charge(0, 50)).drop((7,))
        for _ in range(1 + tills.GOES_ON):
            await tried(is_read=False)
        for _ in range(tills.GOES_ON):
            await tried(is_read=True)
        with pytest.raises(PaymentRequired):
            await played.charge(0, 50)
        assert played.spent(0) == 30

    done(play())


def test_one_payer_has_so_many_requests_open_and_one_more_when_one_is_answered(played: PlayedTill) -> None:
    async def play() -> None:
        first, _ = await played.charge(0, 50), await played.charge(0, 100)
        with pytest.raises(PayerBusy):
            await played.charge(0, 150)
        with pytest.raises(AnswerUnderWay):
            await played.charge(0, 100)
        await played.charge(1, 50)
        first.drop(())
        await played.charge(0, 101, b"another")
        with pytest.raises(PayerBusy):
            await played.charge(0, 200)

    done(play())


def test_where_there_is_no_room_nothing_is_charged(played: PlayedTill) -> None:
    def room() -> None:
        raise GatewayBusy("Full.", retry_after=1)

    async def play() -> None:
        for _ in range(3):
            with pytest.raises(GatewayBusy):
                await played.charge(0, 50, room=room)
        assert played.spent(0) is None

    done(play())


def test_who_hangs_up_amid_the_sync_owes_nothing_and_holds_no_place(played: PlayedTill) -> None:
    async def play() -> None:
        for amount in range(50, 53):
            await played.hung_up(0, amount)
        await played.charge(0, 60)
        await played.charge(0, 110)

    done(play())
    assert played.spent(0) == 100


def test_who_hangs_up_while_the_chain_answers_oddly_holds_no_place(
    played: PlayedTill, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(_signed: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(played.till._cashier, "look", odd)

    async def play() -> None:
        await played.hung_up(0, 50)

    done(play())


def test_a_voucher_and_a_request_have_one_seed(played: PlayedTill) -> None:
    async def play() -> None:
        charge = await played.charge(0, 50)
        assert charge.seed == charge.seed < 1 << 64
        other = await played.charge(0, 100)
        assert len({charge.seed, other.seed}) == 2

    done(play())
