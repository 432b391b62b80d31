"""Whole demos with real processes: who is convicted or fined, that no other party loses, and what is left behind."""

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

from assay.amounts import TEST_MONEY
from assay.demo import play
from assay.demo.asking import DEPOSIT, PRICE, TOKENS, prompt_of
from assay.demo.cast import DemoCheat
from assay.demo.measured import Quality
from assay.demo.report import judge_model, report
from assay.demo.scene import DemoOptions, DemoScene
from assay.demo.show import names_of, sentences
from assay.engine.runtime.executor import how_programs_run
from assay.protocol.errors import RejectedError, UserError
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from assay_ledger.bindings.bounties import PartPaid
from assay_ledger.chain.client import TRANSACTION_GAS_CAP
from tests.harness.actors.claims import CALLDATA_CAP
from tests.harness.demo.demos import Demo, running, wait_for_nothing

MOVE_GAS_CAP = 1_000_000
SEED = int(os.environ.get("ASSAY_TEST_SEED", "20261120"))


@contextlib.contextmanager
def played(*cheats: DemoCheat, rounds: int | None = None) -> Iterator[tuple[DemoScene, dict[str, Any], Quality]]:
    with play.open_scene(DemoOptions(cheats, rounds, preset="tiny"), print) as scene:
        play.play(scene)
        quality = judge_model(scene)
        document = report(scene, quality)
        check_money(scene, document)
        yield scene, document, quality


def who(scene: DemoScene, name: str) -> str:
    """An actor's address as documents say it."""
    return to_checksum_address(scene.addresses[name])


def losers(scene: DemoScene, document: dict[str, Any]) -> dict[str, set[str]]:
    """Name of everybody who was slashed, with how their games ended."""
    names, found = names_of(scene), dict[str, set[str]]()
    for entry in document["slashed"]:
        found.setdefault(names[entry["address"]], set()).add(entry["kind"])
    return found


def check_money(scene: DemoScene, document: dict[str, Any]) -> None:
    """Tokens are conserved, every row of the final ledger adds up, and nobody honest has less than it put in."""
    assert document["conservation_difference"] == 0
    for player in scene.cast.players:
        put, got, lost, has = (document[c][who(scene, player.name)] for c in ("deposited", "earned", "lost", "stake"))
        assert has == put + got - lost, player.name
        assert has == scene.chain.ask(scene.run.vault.free(scene.addresses[player.name])) or player.cheat != "none"
        if player.cheat == "none":
            assert has >= put > 0, player.name


def check_transactions(scene: DemoScene) -> int:
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
    with play.open_scene(DemoOptions(preset="tiny"), print) as scene:
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
        assert losers(scene, document) == {"solver-false-step": {"LEAF"}} and document["fined"] == {}
        assert [entry["leaf_family"] for entry in document["disputes"]] == ["map"]
        assert all(entry["transactions"] <= 20 and entry["gas_total"] <= 4_000_000 for entry in document["disputes"])
        assert document["rounds"] == document["final_generations"] == 3
        honest = [p.name for p in scene.cast.players if p.cheat == "none"]
        own = {name: document["shares"][who(scene, name)] for name in honest}
        assert all(own[f"solver-{k}"] == 30 * 10**18 for k in (1, 2, 3))
        check_accuser_is_paid(scene, document, own)
        assert sum(document["claimed"].values()) <= document["revenue"]
        check_inference(scene, document)
        assert quality.loss_after < quality.loss_before
        for player in scene.cast.players:
            output = (scene.stage.logs / f"{player.name}.log").read_text()
            assert output.count(how_programs_run()) == output.count("Programs run by") == 1, player.name
        check_money(scene, document)
        assert check_transactions(scene) > 100
        check_card(scene, document)
        check_commands(scene, document)


def check_inference(scene: DemoScene, document: dict[str, Any]) -> None:
    """A reader has paid for each token of two answers, to the gateway and to the owners, and has its rest back."""
    assert scene.asking is not None and (asked := document["inference"])["answers"] == 2
    assert asked["verified"] == asked["false_answers_convicted"] == 1 and asked["conservation_difference"] == 0
    tokens = 2 * (len(prompt_of(scene.stage.folder / "asking" / "pulled" / "tokenizer.json")) + TOKENS)
    assert asked["paid"] == tokens * TEST_MONEY.parse(PRICE) and asked["to_owners"] == asked["paid"] // 10
    assert document["revenue"] == play.REVENUE + asked["to_owners"]
    assert scene.asking.withdrawn == DEPOSIT - asked["paid"]


def check_accuser_is_paid(scene: DemoScene, document: dict[str, Any], shares: dict[str, int]) -> None:
    """Who found the lie has its wages, shares of the model, and the whole lock: the bounty, and what the game cost."""
    (game,) = scene.index.state.games.values()
    accuser = next(p.name for p in scene.cast.auditors if scene.addresses[p.name] == game.challenger)
    parts = scene.chain.events(PartPaid.search(scene.run.bounties.address), 0)
    lock = scene.run.charter.economics.seat_lock
    assert [part.event.to for part in parts] == [game.challenger]
    assert lock * 9 // 10 < parts[0].event.amount < lock
    account = scene.money.of(game.challenger)
    assert account.won == lock == document["slashed"][0]["amount"] and account.wages > 0
    assert document["earned"][who(scene, accuser)] == lock + account.wages
    assert shares[accuser] > 0


def check_card(scene: DemoScene, document: dict[str, Any]) -> None:
    """The model card names the update that was false, and the last words name it too."""
    (false,) = document["card"]["false_work"]
    assert (false["round"], false["generation"]) == (1, 2)
    assert bytes.fromhex(false["solver"][2:]) == scene.addresses["solver-false-step"]
    said = " ".join(sentences(names_of(scene), document))
    assert f"training of round 1, seat {false['seat']}, by solver-false-step (game 1), which is part of gen" in said


def check_commands(scene: DemoScene, document: dict[str, Any]) -> None:
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
def test_two_updates_that_are_not_the_works_own_are_each_convicted() -> None:
    with played(DemoCheat.FALSE_UPDATE, DemoCheat.COPIED_UPDATE) as (scene, document, _):
        assert losers(scene, document) == {"solver-false-update": {"LEAF"}, "solver-copied-update": {"LEAF"}}
        assert {entry["kind"] for entry in document["disputes"]} == {"UPDATE"}
        assert {work["what"] for work in document["card"]["false_work"]} == {"its update"}
        assert document["final_generations"] == 3 and document["fined"] == {}
        check_transactions(scene)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_solvers_alone_convict_a_false_root_and_leave_out_a_hidden_update() -> None:
    with played(DemoCheat.FALSE_ROOT, DemoCheat.HIDDEN_UPDATE) as (scene, document, _):
        assert losers(scene, document) == {"solver-false-root": {"LEAF"}}
        assert {entry["kind"] for entry in document["disputes"]} == {"OUTER"}
        hidden = scene.addresses["solver-hidden-update"]
        seat = next(t.seat for t in scene.view.books.tenures.tenures.values() if t.holder == hidden)
        assert seat not in scene.view.counted(Round(1))[0]
        assert document["final_generations"] == 3
        # Whoever challenged the root won the whole lock itself: no auditor was drawn for it.
        (game,) = scene.index.state.games.values()
        assert scene.money.of(game.challenger).won > 0


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("cheats", [[DemoCheat.SQUATTER, DemoCheat.LATE_COMMITMENT], [DemoCheat.ABSENT]])
def test_who_works_less_owns_less_and_who_commits_late_has_no_weight(cheats: list[DemoCheat]) -> None:
    with played(*cheats) as (scene, document, _):
        assert document["slashed"] == document["disputes"] == [] and document["fined"] == {}
        assert document["final_generations"] == 3
        shares = {cheat: document["shares"][who(scene, f"solver-{cheat}")] for cheat in cheats}
        assert document["shares"][who(scene, "solver-1")] == 30 * 10**18
        assert all(0 < owned < 30 * 10**18 for cheat, owned in shares.items() if cheat != DemoCheat.LATE_COMMITMENT)
        for cheat in set(cheats) & {DemoCheat.LATE_COMMITMENT}:
            # It worked as much as others, and is paid as much; the model goes on without it.
            holder = scene.addresses[f"solver-{cheat}"]
            seat = next(t.seat for t in scene.view.books.tenures.tenures.values() if t.holder == holder)
            assert shares[cheat] == 30 * 10**18
            assert [seat in scene.view.counted(Round(r))[0] for r in range(3)] == [True, False, True]


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_when_nobody_cheats_nobody_loses_and_two_busy_loops_make_nobody_late() -> None:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        with played(DemoCheat.NONE) as (scene, document, _):
            assert document["slashed"] == document["disputes"] == [] and document["fined"] == {}
            # None is late: every seat counts in every round with all its units, and every call was answered.
            view = scene.view
            assert all(view.counted(Round(r))[0] == {0, 1, 2, 3} for r in range(3))
            assert {made.work.units for r in range(3) for made in view.works(Round(r))} == {play.UNITS}
            assert all(view.status(g) is GenerationStatus.FINAL for g in range(4))
            assert all(epoch.opened == epoch.on_call for epoch in view.epochs if epoch.closed)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cheat", [DemoCheat.BLIND_AUDITOR, DemoCheat.COPYING_AUDITOR])
def test_an_auditor_that_invents_its_results_is_convicted_and_nobody_else(cheat: DemoCheat) -> None:
    with played(cheat) as (scene, document, _):
        assert losers(scene, document) == {f"verifier-{cheat.auditors}": {"LEAF"}}
        assert {entry["role"] for entry in document["slashed"]} == {"auditor"}
        assert {entry["kind"] for entry in document["disputes"]} == {"ATTESTATION"}
        assert document["final_generations"] == 8 and not document["card"]["false_work"]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_an_auditor_that_accuses_falsely_loses_its_stake_and_no_solver_does() -> None:
    with played(DemoCheat.FALSE_ACCUSER_AUDITOR) as (scene, document, _):
        assert set(losers(scene, document)) == {"verifier-false-accuser"}
        lost = {entry["loser"] for entry in document["disputes"]}
        assert lost == {who(scene, "verifier-false-accuser")}
        assert document["final_generations"] == 8 and not document["card"]["false_work"]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cheat", [DemoCheat.ABSENT_AUDITOR, DemoCheat.DROPPING_AUDITOR])
def test_an_auditor_that_leaves_duties_undone_is_fined_and_nobody_else(cheat: DemoCheat) -> None:
    with played(cheat) as (scene, document, _):
        assert document["slashed"] == document["disputes"] == []
        name = f"verifier-{cheat.auditors}"
        assert set(document["fined"]) == {who(scene, name)}
        assert document["lost"][who(scene, name)] >= document["fined"][who(scene, name)] > 0
        assert document["final_generations"] == 8


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
