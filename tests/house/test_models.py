"""The table of tested models: what a row becomes in it, and that the list in the tree is what the table shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.programs.capture_report import CaptureEnd, CaptureReport, report_of
from examples.models import MODELS, STAYS_REFUSED
from tools import model_tables, models
from tools.model_tables import failures, is_right, read_rows, refusals, successes, summary

ISSUED = ("captured", "refusals", "nodes", "seconds", "equal_bits", "loss_eager", "loss_exact", "frozen_state")


def row(end: CaptureEnd, stays_refused: str = "", **more: Any) -> dict[str, Any]:
    return CaptureReport(end, **more).to_json() | {"stays_refused": stays_refused}


ROWS = {
    "a/right": row(CaptureEnd.RIGHT, nodes=7, equal_bits=True, loss_eager=1.0, loss_exact=1.25, difference=2e-5),
    "a/fourier": row(CaptureEnd.REFUSED, "Fourier transform", refusals=["aten.fft at a.py:1"]),
    "b/log": row(CaptureEnd.REFUSED, refusals=["aten.log at b.py:2"]),
    "b/free": row(CaptureEnd.RIGHT, "Fourier transform", equal_bits=None, loss_eager=1.0, loss_exact=1.0),
    "b/large": row(CaptureEnd.UNCOMPARED, error="too much to hold"),
    "b/crash": row(CaptureEnd.CRASHED, error="its process ended with 9"),
    "b/wrong": row(
        CaptureEnd.WRONG, parting={"step": 3, "tensor": "w_0", "difference": 0.5, "limit": 1e-3}, equal_bits=True
    ),
    "b/frozen": row(CaptureEnd.WRONG, frozen_state=["average"]),
}


def test_a_refusal_is_right_only_where_no_program_can_hold_it() -> None:
    assert [name for name, r in ROWS.items() if is_right(r)] == ["a/right", "a/fourier", "b/free"]


def test_every_row_that_is_not_as_it_should_be_is_named_with_its_reason() -> None:
    found = failures(ROWS)
    assert [line.split(" ")[1] for line in found.splitlines()[2:]] == [
        "b/log",
        "b/large",
        "b/crash",
        "b/wrong",
        "b/frozen",
    ]
    for said in ("aten.log at b.py:2", "ended with 9", "step 3 in w\\_0 by 0.5", "frozen: average"):
        assert said in found


def test_the_other_tables_show_the_rest() -> None:
    assert "| a/right | 7 | 0.0 | yes | 1.00000 | 1.25000 | 2e-05 | - | - |" in successes(ROWS)
    assert refusals(ROWS).splitlines()[2:] == ["| a/fourier | Fourier transform | aten.fft at a.py:1 |"]
    lines = summary(ROWS).splitlines()
    assert "| a | 2 | 1 | 1 | 0 | 0 | 0 | 0 |" in lines and "| b | 6 | 1 | 0 | 1 | 1 | 1 | 2 |" in lines
    assert lines[-1] == f"37.5% are as they should be. {len(MODELS)} more steps of the list have not been run."


def test_a_program_that_rounding_alone_parted_shows_what_is_left_without_it() -> None:
    parted = ROWS["b/wrong"] | {"meaning": {"worst": 2.5e-7, "worst_tensor": "w_1"}}
    more = {"outcome": "right", "loss_eager": 1.0, "loss_exact": 1.0, "difference": 0.5}
    assert successes({"b/free": parted | more}).splitlines()[2].endswith("| 5e-01 | 2e-07 | - |")
    assert "2.5e-07 without rounding in w\\_1" in failures({"b/wrong": parted})


def test_rows_are_published_without_the_folders_of_this_machine() -> None:
    said = models.published({"error": "at .build/models/lib/python3.11/site-packages/timm/layers/norm.py:3 and later"})
    assert said == {"error": "at timm/layers/norm.py:3 and later"}


def test_the_page_is_renewed_from_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, rows = tmp_path / "models.md", tmp_path / "models.json"
    page.write_text("before\n<!-- table: models-failures -->\nold\n<!-- /table -->\nafter\n")
    rows.write_text(json.dumps({"models": {"b/log": ROWS["b/log"]}}))
    monkeypatch.setattr(model_tables, "PAGE", page)
    monkeypatch.setattr(model_tables, "read_rows", lambda: json.loads(rows.read_text())["models"])
    model_tables.renew()
    text = page.read_text()
    assert text.startswith("before\n<!-- table") and text.endswith("<!-- /table -->\nafter\n")
    assert "old" not in text and "b/log" in text


def test_at_least_150_steps_of_the_list_have_rows_in_its_order() -> None:
    rows = read_rows()
    assert list(rows) == [name for name in MODELS if name in rows] and len(rows) >= 150
    assert all(r["stays_refused"] == STAYS_REFUSED.get(name, "") for name, r in rows.items())
    assert all(set(ISSUED) <= set(r) for r in rows.values())


@pytest.mark.parametrize("name", ["torch/perceptron", "torch-op/slice-assignment", "torch-optim/lion", "torch-op/rfft"])
def test_entries_of_plain_torch_end_as_their_rows_say(name: str) -> None:
    found, kept = report_of(MODELS[name], 3, "fixed22"), read_rows()[name]
    assert found.outcome == kept["outcome"] and found.captured == kept["captured"]
    assert found.equal_bits is not False and bool(found.refusals) == bool(kept["refusals"])
