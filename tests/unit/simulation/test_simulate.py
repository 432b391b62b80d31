"""`assay economics simulate` prints every strategy, as a table and as JSON, and draws its pictures."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from assay.cli.economics import app


def test_the_rows_of_every_strategy_come_as_json_with_pictures(tmp_path: Path) -> None:
    options = ["simulate", "--epochs", "30", "--seeds", "4", "--plots", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, options, catch_exceptions=False)
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    names = " ".join(row["strategy"] for row in document["rows"])
    for word in ("honest", "lazy", "blind", "copying", "for sale", "bribed", "cartel", "silent", "false", "squatter"):
        assert word in names
    for row in document["rows"]:
        assert {"strategy", "income", "honest", "parameter", "turns_at", "bound", "is_deterred"} <= row.keys()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "economics-cartel.png",
        "economics-lock.png",
        "economics-stake.png",
    ]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in tmp_path.iterdir())


def test_the_same_seeds_give_the_same_table() -> None:
    options = ["simulate", "--epochs", "20", "--seeds", "4"]
    first, second = (CliRunner().invoke(app, options, catch_exceptions=False).stdout for _ in range(2))
    assert first == second
    assert "pays" in first
