"""`assay bench vouchers` measures what it says, on as few vouchers as will do."""

from __future__ import annotations

import json

import pytest

from tests.harness.commands import assay


def test_every_rate_is_measured_over_all_vouchers(monkeypatch: pytest.MonkeyPatch) -> None:
    result = assay(monkeypatch, "bench", "vouchers", "--count", "20", "--at-once", "4", "--json")
    assert result.exception is None, result.output
    rates = json.loads(result.stdout)
    assert set(rates) == {"signed", "checked", "kept_alone", "kept_together", "at_once", "start_s"}
    assert rates["at_once"] == 4 and all(value > 0 for value in rates.values())
