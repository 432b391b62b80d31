"""A gateway that is paid: its process, a node, the contract, and payers that mean well or ill."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import httpx
import pytest
from openai import APIStatusError, BadRequestError, OpenAI

from assay.inference.statement import read_statement
from assay.inference.verify import replay
from assay.protocol.digests import keccak
from assay.protocol.payments.voucher import owners_part
from assay.protocol.types import Address
from assay_ledger.chain.client import address_of
from assay_ledger.deployment.vouchers import TERMS
from assay_ledger.vouchers.kept import read_vouchers
from tests.harness.actors.scraping import counted, free_place, judged, one, wait_until
from tests.harness.inference.models import small_gpt
from tests.harness.inference.served import Served
from tests.harness.payments.paid_gateway import PRICE, asked, body, gateway_words, paid_gateway
from tests.harness.payments.paid_run import PaidRun, paid_run
from tests.harness.rounds.samples import ETHER

PAYERS = 6
MOST = 19 * PRICE
"""What the usual request costs at most, and in all: 7 tokens of its prompt and 12 of its answer."""


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    with paid_run(tmp_path_factory.mktemp("paid"), PAYERS) as made:
        made.done(*made.words(0, "deploy"))
        for who in range(PAYERS):
            made.done(*made.words(who, "deposit", "10", *made.at(), "--yes"))
        yield made


@pytest.fixture(scope="module")
def gateway(paid: PaidRun) -> Iterator[Served]:
    with paid_gateway(paid) as served:
        yield served


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_who_pays_is_answered_and_what_is_redeemed_adds_up_to_the_last_unit(paid: PaidRun, gateway: Served) -> None:
    free = asked(gateway, None)
    assert code_of(free) == (402, "VoucherMissing") and free.json()["error"]["type"] == "payment_required"
    terms = free.json()["error"]["payment"]
    assert (terms["cost"], terms["price"], terms["contract"]) == (
        str(MOST),
        str(PRICE),
        "0x" + paid.contract.address.hex(),
    )
    assert gateway.client.get("/v1/models").json()["data"][0]["payment"].items() <= terms.items()
    assert code_of(asked(gateway, paid.signed(0, MOST - 1).to_text())) == (402, "VoucherTooLow")
    before = paid.held(address_of(paid.gateway)), paid.held(paid.run.modules.revenue)
    found = asked(gateway, paid.signed(0, 2 * MOST).to_text()).json()
    statement = read_statement(found["statement"].encode()).statement
    assert replay(small_gpt(), statement).tokens == statement.answer
    assert found["payment"] == {"charged": str(MOST), "spent": str(MOST), "voucher": str(2 * MOST)}
    # What was signed and not spent pays for the next answer, a wei more being signed.
    more = asked(gateway, paid.signed(0, 2 * MOST + 1).to_text(), body(stream=True))
    events = [json.loads(line.removeprefix("data: ")) for line in more.text.splitlines() if line[6:7] == "{"]
    assert events[-1]["payment"] == {"charged": str(MOST), "spent": str(2 * MOST), "voucher": str(2 * MOST + 1)}
    done = paid.done(*paid.words(1, "redeem", "--from", str(paid.folder / "kept")))
    part, named = owners_part(2 * MOST + 1, TERMS.owners_ppm), "0x" + paid.token.hex()
    assert done["paid"] == {named: 2 * MOST + 1 - part} and done["to_owners"] == {named: part}
    after = paid.held(address_of(paid.gateway)), paid.held(paid.run.modules.revenue)
    owed = part - done["sent_on"].get(named, 0)
    assert (after[0] - before[0], after[1] - before[1] + owed) == (2 * MOST + 1 - part, part)
    left = paid.done("gateway", "show", *paid.at(), "--address", paid.keys[0].address)
    assert left["balance"] + 2 * MOST + 1 == 10 * ETHER


def test_a_gateway_shows_what_it_answered_and_what_it_earned(paid: PaidRun) -> None:
    place = free_place()
    with paid_gateway(paid, "--vouchers", str(paid.folder / "shown"), "--metrics", place) as served:
        assert asked(served, None).status_code == 402
        assert asked(served, paid.signed(4, MOST).to_text()).json()["payment"]["charged"] == str(MOST)
        assert asked(served, paid.signed(4, 2 * MOST).to_text(), body(stream=True)).status_code == 200
        # The same voucher buys the same answer, which is sent once more and paid for once.
        assert asked(served, paid.signed(4, 2 * MOST).to_text(), body(stream=True)).status_code == 200
        told = {"2xx": 3, "4xx": 1}
        shown = wait_until(place, lambda found: counted(found, "assay_served_requests_total", "status") == told)
        assert one(shown, "assay_answer_seconds_count") == 3
        assert one(shown, "assay_answer_tokens_total") == 2 * 12
        assert one(shown, "assay_earned_wei_total") == float(2 * MOST)
        assert one(shown, "assay_rpc_requests_total", method="eth_call", outcome="ok") > 0
        has = shown["assay_process_info"][0][0]
        assert (has["role"], has["address"]) == ("gateway", "0x" + address_of(paid.gateway).hex())
        assert judged(place, "/health") == (200, {"alive": True})
        until = time.monotonic() + 120
        while judged(place, "/ready") != (200, {"serving": True, "node": True}):
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_voucher_that_counts_nowhere_pays_for_nothing(paid: PaidRun, gateway: Served) -> None:
    good = paid.signed(1, MOST)
    elsewhere = replace(good, voucher=replace(good.voucher, gateway=Address(b"\x07" * 20)))
    other = replace(good, voucher=replace(good.voucher, token=Address(b"\x07" * 20)))
    for text, code in (
        ("voucher", "VoucherUnreadable"),
        ("[" * 900, "VoucherUnreadable"),
        ("1" * 12_000, "VoucherUnreadable"),
        (elsewhere.to_text(), "VoucherForeign"),
        (other.to_text(), "TokenNotTaken"),
        (replace(good, signature=bytes(65)).to_text(), "VoucherUnsigned"),
        (paid.signed(1, 11 * ETHER).to_text(), "VoucherUncovered"),
    ):
        assert code_of(asked(gateway, text)) == (402, code)
    two = [
        ("Content-Type", "application/json"),
        ("X-Assay-Voucher", good.to_text()),
        ("X-Assay-Voucher", good.to_text()),
    ]
    answer = gateway.client.post("/v1/completions", content=body(), headers=two)
    assert code_of(answer) == (402, "VoucherUnreadable")
    # A request that is refused costs nothing.
    assert code_of(asked(gateway, good.to_text(), body(max_tokens=20_001))) == (400, "TokensAbove")
    assert asked(gateway, good.to_text()).json()["payment"]["spent"] == str(MOST)


def test_one_voucher_sent_many_times_at_once_buys_one_answer(paid: PaidRun, gateway: Served) -> None:
    voucher = paid.signed(2, MOST).to_text()
    contents = [body(user=str(number)) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda content: asked(gateway, voucher, content), contents))
    assert sorted(answer.status_code for answer in found).count(200) == 1
    assert {code_of(answer)[1] for answer in found if answer.status_code != 200} <= {"VoucherUsed", "AnswerUnderWay"}
    # A deposit for 2 answers more, and 8 that ask for them with vouchers that it covers one by one.
    with ThreadPoolExecutor(8) as pool:
        amounts = [2 * MOST + number for number in range(8)]
        found = list(pool.map(lambda amount: asked(gateway, paid.signed(2, amount).to_text()), amounts))
    assert sum(answer.status_code == 200 for answer in found) == 1


def test_the_same_request_is_answered_again_for_nothing_and_alike(paid: PaidRun, gateway: Served) -> None:
    voucher = paid.signed(3, MOST).to_text()
    first, again = asked(gateway, voucher).json(), asked(gateway, voucher).json()
    # No seed was named: it follows from voucher and request, so that one voucher has one answer.
    assert first["statement"] == again["statement"] and first["payment"] == again["payment"]
    drawn = read_statement(first["statement"].encode()).statement.terms.seed
    assert drawn == int.from_bytes(keccak(paid.signed(3, MOST).signature + keccak(body()))[:8], "big")
    assert code_of(asked(gateway, voucher, body(user="another"))) == (402, "VoucherUsed")
    other = asked(gateway, paid.signed(3, 2 * MOST).to_text()).json()
    assert other["choices"][0]["text"] != first["choices"][0]["text"]
    assert code_of(asked(gateway, voucher)) == (402, "VoucherUsed")


def test_who_hangs_up_pays_for_what_was_drawn(paid: PaidRun, gateway: Served) -> None:
    price = (7 + 20_000) * PRICE
    headers = {"X-Assay-Voucher": paid.signed(4, price).to_text(), "Content-Type": "application/json"}
    content = body(max_tokens=20_000, stream=True)
    with gateway.client.stream("POST", "/v1/completions", content=content, headers=headers) as response:
        lines = (line for line in response.iter_lines() if line)
        seen = [next(lines) for _ in range(5)]
        # Whatever is asked meanwhile: the most that it may cost is taken.
        poor = asked(gateway, paid.signed(4, price + 1).to_text())
        assert code_of(poor) == (402, "VoucherTooLow")
        assert poor.json()["error"]["payment"]["spent"] == str(price)
    assert len(seen) == 5
    until = time.monotonic() + 120
    while (spent := int(asked(gateway, paid.signed(4, 0).to_text()).json()["error"]["payment"]["spent"])) == price:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert (7 + 5) * PRICE <= spent < price and spent % PRICE == 0
    assert asked(gateway, paid.signed(4, price + 1).to_text()).json()["payment"]["charged"] == str(MOST)


def test_an_answer_that_broke_off_goes_on_for_its_voucher_and_is_paid_once(paid: PaidRun, gateway: Served) -> None:
    content = body(max_tokens=1_500, stream=True)
    before = asked(gateway, paid.signed(0, 0).to_text(), content).json()["error"]["payment"]
    voucher = paid.signed(0, int(before["amount"])).to_text()
    headers = {"X-Assay-Voucher": voucher, "Content-Type": "application/json"}
    with gateway.client.stream("POST", "/v1/completions", content=content, headers=headers) as response:
        read = (line for line in response.iter_lines() if line)
        seen = [next(read) for _ in range(3)]
    until = time.monotonic() + 120
    while (again := asked(gateway, voucher, content)).status_code == 409:  # it has not seen yet that nobody reads
        assert time.monotonic() < until
        time.sleep(0.1)
    assert again.status_code == 200, again.text
    lines = [line for line in again.text.splitlines() if line[6:7] == "{"]
    assert [json.loads(line[6:])["choices"] for line in seen] == [json.loads(line[6:])["choices"] for line in lines[:3]]
    last = json.loads(lines[-1][6:])
    cost = (7 + 1_500) * PRICE
    assert (last["payment"]["charged"], last["payment"]["spent"]) == (str(cost), str(int(before["spent"]) + cost))
    statement = read_statement(last["statement"].encode()).statement
    assert replay(small_gpt(), statement).tokens == statement.answer and len(statement.answer) == 1_500


def test_the_clients_library_of_openai_talks_through_the_relay_unchanged(paid: PaidRun, gateway: Served) -> None:
    words = ["inference", "relay", "--gateway", str(gateway.said["url"]), "--most", "0.005", "--port", "0", "--json"]
    words += ["--key", str(paid.folder / "payer-5.json"), "--password-file", str(paid.folder / "password")]
    words += [
        "--run",
        "0x" + paid.run.address.hex(),
        "--rpc-url",
        paid.chain.url,
        "--purse",
        str(paid.folder / "purse"),
    ]
    words += ["--model", str(paid.folder / "pulled"), "--verify-ppm", "1000000", "--metrics", (place := free_place())]
    served = Served(words, paid.folder / "relay.log")
    with OpenAI(base_url=served.said["url"], api_key="nobody's", max_retries=0) as client:
        (model,) = client.models.list().data
        assert model.id == "assay" and served.said["covered"] == 10 * ETHER

        def whole(prompt: str) -> tuple[str, int]:
            # Without a seed it is that of voucher and request, which the relay knows too.
            seed = None if prompt == "zz" else 7
            found = client.completions.create(model="assay", prompt=prompt, max_tokens=12, seed=seed)
            assert found.usage is not None and found.usage.completion_tokens == 12
            return found.choices[0].text, found.usage.total_tokens

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(whole, ["the cat", "a dog", "zz", "the cat"]))
        assert answers[0] == answers[3] and answers[0][1] == 19
        pieces = client.completions.create(model="assay", prompt="the cat", max_tokens=12, seed=7, stream=True)
        assert "".join(piece.choices[0].text for piece in pieces) == answers[0][0]
        with pytest.raises(BadRequestError):
            client.completions.create(model="assay", prompt="the cat", n=2)
        # What would pass the most that is to be paid in all is not signed.
        with pytest.raises(APIStatusError) as dear:
            client.completions.create(model="assay", prompt="the cat", max_tokens=10_000)
        assert (dear.value.status_code, dear.value.code) == (402, "PurseEmpty")
    told = {"2xx": 6, "4xx": 2}
    shown = wait_until(place, lambda found: counted(found, "assay_served_requests_total", "status") == told)
    assert one(shown, "assay_answer_seconds_count") == 5
    assert one(shown, "assay_answer_tokens_total") == 5 * 12
    assert one(shown, "assay_rpc_requests_total", method="eth_call", outcome="ok") > 0
    (file,) = (paid.folder / "purse").glob("*.json")
    kept = json.loads(file.read_text())
    assert one(shown, "assay_signed_wei_total") == float(int(kept["highest"]) - int(kept["begun"]))
    assert judged(place, "/health")[0] == 200
    served.stop()
    spent = int(asked(gateway, paid.signed(5, 0).to_text()).json()["error"]["payment"]["spent"])
    assert spent == (sum(total for _, total in answers) + 19) * PRICE
    (file,) = (paid.folder / "purse").glob("*.json")
    assert int(json.loads(file.read_text())["spent"]) == spent


@pytest.mark.long
def test_killed_under_load_no_paid_voucher_is_lost_and_none_is_answered_twice(paid: PaidRun) -> None:
    """Processes are killed amid answers; their payers begin anew from what the next one says."""
    folder = paid.folder / "killed"
    answered: dict[int, dict[int, int]] = {who: {} for who in range(PAYERS)}
    waits, before = [], sum(int(held) for held in _held(paid))
    redeemed = {who: paid.chain.ask(paid.contract.deposit_of(*_place(paid, who))).redeemed for who in range(PAYERS)}
    for kill in range(4):
        began = time.monotonic()
        served = Served(gateway_words(paid, "--vouchers", str(folder)), paid.folder / "killed.log")
        waits.append(time.monotonic() - began)

        def pay(who: int, served: Served = served) -> None:
            told = asked(served, paid.signed(who, 0).to_text()).json()["error"]["payment"]
            amount = int(told["amount"])
            with suppress(httpx.TransportError):
                while True:
                    answer = asked(served, paid.signed(who, amount).to_text(), body(seed=amount % 1000, user=str(who)))
                    assert answer.status_code == 200, answer.text
                    assert amount not in answered[who]
                    paid_for = answer.json()["payment"]
                    answered[who][amount] = int(paid_for["charged"])
                    amount = max(amount + 1, int(paid_for["spent"]) + MOST)

        with ThreadPoolExecutor(PAYERS) as pool:
            paying = [pool.submit(pay, who) for who in range(PAYERS)]
            wanted = sum(map(len, answered.values())) + 40 + 10 * kill
            while sum(map(len, answered.values())) < wanted and not any(one.done() for one in paying):
                time.sleep(0.02)
            served.process.kill()
            for one in paying:
                one.result()
        served.kill()
        kept = {one.voucher.payer: one.voucher.amount for one in read_vouchers(folder)[1]}
        for who, own in answered.items():
            assert kept[address_of(paid.keys[who])] >= max(own, default=0), "an answered voucher is not on disk"
    served = Served(gateway_words(paid, "--vouchers", str(folder)), paid.folder / "killed.log")
    for who, own in answered.items():
        told = asked(served, paid.signed(who, 0).to_text()).json()["error"]["payment"]
        spent, given = int(told["spent"]) - redeemed[who], sum(own.values())
        # What was on disk as answered, and killed before it was read, is paid for; at most one a kill.
        assert given <= spent <= given + 4 * MOST and (spent - given) % MOST == 0
        for amount in list(own)[-3:]:
            again = asked(served, paid.signed(who, amount).to_text(), body(seed=amount % 1000, user=str(who)))
            assert code_of(again) == (402, "VoucherUsed")
    served.stop()
    done = paid.done(*paid.words(1, "redeem", "--from", str(folder)))
    assert done["vouchers"] == PAYERS
    for who in range(PAYERS):
        deposit = paid.chain.ask(paid.contract.deposit_of(*_place(paid, who)))
        assert deposit.redeemed == kept[address_of(paid.keys[who])]
    assert sum(int(held) for held in _held(paid)) == before
    print("answers:", sum(map(len, answered.values())), "seconds to start:", [round(wait, 2) for wait in waits])


def _place(paid: PaidRun, who: int) -> tuple[Address, Address, Address]:
    return address_of(paid.keys[who]), address_of(paid.gateway), paid.token


def _held(paid: PaidRun) -> list[int]:
    """Everything that is anybody's: payers, gateway, contract, revenue."""
    places = [*map(address_of, paid.keys), address_of(paid.gateway), paid.contract.address, paid.run.modules.revenue]
    return [paid.held(place) for place in places]
