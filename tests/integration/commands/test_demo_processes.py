"""Whole demos with real processes: who is convicted, how, that no other party loses, and what is left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from assay.demo import play
from assay.demo.cast import DemoCheat
from assay.demo.measured import Quality
from assay.demo.report import judge_model, report
from assay.engine.runtime.executor import how_programs_run
from assay_ledger.bindings.vault import Deposited
from assay_ledger.chain.client import CALLDATA_CAP, TRANSACTION_GAS_CAP
from tests.harness.demo.demos import Demo, running, wait_for_nothing

MOVE_GAS_CAP = 1_000_000
SEED = int(os.environ.get("ASSAY_TEST_SEED", "20261120"))
COMPUTED = {"map", "rowexp", "max", "dot", "sum", "gather", "scatter_sum", "rank", "random"}


@contextlib.contextmanager
def _played(*cheats: DemoCheat) -> Iterator[tuple[play.RunningDemo, dict[str, Any], Quality]]:
    with play.open_scene(play.DemoOptions(cheats=cheats, preset="tiny"), print) as scene:
        play.post(scene)
        play.join(scene)
        play.watch(scene)
        play.settle(scene)
        quality = judge_model(scene)
        yield scene, report(scene, quality), quality


def _losers(scene: play.RunningDemo, document: dict[str, Any]) -> dict[str, set[str]]:
    """Name of everybody who was slashed, with how their games ended."""
    names = {to_checksum_address(address): name for name, address in scene.addresses.items()}
    found: dict[str, set[str]] = {}
    for entry in document["slashed"]:
        found.setdefault(names[entry["address"]], set()).add(entry["kind"])
    return found


def _check_money(scene: play.RunningDemo, document: dict[str, Any], losers: set[str]) -> None:
    """Tokens are conserved and only the convicted have less than was staked."""
    assert document["conservation_difference"] == 0
    run = scene.run
    for player in scene.cast.players:
        who = scene.addresses[player.name]
        free = run.chain.ask(run.vault.free(who))
        stake = run.chain.ask(run.audit.attester_of(who)).stake
        deposited = sum(e.event.amount for e in run.chain.events(Deposited.search(run.vault.address, owner=who), 0))
        seat_fee = run.charter.economics.seat_fee if player.role == "solver" else 0
        if player.name not in losers:
            assert free + stake + seat_fee >= deposited, player.name


def _check_transactions(scene: play.RunningDemo) -> int:
    """Every transaction of the chain keeps within what any chain takes; no game move is above a million gas."""
    w3, count = scene.chain.w3, 0
    game = to_checksum_address(scene.run.game.address)
    for number in range(scene.chain.head().number + 1):
        for transaction in w3.eth.get_block(number, full_transactions=True)["transactions"]:
            receipt = w3.eth.get_transaction_receipt(transaction["hash"])  # type: ignore[index]
            assert receipt["gasUsed"] <= TRANSACTION_GAS_CAP
            assert len(transaction["input"]) <= CALLDATA_CAP  # type: ignore[index]
            if receipt.get("to") == game:
                assert receipt["gasUsed"] <= MOVE_GAS_CAP
            count += 1
    return count


@pytest.mark.timeout(1200)
def test_a_flipped_bit_is_caught_by_replay_and_settled_by_the_contract() -> None:
    with _played(DemoCheat.BIT_FLIP) as (scene, document, quality):
        assert _losers(scene, document) == {"solver-bit-flip": {"LEAF"}}
        assert {entry["leaf_family"] for entry in document["disputes"]} == {"map"}
        assert all(entry["transactions"] <= 20 and entry["gas_total"] <= 4_000_000 for entry in document["disputes"])
        assert all(document["shares"][to_checksum_address(scene.addresses[n])] for n in ("solver-1", "solver-2"))
        assert sum(document["claimed"].values()) <= document["revenue"]
        assert quality.loss_after < quality.loss_before
        for player in scene.cast.players:
            output = (scene.stage.logs / f"{player.name}.log").read_text()
            assert output.count(how_programs_run()) == output.count("Programs run by") == 1, player.name
        _check_money(scene, document, {"solver-bit-flip"})
        assert _check_transactions(scene) > 100


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_with_all_cheats_at_once_each_cheater_is_convicted_and_nobody_else() -> None:
    cheats = [c for c in DemoCheat if c is not DemoCheat.NONE]
    with _played(*cheats) as (scene, document, _):
        expected = {f"solver-{c}": {"LEAF"} for c in cheats if c is not DemoCheat.LAZY_VERIFIER}
        expected |= {"solver-silent": {"DEFAULT"}, "verifier-lazy": {"LEAF"}}
        assert _losers(scene, document) == expected
        names = {to_checksum_address(address): name for name, address in scene.addresses.items()}
        for entry in document["disputes"]:
            if entry["ended_by"] == "LEAF" and names[entry["loser"]].startswith("solver-"):
                assert entry["leaf_family"] in COMPUTED
        _check_money(scene, document, set(expected))
        _check_transactions(scene)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_whistleblower_alone_convicts_two_lazy_verifiers_and_the_cheater() -> None:
    with _played(DemoCheat.LAZY_VERIFIER) as (scene, document, _):
        losers = _losers(scene, document)
        assert set(losers) == {"solver-bit-flip", "verifier-1", "verifier-2"}
        whistleblower = scene.addresses["whistleblower-1"]
        assert {g.challenger for g in scene.index.state.games.values() if g.convicted} == {whistleblower}
        _check_money(scene, document, set(losers))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_when_nobody_cheats_nobody_is_slashed_and_two_busy_loops_make_nobody_late() -> None:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        with _played(DemoCheat.NONE) as (scene, document, _):
            assert document["slashed"] == [] and document["disputes"] == []
            # None is late: every seat committed in every round, every commitment is complete, every duty was revealed.
            for record in scene.index.state.rounds:
                assert all(c.complete and not c.excluded for c in record.commitments.values())
                assert len(record.commitments) == 2
                assert all(a.y is not None for a in record.attendance.values())
            _check_money(scene, document, set())
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ending", [signal.SIGKILL] * 10 + [signal.SIGINT])
def test_a_demo_that_is_killed_at_a_random_moment_leaves_no_process_port_or_folder(
    tmp_path: Path, ending: signal.Signals, request: pytest.FixtureRequest
) -> None:
    moment = random.Random(f"{SEED} {request.node.name}").uniform(0.5, 30.0)
    demo = Demo(tmp_path, "--quiet")
    with running(demo):
        with contextlib.suppress(subprocess.TimeoutExpired):
            demo.process.wait(timeout=moment)
        demo.process.send_signal(ending)
        demo.process.wait(timeout=20)
        assert wait_for_nothing(tmp_path) == [], f"seed {SEED}, killed after {moment:.1f} s"
    if ending is signal.SIGINT:
        assert demo.process.returncode in (130, 0)
