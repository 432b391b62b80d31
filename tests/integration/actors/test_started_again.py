"""An actor that is started again by the command of its first start, with part of its stake gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.cli import acting
from assay.engine.runtime import devices, executor
from assay.protocol.errors import ConfigError, FundsError
from assay.protocol.types import Digest, Wei
from assay.sponsor.launching import stake_of
from assay.sponsor.vault_stakes import VaultStake, stake_in_vault, with_unlisted
from assay_ledger.chain.client import Chain
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import open_store
from assay_solver.actions import TakeSeat
from assay_verifier.agent import ReplayingAgent
from assay_verifier.ticket_keeping import RegisterTicket, RetireTicket
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.providers import ProviderNode, said


@pytest.fixture
def made(stage: SharedChain, tmp_path: Path) -> WholeRun:
    """A run with a solver's seat and an auditor's tickets, whose wallets have nothing left."""
    found = new_whole_run(stage, tmp_path, seats=1, rounds=3)
    found.solver("ada")
    found.auditor("vera", tickets=5)
    found.enrol()
    return found


def typed(made: WholeRun, name: str) -> str:
    """What stood behind --deposit at the first start."""
    return f"{made.players[name].brought}wei"


def test_who_lost_a_part_of_its_stake_starts_again_by_the_same_command(
    made: WholeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attack: one fine, and the service that starts the auditor again is refused until its tickets are lost."""
    for name in ("ada", "vera"):
        keys = made.players[name].agent.keys
        made.chain.send(keys.account, made.run.vault.request_exit(Wei(1)))
        capsys.readouterr()
        acting.bring(made.run, keys, tmp_path / name, typed(made, name), seats=int(name == "ada"))
        (line,) = [found for found in capsys.readouterr().err.splitlines() if "missing" in found]
        assert "deposits nothing and goes on" in line and "0.000000000000000001 are missing" in line
    with pytest.raises(FundsError):  # nothing is at stake yet: it does not begin
        acting.bring(made.run, ActorKeys("new", made.stage.sponsor), tmp_path / "new", f"{1 << 120}wei", seats=1)


def test_who_has_an_old_seat_locked_is_told_no_figure_that_is_too_low(
    made: WholeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Evicted, with its old lock held: 20 tokens were said to be missing, and then 1,000."""
    needed, keys = stake_of(made.run.charter, seats=1), made.players["ada"].agent.keys
    for locked, is_said in ((needed // 2, False), (0, True)):
        has = VaultStake(Wei(needed // 4), Wei(locked))
        monkeypatch.setattr(acting, "stake_in_vault", lambda *_, has=has: has)
        acting.bring(made.run, keys, tmp_path / "ada", None, seats=1)
        told = capsys.readouterr().err
        assert "a seat locks" in told and ("are missing" in told) is is_said


def test_who_has_something_locked_answers_by_the_cpu_where_its_gpu_is_gone(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bad luck: a GPU is lost, and the service that is started again is refused until its games are."""
    monkeypatch.setattr(executor, "usable_triton", lambda: "there is no GPU")
    for name in ("ada", "vera"):
        monkeypatch.setenv(devices.VARIABLE, devices.Device.CUDA)
        assert acting.use_cpu_where_gpu_is_gone(made.run, made.players[name].agent.keys)
        assert devices.asked() is devices.Device.CPU and executor.usual_variant() is None
        said = capsys.readouterr().err
        assert "there is no GPU" in said and "the CPU answers for it" in said
        assert not acting.use_cpu_where_gpu_is_gone(made.run, made.players[name].agent.keys), "the CPU was asked for"
    # Nothing is at stake yet: it does not begin without what it asks for.
    monkeypatch.setenv(devices.VARIABLE, devices.Device.CUDA)
    with pytest.raises(ConfigError) as refused:
        acting.use_cpu_where_gpu_is_gone(made.run, ActorKeys("new", made.stage.sponsor))
    assert refused.value.code == "NoDevice" and devices.asked() is devices.Device.CUDA


def test_whoever_goes_on_by_the_cpu_in_place_of_its_gpu_takes_no_seat(stage: SharedChain, tmp_path: Path) -> None:
    """Bad luck: evicted while its GPU was away, it would lose the fee of one seat after the other by a slow CPU."""
    made = new_whole_run(stage, tmp_path, seats=1, rounds=3)
    ada, told = made.solver("ada"), list[str]()
    says = acting.TellsNoSeat(told.append)
    for ada.lost_gpu in (True, False):
        view = ada.see()
        assert (TakeSeat() in ada.candidates(view)) is not ada.lost_gpu
        says(view, ada.forgiven(view), ada.free, lost_gpu=ada.lost_gpu)
    assert len(told) == 1 and told[0].startswith("takes no seat: its GPU is gone")


def test_an_auditor_that_goes_on_by_the_cpu_keeps_its_tickets_and_registers_no_other(made: WholeRun) -> None:
    vera = made.players["vera"].agent
    assert isinstance(vera, ReplayingAgent)
    held = len(vera.records.held_tickets())
    vera.tickets_wanted = held + 1
    for vera.lost_gpu in (True, False):
        view = vera.see()
        vera._free = Wei(vera.target.facts.tickets.bond)
        choices = list(vera.candidates(view))
        assert any(isinstance(choice, RegisterTicket) for choice in choices) is not vera.lost_gpu
        assert not any(isinstance(choice, RetireTicket) for choice in choices), "what it has it keeps"


def test_a_store_that_lost_everything_keeps_nobody_from_what_is_at_stake(made: WholeRun, tmp_path: Path) -> None:
    """Who has nothing at stake does not begin in front of it."""
    empty, new = open_store(tmp_path / "empty"), ActorKeys("new", made.stage.sponsor)
    for name in ("ada", "vera"):
        acting.check_store(made.run, made.players[name].agent.keys, empty)
    with pytest.raises(acting.StoreForeign):
        acting.check_store(made.run, new, empty)
    acting.check_store(made.run, new, made.store)
    empty.put(b"junk", f"programs/{made.run.charter.step.root.hex()}")
    acting.check_store(made.run, new, empty)  # it is the publisher's to find out about
    made.run.chain.send(made.stage.sponsor, made.run.escrow.cancel())
    acting.check_store(made.run, new, open_store(tmp_path / "pruned"))


def test_two_processes_of_a_key_that_start_at_once_bring_its_stake_once(
    made: WholeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a standby that takes over, and the first machine, which comes back in the same seconds."""
    keys, real = made.players["vera"].agent.keys, acting.deposit
    made.chain.send(keys.account, made.run.token.mint(keys.address, Wei(1000)))
    elsewhere, wanted = Run(Chain(made.chain.url), made.run.address), f"{made.players['vera'].brought + 100}wei"

    def overtaken(*words: Any, **options: Any) -> Any:
        monkeypatch.setattr(acting, "deposit", real)
        acting.bring(made.run, keys, tmp_path / "here", wanted, tickets=5)
        return real(*words, **options)

    monkeypatch.setattr(acting, "deposit", overtaken)
    acting.bring(elsewhere, keys, tmp_path / "elsewhere", wanted, tickets=5)
    assert made.chain.ask(made.run.token.balance_of(keys.address)) == 900


@pytest.mark.parametrize("fails", ["the token", "the coins for gas"])
def test_a_deposit_that_fails_keeps_nobody_from_what_is_at_stake(
    made: WholeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: str
) -> None:
    """Attack: who may pause a token, or a day of dear gas, has every actor that its service starts again end before it
    looks at its games."""
    keys = made.players["ada"].agent.keys
    token, who = "0x" + made.run.token.address.hex(), keys.account.address
    made.chain.send(keys.account, made.run.token.mint(keys.address, Wei(1)))
    wanted = f"{made.players['ada'].brought + 1}wei"
    code = made.chain.rpc("eth_getCode", token, "latest")
    if fails == "the token":
        made.chain.rpc("anvil_setCode", token, "0x5f5ffd")  # it reverts, whatever it is asked
    else:
        made.chain.rpc("anvil_setBalance", who, hex(1))
    try:
        capsys.readouterr()
        acting.bring(made.run, keys, tmp_path / "ada", wanted, seats=1)
    finally:
        made.chain.rpc("anvil_setCode", token, code)
    assert "deposits nothing and goes on with what is there" in capsys.readouterr().err
    made.chain.rpc("anvil_setBalance", who, hex(10**18))
    acting.bring(made.run, keys, tmp_path / "ada", wanted, seats=1)
    assert stake_in_vault(made.run, keys.address).total == made.players["ada"].brought + 1


def test_a_node_without_old_events_makes_nobody_bring_its_stake_twice(
    made: WholeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attack: a provider that removes what is old, and a service that starts the auditor again each hour."""
    keys, ask = made.players["vera"].agent.keys, made.chain.ask
    made.chain.send(keys.account, made.run.token.mint(keys.address, Wei(made.players["vera"].brought)))
    before = ask(made.run.token.balance_of(keys.address))
    has = stake_in_vault(made.run, keys.address)
    assert has.total == made.players["vera"].brought and len(has.names) == 5
    with ProviderNode(made.chain.url) as node:
        pruned = Run(Chain(node.url), made.run.address)
        node.turn(said([]), methods=["eth_getLogs"])
        for wanted, line in ((has.total, "are in the run's vault already"), (has.total + 1, "nobody knows what else")):
            capsys.readouterr()
            acting.bring(pruned, keys, tmp_path / "vera", f"{wanted}wei", tickets=5)
            told = " ".join(capsys.readouterr().err.split())
            assert "deposits nothing" in told and line in told
            assert ask(made.run.token.balance_of(keys.address)) == before
        assert sum(method == "eth_getLogs" for method, _ in node.asked) == 1, "where something is to be deposited"
        node.turn()
        acting.bring(pruned, keys, tmp_path / "vera", f"{has.total + 1}wei", tickets=5)
    assert before - ask(made.run.token.balance_of(keys.address)) == 1


def test_what_waits_for_a_challenge_counts_though_no_contract_lists_it(made: WholeRun, tmp_path: Path) -> None:
    keys = made.players["vera"].agent.keys
    has = stake_in_vault(made.run, keys.address)
    made.chain.send(keys.account, made.run.challenges.commit_challenge(Digest(b"\7" * 32)))
    listed = stake_in_vault(made.run, keys.address)
    assert has.total - listed.total == made.run.charter.economics.challenge_deposit > 0
    assert with_unlisted(made.run, keys.address, listed) == VaultStake(listed.free, has.total - listed.free)
    held = made.chain.ask(made.run.token.balance_of(keys.address))
    made.chain.send(keys.account, made.run.token.mint(keys.address, Wei(has.total)))
    acting.bring(made.run, keys, tmp_path / "vera", typed(made, "vera"), tickets=5)
    assert made.chain.ask(made.run.token.balance_of(keys.address)) == held + has.total
