"""A run at the largest terms that its constructor admits: every wei of a game moves, and what was deposited leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from assay.protocol.economics.limits import MAX_AMOUNT, MAX_DELAY, MAX_FEE_CAP, MAX_WINDOW
from assay.protocol.economics.run_bounds import MAX_EXPIRY, check_run
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Wei
from tests.harness.contracts.arena import arena_charter
from tests.harness.contracts.battles import battle
from tests.harness.contracts.game_chain import ChainGames, Twin
from tests.harness.contracts.run_world import Rejected, RunWorld
from tests.harness.games import config, honest_trace, lie_at
from tests.harness.programs import counting
from tests.harness.rounds.charters import changed
from tests.harness.rounds.samples import START

SPONSOR, STRANGER = 0, 3


PRICE = MAX_AMOUNT // 12_000
"""W: the least lock and the least stake are multiples of it."""


def largest() -> RunCharter:
    """Terms of which none can be larger while the others are."""
    program = counting().program
    c = replace(arena_charter(program, program, config(4), 64), rounds=(1 << 24) - 1, expiry=MAX_EXPIRY)
    c = changed(c, "timing", longest_dispute=MAX_WINDOW, exit=MAX_WINDOW)
    c = changed(
        c, "chain", reorg_depth=MAX_DELAY, inclusion_delay=MAX_DELAY, least_budget=MAX_DELAY, fee_cap=MAX_FEE_CAP
    )
    c = changed(c, "clocks", budget=MAX_DELAY, replay=MAX_DELAY, move=MAX_DELAY)
    return changed(
        c,
        "economics",
        unit_price=Wei(PRICE),
        shares_per_unit=Wei(MAX_AMOUNT),
        shares_per_duty=Wei(MAX_AMOUNT),
        seat_lock=Wei(MAX_AMOUNT),
        ticket_bond=Wei(MAX_AMOUNT),
        seat_fee=Wei(PRICE),
        merge_pay=Wei(PRICE),
        challenge_bond=Wei(MAX_AMOUNT),
        challenge_deposit=Wei(MAX_AMOUNT),
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    """A run on such terms, in a token of which there is enough; of clocks the game refuses to take all the largest."""
    terms = changed(largest(), "clocks", replay=3600, move=600)
    made = RunWorld(tmp_path_factory.mktemp("artifacts"), terms, token="ReentrantToken")
    made.first_state = made.rpc("evm_snapshot")
    yield made
    made.close()


def test_the_terms_are_as_large_as_they_may_be() -> None:
    check_run(largest(), START)


@pytest.mark.parametrize("lies", ["defender", "challenger"])
def test_a_game_over_the_largest_lock_and_bond_moves_every_wei_of_them(lies: str) -> None:
    """Bounties, advances and refunds are kept in 128 bits; contract and model agree on each."""
    example, settings = counting(), config(4, MAX_AMOUNT)
    twin = Twin(example.program, settings, ChainGames(example.program, settings, token="ReentrantToken"))
    truth, lie = honest_trace(example), lie_at(example, 1)
    sides = (lie, truth) if lies == "defender" else (truth, lie)
    end = battle(twin, *sides, 1, lock=MAX_AMOUNT)
    assert end.verdict is not None and end.verdict.loser == (end.defender if lies == "defender" else end.challenger)
    twin.check_money()
    assert twin.vault.burned >= MAX_AMOUNT // 4


def test_a_deposit_leaves_after_the_longest_exit(world: RunWorld) -> None:
    """With a delay of 2^64 - 1 every request for an exit reverted, and what had been deposited stayed."""
    me, amount = world.people[STRANGER], MAX_AMOUNT
    world.send(me, "token", "mint", me, amount)
    world.send(me, "vault", "deposit", amount)
    before = world.call("token", "balanceOf", me)
    world.send(me, "vault", "requestExit", amount)
    world.send(me, "vault", "withdraw", at=world.now + MAX_WINDOW + 1)
    assert world.call("token", "balanceOf", me) == before + amount


def test_a_vault_takes_no_more_than_draws_can_count(world: RunWorld) -> None:
    """Two stakes of 2^127 made every reveal revert: the holder of a token without limit stopped a run for good."""
    room = (1 << 127) - sum(world.call("vault", "totals"))
    sponsor = world.people[SPONSOR]
    world.send(sponsor, "token", "mint", sponsor, 1 << 127)
    with pytest.raises(Rejected, match="VaultFull") as refused:
        world.send(sponsor, "vault", "deposit", room + 1)
    assert refused.value.values == (room + 1, room)
    world.send(sponsor, "vault", "deposit", room)
    with pytest.raises(Rejected, match="VaultFull"):
        world.send(sponsor, "vault", "deposit", 1)
    assert sum(world.call("vault", "totals")) == 1 << 127
