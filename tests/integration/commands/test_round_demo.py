"""Whole demos of the second round with real processes: who is convicted, how, and that no other party loses."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from assay.cli.main import INTERRUPTED
from assay.demo import round_play as play
from assay.demo.measured import Quality
from assay.demo.round_cast import RoundDemoCheat
from assay.demo.round_report import judge_model, report
from assay.demo.round_show import stakes_of
from assay.engine.runtime.executor import how_programs_run
from assay.protocol.errors import ExitCode, RejectedError, UserError
from assay.protocol.rounds.round_terms import GenerationStatus
from assay.protocol.types import Round
from assay_ledger.bindings.bounties import PartPaid
from assay_ledger.bindings.vault import Deposited
from assay_ledger.chain.client import CALLDATA_CAP, TRANSACTION_GAS_CAP
from tests.harness.demo.demos import Demo, running, wait_for_nothing

MOVE_GAS_CAP = 1_000_000


@contextlib.contextmanager
def _played(*cheats: RoundDemoCheat) -> Iterator[tuple[play.RoundDemo, dict[str, Any], Quality]]:
    with play.open_scene(play.RoundDemoOptions(cheats=cheats, preset="tiny"), print) as scene:
        play.post(scene)
        play.join(scene)
        play.launch(scene)
        play.play_rounds(scene)
        play.settle(scene)
        quality = judge_model(scene)
        yield scene, report(scene, quality), quality


def _losers(scene: play.RoundDemo, document: dict[str, Any]) -> dict[str, set[str]]:
    """Name of everybody who was slashed, with how their games ended."""
    names = {to_checksum_address(address): name for name, address in scene.addresses.items()}
    found: dict[str, set[str]] = {}
    for entry in document["slashed"]:
        found.setdefault(names[entry["address"]], set()).add(entry["kind"])
    return found


def _check_money(scene: play.RoundDemo, document: dict[str, Any], losers: set[str]) -> None:
    """Tokens are conserved, and only who was convicted or fined has less than it put in."""
    assert document["conservation_difference"] == 0
    run, stakes = scene.run, stakes_of(scene)
    for player in scene.cast.players:
        who = scene.addresses[player.name]
        deposited = sum(e.event.amount for e in run.chain.events(Deposited.search(run.vault.address, owner=who), 0))
        if player.name not in losers:
            assert stakes[who] >= deposited > 0, player.name


def _check_transactions(scene: play.RoundDemo) -> int:
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
def test_a_false_step_is_found_by_the_auditor_on_call_and_settled_by_the_contract() -> None:
    with play.open_scene(play.RoundDemoOptions(preset="tiny"), print) as scene:
        play.post(scene)
        # Nobody takes part yet, so the sponsor's own command says what the first round waits for.
        with pytest.raises(UserError) as refused:
            scene.stage.run("run", "open", "--key", "sponsor")
        assert refused.value.code == "RunLacks" and "5 tickets" in refused.value.message
        play.join(scene)
        play.launch(scene)
        # A run that is open cannot be called off.
        with pytest.raises(RejectedError) as too_late:
            scene.stage.run("run", "cancel", "--key", "sponsor", "--yes")
        assert too_late.value.code == "WrongPhase"
        play.play_rounds(scene)
        play.settle(scene)
        quality = judge_model(scene)
        document = report(scene, quality)
        assert _losers(scene, document) == {"solver-false-step": {"LEAF"}}
        assert [entry["leaf_family"] for entry in document["disputes"]] == ["map"]
        assert all(entry["transactions"] <= 20 and entry["gas_total"] <= 4_000_000 for entry in document["disputes"])
        assert document["rounds"] == document["final_generations"] == 3
        honest = [p.name for p in scene.cast.players if p.cheat == "none"]
        own = {name: document["shares"][to_checksum_address(scene.addresses[name])] for name in honest}
        assert all(own[f"solver-{k}"] == 30 * 10**18 for k in (1, 2, 3))
        _check_accuser_is_paid(scene, document, own)
        assert sum(document["claimed"].values()) <= document["revenue"]
        assert quality.loss_after < quality.loss_before
        for player in scene.cast.players:
            output = (scene.stage.logs / f"{player.name}.log").read_text()
            assert output.count(how_programs_run()) == output.count("Programs run by") == 1, player.name
        _check_money(scene, document, {"solver-false-step"})
        assert _check_transactions(scene) > 100
        _check_commands(scene, document)


def _check_accuser_is_paid(scene: play.RoundDemo, document: dict[str, Any], shares: dict[str, int]) -> None:
    """Who found the lie has its wages, shares of the model, and the bounty: the lock, less what the game cost."""
    (game,) = scene.index.state.games.values()
    accuser = next(p.name for p in scene.cast.auditors if scene.addresses[p.name] == game.challenger)
    parts = scene.chain.events(PartPaid.search(scene.run.bounties.address), 0)
    assert [part.event.to for part in parts] == [game.challenger]
    assert parts[0].event.amount > scene.run.charter.economics.seat_lock * 9 // 10
    assert document["earned"][to_checksum_address(game.challenger)] > parts[0].event.amount
    assert shares[accuser] > 0


def _check_commands(scene: play.RoundDemo, document: dict[str, Any]) -> None:
    """Commands that look at a run know this one."""
    shown = scene.stage.run("run", "show")
    assert (shown["phase"], shown["opened"], shown["code"]["status"]) == ("over", 3, "release")
    assert [entry["status"] for entry in shown["rounds_opened"]] == ["final"] * 3
    assert [entry["counted"] for entry in shown["rounds_opened"]] == [4] * 3
    assert sum(entry["convicted"] for entry in shown["tenures"]) == 1
    assert sum(entry["findings"] for entry in shown["epochs"]) == document["findings"]
    assert shown["escrow"] == 0 and shown["accusations"] == {"upheld": 1}
    (listed,) = scene.stage.run("run", "list")
    assert listed["run"] == shown["run"] == document["run"]
    owned = scene.stage.run("ledger", "shares", "--address", "0x" + scene.addresses["solver-1"].hex())
    assert owned["shares"] == 30 * 10**18 and owned["pending"] == 0


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_solvers_alone_convict_a_false_root_and_leave_out_a_hidden_update() -> None:
    with _played(RoundDemoCheat.FALSE_ROOT, RoundDemoCheat.HIDDEN_UPDATE) as (scene, document, _):
        assert _losers(scene, document) == {"solver-false-root": {"LEAF"}}
        assert {entry["kind"] for entry in document["disputes"]} == {"OUTER"}
        hidden = scene.addresses["solver-hidden-update"]
        seat = next(t.seat for t in scene.view.books.tenures.tenures.values() if t.holder == hidden)
        assert seat not in scene.view.counted(Round(1))[0]
        assert document["final_generations"] == 3
        _check_money(scene, document, {"solver-false-root", "solver-hidden-update"})


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_when_nobody_cheats_no_stake_is_slashed_and_every_update_counts() -> None:
    with _played(RoundDemoCheat.NONE) as (scene, document, _):
        assert document["slashed"] == [] and document["disputes"] == []
        view = scene.view
        assert all(view.counted(Round(r))[0] == {0, 1, 2, 3} for r in range(3))
        assert all(view.status(g) is GenerationStatus.FINAL for g in range(4))
        _check_money(scene, document, set())


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_blind_auditor_costs_nobody_but_itself_its_stake() -> None:
    with _played(RoundDemoCheat.BLIND_AUDITOR) as (scene, document, _):
        assert set(_losers(scene, document)) <= {"verifier-blind"}
        assert document["final_generations"] == 3
        _check_money(scene, document, {"verifier-blind"})


@pytest.mark.long
@pytest.mark.timeout(600)
def test_ctrl_c_while_a_run_of_the_second_round_is_open_leaves_nothing(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--second")
    with running(demo):
        demo.read_until("the run is open")
        os.killpg(demo.process.pid, signal.SIGINT)
        demo.finish(limit_s=60)
        assert wait_for_nothing(tmp_path) == []
    assert demo.process.returncode == ExitCode.INTERRUPTED
    assert demo.lines[-1] == INTERRUPTED
