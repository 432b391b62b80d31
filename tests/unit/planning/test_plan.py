"""Plans reproduce what is known of training over the internet, and their parts add up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.run import app
from assay.planning.burdens import CALLS, MERGE, burdens, gas_of, multiplier_parts
from assay.planning.inputs import PlanInputs
from assay.planning.known_runs import (
    DEEPSEEK_V3_BATCH,
    INTELLECT_1_EXCHANGES,
    INTELLECT_1_STEPS,
    YEAR,
    data_parallel_seconds,
    synchronization_seconds,
    traffic_reduction,
)
from assay.planning.plan import plan_run
from assay.planning.spans import rounds_of_epoch
from assay.planning.timing import critical_path, time_round
from assay.protocol.economics.chain_profiles import CHAINS
from assay.protocol.economics.round_time import goodput
from assay.protocol.economics.run_times import unsettled_rounds
from assay.protocol.errors import UsageError
from assay.protocol.types import Wei
from assay.sponsor.charters import Pace
from assay.sponsor.charters import timing as round_timing
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.run_limits import changed

SMALL = PlanInputs(
    parameters=124e6, tokens=1e10, solvers=8, up=1e8, down=1e9, flops=2e13, inner_steps=500, batch=65_536.0
)
LARGE = replace(SMALL, parameters=1e9, solvers=1000, flops=4e13, batch=262_144.0)

SNAPSHOTS = Path(__file__).resolve().parents[3] / "docs" / "snapshots"


def test_naive_data_parallelism_at_671_billion_takes_five_thousand_years() -> None:
    years = data_parallel_seconds(671e9, 14.8e12, DEEPSEEK_V3_BATCH, 60e6) / YEAR
    assert years == pytest.approx(5_000, rel=0.1)


def test_600_million_parameters_are_synchronised_in_ten_minutes() -> None:
    assert synchronization_seconds(600e6, 4, 60e6) / 60 == pytest.approx(10, rel=0.1)


def test_a_hundred_inner_steps_and_int8_save_400_of_401_bytes() -> None:
    """INTELLECT-1 (arXiv 2412.01152): 400 times less traffic at H = 100 with int8."""
    assert traffic_reduction(100, 1) == 400


@pytest.mark.parametrize("place", INTELLECT_1_EXCHANGES)
def test_the_utilisation_of_intellect_1(place: str) -> None:
    """As published to a tenth of a percent, from the seconds published beside it."""
    exchange, published = INTELLECT_1_EXCHANGES[place]
    assert goodput(INTELLECT_1_STEPS, exchange) == pytest.approx(published, abs=1e-3)


def test_the_utilisation_of_covenant_72b() -> None:
    """arXiv 2603.08163: rounds of 20 minutes, 70 s of communication, 94.5 %."""
    assert 100 * goodput(20 * 60, 70) == pytest.approx(94.5, abs=0.05)


def test_covenants_communication_follows_from_its_links() -> None:
    """A 146th of 2 bytes a parameter at 110 Mb/s takes about the 70 s that were measured."""
    one_way = synchronization_seconds(72.7e9, 2 / 146, 110e6) / 2
    assert one_way == pytest.approx(70, rel=0.05)


def test_the_time_of_a_round_follows_from_operations_and_tokens() -> None:
    assert SMALL.training_seconds == pytest.approx(6 * 124e6 * 65_536 * 500 / 2e13)
    assert SMALL.rounds * 8 * 500 * 65_536 >= 1e10 > (SMALL.rounds - 1) * 8 * 500 * 65_536
    plan = plan_run(SMALL)
    assert plan.timing.wall == plan.timing.rounds * (SMALL.training_seconds + plan.timing.path.seconds)


def test_eight_seats_merge_alone_and_a_thousand_by_positions() -> None:
    assert (SMALL.is_one_level, SMALL.group_size, SMALL.groups) == (True, 8, 1)
    assert (LARGE.is_one_level, LARGE.group_size, LARGE.groups) == (False, 32, 32)
    assert [b.role for b in burdens(SMALL, time_round(SMALL))] == ["solver", "auditor", "auditor"]
    assert len(burdens(LARGE, time_round(LARGE))) == 5


def test_a_solver_uploads_its_update_and_nothing_else() -> None:
    for update, upload in (("f32", 4.0), ("int8", 1.0), ("int4", 0.53), ("sparse", 0.025), ("sparse-carried", 4.025)):
        x = replace(SMALL, update=update)
        assert burdens(x, time_round(x))[0].up == pytest.approx(upload * 124e6)


def test_the_path_of_eight_seats_by_hand() -> None:
    """992 Mb go up at 100 Mb/s, eight times as much comes down at 1 Gb/s; four transactions and a grace of a minute."""
    path = critical_path(SMALL, 12)
    assert path.seconds == pytest.approx(9.92 + 7.936 + 4 * 12 + 60)
    assert critical_path(SMALL, 600).seconds - path.seconds == pytest.approx(4 * 588)


def test_the_path_of_a_thousand_seats_by_hand() -> None:
    """Partial sums in f32 are 32 Gb each; the generation's positions fetch 32 of them."""
    path = critical_path(LARGE, 12)
    assert path.fetch == pytest.approx(32 * 8 + 12)
    assert path.merge == pytest.approx(320 + 32 * 32 + 4 * 12)
    assert path.base == pytest.approx(320 + 32)
    fast = critical_path(replace(LARGE, positions=1e10), 12)
    assert fast.merge == pytest.approx(33 * 3.2 + 4 * 12)
    rounded = critical_path(replace(LARGE, sums="int8"), 12)
    assert rounded.merge == pytest.approx(80 + 8 * 32 + 4 * 12) and rounded.base == path.base


def test_rounded_sums_are_less_to_fetch_for_the_positions_of_a_generation() -> None:
    whole, rounded = (
        {f"{b.role}, {b.per}": b for b in burdens(x, time_round(x))} for x in (LARGE, replace(LARGE, sums="bf16"))
    )
    assert 2 * rounded["position of a group, round"].up == whole["position of a group, round"].up
    assert 2 * rounded["position of the generation, round"].down == whole["position of the generation, round"].down
    assert rounded["position of the generation, round"].up == whole["position of the generation, round"].up
    assert rounded["solver, round"] == whole["solver, round"] and rounded["auditor, duty"] == whole["auditor, duty"]


def test_the_multiplier_adds_audits_hashing_and_merging() -> None:
    parts = multiplier_parts(SMALL)
    assert parts["training"] == 1
    assert parts["audits"] == pytest.approx(1.05 * 0.1 / 0.8)
    hashed = 12 * 7 * 124e6 + 124e6
    assert parts["hashing"] == pytest.approx(hashed / 2e9 / SMALL.training_seconds)
    assert parts["merging"] == pytest.approx(8 * 124e6 / 2e9 / SMALL.training_seconds)
    assert sum(multiplier_parts(replace(SMALL, audit=1.0)).values()) > 2


def test_tickets_carry_twice_the_duties_and_never_fewer_than_five() -> None:
    plan = plan_run(LARGE)
    assert plan.timing.rounds_of_epoch == 2
    assert plan.security.tickets == 2 * 2 * 1000 * 0.1 / 0.8
    assert plan_run(replace(SMALL, solvers=2)).security.tickets == 5


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("capacity", [1, 4])
@pytest.mark.parametrize("plain", [SMALL, replace(SMALL, solvers=60), LARGE], ids=["8", "60", "1000"])
def test_with_the_tickets_of_a_plan_no_round_waits_for_another_epoch(
    plain: PlanInputs, capacity: int, chain: str
) -> None:
    """The gate of rounds counts those that open in one epoch: half a round more, and every second one would wait."""
    x = replace(plain, capacity=capacity, chain=chain)
    plan = plan_run(x)
    rates = {"audit_ppm": 100_000, "reaudit_ppm": 200_000, "capacity": capacity, "shifts": 1}
    admitted = rounds_of_epoch(changed(RUN, "economics", **rates), plan.security.tickets, x.solvers)
    assert admitted >= (plan.timing.epoch + plan.timing.seed_delay) / plan.timing.round


def test_pay_waits_four_epochs_at_most_as_a_charter_counts_them() -> None:
    """Until its epoch begins, and until that one and the two after it have closed, each after its seed."""
    timing = time_round(SMALL)
    assert timing.epoch == 2 * SMALL.training_seconds + 2 * 600
    waits, rounds = 4 * (timing.epoch + 840) + 600, timing.unsettled - 1
    assert (rounds - 1) * timing.training < waits <= rounds * timing.training
    chain = CHAINS["l1"].chain(Wei(0), Wei(0))
    pace = Pace(units=60, least=30, steps=5, commit=int(SMALL.training_seconds), replay=60)
    drawn = round_timing(chain, pace, SMALL.capacity, now=0)
    assert unsettled_rounds(drawn, 600) == timing.unsettled


def test_a_plan_says_what_speaks_against_it() -> None:
    slow = plan_run(replace(LARGE, parameters=70e9, update="f32", capacity=12))
    words = " ".join(slow.warnings)
    assert "merge takes" in words
    assert "terabytes" in words
    assert "No stake secures 36 open duties" in words
    assert slow.security.stake is None
    assert any("memory must be public" in w for w in plan_run(replace(LARGE, update="sparse-carried")).warnings)
    assert not plan_run(replace(SMALL, inner_steps=2000)).warnings
    vast = " ".join(plan_run(replace(LARGE, solvers=5000, capacity=17)).warnings)
    assert "5,000 seats: 1,024" in vast and "71 seats in a group: 64" in vast and "17 duties" in vast


@pytest.mark.parametrize("name", ["parameters", "tokens", "up", "flops", "batch", "positions"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e-300, 1e300])
def test_figures_that_nothing_has_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name) as refused:
        replace(SMALL, **{name: value})
    assert refused.value.code == "PlanImpossible"


ON_A_NODE = {"rounds-on-a-node.json", "duties-on-a-node.json", "seats.json"}
"""Snapshots of whole transactions: the others leave out their 21,000, their calldata, and that slots are cold."""


def test_gas_of_calls_is_what_the_snapshots_say() -> None:
    """Of whole transactions, at 64 seats or tickets or in the mean, within the 2 % that a snapshot may move."""
    for name, call in CALLS.items():
        file, _, row = call.source.partition(" ")
        assert file in ON_A_NODE, name
        snapshot = json.loads((SNAPSHOTS / file).read_text())
        least, most = (snapshot[r] if r else {} for r in (call.less, row))
        found = _usual(most) - (_usual(least) if least else 0)
        assert call.gas == pytest.approx(found, rel=0.02), name


def test_a_seat_is_told_no_less_gas_than_seats_of_a_whole_run_took() -> None:
    seats = json.loads((SNAPSHOTS / "seats.json").read_text())
    took = sum(seats[row]["mean"] for row in ("a seat and round", "and settling it"))
    told = gas_of("commit", "hold", *MERGE, "settle")
    assert took <= told <= 1.25 * took


def _usual(row: dict[str, int]) -> int:
    """At 64 seats or tickets, else in the mean of a run, else the most in one."""
    at = next(found for key in ("64 ", "mean", "most") for found in row if found.startswith(key))
    return row[at]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"parameters": 0.0}, "PlanImpossible"),
        ({"solvers": 0}, "PlanImpossible"),
        ({"audit": 1.5}, "PlanImpossible"),
        ({"audit": 1e-7}, "PlanImpossible"),
        ({"audit": float("nan")}, "PlanImpossible"),
        ({"audit": float("inf")}, "PlanImpossible"),
        ({"reaudit": 1.0}, "PlanImpossible"),
        ({"reaudit": float("nan")}, "PlanImpossible"),
        ({"capacity": 1_000_000}, "PlanImpossible"),
        ({"update": "int7"}, "ChoiceUnknown"),
        ({"sums": "int4", "solvers": 65}, "ChoiceUnknown"),
        ({"sums": "int8", "solvers": 64}, "SumsOfNoGroups"),
        ({"chain": "mainnet"}, "ChoiceUnknown"),
    ],
)
def test_impossible_inputs_are_refused_by_name(change: dict[str, float | str], code: str) -> None:
    with pytest.raises(UsageError) as refused:
        replace(SMALL, **change)  # type: ignore[arg-type]
    assert refused.value.code == code


def test_the_command_prints_the_plan_as_json_and_as_a_table() -> None:
    options = ["plan", "--parameters", "1e9", "--tokens", "2e10", "--solvers", "100"]
    done = CliRunner().invoke(app, [*options, "--json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert document["goodput"] == pytest.approx(
        document["training_seconds"] / (document["training_seconds"] + document["path_seconds"]["all"])
    )
    assert document["multiplier"] == pytest.approx(sum(document["multiplier_parts"].values()))
    assert document["gas_of_calls"]["settle"] == {
        "gas": CALLS["settle"].gas,
        "source": "seats.json settleWork",
        "less": None,
    }
    assert {b["role"] for b in document["roles"]} >= {"solver", "auditor", "position of a group"}
    shown = CliRunner().invoke(app, options, catch_exceptions=False).stdout
    for word in ("goodput", "lock of a seat", "one arbitrary update", "one hardware error", "Warning"):
        assert word in shown
