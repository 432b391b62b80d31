"""`assay bench packing`: what every rule publishes comes out of its packing as it went in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assay.bench.methods.trained import PresetModel
from assay.bench.packing import AGAINST, BASE, MOMENTUM, UPDATE, packed_rows
from assay.cli.bench import app
from assay.training.data import corpus_from_text
from assay.training.presets import TINY
from assay.training.updates import UpdateWire
from tests.unit.bench.test_compare import TEXT

torch.set_num_threads(1)
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]


def test_updates_and_bases_are_packed_and_come_out_as_they_went_in() -> None:
    model = PresetModel(TINY, corpus_from_text(TEXT))
    rows = packed_rows(["f32", "int8"], model, workers=2, rounds=2, inner_steps=5)
    found = {(row.method, row.what): row for row in rows}
    of_bases = [name + rest for name in (BASE, MOMENTUM) for rest in ("", AGAINST)]
    assert list(found) == [("f32", UPDATE), *(("f32", what) for what in of_bases), ("int8", UPDATE)]
    assert all(row.ratio >= 1 for row in found.values())
    assert found["f32", UPDATE].bytes == found["f32", BASE].bytes
    # A base has moved by little since the round before.
    assert found["f32", BASE + AGAINST].ratio > 1.05 * found["f32", BASE].ratio


def test_the_command_packs_what_every_rule_publishes(tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text(TEXT, encoding="utf-8")
    options = ["packing", "--data", str(data), "--workers", "2", "--rounds", "1", "--inner-steps", "2"]
    result = CliRunner().invoke(app, [*options, "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert {row["method"] for row in rows} == {wire.value for wire in UpdateWire}
    assert "momentum" in CliRunner().invoke(app, options).output
