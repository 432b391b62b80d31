"""`assay ledger withdrawal-address`: what leaves of a key goes to an address that the key cannot change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from starlette.testclient import TestClient

from assay.amounts import TEST_MONEY
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.errors import UsageError
from assay.protocol.types import Wei
from assay.sponsor.launching import deposit, mint_tokens
from assay_ledger.chain.client import address_of
from assay_ledger.keys.keystore import find_key, load_keys
from assay_ledger.rounds.run import Run
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.rounds.samples import ETHER

ONE = TEST_MONEY.parse("1")
COLD_KEY, NOBODYS = "cold", Account.create().address


@dataclass
class KeyedDesk:
    """A desk in a run, whose keys are a hot one with stake and a cold one."""

    desk: Desk
    run: Run
    hot: str
    cold: str
    account: LocalAccount
    """Of the hot key."""

    def words(self, key: str) -> tuple[str, ...]:
        return (*self.desk.run_words, "--key", key, *self.desk.key_words[2:])

    def as_hot(self, *words: str) -> Any:
        return self.desk.json("ledger", *words, *self.words("sponsor"))

    def as_cold(self, *words: str) -> Any:
        return self.desk.json("ledger", *words, *self.words(COLD_KEY))

    def refused(self, *words: str, key: str = "sponsor") -> str:
        return self.desk.refused("ledger", *words, *self.words(key)).code

    def stake(self, amount: int) -> None:
        """The hot key stakes so many tokens."""
        mint_tokens(self.run.chain, self.account, self.run.token, address_of(self.account), Wei(amount * ONE))
        deposit(self.run.chain, self.account, self.run, Wei(amount * ONE))

    def status(self) -> Any:
        return self.desk.json("status", *self.desk.run_words, "--address", self.hot)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedDesk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as desk:
        made = new_whole_run(desk.stage, tmp_path_factory.mktemp("run"))
        at = ("--keys-dir", str(desk.folder / "keys"), "--password-file", str(desk.folder / "password"))
        cold = desk.json("key", "new", COLD_KEY, "--kdf", "pbkdf2", *at)["address"]
        account = load_keys(find_key(desk.folder / "keys", "sponsor"), "a password").account
        desk.stage.chain.transfer(desk.stage.sponsor, cold, ETHER)
        yield KeyedDesk(desk.at(made.run), made.run, account.address, cold, account)


def test_what_leaves_of_a_stolen_key_is_paid_to_an_address_that_it_cannot_change(keyed: KeyedDesk) -> None:
    made, run, chain = keyed, keyed.run, keyed.run.chain
    made.stake(100)
    made.as_hot("unstake", "60", "--yes")
    assert made.status()["withdrawal_address"] == made.hot.lower()
    said = made.desk("ledger", "withdrawal-address", made.cold, "--dry-run", *made.words("sponsor"))
    assert f"Nobody has used {made.cold} on this chain yet" in " ".join(said.stderr.split())
    named = made.as_hot("withdrawal-address", made.cold, "--yes")
    assert (named["owner"], named["withdrawal_address"]) == (made.hot, made.cold) and named["tx"]
    shown = made.desk.json("ledger", "withdrawal-address", *made.desk.run_words, "--for", made.hot)
    assert shown == {"owner": made.hot, "withdrawal_address": made.cold, "tx": None}
    # The thief of the hot key.
    assert made.refused("withdrawal-address", NOBODYS, "--yes") == "NotThePayee"
    assert made.refused("unstake", "1", "--yes") == "NotThePayee"
    early = made.desk("ledger", "withdraw", *made.words("sponsor"))
    assert early.exception.code == "ExitTooEarly"
    assert " tokens (60000000000000000000wei) can be withdrawn in 4 d 17 h (chain time " in " ".join(
        early.stderr.split()
    )
    # More than is free, or what another address alone may ask for, is not promised by a rehearsal either.
    assert made.refused("unstake", "40", "--dry-run") == "NotThePayee"
    # The owner, by its other key.
    asked = made.as_cold("unstake", "40", "--for", made.hot, "--yes")
    assert asked["leaving"] == 100 * ONE
    # The first second that the contract takes: strictly after the one that it keeps.
    assert asked["not_before"] == chain.ask(made.run.vault.exiting(address_of(made.account)))[1] + 1
    chain.rpc("evm_mine", hex(asked["not_before"]))
    found = made.status()
    assert (found["withdrawal_address"], found["leaving"]["is_due"]) == (made.cold.lower(), True)
    assert made.cold in made.desk("status", *made.desk.run_words, "--address", made.hot).stdout
    # The thief may pay; whom, it does not choose.
    paid = made.as_hot("withdraw")
    assert (paid["to"], paid["held"]) == (made.cold, 100 * ONE)
    assert chain.ask(run.token.balance_of(address_of(made.account))) == 0
    with TestClient(make_app(RunReader(run))) as client:
        page = client.get(f"/actors/{made.hot.lower()}").text
        assert "withdrawal address" in page and made.cold.lower() in page
        assert client.get(f"/api/v1/actors/{made.hot.lower()}").json()["withdrawal_address"] == made.cold.lower()
    assert made.as_cold("withdrawal-address", made.hot, "--for", made.hot, "--yes")["withdrawal_address"] == made.hot
    assert made.status()["withdrawal_address"] == made.hot.lower()


def test_anybody_withdraws_for_an_owner(keyed: KeyedDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    made = keyed
    made.stake(7)
    assert made.refused("unstake", "8", "--dry-run") == "InsufficientFree"
    assert "can be withdrawn" not in made.desk("ledger", "unstake", "8", "--yes", *made.words("sponsor")).stderr
    first = made.as_hot("unstake", "3", "--yes")
    assert (first["leaving"], first["waited"], first["waited_since"]) == (3 * ONE, 0, None)
    # Its delay starts anew with what is asked for beside it, and whoever asks is told so before.
    made.run.chain.rpc("evm_mine", hex(first["not_before"] - 60))
    said = made.desk("ledger", "unstake", "4", "--dry-run", *made.words("sponsor")).stderr
    assert "3 tokens (3000000000000000000wei) were asked for" in said and "starts anew" in said
    questions: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("assay.cli.ledger.confirm", lambda question, yes: questions.append(question))
        made.desk("ledger", "unstake", "1", *made.words("sponsor"))
    assert questions[0].endswith("stake, and start the delay of 3 tokens (3000000000000000000wei) anew?")
    _, not_before = made.run.chain.ask(made.run.vault.exiting(address_of(made.account)))
    asked = made.as_hot("unstake", "3", "--yes")
    since = not_before - made.run.charter.timing.exit
    assert (asked["leaving"], asked["waited"], asked["waited_since"]) == (7 * ONE, 4 * ONE, since)
    assert asked["not_before"] > first["not_before"]
    made.run.chain.rpc("evm_mine", hex(asked["not_before"] + 1))
    said = made.desk("ledger", "unstake", "4", "--dry-run", *made.words("sponsor")).stderr
    assert "it is over: `assay ledger withdraw`" in " ".join(said.split())
    paid = made.as_cold("withdraw", "--for", made.hot)
    assert (paid["to"], paid["held"]) == (made.hot, 7 * ONE)
    nothing = made.desk("ledger", "withdraw", "--for", made.hot, *made.words(COLD_KEY))
    assert nothing.exception.code == "NothingExiting" and "0 tokens" not in nothing.stderr
    assert made.refused("unstake", "1", "--for", made.hot, "--yes", key=COLD_KEY) == "NotThePayee"
    assert made.as_cold("claim", "--for", made.hot) == {"vested": 0, "claimed": {}, "tx": None}


@pytest.mark.parametrize("typed", ["lower case", "one letter wrong", "too short"])
def test_an_address_that_may_be_mistyped_is_wrong_usage(keyed: KeyedDesk, typed: str) -> None:
    letter = next(k for k, c in enumerate(keyed.cold) if k > 1 and c.isalpha())
    wrong = keyed.cold[:letter] + keyed.cold[letter].swapcase() + keyed.cold[letter + 1 :]
    words = {"lower case": keyed.cold.lower(), "one letter wrong": wrong, "too short": keyed.cold[:-2]}
    found = keyed.desk.refused("ledger", "withdrawal-address", words[typed], "--yes", *keyed.words("sponsor"))
    assert isinstance(found, UsageError) and found.exit_code == 2
    assert found.code == ("AddressInvalid" if typed == "too short" else "AddressUnchecked")


def test_an_address_that_nobody_has_a_key_of_is_refused_before_anything_is_asked(keyed: KeyedDesk) -> None:
    for nobody in ("0x" + "00" * 20, "0x000000000000000000000000000000000000dEaD"):
        assert keyed.refused("withdrawal-address", nobody) == "PayeeRefused"
