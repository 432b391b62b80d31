"""How often a node is asked, and what is offered for gas: pure rules at their limits."""

from __future__ import annotations

import pytest

from assay.protocol.types import Round, Seat
from assay_ledger.agents.game_actions import Defer, EndOverdue, Play
from assay_ledger.agents.money_actions import SettleSeat
from assay_ledger.agents.round_actions import DEAR_S, CloseEpoch, highest_base_fee
from assay_ledger.chain.fees import TIP_FLOOR, Market, Offer, affordable, first_offer, raised, tip_of
from assay_ledger.chain.pace import LEAST_S, MOST_S, SEEN, SILENT_SHARE, PollPace
from assay_solver.actions import TakeSeat
from assay_verifier.ticket_keeping import RegisterTicket

GWEI = 10**9


@pytest.mark.parametrize(
    ("block_s", "period"), ((0.01, LEAST_S), (0.4, LEAST_S), (2.0, 0.25), (12.0, 1.5), (60.0, MOST_S))
)
def test_a_node_is_asked_eight_times_per_block_within_bounds(block_s: float, period: float) -> None:
    now = 0.0
    pace = PollPace(lambda: now)
    assert pace.period == LEAST_S
    for number in range(SEEN + 1):
        now = number * block_s
        pace.saw(number)
        pace.saw(number)
    assert pace.period == pytest.approx(period)
    # One long pause among many blocks is a pause, not the pace.
    now += 1000
    pace.saw(SEEN + 1)
    assert pace.period == pytest.approx(period)
    # Blocks that came between two looks are counted.
    pace.saw(SEEN)
    assert pace.period <= MOST_S


def test_a_silence_is_asked_into_less_and_less_and_its_end_brings_the_pace_back() -> None:
    now = 0.0
    pace = PollPace(lambda: now)
    for number in range(SEEN + 1):
        now = number * 0.4
        pace.saw(number)
    last = now
    for silence, period in (
        (SILENT_SHARE * LEAST_S, LEAST_S),
        (8.0, 0.5),
        (SILENT_SHARE * MOST_S, MOST_S),
        (1e6, MOST_S),
    ):
        now = last + silence
        assert pace.period == pytest.approx(period)
    pace.saw(SEEN + 1)
    assert pace.period == LEAST_S


def test_tips_follow_what_others_pay_between_the_floor_and_the_base_fee() -> None:
    paid = [[3 * GWEI], [0], [], [1 * GWEI], [2 * GWEI]]
    assert tip_of(paid, 10 * GWEI) == 2 * GWEI
    assert tip_of(paid, GWEI) == GWEI
    assert tip_of([[10**30]] * 10, 5 * GWEI) == 5 * GWEI
    assert tip_of([], GWEI) == tip_of([[1]], 7) == TIP_FLOOR
    assert tip_of([[1]], 7, floor=5) == 5


def test_what_is_paid_for_gas_is_both_fees() -> None:
    assert Market(10 * GWEI, GWEI).price == 11 * GWEI


def test_an_offer_leaves_room_for_a_doubled_base_fee_up_to_its_limit() -> None:
    market = Market(10 * GWEI, GWEI)
    assert first_offer(market, None) == Offer(21 * GWEI, GWEI)
    assert first_offer(market, 15 * GWEI) == Offer(16 * GWEI, GWEI)
    assert first_offer(market, 10 * GWEI) == Offer(11 * GWEI, GWEI)
    assert first_offer(market, 10 * GWEI - 1) is None


def test_a_raised_offer_is_an_eighth_more_and_enough_or_there_is_none() -> None:
    old, market = Offer(21 * GWEI, GWEI), Market(10 * GWEI, GWEI)
    more = raised(old, market, None)
    assert more is not None and 8 * more.most >= 9 * old.most and 8 * more.tip >= 9 * old.tip
    spike = raised(old, Market(80 * GWEI, GWEI), None)
    assert spike is not None and spike.is_enough(Market(80 * GWEI, GWEI))
    assert raised(Offer(7, 1), Market(1, 1), None) == Offer(8, 2)
    # At the limit there is room for the eighth, a wei below there is none.
    least = -(-old.most * 9 // 8)
    tip = -(-old.tip * 9 // 8)
    assert raised(old, market, least - tip) == Offer(least, tip)
    assert raised(old, market, least - tip - 1) is None
    assert raised(old, Market(30 * GWEI, GWEI), 30 * GWEI) is not None
    assert raised(old, Market(30 * GWEI + 1, GWEI), 30 * GWEI) is None


def test_a_balance_that_is_short_offers_what_it_covers_if_that_can_be_mined() -> None:
    market, gas = Market(10 * GWEI, GWEI), 100_000
    full = Offer(21 * GWEI, GWEI)
    assert affordable(full, market, gas, 21 * GWEI * gas, None) == full
    assert affordable(full, market, gas, (10 * GWEI + 1) * gas, None) == Offer(10 * GWEI + 1, 1)
    assert affordable(full, market, gas, (10 * GWEI + 1) * gas - 1, None) is None
    assert affordable(full, market, gas, 0, None) is None
    # What replaces another offer must be an eighth more of both.
    old = Offer(12 * GWEI, GWEI)
    wanted, enough = Offer(30 * GWEI, 2 * GWEI), 27 * GWEI // 2
    assert affordable(wanted, market, gas, enough * gas, old) == Offer(enough, 2 * GWEI)
    assert affordable(wanted, market, gas, enough * gas - 1, old) is None


def test_what_has_no_clock_waits_below_the_cap_and_what_has_one_pays_any_fee() -> None:
    cap = 100 * GWEI
    for fee in (cap, cap + 1):
        assert highest_base_fee(SettleSeat(Round(0), Seat(0), 1), fee, cap) == cap
        assert highest_base_fee(EndOverdue(1), fee, cap) == cap
        assert highest_base_fee(CloseEpoch(1, 0), fee, cap) is None
        assert highest_base_fee(Defer(1, 0), fee, cap) is None
    # A fee that stays above the cap for longer is no spike: a sponsor's cap may be below every fee.
    for waits in (SettleSeat(Round(0), Seat(0), 1), EndOverdue(1)):
        assert highest_base_fee(waits, cap + 1, cap, DEAR_S) == cap
        assert highest_base_fee(waits, cap + 1, cap, DEAR_S + 1) is None
    # Nobody begins where no reply of a game is paid for.
    for begins in (TakeSeat(), RegisterTicket(0)):
        assert highest_base_fee(begins, cap + 1, cap, 100 * DEAR_S) == cap
    # A move chosen below the cap goes back to its strategy when the fee has passed it.
    assert highest_base_fee(Play(1, 0), cap, cap) == cap
    assert highest_base_fee(Play(1, 0), cap + 1, cap) is None
