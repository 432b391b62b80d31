"""The watchdog over a run that has only begun: chain, contracts, committed challenges, and that it changes nothing.

What it says of games that are played stands with the played run, in test_explorer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from typer.testing import Result
from web3 import HTTPProvider

from assay.explorer.reader import RunReader
from assay.explorer.work_documents import run_document
from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import ExitCode, UnavailableError
from assay.protocol.rounds.run_terms import game_config
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Round, Seat
from assay.watchdog import looking
from assay.watchdog.alarms import AlarmKind
from assay.watchdog.looking import CALM_LOOKS, WatchOptions
from assay.watchdog.watch import Watchdog
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.deployment.code import code_of
from assay_ledger.deployment.deploy import deploy_run
from assay_ledger.deployment.places import ROUND_CONTRACTS
from assay_ledger.rounds.run import Run
from tests.harness.actors.scraping import counted, free_place, judged, one, wait_until
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import ETHER, SharedChain
from tests.harness.commands import assay
from tests.harness.providers import ProviderNode, refused, said

REF = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(0))
COMMITMENT = Digest(keccak(b"own"))


@pytest.fixture(scope="module")
def posted(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return new_whole_run(stage, tmp_path_factory.mktemp("watched"))


@pytest.fixture
def made(posted: WholeRun) -> Iterator[WholeRun]:
    """The posted run; what a test does on its chain is taken back."""
    snapshot = posted.chain.rpc("evm_snapshot")
    yield posted
    assert posted.chain.rpc("evm_revert", snapshot)


def dog_of(made: WholeRun, *parties: LocalAccount, url: str = "", **options: Any) -> Watchdog:
    """A watchdog on a connection of its own."""
    run = Run(Chain(url or made.chain.url, retry_for_s=0.2), made.run.address, made.run.first_block)
    return Watchdog(run, options=WatchOptions(frozenset(map(address_of, parties)), **options))


def kinds(dog: Watchdog) -> set[AlarmKind]:
    return {alarm.kind for alarm in dog.look().values()}


def calmed(dog: Watchdog) -> set[AlarmKind]:
    """The same, once the chain has answered for a while."""
    for _ in range(CALM_LOOKS - 1):
        assert kinds(dog) & {AlarmKind.CHAIN_UNREACHABLE, AlarmKind.CANNOT_CHECK}
    return kinds(dog)


def commit(made: WholeRun) -> LocalAccount:
    """A stranger commits to a challenge, and has nothing left for its bond."""
    chain, run, poor = made.chain, made.run, Account.create()
    deposit = run.charter.economics.challenge_deposit
    chain.transfer(made.stage.sponsor, poor.address, ETHER)
    chain.send(poor, run.token.mint(address_of(poor), deposit))
    chain.send(poor, run.token.approve(run.vault.address, deposit))
    chain.send(poor, run.vault.deposit(deposit))
    chain.send(poor, run.challenges.commit_challenge(challenge_commitment(REF, COMMITMENT, ZERO, address_of(poor))))
    return poor


def command(made: WholeRun, monkeypatch: pytest.MonkeyPatch, *words: str, url: str | None = None) -> Result:
    """`assay dispute watch` without any key."""
    run = "0x" + made.run.address.hex()
    return assay(monkeypatch, "dispute", "watch", "--rpc-url", url or made.chain.url, "--run", run, *words)


def test_a_committed_challenge_without_its_bond_is_told_then_late_then_missed(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    dog, chain = dog_of(made), made.chain
    assert kinds(dog) == set()
    poor = commit(made)
    committed, window = chain.head().timestamp, game_config(made.run.charter).reveal_window
    assert kinds(dog) == {AlarmKind.BOND_SHORT} == kinds(dog_of(made, poor))
    done = command(made, monkeypatch, "--once", "--json")
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (done.exit_code, line["kind"], line["state"], line["level"]) == (
        ExitCode.FUNDS, "bond-short", "raised", "alarm",
    )  # fmt: skip
    assert kinds(dog_of(made, made.stage.sponsor)) == set()
    for at, found in (
        (committed + window - window // 4 - 1, {AlarmKind.BOND_SHORT}),
        (committed + window - window // 4, {AlarmKind.BOND_SHORT, AlarmKind.DEADLINE_NEAR}),
        (committed + window, {AlarmKind.BOND_SHORT, AlarmKind.DEADLINE_NEAR}),
        (committed + window + 1, {AlarmKind.DEADLINE_MISSED}),
    ):
        chain.rpc("evm_mine", hex(at))
        assert kinds(dog) == found, at - committed


def test_a_deadline_that_is_missed_ends_a_look_at_a_run_with_9(made: WholeRun) -> None:
    commit(made)
    window = game_config(made.run.charter).reveal_window
    made.chain.rpc("evm_mine", hex(made.chain.head().timestamp + window + 1))
    where = ("--rpc-url", made.chain.url, "--run", "0x" + made.run.address.hex())
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("ETH_", "ASSAY_"))}
    done = subprocess.run(
        [sys.executable, "-m", "assay", "dispute", "watch", *where, "--once", "--json"],
        env=kept | {"ASSAY_CONFIG": "/dev/null", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, line["kind"]) == (ExitCode.DEADLINE, "deadline-missed"), done.stderr


def test_a_watch_of_a_run_shows_the_alarms_that_stand(made: WholeRun) -> None:
    place, run = free_place(), "0x" + made.run.address.hex()
    words = ["dispute", "watch", "--rpc-url", made.chain.url, "--run", run, "--json", "--metrics", place]
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("ETH_", "ASSAY_"))}
    watch = subprocess.Popen(
        [sys.executable, "-m", "assay", *words, "--every", "0.2"],
        env=kept | {"ASSAY_CONFIG": "/dev/null", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )
    try:
        commit(made)
        assert watch.stdout is not None and json.loads(watch.stdout.readline())["kind"] == "bond-short"
        shown = wait_until(place, lambda found: one(found, "assay_alarms", kind="bond-short", gravity="funds") == 1)
        assert counted(shown, "assay_alarms", "kind") == {"bond-short": 1}
        assert one(shown, "assay_look_age_seconds") < 30 and judged(place, "/health") == (200, {"alive": True})
        assert one(shown, "assay_rpc_requests_total", method="eth_getLogs", outcome="ok") > 0
        ready = {"looked": True, "node": True}
        wait_until(place, lambda found: counted(found, "assay_ready", "condition") == ready)
    finally:
        watch.kill()
        watch.communicate()


def test_a_challenge_in_a_run_that_was_cancelled_needs_no_bond(made: WholeRun) -> None:
    """Its reveal frees the deposit, and opens no game: whoever is told to stake more stakes it for nothing."""
    dog = dog_of(made)
    commit(made)
    assert kinds(dog) == {AlarmKind.BOND_SHORT}
    made.chain.send(made.stage.sponsor, made.run.escrow.cancel())
    assert kinds(dog) == set()


def test_a_party_that_has_nothing_in_the_run_is_named_once(made: WholeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A digit that is wrong has a watch look after nobody, and be silent as if all were well."""
    from assay.cli import dispute

    looks, stranger, own = iter(range(3)), "0x" + "ab" * 20, commit(made).address

    def sleep(_: float) -> None:
        if next(looks, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(dispute, "time", SimpleNamespace(sleep=sleep))
    done = command(made, monkeypatch, "--party", stranger, "--party", own)
    assert done.stderr.count(f"{stranger} has no seat, ticket or game in this run yet") == 1
    assert own.lower() not in done.stderr


def test_what_a_reorganization_took_back_is_no_alarm(made: WholeRun) -> None:
    dog, chain = dog_of(made), made.chain
    assert kinds(dog) == set()
    snapshot = chain.rpc("evm_snapshot")
    commit(made)
    assert kinds(dog) == {AlarmKind.BOND_SHORT}
    assert chain.rpc("evm_revert", snapshot)
    chain.rpc("evm_mine")
    assert kinds(dog) == set()


def test_every_change_is_one_line_and_what_stays_is_not_said_again(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay.cli import dispute

    window, chain = game_config(made.run.charter).reveal_window, made.chain
    between = iter(
        (
            lambda: commit(made),
            lambda: chain.rpc("evm_mine"),
            lambda: chain.rpc("evm_mine", hex(chain.head().timestamp + window + 1)),
        )
    )

    def sleep(_: float) -> None:
        happen = next(between, None)
        if happen is None:
            raise KeyboardInterrupt
        happen()

    # The command's own sleep alone: waiting for a receipt in `happen` sleeps too, and may not use up a step.
    monkeypatch.setattr(dispute, "time", SimpleNamespace(sleep=sleep))
    done = command(made, monkeypatch)
    assert [line.split()[1:3] for line in done.stdout.splitlines()] == [
        ["ALARM", "bond-short"],
        ["ALARM", "deadline-missed"],
        ["clear", "bond-short"],
    ]
    assert done.exit_code == ExitCode.INTERRUPTED


def test_a_chain_that_does_not_answer_is_unreachable_and_changes_no_finding(made: WholeRun) -> None:
    dog = dog_of(made)
    commit(made)
    assert kinds(dog) == {AlarmKind.BOND_SHORT}
    w3 = dog.run.chain.w3
    alive, w3.provider = w3.provider, HTTPProvider("http://127.0.0.1:9")
    assert kinds(dog) == {AlarmKind.BOND_SHORT, AlarmKind.CHAIN_UNREACHABLE}
    w3.provider = alive
    assert calmed(dog) == {AlarmKind.BOND_SHORT}


def test_a_look_that_fails_in_any_way_is_told_and_ends_no_watch(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch that has ended says nothing more, which reads as if all were well."""
    commit(made)
    with ProviderNode(made.chain.url) as node:
        dog = dog_of(made, url=node.url)
        assert kinds(dog) == {AlarmKind.BOND_SHORT}
        node.turn(refused(3, "execution reverted"), methods=["eth_call"])
        assert kinds(dog) == {AlarmKind.BOND_SHORT, AlarmKind.CANNOT_CHECK}
        node.turn(None)
        assert calmed(dog) == {AlarmKind.BOND_SHORT}
        with monkeypatch.context() as patch:
            patch.setattr(dog, "sync", Mock(side_effect=AssertionError("no such vote")))
            assert kinds(dog) == {AlarmKind.BOND_SHORT, AlarmKind.CANNOT_CHECK}
        assert calmed(dog) == {AlarmKind.BOND_SHORT}


def test_a_head_that_stands_still_or_is_old_is_said_and_cleared(made: WholeRun) -> None:
    now = [0.0]
    run, chain = made.run, made.chain
    dog = Watchdog(run, options=WatchOptions(stale_after=60), clock=lambda: now[0])
    assert kinds(dog) == set()
    now[0] = 60.0
    assert kinds(dog) == set()
    now[0] = 60.1
    assert kinds(dog) == {AlarmKind.HEAD_STALE}
    chain.rpc("evm_mine")
    assert kinds(dog) == set()
    time = chain.head().timestamp
    for age, found in ((3600, set()), (3601, {AlarmKind.HEAD_STALE})):
        old = Watchdog(run, options=WatchOptions(max_age=3600), wall=lambda age=age: time + age)
        assert kinds(old) == found


def test_a_node_of_a_public_chain_that_catches_up_is_told_by_itself(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its head moves, and is hours old: no game of today is seen."""
    monkeypatch.setattr(looking, "OLD_S", -1e12)  # the head is older than that
    with ProviderNode(made.chain.url) as node:
        local = command(made, monkeypatch, "--once", url=node.url)
        node.turn(said("Geth/v1.16"), methods=["web3_clientVersion"])
        public = command(made, monkeypatch, "--once", "--json", url=node.url)
    assert (local.exit_code, public.exit_code) == (ExitCode.OK, ExitCode.NETWORK)
    assert json.loads(public.stdout)["kind"] == "head-stale"


def test_watchdog_and_explorer_say_whose_code_it_is(made: WholeRun) -> None:
    contracts = {**ROUND_CONTRACTS, "revenue": "Grants"}
    evil = deploy_run(made.chain, made.stage.sponsor, made.run.charter, contracts=contracts)
    digest = code_of(evil).digest
    assert {kind for kind, _ in Watchdog(evil).look()} == {AlarmKind.CODE_UNKNOWN}
    assert not Watchdog(evil, options=WatchOptions(allowed_code=frozenset({digest}))).look()
    assert not Watchdog(made.run).look()
    for run, status in ((evil, "unknown"), (made.run, "release")):
        with RunReader(run).reading() as reader:
            shown = run_document(reader)["code"]
        assert shown["status"] == status and ("revenue" in shown["unknown"]) == (status == "unknown")


def test_watching_changes_neither_chain_nor_store(made: WholeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    store, chain = made.folder / "store", made.chain

    def files() -> dict[str, int]:
        return {str(p): p.stat().st_mtime_ns for p in sorted(Path(store).rglob("*")) if p.is_file()}

    before, head = files(), chain.head()
    assert before
    assert command(made, monkeypatch, "--once", "--store", str(store)).exit_code == ExitCode.OK
    assert (files(), chain.head()) == (before, head)
    assert chain.rpc("txpool_status")["pending"] in ("0x0", 0)


def test_a_chain_that_is_down_from_the_start_has_the_code_of_the_network(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = command(made, monkeypatch, "--once", url="http://127.0.0.1:9")
    assert isinstance(done.exception, UnavailableError)
    assert done.exception.exit_code is ExitCode.NETWORK
