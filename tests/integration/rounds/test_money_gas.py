"""Gas of the calls that move a run's money, at 4 and 64 seats: none grows with seats, tickets or findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.types import Digest, Seat, Wei
from tests.harness.contracts import snapshots
from tests.harness.rounds.charters import RUN, changed
from tests.harness.rounds.money_scenes import audited
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.run_limits import staked
from tests.harness.rounds.samples import ETHER

CALLS = ("fund", "launch", "settleWork", "settleDuty", "settleOpening", "settleRound", "release", "finish", "refund")


def run_of(seats: int) -> MoneyWorld:
    """A run of one round; two findings are expected, however many seats."""
    sparse = changed(changed(RUN, "training", seats=seats), "launch", seats=3)
    terms = changed(sparse, "economics", audit_ppm=2_000_000 // seats, reaudit_ppm=100_000)
    return MoneyWorld(replace(staked(terms, merge_pay=Wei(ETHER // 100), seat_fee=Wei(ETHER // 2)), rounds=1))


def gas_of_money(seats: int) -> dict[str, int]:
    """Gas of each call, of those that many make the dearest."""
    w, gas = run_of(seats), Counter[str]()
    people = w.start(solvers=seats, tickets=8)
    gas |= Counter({"fund": w.gas["fund"], "launch": w.gas["launch"]})
    r = w.play_round(people)
    w.tick(w.charter.timing.challenge + 1)
    assert w.finalize(r + 1) == ""
    own = audited(w, r, more=5)
    for seat in range(seats):
        assert w.close_opening(r + 1, seat) == ""
        assert w.settle_work(r, seat, own) == w.settle_opening(r + 1, ids.seat_party(Seat(seat))) == ""
        gas |= Counter({call: w.gas[call] for call in ("settleWork", "settleOpening")})
    for name in w.run.duties.attestations.attestations:
        assert w.settle_duty(name) == ""
        gas |= Counter({"settleDuty": w.gas["settleDuty"]})
    assert w.settle_round(r, own) == ""
    w.tick(w.charter.timing.vesting)
    names: list[Digest] = list(w.run.grants.grants)
    assert w.do(lambda: w.run.grants.release(names[0], w.now), "Grants", "release", names[0]) == ""
    assert w.finish() == w.refund(w.sponsor) == ""
    gas |= Counter({call: w.gas[call] for call in CALLS[5:]})
    w.end()
    return {call: gas[call] for call in CALLS}


@pytest.mark.timeout(120)
def test_gas_of_money_does_not_grow_with_seats() -> None:
    table: dict[str, dict[str, int]] = {}
    for seats in (4, 64):
        for call, gas in gas_of_money(seats).items():
            table.setdefault(call, {})[f"{seats} seats"] = gas
    assert tuple(table) == CALLS
    for call, row in table.items():
        assert max(row.values()) <= 1.15 * min(row.values()), call
    snapshots.check("money", table)
