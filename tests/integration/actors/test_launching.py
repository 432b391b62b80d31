"""A sponsor: what its run still lacks, the escrow, and the launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.errors import CancelledError, RejectedError, UnavailableError, UserError
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Wei
from assay.sponsor import posting
from assay.sponsor.charters import Pace
from assay.sponsor.launching import (
    LaunchLacks,
    escrow_of,
    launch_lacks,
    mint_tokens,
    refund_all,
    stake_of,
)
from assay.sponsor.posting import post_run
from assay.sponsor.vault_stakes import VaultStake, stake_in_vault
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import address_of
from assay_ledger.deployment.code import code_of
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import open_store
from assay_solver.actions import TakeSeat
from tests.harness.actors.whole_run import PACE, new_whole_run, tiny_rounds
from tests.harness.actors.world import SharedChain


@pytest.mark.long
def test_a_run_is_launched_once_it_lacks_neither_tickets_nor_seats_nor_money(
    stage: SharedChain, tmp_path: Path
) -> None:
    made = new_whole_run(stage, tmp_path)
    charter = made.run.charter
    assert code_of(made.run).status() == "release"
    assert launch_lacks(made.run) == LaunchLacks(tickets=5, seats=4, escrow=cost_of(charter, 4))
    for name in ("ada", "bob", "cleo", "dan"):
        made.solver(name)
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    assert launch_lacks(made.run) == LaunchLacks(tickets=0, seats=0, escrow=cost_of(charter, 4))
    with pytest.raises(RejectedError) as refused:
        made.launch()
    assert refused.value.code == "Paused"
    made.fund()
    assert not launch_lacks(made.run)
    assert made.chain.ask(made.run.escrow.balance()) == escrow_of(charter) == charter.rounds * cost_of(charter, 4)
    made.launch()
    assert made.view.state.money.phase is RunPhase.RUNNING and made.view.round == 0


def test_who_paid_before_the_launch_and_after_it_gets_all_that_is_left_back(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path)
    for name in ("ada", "bob", "cleo", "dan"):
        made.solver(name)
    made.auditor("vera", tickets=5)
    made.enrol()
    sponsor = address_of(stage.sponsor)
    made.fund()
    made.launch()
    made.fund()
    paid = made.chain.ask(made.run.escrow.funded_of(sponsor))
    assert paid == 2 * escrow_of(made.run.charter)
    # Nobody trains, so that the run stands still until anybody may end it.
    now = made.chain.head().timestamp
    made.chain.rpc("evm_mine", hex(now + made.run.charter.timing.stall + 1))
    made.chain.send(stage.sponsor, made.run.escrow.wind_down())
    before = made.free(sponsor)
    refund_all(made.chain, stage.sponsor, made.run)
    assert made.free(sponsor) - before == paid and made.chain.ask(made.run.escrow.balance()) == 0
    # It is all back, whoever asks how often. Who never paid in is told that nothing ever was.
    refund_all(made.chain, stage.sponsor, made.run)
    with pytest.raises(RejectedError) as refused:
        refund_all(made.chain, made.players["ada"].agent.account, made.run)
    assert refused.value.code == "NothingToRefund"
    assert made.free(sponsor) - before == paid


def test_test_tokens_come_in_as_many_parts_as_the_token_makes_at_a_time(stage: SharedChain, tmp_path: Path) -> None:
    made, most = new_whole_run(stage, tmp_path), stage.chain.ask(TokenContract(stage.token).max_mint())
    somebody = Address(b"\7" * 20)
    for amount in (most, most + 1, 1):
        before = stage.chain.ask(made.run.token.balance_of(somebody))
        mint_tokens(stage.chain, stage.sponsor, made.run.token, somebody, Wei(amount))
        assert stage.chain.ask(made.run.token.balance_of(somebody)) - before == amount


def test_terms_are_shown_and_refused_before_anything_is_sent(stage: SharedChain, tmp_path: Path) -> None:
    seen: list[RunCharter] = []
    head, store = stage.chain.head(), open_store(tmp_path / "store")
    what = {"name": "asked", "rounds": 3, "seats": 4, "pace": PACE}

    def refuse(charter: RunCharter) -> None:
        seen.append(charter)
        raise CancelledError("No.", code="Cancelled")

    with pytest.raises(CancelledError):
        post_run(stage.chain, stage.sponsor, store, tiny_rounds(4), confirm=refuse, **what)  # type: ignore[arg-type]
    with pytest.raises(RejectedError) as refused:
        short = {"pace": replace(PACE, commit=599)}
        post_run(stage.chain, stage.sponsor, store, tiny_rounds(4), confirm=refuse, **{**what, **short})  # type: ignore[arg-type]
    assert refused.value.code == "WindowTooShort"
    assert stage.chain.head() == head and store.list("programs") == () and store.list("objects") == ()
    made = new_whole_run(stage, tmp_path)
    assert [c.economics for c in seen] == [made.run.charter.economics] and len(seen) == 1


def test_what_is_in_the_vault_counts_free_and_locked_stake_of_ones_own(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path)
    ada, brought = made.solver("ada"), made.players["ada"].brought
    assert stake_in_vault(made.run, ada.me) == VaultStake(brought, 0)
    ada.perform(TakeSeat(), ada.see())
    lock = stake_of(made.run.charter, seats=1)
    assert stake_in_vault(made.run, ada.me) == VaultStake(brought - lock, lock)
    assert stake_in_vault(made.run, address_of(stage.sponsor)).total == 0


def test_rounds_of_another_length_than_the_programs_count_are_not_posted(stage: SharedChain, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        new_whole_run(stage, tmp_path, pace=Pace(units=3, least=2, steps=2, commit=600))
    assert refused.value.code == "OtherRoundLength" and "10 steps a round" in refused.value.message


def test_where_a_run_is_is_said_before_a_store_can_fail(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a store or node that fails once the contracts are paid for, of which the sponsor then knows nothing."""
    said: list[str] = []

    def fail(_store: object, _prepared: object, run: Address, _block: int) -> None:
        assert Run(stage.chain, run).charter.rounds == 3
        assert f"the run is at 0x{run.hex()}, and stays there whatever fails from here on" in said
        assert f"`assay run fund AMOUNT --run 0x{run.hex()}` fills the escrow" in "".join(said)
        assert f"`assay run cancel --run 0x{run.hex()}`" in "".join(said)
        raise UnavailableError("The store is gone.")

    monkeypatch.setattr(posting, "publish_card", fail)
    with pytest.raises(UnavailableError):
        post_run(
            *(stage.chain, stage.sponsor, open_store(tmp_path / "store"), tiny_rounds(4)),
            name="broken off",
            rounds=3,
            seats=4,
            pace=PACE,
            token=stage.token,
            talk=said.append,
        )
