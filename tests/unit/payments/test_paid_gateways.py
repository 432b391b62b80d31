"""Gateways, payers and shares as the explorer shows them, from events: every unit is somebody's, and once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from assay.amounts import Currency
from assay.bench.imagined_run import ImaginedRun, imagined_events
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.errors import InvariantError
from assay.protocol.payments.share_earnings import STREAM, WEEK
from assay.protocol.types import Address, Wei
from assay_ledger.bindings.shares import Transfer
from assay_ledger.bindings.vouchers import GatewayPaid
from assay_ledger.chain.client import Head
from tests.harness.payments.told_payments import GATEWAYS, PAYERS, ToldPayments
from tests.harness.rounds.stage import person

OWNER = person(0x799)
SHARE = 10**18
USDC = 10**6


@pytest.fixture
def told() -> Iterator[ToldPayments]:
    """A run without shares whose node never answers, followed by a server's threads."""
    reader = RunReader(ImaginedRun(4))
    reader.is_following = True
    for lookups in (reader.node, reader.replays, reader.files):
        lookups.start()
    yield ToldPayments(reader)
    reader.stop()


def shown(told: ToldPayments, path: str) -> Any:
    answer = TestClient(make_app(told.reader)).get("/api/v1" + path)
    assert answer.status_code == 200, (path, answer.text)
    return answer.json()


def page(told: ToldPayments, path: str) -> str:
    answer = TestClient(make_app(told.reader)).get(path)
    assert answer.status_code == 200, (path, answer.text)
    return answer.text


def hexed(who: Address) -> str:
    return "0x" + who.hex()


def is_rounded_down(row: dict[str, str], exactly: int) -> bool:
    """What one share earned: the contract's books are rounded down, and so is what is shown of them."""
    return exactly - 1 <= int(row["per_share_atto"]) <= exactly


def test_a_gateway_s_page_has_what_was_deposited_redeemed_and_asked_back(told: ToldPayments) -> None:
    for payer in PAYERS:
        told.deposit(payer, GATEWAYS[0], 100)
    told.deposit(PAYERS[0], GATEWAYS[0], 11)
    told.pass_time(60)
    part = told.redeem(GATEWAYS[0], {PAYERS[0]: 61, PAYERS[1]: 30})
    redeemed_at = told.now
    told.pass_time(60)
    later = told.ask_refund(PAYERS[2], GATEWAYS[0], 40)
    told.pass_time(-30)
    first = told.ask_refund(PAYERS[1], GATEWAYS[0], 70)
    (till,) = shown(told, f"/gateways/{hexed(GATEWAYS[0])}")["tokens"]
    assert (till["asked"], till["asked_until"]) == ("110", first), "the earlier one, who asked later, comes first"
    told.take_back(PAYERS[2], GATEWAYS[0], 40)
    (till,) = shown(told, f"/gateways/{hexed(GATEWAYS[0])}")["tokens"]
    assert till | {"gateway": "", "token": ""} == {
        "gateway": "",
        "token": "",
        "payers": 3,
        "deposited": "311",
        "redeemed": "91",
        "kept": str(91 - part),
        "to_owners": str(part),
        "refunded": "40",
        "balance": "180",
        "asked": "70",
        "asked_until": first,
        "redemptions": 1,
        "last_redeemed": redeemed_at,
    }
    assert first < later
    (balance,) = shown(told, "/vouchers")["tokens"]
    assert (balance["holds"], balance["owes"]) == (str(180 + part), str(180 + part))
    unknown = balance["held"], balance["covered"]
    assert unknown == (None, None), "the node of an imagined run never answers, and no page waits for it"
    assert "being asked" in page(told, "/gateways")
    payers = shown(told, f"/gateways/{hexed(GATEWAYS[0])}")["payers"]
    assert sorted(payers, key=str) == sorted(shown(told, "/deposits")["items"], key=str)
    assert payers[0]["payer"] == hexed(PAYERS[1]), "who asks back comes first"


def test_a_redemption_takes_of_what_was_asked_back_and_leaves_no_more(told: ToldPayments) -> None:
    told.deposit(PAYERS[0], GATEWAYS[0], 100)
    told.ask_refund(PAYERS[0], GATEWAYS[0], 80)
    told.redeem(GATEWAYS[0], {PAYERS[0]: 15})
    (account,) = shown(told, "/deposits")["items"]
    assert (account["balance"], account["asked"]) == ("85", "80"), "what was not asked for goes first"
    told.redeem(GATEWAYS[0], {PAYERS[0]: 45})
    (account,) = shown(told, "/deposits")["items"]
    assert (account["balance"], account["asked"]) == ("40", "40")
    told.redeem(GATEWAYS[0], {PAYERS[0]: 40})
    (account,) = shown(told, "/deposits")["items"]
    assert (account["balance"], account["asked"], account["asked_until"]) == ("0", "0", None)


def test_who_asks_nothing_back_of_nobody_is_listed_nowhere(told: ToldPayments) -> None:
    told.deposit(PAYERS[0], GATEWAYS[0], 100)
    # Attack: the contract takes a request for 0 at any address and in any token, from anybody.
    told.ask_refund(PAYERS[1], person(0x7F1), 0, person(0x7F2))
    told.ask_refund(PAYERS[1], GATEWAYS[0], 0)
    assert [till["gateway"] for till in shown(told, "/gateways")["items"]] == [hexed(GATEWAYS[0])]
    assert [one["payer"] for one in shown(told, "/deposits")["items"]] == [hexed(PAYERS[0])]
    assert hexed(person(0x7F2)) not in page(told, "/gateways")


def test_a_payer_that_is_a_gateway_is_both_and_counted_once(told: ToldPayments) -> None:
    both = GATEWAYS[0]
    told.mint(OWNER, SHARE)
    for gateway in GATEWAYS:
        told.deposit(both, gateway, 100)
    told.deposit(PAYERS[0], both, 50)
    told.send_on(told.redeem(both, {both: 40, PAYERS[0]: 50}) + told.redeem(GATEWAYS[1], {both: 100}))
    told.pass_time(6 * WEEK)
    (token,) = shown(told, "/revenue")["tokens"]
    assert {(row["payer"], row["gateway"]): row["earned"] for row in token["paid"]} == {
        (hexed(both), hexed(both)): "4",
        (hexed(PAYERS[0]), hexed(both)): "5",
        (hexed(both), hexed(GATEWAYS[1])): "10",
    }
    assert {row["payer"]: row["earned"] for row in token["payers"]} == {hexed(both): "14", hexed(PAYERS[0]): "5"}
    actor = shown(told, f"/actors/{hexed(both)}")
    assert actor["role"] == "gateway and payer" and len(actor["deposits"]) == 2
    assert f"/gateways/{hexed(both)}" in page(told, f"/actors/{hexed(both)}")


def test_revenue_is_of_who_paid_it_and_of_the_gateway_that_was_paid(told: ToldPayments) -> None:
    told.mint(OWNER, 4 * SHARE)
    for payer in PAYERS[:2]:
        told.deposit(payer, GATEWAYS[0], 10**9)
        told.deposit(payer, GATEWAYS[1], 10**9)
    part = told.redeem(GATEWAYS[0], {PAYERS[0]: 3 * 10**8, PAYERS[1]: 10**8})
    part += told.redeem(GATEWAYS[1], {PAYERS[1]: 4 * 10**8})
    assert part == 8 * 10**7
    # What was redeemed first is sent on first: all of the first gateway's and half of the second's.
    told.send_on(6 * 10**7)
    told.pay_in(PAYERS[2], 10**7)
    told.pass_time(6 * WEEK)
    (token,) = shown(told, "/revenue")["tokens"]
    assert {row["payer"]: row["earned"] for row in token["payers"]} == {
        hexed(PAYERS[0]): str(3 * 10**7),
        hexed(PAYERS[1]): str(3 * 10**7),
        hexed(PAYERS[2]): str(10**7),
    }
    assert {row["gateway"]: row["earned"] for row in token["gateways"]} == {
        hexed(GATEWAYS[0]): str(4 * 10**7),
        hexed(GATEWAYS[1]): str(2 * 10**7),
        None: str(10**7),
    }
    assert (token["earned"], token["coming"], token["deposited"]) == (str(7 * 10**7), "0", str(7 * 10**7))
    # A quarter of a quarter in each week, and one of four shares has a fourth of it.
    assert [row["earned"] for row in token["weeks"]] == [str(7 * 10**7 // 4)] * 4
    assert {is_rounded_down(row, 7 * 10**7 * 10**18 // 16) for row in token["weeks"]} == {True}
    week = shown(told, f"/revenue/{token['weeks'][0]['week']}")["tokens"][0]
    assert sum(int(row["earned"]) for row in week["paid"]) == int(week["earned"]) == 7 * 10**7 // 4
    # The rest is still owed, to the last unit.
    assert shown(told, "/vouchers")["tokens"][0]["owed"] == str(2 * 10**7)


def test_without_shares_a_week_says_that_nobody_earned(told: ToldPayments) -> None:
    told.pay_in(PAYERS[0], 4 * 10**6)
    assert "Nothing has streamed yet" in page(told, "/revenue")
    told.pass_time(2 * WEEK)
    (token,) = shown(told, "/revenue")["tokens"]
    assert token["earned"] == token["per_share_atto"] == "0" and int(token["waiting"]) > 0
    assert int(token["waiting"]) + int(token["coming"]) == 4 * 10**6
    week = token["weeks"][0]["week"]
    assert "no share that could earn it" in page(told, f"/revenue/{week}")
    assert "waits for the first share" in page(told, "/revenue")


def test_a_week_in_which_nothing_streamed_has_no_page(told: ToldPayments) -> None:
    told.pay_in(PAYERS[0], 4 * 10**6)
    told.pass_time(2 * WEEK)
    client = TestClient(make_app(told.reader))
    for path in ("/revenue/1", f"/revenue/{told.now // WEEK + 1}", "/gateways/0x12", f"/gateways/{hexed(OWNER)}"):
        assert client.get(path).status_code == 404, path
        assert client.get("/api/v1" + path).status_code in (404, 422), path


def test_of_a_token_of_six_decimals_a_share_s_part_of_a_unit_is_not_nothing(told: ToldPayments) -> None:
    told.reader.run.facts = replace(told.reader.run.facts, currency=Currency(6, "USDC"))
    told.mint(OWNER, 10**6 * SHARE)
    told.pay_in(PAYERS[0], 4 * USDC)
    told.pass_time(6 * WEEK)
    (token,) = shown(told, "/revenue")["tokens"]
    assert {is_rounded_down(week, 10**18) for week in token["weeks"]} == {True}
    text = page(told, "/revenue")
    assert "0.0000040" in text, "a millionth of 4 dollars is four millionths of a dollar"
    assert ">4.00<" in text and "came to all shares" in text
    # In each week one unit of money for all of a million shares: of it one has a millionth.
    told.pay_in(PAYERS[0], USDC)
    told.mint(OWNER, 10**12 * SHARE - 10**6 * SHARE)
    told.pass_time(6 * WEEK)
    newest = shown(told, "/revenue")["tokens"][0]["weeks"][0]
    assert newest["earned"] == "250000" and is_rounded_down(newest, 250_000 * 10**6)


def test_events_that_make_no_sense_together_are_refused(told: ToldPayments) -> None:
    told.deposit(PAYERS[0], GATEWAYS[0], 100)
    with pytest.raises(InvariantError, match="more than was redeemed"):
        told.send_on(1)
    with pytest.raises(InvariantError, match="sum to another amount"):
        told.tell(GatewayPaid(GATEWAYS[0], told.token, Wei(9), Wei(1)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_unit_is_somebody_s_whatever_happens(data: st.DataObject) -> None:
    told = ToldPayments(RunReader(ImaginedRun(4)))
    told.reader.is_following = True
    books = told.reader.earnings.gateways
    sent = 0
    for _ in range(data.draw(st.integers(1, 12))):
        payer, gateway = data.draw(st.sampled_from([*PAYERS, GATEWAYS[0]])), data.draw(st.sampled_from(GATEWAYS))
        held = {one.payer: one.balance for till in books.tills_of[gateway] for one in till.accounts if one.balance}
        match data.draw(st.sampled_from(["deposit", "redeem", "redeem", "send", "ask", "time", "mint"])):
            case "deposit":
                told.deposit(payer, gateway, data.draw(st.integers(1, 10**12)))
            case "redeem" if held:
                taken = {who: data.draw(st.integers(1, balance)) for who, balance in held.items()}
                told.redeem(gateway, taken, data.draw(st.sampled_from([0, 1, 100_000, 10**6])))
            case "send" if books.balances and (owed := books.balances[told.token].owed):
                amount = data.draw(st.integers(1, owed))
                told.send_on(amount)
                sent += amount
            case "ask" if payer in held:
                told.ask_refund(payer, gateway, data.draw(st.integers(0, held[payer])))
            case "time":
                told.pass_time(data.draw(st.integers(1, 2 * WEEK)))
            case "mint" if not told.reader.earnings.streams[told.token].waiting(told.now):
                told.mint(OWNER, data.draw(st.integers(1, 10**24)))
        for token, balance in books.balances.items():
            assert balance.holds == books.owes(token)
        for till in books.tills:
            assert till.balance == till.deposited - till.redeemed - till.refunded
            assert till.redeemed == till.kept + till.to_owners
    told.pass_time(STREAM + WEEK)
    (token,) = shown(told, "/revenue")["tokens"]
    assert int(token["earned"]) + int(token["waiting"]) == sent == int(token["deposited"])
    for rows in ("payers", "gateways", "paid", "weeks"):
        assert sum(int(row["earned"]) for row in token[rows]) == int(token["earned"])
        assert sum(int(row["per_share_atto"]) for row in token[rows]) <= int(token["per_share_atto"])


def test_shares_that_change_hands_are_no_new_shares(told: ToldPayments) -> None:
    told.mint(OWNER, 2 * SHARE)
    told.pay_in(PAYERS[0], 4 * 10**6)
    told.tell(Transfer(OWNER, PAYERS[1], Wei(SHARE)), "shares")
    told.pass_time(6 * WEEK)
    document = shown(told, "/revenue")
    assert document["shares"] == str(2 * SHARE)
    assert is_rounded_down(document["tokens"][0], 2 * 10**6 * 10**18)


def test_two_tokens_are_told_apart_and_each_is_written_by_its_own_decimals() -> None:
    run, second = ImaginedRun(4), person(0x7E1)
    run.charter = replace(run.charter, revenue_tokens=(run.charter.token, second))
    run.revenue_currencies = {second: Currency(6, "USDC")}
    reader = RunReader(run)
    reader.is_following = True
    for lookups in (reader.node, reader.replays, reader.files):
        lookups.start()
    told = ToldPayments(reader)
    told.mint(OWNER, 2 * SHARE)
    for token, amount in ((told.token, 10**18), (second, 8 * USDC)):
        told.deposit(PAYERS[0], GATEWAYS[0], 10 * amount, token)
        told.send_on(told.redeem(GATEWAYS[0], {PAYERS[0]: 10 * amount}, token=token), token)
    told.pass_time(2 * WEEK)
    found = {row["token"]: row for row in shown(told, "/revenue")["tokens"]}
    assert {token: row["deposited"] for token, row in found.items()} == {
        hexed(told.token): str(10**18),
        hexed(second): str(8 * USDC),
    }
    assert [row["to_owners"] for row in shown(told, "/gateways")["items"]] == [str(10**18), str(8 * USDC)]
    assert [row["holds"] for row in shown(told, "/vouchers")["tokens"]] == ["0", "0"]
    text = page(told, "/revenue")
    assert ">8.00<" in text and ">1.00<" in text, "what was paid in, in whole tokens of either"
    week = found[hexed(second)]["weeks"][-1]
    assert week["earned"] == str(2 * USDC) and is_rounded_down(week, USDC * 10**18)
    reader.stop()


def test_payments_leave_a_model_s_card_as_it_is(told: ToldPayments) -> None:
    told.mint(OWNER, SHARE)
    before = shown(told, "/card")
    told.deposit(PAYERS[0], GATEWAYS[0], 100)
    told.redeem(GATEWAYS[0], {PAYERS[0]: 100})
    assert shown(told, "/card") == before, "a card's bytes follow from the run, not from who pays for answers"


def test_the_card_of_a_generation_is_of_its_weights_and_of_no_other(told: ToldPayments) -> None:
    reader = told.reader
    events = list(imagined_events(reader.run, 600))
    reader.take(reader.known, events, Head(events[-1][1].block, events[-1][2]))
    newest = shown(told, "/card")
    first = shown(told, "/generations/1/card")
    assert (first["weights"]["generation"], first["weights"]["final"]) == (1, True)
    assert newest["weights"]["generation"] > 1 and first["weights"]["root"] != newest["weights"]["root"]
    assert first["weights"]["root"] == newest["generations"][1]["parameters"]
    assert {name: first[name] for name in first if name != "weights"} == {
        name: newest[name] for name in newest if name != "weights"
    }
    text = page(told, "/generations/1/card")
    wanted = (
        first["run"],
        str(first["chain_id"]),
        first["weights"]["root"],
        first["data"]["root"],
        "final",
        "not stated",
    )
    assert all(word in text for word in wanted)
    assert "/generations/1/card" in page(told, "/generations/1")
    assert TestClient(make_app(reader)).get("/generations/999/card").status_code == 404
