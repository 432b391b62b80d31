"""What a machine must do in time above 64 seats: whose windows these are, and what a rounded sum takes of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.planning.measured import MachineReading, WindowNeed, _needs
from assay.protocol.rounds.run_terms import round_terms
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.rounds.charters import WIDE

SIZE, SENT, LINK = 4_000_000, 100_000, 1e6
READ = MachineReading(
    step_seconds=0.0, build_seconds=0.0, update_seconds=0.0, merge_seconds=7.0, memory_needed=0, memory_free=0,
    disk_needed=0, disk_free=0, store_bytes_per_second=LINK, node_seconds=0.0, took_seconds=0.0,
)  # fmt: skip


def needs(role: str, dtype: DType) -> dict[str, WindowNeed]:
    """Of a role in the run of 1,024 seats in groups of 32, whose sums have a million elements of this type."""
    found = SimpleNamespace(rounds=round_terms(WIDE))
    archive = SimpleNamespace(charter=WIDE, facts=found, sum_specs=(TensorSpec(dtype, (1_000_000,)),))
    return {need.what: need for need in _needs(cast(Any, archive), role, READ, SIZE, SENT)}


def test_an_auditor_fetches_updates_of_a_group_and_sums_of_all() -> None:
    rules = round_terms(WIDE)
    whole, rounded = needs("verifier", DType.F32), needs("verifier", DType.I8)
    of_group, of_all = whole["the sum of a group"], whole["a merge of sums"]
    assert of_group.seconds == pytest.approx(7 + (32 * SENT + 4e6) / LINK)
    assert of_group.window == rules.hold + rules.group_merge
    assert of_all.seconds == pytest.approx(7 + (32 * 4e6 + SIZE) / LINK) and of_all.window == rules.merge
    assert rounded["a merge of sums"].seconds == pytest.approx(7 + (32 * 1e6 + SIZE) / LINK)
    assert any(name.startswith("a call") for name in whole)


def test_a_solver_above_64_seats_merges_nothing() -> None:
    assert list(needs("solver", DType.F32)) == ["a round's work"]
