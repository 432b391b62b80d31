"""What a machine must do in time, up to 64 seats and above: whose windows these are, and what is measured for each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.planning.measured import MachineReading, WindowNeed, _needs
from assay.protocol.rounds.run_terms import round_terms
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.rounds.charters import DAY, RUN, WIDE

SIZE, SENT, LINK = 4_000_000, 100_000, 1e6
READ = MachineReading(
    step_seconds=2.0, build_seconds=0.0, witness_seconds=3.0, again_seconds=40.0, state_seconds=5.0, nodes_seconds=60.0,
    update_seconds=0.0, merge_seconds=7.0, whole_merge_seconds=11.0, memory_needed=0, memory_free=0, disk_needed=0,
    disk_free=0, store_bytes_per_second=LINK, node_seconds=0.0, took_seconds=0.0,
)  # fmt: skip
IN_GAMES = {"the first answer of a game", "another answer of a game", "a first selection in a game"}


def needs(role: str, dtype: DType = DType.F32, charter: RunCharter = WIDE) -> dict[str, WindowNeed]:
    """Of a role in a run, unless given of 1,024 seats in groups of 32, whose sums have a million elements of a type."""
    found = SimpleNamespace(rounds=round_terms(charter))
    archive = SimpleNamespace(charter=charter, facts=found, sum_specs=(TensorSpec(dtype, (1_000_000,)),))
    return {need.what: need for need in _needs(cast(Any, archive), role, READ, SIZE, SENT)}


def test_an_auditor_fetches_updates_of_a_group_and_sums_of_all() -> None:
    rules = round_terms(WIDE)
    whole, rounded = needs("verifier"), needs("verifier", DType.I8)
    of_group, of_all, fetched = (
        whole[what] for what in ("the sum of a group", "a merge of sums", "fetching what a group made")
    )
    assert fetched.seconds == pytest.approx(32 * SENT / LINK) and fetched.window == rules.hold
    assert of_group.seconds == pytest.approx(7 + 4e6 / LINK) and of_group.window == rules.group_merge
    assert of_all.seconds == pytest.approx(11 + (32 * 4e6 + SIZE) / LINK) and of_all.window == rules.merge
    assert rounded["a merge of sums"].seconds == pytest.approx(11 + (32 * 1e6 + SIZE) / LINK)


def test_an_auditor_replays_witnessed_steps_and_computes_a_unit_again() -> None:
    found, t = needs("verifier", charter=RUN), RUN.training
    steps, capacity = t.max_units * t.steps_per_unit, RUN.economics.capacity
    call, again = found[f"a call with {capacity} replays"], found["a unit again before an accusation"]
    assert call.seconds == pytest.approx(capacity * (3.0 * steps + (SIZE + SENT) / LINK))
    assert again.seconds == 40.0 and call.window == again.window == RUN.timing.epoch
    assert set(found) == {call.what, again.what, *IN_GAMES}


def test_a_solver_above_64_seats_merges_nothing() -> None:
    assert set(needs("solver")) == {"a round's work", *IN_GAMES}


def test_what_a_chain_may_keep_out_is_no_time_to_train_in() -> None:
    """Who trains in it commits when the mask has closed, misses the next rounds, and is evicted for its fee."""
    slow_chain = replace(RUN, chain=replace(RUN.chain, inclusion_delay=30 * DAY))
    found = needs("solver", charter=slow_chain)
    assert found["a round's work"].window == RUN.timing.commit
    assert found["fetching what others made"].window == RUN.timing.hold
    assert found["its merge"].seconds == 7.0 and found["its merge"].window == RUN.timing.merge


@pytest.mark.parametrize("role", ["solver", "verifier"])
def test_whoever_claims_must_be_able_to_answer_a_game_about_it(role: str) -> None:
    """A sponsor's clocks of a minute convict by silence whoever computes a claim again as fast as it can."""
    short = replace(RUN, clocks=replace(RUN.clocks, replay=60))
    found = needs(role, charter=short)
    first, another = found["the first answer of a game"], found["another answer of a game"]
    assert first.seconds == pytest.approx(5.0 * RUN.training.max_units * RUN.training.steps_per_unit)
    assert another.seconds == 60.0 and first.window == another.window == 60
    assert not first.fits and not another.fits


@pytest.mark.parametrize("role", ["solver", "verifier"])
def test_whoever_challenges_must_be_able_to_select_in_time(role: str) -> None:
    """No extension is for running a step again there: a sponsor's puppet whose lie is found wins by the clock."""
    selection = needs(role, charter=replace(RUN, clocks=replace(RUN.clocks, budget=600, move=60)))
    found = selection["a first selection in a game"]
    assert found.seconds == 60.0 and found.window == 660
