"""`assay bench serving` measures both sides by the same answers, on as few as will do."""

from __future__ import annotations

import json

import pytest

from tests.harness.commands import assay


@pytest.mark.long
def test_paid_and_bare_answers_are_measured_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--model", "gpt-2x96", "--rows", "2", "--tokens", "4", "--rounds", "2", "--json")
    result = assay(monkeypatch, "bench", "serving", *words)
    assert result.exception is None, result.output
    found = json.loads(result.stdout)
    assert (found["rows"], found["askers"], found["tokens"], found["rounds"]) == (2, 4, 4, 2)
    assert all(found[name] > 0 for name in ("cpu_ratio", "paid_per_s", "bare_per_s", "p50_ms"))
    assert found["p99_ms"] >= found["p50_ms"]
