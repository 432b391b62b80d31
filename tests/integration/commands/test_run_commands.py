"""Commands about a run, on a real node: posted, looked at, funded, joined, cancelled, paid back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from eth_account import Account

from assay.cli import acting
from assay.cli.common import archive_of
from assay.cli.sponsor import RunLacks
from assay.cli.weights import WeightsNotOnChain
from assay.planning.outlook import away_words
from assay.protocol.digests import keccak
from assay.protocol.errors import ConfigError, ExitCode, FundsError, RejectedError, UsageError, UserError
from assay.protocol.run.beacon import EVMNET
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Address, BeaconRound, DType, Wei
from assay.sponsor import cards
from assay.sponsor.cards import listed_runs
from assay.sponsor.launching import deposit, escrow_of, stake_of
from assay.training.merge import MergeRule, usual_limit
from assay.training.presets import TINY
from assay.training.programs import merge_program
from assay.training.robust import MergeKind
from assay.training.updates import UpdateWire
from assay_ledger.agents.heartbeat import Activity, HeartbeatWriter
from assay_ledger.chain.client import address_of
from assay_ledger.deployment.code import UnknownCode, code_of
from assay_ledger.deployment.deploy import deploy_run
from assay_ledger.deployment.places import LEAVES, ROUND_CONTRACTS
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import open_store
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.world import ETHER
from tests.harness.relays import running_relay

RECIPE = "examples.own_run:factory"
TOKEN = 10**18


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture(scope="module")
def posted(desk: Desk) -> tuple[Desk, Any]:
    """A small run whose updates travel in one byte a parameter, with its clipped mean, and what was said of it."""
    programs = ("--update", "int8", "--merge", "median-norm")
    document = desk.post("--preset", "tiny", "--seats", "2", "--rounds", "1", *programs, "--escrow", "5000")
    return desk.at(desk.opened(document)), document


def test_a_run_of_int8_updates_is_posted_listed_and_shown(posted: tuple[Desk, Any]) -> None:
    desk, document = posted
    run = desk.opened(document)
    archive = archive_of(run, open_store(desk.folder / "store"))
    archive.check()
    assert {spec.dtype for spec in archive.update_specs} == {DType.I8, DType.F32}
    rule = MergeRule(usual_limit(TINY.inner_steps, float(torch.tensor(TINY.learning_rate))), kind=MergeKind.MEDIAN_NORM)
    shapes = [torch.zeros(spec.dims) for spec in archive.specs(TrainingList.PARAMETERS)]
    assert run.charter.merge.root == merge_program(shapes, 2, rule, UpdateWire.INT8).root
    listed = desk.json("run", "list", *desk.chain_words, *desk.store_words)
    assert {"run": document["run"], "model": "tiny", "rounds": 1, "block": listed[0]["block"]} in listed
    shown = desk.json("run", "show", *desk.run_words)
    assert shown["phase"] == "funding" and shown["code"]["status"] == "release" and shown["seats"] == 2
    assert shown["escrow"] == 5000 * TOKEN == document["escrow"]
    plain = desk("run", "show", *desk.run_words)
    assert plain.exit_code == 0 and "programs witness" in plain.stdout
    assert desk.refused(
        "run", "post", "--update", "fp4", *desk.chain_words, *desk.store_words, *desk.key_words
    ).code == ("UnknownCarrier")


def test_a_model_of_ones_own_is_posted_under_its_name_and_its_options_are_its_own(desk: Desk) -> None:
    words = ("--recipe", RECIPE, "--steps", "10", "--tier", "fixed8", "--rounds", "1")
    document = desk.post(*words, "--seats", "3", "--pay")
    run = desk.opened(document)
    archive_of(run, open_store(desk.folder / "store")).check()
    listed = desk.json("run", "list", *desk.chain_words, *desk.store_words)
    assert (document["run"], RECIPE) in [(entry["run"], entry["model"]) for entry in listed]
    assert run.charter.training.steps_per_round == 10 and run.charter.training.shards == 3
    assert document["escrow"] == escrow_of(run.charter) == run.chain.ask(run.escrow.balance())
    at = (*desk.chain_words, *desk.store_words, *desk.key_words, "--yes")
    for more in (("--preset", "tiny"), ("--data", "text")):
        assert isinstance(desk.refused("run", "post", *words, *more, *at), UsageError)
    clash = desk.refused("run", "post", "--steps", "10", *at)
    assert clash.code == "OptionsClash" and "--steps" in clash.message


def test_runs_are_listed_the_oldest_first(posted: tuple[Desk, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The guide takes the last one: who posts a second run stakes in no other."""
    desk, document = posted
    second = desk.post("--preset", "tiny", "--seats", "2", "--rounds", "2", "--escrow", "5000")
    there = listed_runs(open_store(desk.folder / "store"))
    for found in (there, there[::-1]):
        monkeypatch.setattr(cards, "listed_runs", lambda _, found=found: found)
        listed = [entry["run"] for entry in desk.json("run", "list", *desk.chain_words, *desk.store_words)]
        assert listed.index(document["run"]) < listed.index(second["run"])


@pytest.mark.parametrize("role", ["solver", "verifier", "whistleblower"])
def test_actors_of_a_role_say_what_they_do(posted: tuple[Desk, Any], role: str) -> None:
    desk, document = posted
    run, account = desk.opened(document), Account.create()
    words = (role, "status", *desk.run_words, *desk.store_words)
    who = ("--address", account.address)
    store = open_store(desk.folder / "store")
    writer = HeartbeatWriter(store, account, run.address, role, time.monotonic)
    with writer.beating():
        writer.report(7, Activity.BUSY, None, "training")
    (beat,) = desk.json(*words, *who)
    assert (beat["actor"], beat["role"], beat["doing"]) == (account.address.lower(), role, "training")
    other = "verifier" if role == "solver" else "solver"
    assert desk.json(other, *words[1:], *who) == []


@pytest.mark.parametrize("role", ["solver", "verifier"])
def test_nobody_stakes_in_front_of_a_folder_without_the_run(
    posted: tuple[Desk, Any], role: str, tmp_path: Path
) -> None:
    """A relative folder of a store, typed in another directory, is made anew and empty."""
    desk, document = posted
    run, words = desk.opened(document), ("--store", str(tmp_path / "store"), "--data-dir", str(tmp_path / "data"))
    found = desk.refused(role, "start", "--deposit", "1", *desk.run_words, *words, *desk.key_words)
    assert found.code == "StoreForeign" and str(tmp_path / "store") in found.message
    assert run.chain.ask(run.vault.free(address_of(desk.stage.sponsor))) == 0 and not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "show"),
        ("run", "open"),
        ("run", "can-join", "--address", "0x" + "11" * 20),
        ("economics", "table"),
        ("ledger", "shares", "--address", "0x" + "11" * 20),
    ],
)
def test_an_address_that_is_no_run_is_refused_by_name(desk: Desk, words: tuple[str, ...]) -> None:
    found = desk.refused(*words, *desk.chain_words, "--run", "0x" + desk.stage.token.hex())
    assert isinstance(found, RejectedError) and found.code == "NotARun" and "no charter" in found.message


def test_who_asks_whether_it_can_join_is_told_every_reason(posted: tuple[Desk, Any]) -> None:
    desk, document = posted
    charter, words = desk.opened(document).charter, ("run", "can-join", "--address", "0x" + "77" * 20, *desk.run_words)
    for role, more, needed in (
        ("solver", (), stake_of(charter, seats=1)),
        ("verifier", ("--tickets", "3"), stake_of(charter, tickets=3)),
    ):
        found = desk.json(*words, "--role", role, *more, *desk.store_words, ends=ExitCode.NO)
        assert not found["can_join"] and found["locks"] == needed
        e, games = charter.economics, found["advised"] - needed - found["locks_again"]
        assert games == e.challenge_bond + e.challenge_deposit
        t, stays = charter.timing, found["leaving_seconds"] - charter.timing.exit
        assert stays >= (4 * t.epoch if role == "solver" else t.seasoning)
        assert found["away_seconds"] == (0 if role == "solver" else t.seed_delay + t.epoch)
        assert (away_words(charter) in desk(*words, "--role", role, *more).stdout) == (role == "verifier")
        assert found["exit_seconds"] == t.exit and found["round_at_most_seconds"] > t.commit
        assert ["stake" in reason or "gas" in reason for reason in found["reasons"]] == [True, True]
    assert desk.refused(*words, "--role", "miner").code == "UnknownRole"
    empty = desk.json(*words, "--store", str(desk.folder / "empty"), ends=ExitCode.NO)["reasons"]
    assert len(empty) == 3 and "No object is named" in empty[2]
    assert (plain := desk(*words).stdout).startswith("no: ") and "was not looked at" in plain
    assert "are enough for all of it" in plain and "coins at the fees of now" in plain and "leaving takes" in plain


def test_who_lacks_nothing_is_told_yes_and_a_wei_less_makes_it_a_no(posted: tuple[Desk, Any]) -> None:
    desk, document = posted
    run, keys = desk.opened(document), ActorKeys("eve", Account.create())
    chain, needed = run.chain, stake_of(run.charter, seats=1)
    chain.transfer(desk.stage.sponsor, keys.account.address, ETHER)
    chain.send(keys.account, run.token.mint(keys.address, Wei(needed)))
    deposit(chain, keys.account, run, Wei(needed - 1))
    words = ("run", "can-join", "--address", keys.account.address, *desk.run_words)
    assert desk(*words).exit_code == ExitCode.NO
    deposit(chain, keys.account, run, Wei(1))
    assert desk.json(*words)["can_join"] and desk(*words).stdout.startswith("yes")


def test_a_run_that_waits_is_shown_with_what_it_waits_for_and_what_ends_it(posted: tuple[Desk, Any]) -> None:
    desk, _ = posted
    shown = desk.json("run", "show", *desk.run_words)
    assert [wait["code"] for wait in shown["waits"]] == ["TicketsMissing", "SeatsEmpty"]
    assert shown["cost_of_run"] == shown["rounds"] * shown["cost_of_round"]
    plain = desk("run", "show", *desk.run_words).stdout
    assert "It stands still: No seat is held. Solvers: `assay solver start" in plain


def test_bounds_of_a_run_stand_beside_what_its_charter_names(posted: tuple[Desk, Any]) -> None:
    desk, document = posted
    economics = desk.opened(document).charter.economics
    bounds = desk.json("economics", "table", *desk.run_words)["run"]
    assert bounds["lock S"]["is"] == economics.seat_lock >= bounds["lock S"]["at_least"] > 0
    assert bounds["stake B"]["is"] == economics.ticket_bond >= bounds["stake B"]["at_least"] > 0
    assert (
        f"(at least {bounds['stake B']['at_least'] / TOKEN:.6f}"[:16]
        in desk("economics", "table", *desk.run_words).stdout
    )


def test_weights_are_pulled_under_their_names_and_found_again_on_chain(
    posted: tuple[Desk, Any], tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    desk, file = posted[0], tmp_path / "model.safetensors"
    at = (*desk.run_words, *desk.store_words)
    pulled = desk.json("model", "pull", "--out", str(file), *at)
    assert (pulled["generation"], pulled["final"]) == (0, True)
    assert "token.weight" in load_file(file)
    found = desk.json("model", "verify", str(file), *at)
    assert (found["root"], found["on_chain"], found["generation"]) == (pulled["root"], True, 0)
    (measured,) = desk.json("model", "losses", *at)
    assert (measured["generation"], measured["root"]) == (0, pulled["root"]) and 3.0 < measured["loss"] < 8.0
    asked = ("inference", "generate", "--prompt", "the", "--tokens", "5", "--seed", "3")
    text = desk.json(*asked, *at)
    assert (text["model"], text["generation"]) == (pulled["root"], 0)
    assert desk.json(*asked, "--model", str(tmp_path)) == text | {"generation": None}
    absent = desk.refused("model", "pull", "--generation", "7", "--out", str(file), *at)
    assert absent.code == "NoSuchModel" and absent.remedy.endswith("stands is 0.")
    data = file.read_bytes()
    for place in (-1, -2000):
        altered = bytearray(data)
        altered[place] ^= 1
        file.write_bytes(altered)
        assert isinstance(desk.refused("model", "verify", str(file), *at), WeightsNotOnChain)
    file.write_bytes(b"\xff" * 100)
    assert isinstance(desk.refused("model", "verify", str(file), *at), ConfigError)
    assert isinstance(desk.refused("model", "verify", str(tmp_path / "none"), *at), ConfigError)
    save_file({"token.weight": torch.zeros(3)}, file)
    assert "parameters" in desk.refused("model", "verify", str(file), *at).message


def test_an_actor_brings_its_stake_once_however_often_it_is_started(
    posted: tuple[Desk, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk, document = posted
    run, keys = desk.opened(document), ActorKeys("ada", Account.create())
    chain, needed = run.chain, stake_of(run.charter, seats=1)
    chain.transfer(desk.stage.sponsor, keys.account.address, ETHER)
    amount = str(-(-needed // TOKEN) + 7)
    with pytest.raises(FundsError) as refused:
        acting.bring(run, keys, tmp_path, amount, seats=1)
    assert refused.value.code == "TokensShort"
    chain.send(keys.account, run.token.mint(address_of(keys.account), 10 * needed))
    held = chain.ask(run.token.balance_of(keys.address))
    capsys.readouterr()
    acting.bring(run, keys, tmp_path, None, seats=1)
    assert "are missing: it waits" in capsys.readouterr().err
    acting.bring(run, keys, tmp_path, amount, seats=1)
    assert chain.ask(run.vault.free(keys.address)) == int(amount) * TOKEN
    chain.send(keys.account, run.tenures.join())
    capsys.readouterr()
    acting.bring(run, keys, tmp_path, amount, seats=1)
    said = capsys.readouterr().err
    assert "deposits nothing" in said and "missing" not in said
    assert held - chain.ask(run.token.balance_of(keys.address)) == int(amount) * TOKEN


def test_what_is_no_preset_or_chain_or_beacon_is_refused_by_name(desk: Desk) -> None:
    at = (*desk.chain_words, *desk.store_words, *desk.key_words, "--yes")
    for more, code in (
        (("--preset", "gigantic"), "UnknownPreset"),
        (("--profile", "moon"), "UnknownProfile"),
        (("--beacon", "dice"), "UnknownBeacon"),
        (("--beacon", "local", "--profile", "l1"), "UnfitBeacon"),
        (("--beacon", "chain", "--profile", "op"), "UnfitBeacon"),
        (("--beacon", "chain", "--profile", "arbitrum"), "UnfitBeacon"),
        (("--update", "fp4"), "UnknownCarrier"),
        (("--sums", "sparse"), "UnknownSums"),
        (("--sums", "int8", "--seats", "64"), "SumsOfNoGroups"),
        (("--merge", "krum"), "UnknownMerge"),
        (("--preset", "tiny", "--units", "3"), "UnitsDoNotDivide"),
    ):
        found = desk.refused("run", "post", *more, *at)
        assert isinstance(found, UserError) and found.code == code


def test_anybody_brings_the_round_that_a_run_waits_for_once(posted: tuple[Desk, Any]) -> None:
    desk, document = posted
    run, chain = desk.opened(document), desk.stage.chain
    timing = run.charter.timing
    due = timing.audits_from + timing.seed_delay + 1  # of the chain's own randomness a round is a second
    words = ("run", "bring-beacon", *desk.run_words, *desk.key_words)
    if chain.head().timestamp < due:
        assert desk.json(*words) == {"brought": [], "waits_until": due}
        chain.rpc("evm_mine", hex(due))
    assert desk.json(*words) == {"brought": [due], "waits_until": None}
    assert chain.ask(run.beacon.is_known(BeaconRound(due)))
    assert desk.json(*words) == {"brought": [], "waits_until": None}


@pytest.mark.parametrize("how", [("--beacon", "drand"), ("--profile", "l1"), ("--profile", "op")])
def test_a_run_is_not_posted_whose_beacon_nobody_can_bring(desk: Desk, how: tuple[str, ...]) -> None:
    chain = desk.stage.chain
    head, newest = chain.head(), EVMNET.round_after(chain.head().timestamp) - 1
    with running_relay() as relay:
        at = (*desk.chain_words, *desk.store_words, *desk.key_words, "--drand-relays", relay.url, "--yes")
        found = desk.refused("run", "post", "--preset", "tiny", *how, *at)
        assert found.code == "BeaconUnavailable" and f"{relay.url} answers with status 425" in found.message
        assert relay.asked == [f"/{EVMNET.chain_hash.hex()}/public/{newest}"]
    assert chain.head() == head, "nothing was sent"


# --- code that nobody knows


@pytest.fixture(scope="module")
def impostor(posted: tuple[Desk, Any]) -> Desk:
    """A run of the same terms whose vault is somebody's own."""
    desk, document = posted
    charter = replace(desk.opened(document).charter, name=keccak(b"an impostor's"))
    contracts = {**ROUND_CONTRACTS, "vault": "EvilVault"}
    return desk.at(deploy_run(desk.stage.chain, desk.stage.sponsor, charter, contracts=contracts))


def test_stake_approves_nothing_to_a_vault_that_is_not_known(posted: tuple[Desk, Any], impostor: Desk) -> None:
    desk, document = posted
    honest = desk.opened(document)
    evil = Run(desk.stage.chain, Address(bytes.fromhex(impostor.run_words[-1][2:])))
    staker, chain = honest.charter.sponsor, desk.stage.chain
    desk.json(
        "ledger", "faucet", "0x" + staker.hex(), "--tokens", "10", "--gas", "0.01", *desk.run_words, *desk.key_words
    )
    words = ("ledger", "stake", "5", "--yes")
    assert isinstance(desk.refused(*words, *impostor.run_words, *desk.key_words), UnknownCode)
    assert chain.ask(evil.token.allowance(staker, evil.vault.address)) == 0 == chain.ask(evil.vault.free(staker))
    assert desk.json(*words, *desk.run_words, *desk.key_words)["staked"] == 5 * TOKEN
    digest = "0x" + code_of(evil).digest.hex()
    known = desk.json(*words, "--allow-code", digest, *impostor.run_words, *desk.key_words)
    assert known["staked"] == 5 * TOKEN


@pytest.mark.parametrize("role", ["solver", "verifier", "whistleblower"])
def test_no_actor_starts_in_a_run_that_is_not_known(
    role: str, impostor: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An actor that starts all the same would run on until the test's time is up.
    monkeypatch.setattr(HeartbeatWriter, "beating", lambda _: pytest.fail("the actor has started"))
    at = (*impostor.run_words, *impostor.store_words, *impostor.key_words)
    assert isinstance(impostor.refused(role, "start", *at, "--data-dir", str(tmp_path / "data")), UnknownCode)
    assert not (tmp_path / "data").exists()


def test_can_join_and_show_say_what_is_known_of_the_code(posted: tuple[Desk, Any], impostor: Desk) -> None:
    words = ("run", "can-join", "--address", "0x" + "77" * 20, *impostor.run_words)
    found = impostor.json(*words, ends=ExitCode.NO)
    assert found["code"]["status"] == "unknown" and "vault" in found["code"]["unknown"]
    assert "not created from this release's code" in found["reasons"][0]
    allowed = impostor.json(*words, "--allow-code", found["code"]["digest"], ends=ExitCode.NO)
    assert allowed["code"]["status"] == "allowed" and not any("release" in reason for reason in allowed["reasons"])
    assert "vault" in impostor.json("run", "show", *impostor.run_words)["code"]["unknown"]
    shown = posted[0].json("run", "show", *posted[0].run_words)["code"]
    leaves = {f"{family} leaf" for family in LEAVES}
    assert set(shown["contracts"]) == {"charter", *ROUND_CONTRACTS, "arbiter", *leaves, "beacon"}


# --- the end


def test_a_sponsor_funds_lacks_cancels_and_is_paid_back(posted: tuple[Desk, Any]) -> None:
    desk, document = posted
    at = (*desk.run_words, *desk.key_words)
    run = desk.opened(document)
    lacking = desk.refused("run", "open", *at)
    assert isinstance(lacking, RunLacks) and lacking.details["tickets"] == 5
    early = desk.refused("run", "refund", *at)
    assert early.code == "WrongPhase" and "is funding" in early.message
    free = run.chain.ask(run.vault.free(run.charter.sponsor))
    assert desk.refused("run", "fund", f"{free + 1}wei", "--yes", *at).code == "TokensShort"
    sponsor = "0x" + run.charter.sponsor.hex()
    desk.json("ledger", "faucet", sponsor, "--tokens", "70", "--gas", "0.01", *at)
    funded = desk("run", "fund", "70", "--json", *at)
    assert isinstance(funded.exception, UsageError) and funded.exception.code == "ConfirmationNeeded"
    paid = {"funded": 70 * TOKEN, "from_stake": free, "escrow": 5070 * TOKEN}
    assert desk.json("run", "fund", "70", "--yes", *at) == paid
    assert desk.json("run", "cancel", "--yes", *at) == {"phase": "cancelled"}
    assert [desk.json("run", "refund", *at) for _ in range(2)] == [{"refunded": 5070 * TOKEN}, {"refunded": 0}]
    for late in (desk.refused("run", *words, *at) for words in (("open",), ("cancel", "--yes"))):
        assert late.code == "WrongPhase" and "is cancelled" in late.message
    reasons = desk.json("run", "can-join", "--address", sponsor, *desk.run_words, ends=ExitCode.NO)["reasons"]
    assert "the run is cancelled" in reasons and not any("assay ledger stake" in reason for reason in reasons)
    assert "Nobody joins it any more: the run is cancelled." in desk("run", "show", *desk.run_words).stdout
    staked = desk.json("ledger", "unstake", "5070", "--yes", *at)
    assert staked["leaving"] == 5070 * TOKEN and desk.refused("ledger", "withdraw", *at).code == "ExitTooEarly"
    desk.stage.chain.rpc("evm_mine", hex(staked["not_before"] + 1))
    assert desk.json("ledger", "withdraw", *at)["held"] == 5070 * TOKEN + free
    assert desk.refused("ledger", "stake", "1", "--yes", *at).code == "RunEnded"
