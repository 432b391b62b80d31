"""The comparison behind the gas and size tables: a regression of more than 2 % is named, and so is a stale table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.contracts import snapshots

KEPT = {"postDigests": {"least": 1000, "most": 2000}}


@pytest.mark.parametrize("change", [0, 20, -20])
def test_two_per_cent_either_way_are_no_difference(change: int) -> None:
    assert not snapshots.differences(KEPT, {"postDigests": {"least": 1000 + change, "most": 2000}})


@pytest.mark.parametrize("change", [21, -21, 500])
def test_more_than_two_per_cent_is_named_with_both_figures(change: int) -> None:
    (wrong,) = snapshots.differences(KEPT, {"postDigests": {"least": 1000 + change, "most": 2000}})
    assert wrong.startswith(f"postDigests, least was 1,000 and is {1000 + change:,} ({change / 10:+.1f} %)")


def test_a_figure_that_only_one_side_has_differs() -> None:
    wrong = snapshots.differences(KEPT, {"postDigests": {"least": 1000}, "openLeaf": {"least": 5}})
    assert wrong == ["openLeaf, least is new", "postDigests, most is gone"]


def test_a_stale_table_says_which_command_renews_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path / "snapshots")
    monkeypatch.delenv("ASSAY_SNAPSHOTS", raising=False)
    with pytest.raises(AssertionError, match="run `make snapshots`"):
        snapshots.check("moves", KEPT)
    monkeypatch.setenv("ASSAY_SNAPSHOTS", "write")
    snapshots.check("moves", KEPT)
    monkeypatch.delenv("ASSAY_SNAPSHOTS")
    snapshots.check("moves", KEPT)
    with pytest.raises(AssertionError, match="is 3,000"):
        snapshots.check("moves", {"postDigests": {"least": 1000, "most": 3000}})
