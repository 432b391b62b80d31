"""What the explorer shows of payments on a real chain: the contracts' own figures, to the last unit."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address
from starlette.testclient import TestClient

from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.payments.share_earnings import SCALE, WEEK
from assay.protocol.payments.voucher import Voucher, owners_part
from assay.protocol.types import Address, Wei
from assay_ledger.bindings.token import TokenContract
from assay_ledger.bindings.vouchers import PayerVoucherFields
from assay_ledger.chain.client import address_of
from assay_ledger.deployment.vouchers import TERMS
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.index import KeepsEvents
from assay_ledger.vouchers.signed import sign_voucher
from tests.harness.payments.paid_run import PaidRun, paid_run
from tests.harness.rounds.samples import ETHER

PAYERS = 3
ATTO = 10**18
PAGES = ("/revenue", "/gateways")


class ExploredRun:
    """A paid run, an explorer of it, and time that a test lets pass."""

    def __init__(self, paid: PaidRun) -> None:
        self.paid, self.run = paid, paid.run
        self.reader = RunReader(paid.run, clock=self._later)
        self.client = TestClient(make_app(self.reader))
        self._seconds = 0.0

    def _later(self) -> float:
        self._seconds += 60.0  # every look asks for what is new
        return self._seconds

    def shown(self, path: str) -> Any:
        answer = self.client.get("/api/v1" + path)
        assert answer.status_code == 200, (path, answer.text)
        assert path not in PAGES or self.client.get(path).status_code == 200
        return answer.json()

    def pass_until(self, time: int) -> None:
        self.paid.chain.rpc("evm_setNextBlockTimestamp", time)
        self.paid.chain.rpc("evm_mine")

    def mint(self, owner: Address, amount: int) -> None:
        """Shares, as the contract of grants makes them when work has vested."""
        grants, call = to_checksum_address(self.run.modules.grants), self.run.shares.mint(owner, Wei(amount))
        self.paid.chain.rpc("anvil_impersonateAccount", grants)
        self.paid.chain.rpc("anvil_setBalance", grants, hex(10**20))
        sent = {"from": grants, "to": to_checksum_address(call.to), "data": "0x" + call.data.hex(), "gas": hex(10**6)}
        self.paid.chain.rpc("eth_sendTransaction", sent)
        self.paid.chain.rpc("evm_mine")

    def redeem(self, gateway: Address, amounts: dict[int, int]) -> int:
        """One batch: vouchers of these payers, of these amounts in all; returns the owners' part of what they took."""
        paid = self.paid
        batch = []
        for who, amount in amounts.items():
            keys = ActorKeys("payer", paid.keys[who])
            signed = sign_voucher(keys, Voucher(keys.address, gateway, paid.token, Wei(amount)), paid.domain)
            batch.append(PayerVoucherFields(keys.address, Wei(amount), signed.signature))
        before = paid.chain.ask(paid.contract.owed_of(paid.token))
        paid.chain.send(paid.keys[0], paid.contract.redeem(gateway, paid.token, batch))
        return paid.chain.ask(paid.contract.owed_of(paid.token)) - before

    def claimable(self, owner: Address) -> int:
        return int(self.paid.chain.ask(self.run.revenue.claimable(self.paid.token, owner)))

    def compare(self) -> None:
        """Every balance that the contracts tell is the one that is shown, and what is held is what is owed."""
        chain, contract, token = self.paid.chain, self.paid.contract, self.paid.token
        for one in self.shown("/deposits")["items"]:
            payer, gateway = (Address(bytes.fromhex(one[name][2:])) for name in ("payer", "gateway"))
            held = chain.ask(contract.deposit_of(payer, gateway, token))
            assert (one["balance"], one["asked"], one["redeemed"]) == tuple(
                str(value) for value in (held.balance, held.asked, held.redeemed)
            )
            assert one["asked_until"] == (held.not_before if held.asked else None)
        (balance,) = self.shown("/vouchers")["tokens"]
        assert balance["owed"] == str(chain.ask(contract.owed_of(token)))
        assert balance["holds"] == balance["owes"] == balance["held"] == str(self.paid.held(contract.address))
        assert balance["covered"] is True and balance["held_at"] <= chain.head().number
        (shown,) = self.shown("/revenue")["tokens"]
        assert shown["deposited"] == str(chain.ask(self.run.revenue.deposited_of(token)))
        assert int(shown["earned"]) + int(shown["coming"]) + int(shown["waiting"]) == int(shown["deposited"])
        for rows in ("payers", "gateways", "paid", "weeks"):
            assert sum(int(row["earned"]) for row in shown[rows]) == int(shown["earned"])


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    with paid_run(tmp_path_factory.mktemp("explored"), PAYERS) as made:
        yield made


@pytest.fixture
def explored(paid: PaidRun) -> Iterator[ExploredRun]:
    snapshot = paid.chain.rpc("evm_snapshot")
    yield ExploredRun(paid)
    paid.chain.rpc("evm_revert", snapshot)


def test_before_the_contract_of_vouchers_exists_its_place_is_named(explored: ExploredRun) -> None:
    assert explored.shown("/vouchers") == {
        "contract": "0x" + explored.paid.contract.address.hex(),
        "gateways": 0,
        "payers": 0,
        "tokens": [],
    }
    assert explored.shown("/gateways")["items"] == []
    assert "Nobody has deposited" in explored.client.get("/gateways").text
    found = explored.client.get(f"/search?q=0x{explored.paid.contract.address.hex()}", follow_redirects=False)
    assert found.headers["location"] == "/gateways"


def test_what_is_shown_is_what_the_contracts_say_through_every_week(explored: ExploredRun, tmp_path: Path) -> None:
    paid, me = explored.paid, address_of(explored.paid.keys[0])
    gateway, other = address_of(paid.gateway), address_of(paid.keys[1])  # the second is a payer, too
    paid.done(*paid.words(0, "deploy"))
    for who in range(PAYERS):
        paid.done(*paid.words(who, "deposit", "50", *paid.at(), "--yes"))
        paid.done(*paid.words(who, "deposit", "20", "--gateway", to_checksum_address(other), "--yes"))
    part = explored.redeem(gateway, {0: 10 * ETHER, 1: 7, 2: 3 * ETHER + 1})
    assert part == owners_part(Wei(13 * ETHER + 8), TERMS.owners_ppm)
    part += explored.redeem(other, {1: 2 * ETHER})
    asked = paid.done(*paid.words(2, "refund", "40", *paid.at()))
    explored.compare()
    tills = {till["gateway"]: till for till in explored.shown("/gateways")["items"]}
    assert [tills["0x" + at.hex()]["payers"] for at in (gateway, other)] == [PAYERS, PAYERS]
    assert tills["0x" + gateway.hex()]["asked"] == str(40 * ETHER)
    assert tills["0x" + gateway.hex()]["asked_until"] == asked["not_before"]
    for who, said in ((0, False), (2, True)):
        page = explored.client.get(f"/actors/0x{address_of(paid.keys[who]).hex()}").text
        assert ("assay gateway withdraw" in page) == said, "who asked is told how to take it"
    for name, rows in (("gateways", 2), ("deposits", 2 * PAYERS)):
        table = explored.client.get(f"/api/v1/csv/{name}.csv").text
        assert len(list(csv.DictReader(io.StringIO(table)))) == rows == len(explored.shown(f"/{name}")["items"])
    # The owners' part is sent on by anybody, a part of it first; somebody pays into the revenue without a gateway.
    paid.chain.send(paid.keys[2], paid.contract.pay_owners(paid.token, Wei(ETHER)))
    paid.chain.send(paid.keys[2], paid.run.token.approve(paid.run.revenue.address, Wei(ETHER)))
    paid.chain.send(paid.keys[2], paid.run.revenue.deposit(paid.token, Wei(ETHER // 2)))
    explored.compare()
    begins = (paid.chain.head().timestamp // WEEK + 1) * WEEK
    # Nobody has a share in the first days: what streams waits, and streams anew with the first one.
    explored.pass_until(begins + 2 * 86_400)
    explored.compare()
    assert int(explored.shown("/revenue")["tokens"][0]["waiting"]) > 0
    explored.mint(me, 3 * ETHER)
    explored.compare()
    assert explored.shown("/revenue")["tokens"][0]["waiting"] == "0"
    paid.chain.send(paid.keys[0], paid.contract.pay_owners(paid.token, Wei(part - ETHER)))
    for later in (WEEK - 1, WEEK, 2 * WEEK + 77):
        explored.pass_until(begins + later)
        explored.compare()
        (shown,) = explored.shown("/revenue")["tokens"]
        # One owner has all shares: what it may claim is what came to all of them, and three times what one earned.
        assert 0 <= int(shown["earned"]) - explored.claimable(me) <= 1
        assert -ATTO < explored.claimable(me) * ATTO - 3 * int(shown["per_share_atto"]) < 3
        (due,) = explored.shown(f"/actors/0x{me.hex()}")["claimable"]
        assert (due["amount"], due["at"]) == (str(explored.claimable(me)), paid.chain.head().timestamp)
        page = explored.client.get(f"/actors/0x{me.hex()}").text
        assert f"<dt>revenue to claim</dt><dd>{paid.run.currency.show(explored.claimable(me))} in token" in page
        assert "assay ledger claim" in page
    explored.mint(other, ETHER)
    held = {me: 3, other: 1}
    explored.pass_until(begins + 8 * WEEK)
    explored.compare()
    (shown,) = explored.shown("/revenue")["tokens"]
    assert (shown["coming"], shown["earned"]) == ("0", str(part + ETHER // 2))
    assert 0 <= int(shown["earned"]) - sum(map(explored.claimable, held)) <= 3
    gateways = {row["gateway"]: int(row["earned"]) for row in shown["gateways"]}
    assert gateways == {
        "0x" + gateway.hex(): part - owners_part(Wei(2 * ETHER), TERMS.owners_ppm),
        "0x" + other.hex(): owners_part(Wei(2 * ETHER), TERMS.owners_ppm),
        None: ETHER // 2,
    }
    for week in shown["weeks"]:
        (of_week,) = explored.shown(f"/revenue/{week['week']}")["tokens"]
        assert of_week["earned"] == week["earned"] and of_week["per_share_atto"] == week["per_share_atto"]
    # The contract's own accumulator, once it has counted up to now.
    paid.chain.send(paid.keys[0], paid.run.revenue.claim(paid.token))
    stream = paid.chain.ask(paid.run.revenue.stream_of(paid.token))
    (shown,) = explored.shown("/revenue")["tokens"]
    assert shown["per_share_atto"] == str(stream[0] * ETHER * ATTO // SCALE)
    # A second explorer reads what the first has kept, and shows the same without asking for history.
    url = f"sqlite:///{tmp_path / 'events.sqlite'}"
    for _ in range(2):
        reader = RunReader(paid.run, keeps=KeepsEvents(url, "explorer"))
        client = TestClient(make_app(reader))
        for path in ("/revenue", "/gateways", "/deposits"):
            assert client.get("/api/v1" + path).json() == explored.client.get("/api/v1" + path).json(), path
        reader.close()


def test_money_that_came_past_the_deposits_is_nobody_s_and_covers_nothing(explored: ExploredRun) -> None:
    paid = explored.paid
    paid.done(*paid.words(0, "deploy"))
    paid.done(*paid.words(0, "deposit", "5", *paid.at(), "--yes"))
    paid.chain.send(paid.keys[1], TokenContract(paid.token).transfer(paid.contract.address, Wei(3)))
    (balance,) = explored.shown("/vouchers")["tokens"]
    assert (balance["holds"], balance["owes"], balance["held"]) == (str(5 * ETHER), str(5 * ETHER), str(5 * ETHER + 3))
    assert balance["covered"] is True


def test_a_token_that_has_less_than_is_owed_is_said_to(explored: ExploredRun) -> None:
    """Attack: a token whose issuer takes from whom it likes. Nothing of the contract's events tells it."""
    paid = explored.paid
    paid.done(*paid.words(0, "deploy"))
    paid.done(*paid.words(0, "deposit", "5", *paid.at(), "--yes"))
    contract = to_checksum_address(paid.contract.address)
    paid.chain.rpc("anvil_impersonateAccount", contract)
    paid.chain.rpc("anvil_setBalance", contract, hex(10**20))
    taken = TokenContract(paid.token).transfer(address_of(paid.keys[2]), Wei(1))
    sent = {"from": contract, "to": to_checksum_address(taken.to), "data": "0x" + taken.data.hex(), "gas": hex(10**6)}
    paid.chain.rpc("eth_sendTransaction", sent)
    paid.chain.rpc("evm_mine")
    (balance,) = explored.shown("/vouchers")["tokens"]
    assert (balance["held"], balance["covered"]) == (str(5 * ETHER - 1), False)
    assert "it owes more than there is" in explored.client.get("/gateways").text
    # Before the token has answered nobody is told that all is there.
    explored.reader.node.find = lambda *_: None  # type: ignore[method-assign]
    (balance,) = explored.shown("/vouchers")["tokens"]
    assert (balance["held"], balance["covered"]) == (None, None)
    assert "yes, to the last unit" not in explored.client.get("/gateways").text


def test_a_gateway_that_owners_delisted_is_said_to_take_no_deposits(explored: ExploredRun) -> None:
    paid, gateway = explored.paid, address_of(explored.paid.gateway)
    paid.done(*paid.words(0, "deploy"))
    paid.done(*paid.words(0, "deposit", "5", *paid.at(), "--yes"))
    page = f"/gateways/0x{gateway.hex()}"
    assert "takes no deposits" not in explored.client.get(page).text
    explored.reader.votes.delisted[gateway] = None
    assert explored.shown(page)["delisted"] is True and "takes no deposits" in explored.client.get(page).text


def test_where_there_is_no_share_the_page_of_revenue_says_so(explored: ExploredRun) -> None:
    page = explored.client.get("/revenue").text
    assert "There are no shares yet" in page and "one of 0.00" not in page
    explored.mint(address_of(explored.paid.keys[0]), ETHER)
    assert "A share is one of 1.00" in explored.client.get("/revenue").text
