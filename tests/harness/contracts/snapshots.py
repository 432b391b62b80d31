"""Figures of the contracts that must not change unseen: gas and sizes, checked in beside the documents that print them.

A test measures a table and calls `check`. Run by `make snapshots` it writes the table instead;
assay/bench/snapshot_table.py prints it in documents.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from tests.harness.contracts.harness import ROOT

FOLDER = ROOT / "docs" / "snapshots"
TOLERANCE = 0.02
"""Share by which a figure may differ; more is a regression, or a gain that the tables should show."""

RENEW = "run `make snapshots` and commit docs/, if the change is meant"

Table = Mapping[str, Mapping[str, int]]
"""Figures by row and column."""


def check(name: str, measured: Table) -> None:
    """Compare a table with docs/snapshots/NAME.json; raises AssertionError that names each figure and the remedy."""
    path = FOLDER / f"{name}.json"
    if os.environ.get("ASSAY_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        return
    wrong = differences(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}, measured)
    assert not wrong, f"docs/snapshots/{name}.json does not hold any more: {'; '.join(wrong)}: {RENEW}"


def differences(kept: Table, measured: Table) -> list[str]:
    """What differs by more than the tolerance, one phrase per figure; a figure on one side only differs."""
    before, after = _flat(kept), _flat(measured)
    wrong = [f"{key} is new" for key in after if key not in before]
    wrong += [f"{key} is gone" for key in before if key not in after]
    for key in sorted(before.keys() & after.keys()):
        old, new = before[key], after[key]
        if abs(new - old) > TOLERANCE * old:
            change = f"{100 * (new - old) / old:+.1f} %" if old else "from nothing"
            wrong.append(f"{key} was {old:,} and is {new:,} ({change})")
    return wrong


def _flat(table: Table) -> dict[str, int]:
    """Figures by `row, column`."""
    return {f"{row}, {column}": value for row, cells in table.items() for column, value in cells.items()}
