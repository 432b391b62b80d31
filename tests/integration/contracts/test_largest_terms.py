"""A run at the largest terms that its constructor admits: everything that is owed is paid, and everybody gets out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.economics.chain_profile import MAX_AMOUNT, MAX_DELAY, MAX_FEE_CAP, MAX_WINDOW, MIN_WINDOW
from assay.protocol.economics.formulas import MAX_EXPIRY, MAX_RATE, check_charter, min_exit
from assay.protocol.model import ids
from assay.protocol.run.charter import ChainProfile, Charter, ClockTerms
from assay.protocol.types import Seat, Wei
from tests.harness.contracts.battles import battle
from tests.harness.contracts.game_chain import ChainGames, Twin
from tests.harness.contracts.world import ETHER, START, Rejected, RunWorld, charter, economics
from tests.harness.games import config, honest_trace, lie_at
from tests.harness.ledger.strangers import HONEST_SOLVERS, HONEST_VERIFIERS, PEOPLE, SPONSOR, STRANGER, Strangers
from tests.harness.programs import counting
from tests.integration.contracts.conftest import strangers_on
from tests.integration.contracts.test_settlement import CHEAT, play_round, settle_all

UNIT = MAX_AMOUNT // 200
"""W is 100 of it, B 200: every amount of the charter at its maximum, or a hair below."""

SHORT = MAX_AMOUNT - 200 * UNIT


def largest() -> Charter:
    """Terms of which none can be larger while the others are."""
    base = charter()
    money = economics(
        unit_price=Wei(100 * UNIT),
        units=1,
        shares_per_unit=Wei(MAX_AMOUNT),
        shares_per_duty=Wei(MAX_AMOUNT),
        claim_lock=Wei(MAX_AMOUNT),
        verifier_bond=Wei(200 * UNIT),
        wage=Wei(MAX_AMOUNT),
        seat_fee=Wei(100 * UNIT),
        challenge_bond=Wei(200 * UNIT),
        challenge_deposit=Wei(200 * UNIT),
        audit_ppm=MAX_RATE,
        whistle_ppm=MAX_RATE,
    )
    lengths = {name: MAX_WINDOW for name in base.windows.__slots__ if name != "exit"}
    windows = replace(base.windows, **lengths, exit=0)
    windows = replace(windows, exit=min_exit(windows, MAX_DELAY) + MAX_WINDOW)
    chain = ChainProfile(MAX_DELAY, MAX_DELAY, MAX_FEE_CAP, Wei(0))
    clocks = ClockTerms(MAX_DELAY + MIN_WINDOW, MAX_DELAY, MAX_DELAY, 64)
    terms = replace(base, rounds=(1 << 24) - 1, expiry=MAX_EXPIRY, chain=chain, clocks=clocks)
    return replace(terms, economics=money, windows=windows)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    """A run on such terms, in a token of which there is enough."""
    folder: Path = tmp_path_factory.mktemp("artifacts")
    tokens = 60_000 * UNIT // ETHER
    made = RunWorld(folder, largest(), accounts=PEOPLE, tokens=tokens, token="ReentrantToken")
    made.first_state = made.rpc("evm_snapshot")
    yield made
    made.close()


def test_the_terms_are_as_large_as_they_may_be() -> None:
    terms = largest()
    check_charter(terms, START)
    assert SHORT < 200
    e = terms.economics
    assert 2 * e.price == e.verifier_bond >= MAX_AMOUNT - SHORT


def test_what_the_largest_terms_promise_is_paid_and_nothing_overflows(world: RunWorld) -> None:
    """Shares per duty of 2^127 reverted every settlement once, and the escrow stayed behind them."""
    s: Strangers = strangers_on(world, unit=UNIT, endowment=45_000 * UNIT)
    assert s.play.join(s.people[CHEAT]) is None
    round_ = play_round(s, lie=0, cheat=True)
    before = [s.ledger.vault.free_of(s.people[k]) for k in HONEST_VERIFIERS]
    settle_all(s, round_)
    assert s.play.settle_round(s.people[STRANGER], round_) is None
    paid = [s.ledger.vault.free_of(s.people[k]) - was for k, was in zip(HONEST_VERIFIERS, before, strict=True)]
    duties = [sum(who == s.people[k] for (_, _, _, who) in s.ledger.audit.end_roots) for k in HONEST_VERIFIERS]
    assert paid == [n * MAX_AMOUNT for n in duties] and min(duties) > 4
    assert s.ledger.rounds.commitments[round_, Seat(3)].convicted
    # Shares, at the end of the longest wait.
    solver, verifier = s.people[HONEST_SOLVERS[0]], s.people[HONEST_VERIFIERS[0]]
    s.play.now = s.ledger.settlement.vests_at(round_)
    assert s.play.release(solver, ids.work_grant(round_, Seat(0))) is None
    assert s.play.release(verifier, ids.duties_grant(round_, verifier)) is None
    held = [world.call("shares", "balanceOf", who) for who in (solver, verifier)]
    assert held == [MAX_AMOUNT, duties[0] * MAX_AMOUNT]
    world.now = s.play.now
    world.send(verifier, "shares", "transfer", solver, held[1])
    assert world.call("shares", "balanceOf", solver) == sum(held)


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
    s: Strangers = strangers_on(world, unit=UNIT, endowment=45_000 * UNIT)
    me, amount = s.people[STRANGER], s.ledger.vault.free_of(s.people[STRANGER])
    assert s.play.request_exit(me, amount) is None
    s.play.now += s.ledger.charter.windows.exit + 1
    assert s.play.withdraw(me) is None
    assert world.call("token", "balanceOf", me) >= amount


def test_a_vault_takes_no_more_than_draws_can_count(world: RunWorld) -> None:
    """Two stakes of 2^127 made every reveal revert: the holder of a token without limit stopped a run for good."""
    s: Strangers = strangers_on(world, unit=UNIT, endowment=45_000 * UNIT)
    world.now = s.play.now
    room = (1 << 127) - sum(world.call("vault", "totals"))
    sponsor = s.people[SPONSOR]
    world.send(sponsor, "token", "mint", sponsor, 1 << 127)
    with pytest.raises(Rejected, match="VaultFull") as refused:
        world.send(sponsor, "vault", "deposit", room + 1)
    assert refused.value.values == (room + 1, room)
    world.send(sponsor, "vault", "deposit", room)
    with pytest.raises(Rejected, match="VaultFull"):
        world.send(sponsor, "vault", "deposit", 1)
    assert sum(world.call("vault", "totals")) == 1 << 127
