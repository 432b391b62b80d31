"""A run in a token of 6 decimals, as people type and read it: a millionth is its smallest unit, and no amount is more.

Its issuer may change what it says of itself at any time, which takes nothing from whoever is in the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from starlette.testclient import TestClient

from assay.cli import acting
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.errors import FundsError, RejectedError, UsageError
from assay.protocol.types import Wei
from assay_ledger.bindings.token import TokenContract
from assay_ledger.keys.keystore import ActorKeys, find_key, load_keys
from assay_ledger.rounds.run import Run
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.contracts.fresh import write_artifact

USDC = 10**6
RICH = 10**6 * USDC
RECIPE = "examples.own_run:factory"


@dataclass
class PaidDesk:
    """A sponsor at a shell, a run in a token of 6 decimals that it posted, and what the command said of it."""

    desk: Desk
    token: TokenContract
    posted: Any
    run: Run
    keys: ActorKeys

    @property
    def at(self) -> tuple[str, ...]:
        return (*self.desk.run_words, *self.desk.key_words)

    def says(self, decimals: int, symbol: str = "USDC", *, silent: bool = False) -> None:
        """The issuer changes what the token says of itself."""
        call = self.token._call("say(uint8,string,bool)", decimals, symbol, silent)
        self.desk.stage.chain.send_data(self.desk.stage.sponsor, self.token.address, call.data)

    def said(self, *words: str) -> str:
        """Everything that a command prints, in one line."""
        done = self.desk(*words)
        assert done.exit_code in (0, 12), (done.output, done.exception)
        return " ".join((done.stdout + done.stderr).split())

    def free(self) -> int:
        return self.run.chain.ask(self.run.vault.free(self.keys.address))


@pytest.fixture(scope="module")
def paid_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidDesk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as desk:
        write_artifact(desk.folder / "artifacts", "ChangingToken")
        token = TokenContract(desk.stage.chain.deploy(desk.stage.sponsor, "ChangingToken")[0])
        keys = load_keys(find_key(desk.folder / "keys", "sponsor"), "a password")
        desk.stage.chain.send(desk.stage.sponsor, token.mint(keys.address, Wei(RICH)))
        words = ("--recipe", RECIPE, "--steps", "10", "--seats", "1", "--rounds", "2", "--pay")
        posted = desk.post(*words, "--escrow", "2500.000001", "--token", "0x" + token.address.hex())
        run = desk.opened(posted)
        yield PaidDesk(desk.at(run), token, posted, run, keys)


@pytest.fixture
def six(paid_desk: PaidDesk) -> Iterator[PaidDesk]:
    """The same, whose token says 6 decimals again afterwards."""
    yield paid_desk
    paid_desk.says(6)


def test_a_run_is_posted_by_whole_tokens_and_promises_their_smallest_units(six: PaidDesk) -> None:
    e = six.run.charter.economics
    assert (six.posted["token_decimals"], six.posted["token_symbol"]) == (6, "USDC")
    assert six.run.charter.price == six.posted["price_per_round"] == 40 * USDC and e.wage == 52 * USDC
    assert six.posted["escrow"] == six.run.chain.ask(six.run.escrow.balance()) == 2500 * USDC + 1
    shown = six.said("run", "show", *six.desk.run_words)
    assert "price_per_round 40 tokens" in shown and "escrow 2500.000001 tokens" in shown
    assert "token_decimals 6 token_symbol USDC" in shown
    bounds = six.said("economics", "table", *six.desk.run_words)
    assert "pay W 40" in bounds and "wage w 52" in bounds


def test_amounts_are_typed_and_read_in_tokens_and_smallest_units_are_what_moves(six: PaidDesk) -> None:
    held = six.run.chain.ask(six.token.balance_of(six.keys.address))
    dry = six.said("ledger", "stake", "12.5", "--dry-run", *six.at)
    assert "Stakes 12.5 tokens (12500000wei); leaving" in dry and six.free() == 0
    assert six.desk.json("ledger", "stake", "12.5", "--yes", *six.at)["staked"] == 12_500_000 == six.free()
    again = six.said("ledger", "stake", "12.5", "--dry-run", *six.at)
    assert "Stakes 12.5 tokens (12500000wei) beside 12.5 of free stake that are there; leaving" in again
    assert six.desk.json("ledger", "stake", "7500000wei", "--yes", *six.at)["free"] == 20 * USDC == six.free()
    assert held - six.run.chain.ask(six.token.balance_of(six.keys.address)) == 20 * USDC
    with pytest.raises(UsageError):
        raise six.desk.refused("ledger", "stake", "0.0000001", "--yes", *six.at)
    short = six.desk.refused("ledger", "stake", "2000000", "--yes", *six.at)
    assert isinstance(short, FundsError) and "2000000 are to be staked" in short.message
    paid = six.desk.json("run", "fund", "1.5", "--yes", *six.at)
    assert (paid["funded"], paid["from_stake"], six.free()) == (1_500_000, 1_500_000, 18_500_000)
    assert six.desk.json("ledger", "unstake", "18.5", "--yes", *six.at)["leaving"] == 18_500_000
    six.run.chain.rpc("evm_mine", hex(six.run.chain.head().timestamp + six.run.charter.timing.exit + 1))
    out = six.said("ledger", "withdraw", *six.at)
    assert "withdraws 18.5 tokens (18500000wei)" in out and six.free() == 0


def test_who_joins_is_told_in_tokens_and_by_address_what_they_are(six: PaidDesk) -> None:
    address = six.keys.account.address
    told = six.said("run", "can-join", "--address", address, *six.desk.run_words)
    lock = six.run.charter.economics.seat_lock
    assert f'The token 0x{six.token.address.hex()} says 6 decimals and calls itself "USDC".' in told
    assert "its issuer's own code" in told and "For a whole commitment: 40 tokens and 10 shares" in told
    whole, part = divmod(lock + six.run.charter.economics.seat_fee, USDC)
    assert f"locks {whole}.{part:06d}".rstrip("0") in told
    document = six.desk.json("status", "--address", address, *six.desk.run_words)
    assert document["decimals"] == {document["token"]: 6}
    wallet = int(document["wallet"]["tokens"])
    shown = six.said("status", "--address", address, *six.desk.run_words)
    assert f"in the wallet {wallet // USDC}.{wallet % USDC:06d}".rstrip("0").rstrip(".") in shown


def test_revenue_is_paid_and_shown_by_the_revenue_tokens_decimals(six: PaidDesk) -> None:
    assert six.desk.json("ledger", "pay", "3.25", "--yes", *six.at)["paid"] == 3_250_000
    client = TestClient(make_app(RunReader(six.run)))
    assert "<b>3.25</b><span>tokens of revenue" in client.get("/money").text
    assert client.get("/api/v1/money").json()["revenue"] == "3250000"
    assert client.get("/api/v1/run").json()["token"] == {
        "address": "0x" + six.token.address.hex(),
        "decimals": 6,
        "symbol": "USDC",
    }
    page = client.get("/run").text
    assert "6 decimals, calls itself “USDC”" in page and "<dt>unit price</dt><dd>8 tokens</dd>" in page
    assert "<dt>shares per unit</dt><dd>2</dd>" in page
    assert "3.25 tokens" in client.get("/events").text


def test_a_gateway_is_paid_in_tokens_and_smallest_units_are_what_moves(six: PaidDesk) -> None:
    write_artifact(six.desk.folder / "artifacts", "Vouchers")
    at = ("--gateway", "0x" + "7a" * 20, *six.at)
    six.desk.json("gateway", "deploy", *six.at)
    asked = six.said("gateway", "deposit", "12.5", "--dry-run", *at)
    assert "Deposits 12.5 tokens (12500000wei)" in asked
    assert six.desk.json("gateway", "deposit", "12.5", "--yes", *at)["balance"] == 12_500_000
    me = ("--address", six.keys.account.address, *six.desk.run_words)
    assert "balance 12.5" in six.said("gateway", "show", "--gateway", "0x" + "7a" * 20, *me)
    assert "2.25 tokens (2250000wei) can be withdrawn" in six.said("gateway", "refund", "2.25", *at)
    assert six.desk.json("gateway", "refund", "0", *at)["asked"] == 0
    assert six.desk.json("gateway", "voucher", "0.000001", *at)["amount"] == 1
    six.says(6, silent=True)
    assert six.desk.refused("gateway", "deposit", "1000000wei", "--yes", *at).code == "TokenUnreadable"
    assert six.desk.json("gateway", "refund", "12500000wei", *at)["asked"] == 12_500_000


# --- what a hostile issuer changes


def test_a_token_that_stops_saying_its_decimals_is_not_joined_and_keeps_nothing(six: PaidDesk) -> None:
    six.desk.json("ledger", "stake", "5", "--yes", *six.at)
    for decimals, silent in ((77, False), (6, True)):
        six.says(decimals, silent=silent)
        for words in (("ledger", "stake", "1"), ("run", "fund", "1"), ("ledger", "stake", "1000000wei")):
            assert six.desk.refused(*words, "--yes", *six.at).code == "TokenUnreadable"
        refusal = six.said("run", "can-join", "--address", six.keys.account.address, *six.desk.run_words)
        assert refusal.startswith("no: its token does not say its decimals")
        status = six.said("status", "--address", six.keys.account.address, *six.desk.run_words)
        assert f"free {six.free()}wei" in status
        assert six.desk.refused("ledger", "unstake", "5", "--yes", *six.at).code == "AmountUnclear"
        document = six.desk.json("ledger", "unstake", "2500000wei", "--yes", *six.at)
        assert document["leaving"] in (2_500_000, 5_000_000)
    assert six.free() == 0
    words = ("--recipe", RECIPE, "--steps", "10", "--seats", "1", "--token", "0x" + six.token.address.hex(), "--yes")
    at = (*six.desk.chain_words, *six.desk.store_words, *six.desk.key_words)
    assert six.desk.refused("run", "post", *words, *at).code == "TokenUnreadable"


def test_a_token_that_is_too_coarse_is_refused_before_anything_is_captured(
    six: PaidDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.programs.factory.load_recipe", lambda _: pytest.fail("it captures before it checks"))
    words = ("--recipe", RECIPE, "--steps", "10", "--seats", "1", "--token", "0x" + six.token.address.hex(), "--yes")
    at = (*six.desk.chain_words, *six.desk.store_words, *six.desk.key_words)
    for decimals in (0, 2, 4):
        six.says(decimals)
        assert six.desk.refused("run", "post", *words, *at).code == "TokenTooCoarse"


def test_an_actor_that_is_started_again_deposits_what_its_owner_typed(
    six: PaidDesk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attack: the token says two decimals more when a service starts the actor again, with the words of its owner."""
    run, keys, free = six.run, six.keys, six.free()
    wanted = free + 3 * USDC
    amount = f"{wanted // USDC}.{wanted % USDC:06d}"
    acting.bring(run, keys, tmp_path, amount, seats=1)
    assert six.free() == wanted
    for decimals, silent, said in ((8, False, "says 8 decimals, and said 6"), (6, True, "says no decimals any more")):
        six.says(decimals, silent=silent)
        again = Run(run.chain, run.address)
        capsys.readouterr()
        acting.bring(again, keys, tmp_path, amount, seats=1)
        told = " ".join(capsys.readouterr().err.split())
        assert "deposits nothing" in told and said in told and six.free() == wanted
        acting.bring(again, keys, tmp_path, f"{wanted + USDC}wei", seats=1)
        wanted += USDC
        assert six.free() == wanted, "smallest units are what they are"
    six.says(8)
    with pytest.raises(RejectedError) as refused:  # nothing is at stake yet: it does not begin
        acting.bring(Run(run.chain, run.address), ActorKeys("new", Account.create()), tmp_path, "1", seats=1)
    assert refused.value.code == "TokenChanged"


# --- a whole run


@pytest.mark.long
def test_a_round_is_trained_audited_and_paid_in_a_token_of_six_decimals(six: PaidDesk, tmp_path: Path) -> None:
    """Nothing is made or lost, and status, ledger and pages say in tokens what the contracts moved."""
    stage = six.desk.stage
    stage.token = six.token.address
    made: WholeRun = new_whole_run(stage, tmp_path, seats=1, rounds=1)
    made.solver("ada")
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    view = made.end()
    assert view.state.money.phase.name == "OVER"
    price, desk = made.run.charter.price, six.desk.at(made.run)
    assert price == 40 * USDC
    ada = made.address("ada")
    document = desk.json("status", "--address", "0x" + ada.hex(), *desk.run_words)
    assert document["earned"]["pay"] == str(price)
    earned = int(document["earned"]["merges"]) + price
    assert made.wealth("ada") == made.players["ada"].brought + earned
    shown = " ".join(desk("status", "--address", "0x" + ada.hex(), *desk.run_words).stdout.split())
    assert "pay 40 wages 0 " in shown and "shares 10 pending 0 " in shown
    page = TestClient(make_app(RunReader(made.run))).get("/actors/0x" + ada.hex()).text
    assert f"<b>{earned / USDC:,.2f}</b><span>tokens earned" in page
    assert "<b>10.00</b><span>shares of the model" in page
    account, vault = made.players["ada"].agent.account, made.run.vault
    made.chain.send(account, vault.request_exit(Wei(made.free(ada))))
    made.chain.rpc("evm_mine", hex(made.chain.head().timestamp + made.run.charter.timing.exit + 1))
    made.chain.send(account, vault.withdraw())
    assert made.chain.ask(six.token.balance_of(ada)) == made.players["ada"].brought + earned
    left = made.chain.ask(six.token.balance_of(made.run.vault.address))
    assert left == sum(made.chain.ask(made.run.vault.totals()))
