"""`assay status`: what a key has in a run on a real node, as the vault and other commands have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import Result

from assay.amounts import TEST_MONEY
from assay.cli import progress
from assay.cli.seeing import READING_RUN
from assay.cli.status import lines
from assay.explorer import words
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.errors import UsageError
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Round, Seat, Wei
from assay.sponsor.launching import stake_of
from assay.sponsor.vault_stakes import stake_in_vault
from assay.status.locks import when
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.commands import assay_on
from tests.harness.rounds.samples import ETHER, mark

SOLVERS = ("ada", "bob", "cem", "dan")
NOBODY = "0x" + "77" * 20


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture(scope="module")
def made(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    """A run that waits for more auditors: a solver has its seat, an auditor its ticket."""
    found = new_whole_run(desk.stage, tmp_path_factory.mktemp("run"))
    found.solver("ada")
    found.auditor("vera")
    while found.sweep():
        pass
    return found


def asked(made: WholeRun, name: str, *words: str) -> Result:
    return assay_on(made.run, "status", "--address", "0x" + made.address(name).hex(), *words)


def told(made: WholeRun, name: str) -> Any:
    done = asked(made, name, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def test_stake_and_locks_are_those_of_the_vault(made: WholeRun) -> None:
    economics = made.run.charter.economics
    for name, kinds in (("ada", ["seat", "seat fee"]), ("vera", ["ticket"])):
        found, has = told(made, name), stake_in_vault(made.run, made.address(name))
        assert (int(found["stake"]["free"]), int(found["stake"]["locked"])) == (has.free, has.locked)
        assert int(found["stake"]["deposited"]) == made.players[name].brought
        assert [lock["kind"] for lock in found["locks"]] == kinds
        assert sum(int(lock["amount"]) for lock in found["locks"]) == has.locked
        assert {lock["id"]: int(lock["amount"]) for lock in found["locks"]} == {
            "0x" + lock.hex(): amount for lock, (who, amount) in made.locks().items() if who == made.address(name)
        }
    assert told(made, "ada")["income"]["per_round_at_most"] == str(made.run.charter.price if economics.pays else 0)


def test_one_screen_says_what_is_held_locked_and_why(made: WholeRun) -> None:
    shown = asked(made, "ada").stdout
    assert len(shown.splitlines()) < 40 and max(map(len, shown.splitlines())) < 160
    lock = made.run.charter.economics.seat_lock
    (row,) = [line for line in shown.splitlines() if line.startswith("  seat 0 ")]
    assert f" {TEST_MONEY.show(lock)} " in row and "waits for the seat to be left" in row
    assert "Next deadline: none" in shown and "solver" not in shown.splitlines()[1]
    assert "ticket 1" in asked(made, "vera").stdout


def test_what_was_asked_out_is_shown_with_the_time_that_the_vault_keeps(made: WholeRun) -> None:
    ada, amount = made.players["ada"].agent, Wei(ETHER)
    made.chain.send(ada.account, made.run.vault.request_exit(amount))
    leaving, not_before = made.chain.ask(made.run.vault.exiting(ada.me))
    found = told(made, "ada")
    assert found["leaving"] == {"amount": str(leaving), "ends_at": not_before + 1, "is_due": False}
    assert "can be withdrawn in " in asked(made, "ada").stdout
    page = TestClient(make_app(RunReader(made.run))).get(f"/actors/0x{ada.me.hex()}").text
    assert f"which can be taken out after {words.when(not_before)} UTC" in page and "assay ledger withdraw" in page
    made.chain.rpc("evm_mine", hex(not_before))
    assert not told(made, "ada")["leaving"]["is_due"]
    made.chain.rpc("evm_mine", hex(not_before + 1))
    assert told(made, "ada")["leaving"]["is_due"]
    assert "can be withdrawn now: `assay ledger withdraw`" in asked(made, "ada").stdout
    made.chain.send(ada.account, made.run.vault.withdraw())
    assert told(made, "ada")["leaving"] is None


def test_a_committed_challenge_is_a_lock_and_a_deadline_until_it_is_over(made: WholeRun) -> None:
    vera = made.players["vera"].agent
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(0))
    commitment = challenge_commitment(ref, mark("root"), mark("salt"), vera.me)
    made.chain.send(vera.account, made.run.challenges.commit_challenge(commitment))
    found = told(made, "vera")
    (lock,) = [lock for lock in found["locks"] if lock["kind"] == "challenge"]
    assert int(lock["amount"]) == made.run.charter.economics.challenge_deposit
    assert (found["next_deadline"]["kind"], found["next_deadline"]["until"]) == ("challenge", lock["lost_after"])
    assert all(lock["waits_for"] != "the contract that made it" for lock in found["locks"])
    made.chain.rpc("evm_mine", hex(lock["lost_after"] + 1))
    assert told(made, "vera")["next_deadline"] is None and "is lost" in asked(made, "vera").stdout
    made.chain.send(vera.account, made.run.challenges.expire_challenge(commitment))
    after = told(made, "vera")
    assert [lock["kind"] for lock in after["locks"]] == ["ticket"]
    assert int(after["earned"]["lost"]) == made.run.charter.economics.challenge_deposit


def test_a_key_needs_no_password_and_an_address_no_key(desk: Desk, made: WholeRun) -> None:
    at = desk.at(made.run)
    key = ("--key", "sponsor", "--keys-dir", str(desk.folder / "keys"))
    by_key = at.json("status", *at.run_words, *key)
    assert by_key["address"] != "0x" + made.run.charter.sponsor.hex() and by_key["known"] is False
    assert at.json("status", *at.run_words, "--address", by_key["address"]) == by_key


def test_an_address_that_the_run_does_not_know_is_told_how_to_have_a_part(made: WholeRun) -> None:
    done = assay_on(made.run, "status", "--address", NOBODY)
    assert done.exit_code == 0 and f"assay run can-join --address {NOBODY}" in done.stdout
    found = json.loads(assay_on(made.run, "status", "--address", NOBODY, "--json").stdout)
    assert found["known"] is False and found["locks"] == [] and found["wallet"] == {"coins": "0", "tokens": "0"}


@pytest.mark.parametrize("typed", ["", "0x", "0x12", "12" * 21, "0x" + "zz" * 20, "ada"])
def test_what_is_no_address_is_wrong_usage(made: WholeRun, typed: str) -> None:
    found = assay_on(made.run, "status", "--address", typed).exception
    assert isinstance(found, UsageError) and found.code == "AddressInvalid" and found.exit_code == 2


def test_a_time_is_now_from_its_own_second_on() -> None:
    assert when(100, 100) == when(99, 100) == "now"
    assert when(101, 100) == "in 1 s (chain time 101)"


def test_the_names_of_the_document_stay_what_scripts_read(made: WholeRun) -> None:
    found = told(made, "ada")
    assert list(found) == [
        *("run", "address", "known", "roles", "phase", "block", "now", "stake", "locks", "leaving"),
        *("withdrawal_address", "seats", "tickets", "next_deadline", "deadlines", "earned", "income"),
        *("token", "decimals", "wallet"),
    ]
    assert list(found["locks"][0]) == [
        *("id", "kind", "number", "what", "amount", "ends_at", "not_before", "lost_after", "waits_for"),
    ]
    assert found["decimals"] == {found["token"]: 18} and found["token"] == "0x" + made.run.charter.token.hex()
    assert set(found["stake"]) == {"deposited", "withdrawn", "free", "locked"}
    assert next(iter(lines(found))).endswith(f"chain time {found['now']}")
    assert int(found["stake"]["locked"]) == stake_of(made.run.charter, seats=1)


def test_a_run_is_followed_from_the_first_deadline_to_the_last_lock(desk: Desk, tmp_path: Path) -> None:
    made = new_whole_run(desk.stage, tmp_path, rounds=1)
    for name in SOLVERS:
        made.solver(name)
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    until = made.view.commit_until(Round(0))
    assert {told(made, name)["next_deadline"]["until"] for name in SOLVERS} == {until}
    made.settle(lambda view: len(view.works(Round(0))) == len(SOLVERS))
    found = told(made, "ada")
    assert {due["kind"] for due in found["deadlines"]} == {"merge"}
    assert found["earned"]["unpaid"]["commitments"] == found["seats"][0]["unsettled"] == 1
    ada = made.address("ada")
    made.settle(lambda view: any(record.owner == ada for record in view.state.money.vesting.values()))
    grown = told(made, "ada")["earned"]
    assert int(grown["pending"]) == made.chain.ask(made.run.grants.pending_of(ada)) > 0
    assert [grant["ends_at"] > made.chain.head().timestamp for grant in grown["vesting"]] == [True]
    end = made.end()
    assert end.state.money.is_ended
    for name in made.players:
        over = told(made, name)
        held = {"0x" + lock.hex(): amount for lock, (who, amount) in made.locks().items() if who == made.address(name)}
        assert {lock["id"]: int(lock["amount"]) for lock in over["locks"]} == held == {}
        assert over["deadlines"] == [] and over["income"] is None and over["earned"]["unpaid"]["commitments"] == 0
        assert int(over["stake"]["free"]) == made.free(made.address(name))
        assert f"`assay ledger unstake {TEST_MONEY.show(made.free(made.address(name)))}`" in asked(made, name).stdout
        earned = {key: int(over["earned"][key]) for key in ("pay", "wages", "merges", "won", "lost")}
        assert int(over["stake"]["free"]) - int(over["stake"]["deposited"]) == sum(earned.values()) - 2 * earned["lost"]
        assert name not in SOLVERS or (earned["pay"] and int(over["earned"]["shares"]) == made.shares(name) > 0)


@pytest.mark.parametrize(
    "words", (("status", "--address", NOBODY), ("run", "show"), ("dispute", "list"), ("explain", NOBODY)), ids=" ".join
)
def test_whoever_reads_a_run_says_so_while_it_lasts(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.001)
    done = assay_on(made.run, *words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"{READING_RUN}: " in done.stderr and READING_RUN not in done.stdout
