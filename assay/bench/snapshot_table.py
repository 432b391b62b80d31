"""Prints the figures of docs/snapshots as Markdown tables; tools/check_docs.py keeps the documents equal to them."""

import json

from assay.checkout import ROOT

FOLDER = ROOT / "docs" / "snapshots"
ROWS = {
    "beacon": "round",
    "float32": "function",
    "leaves": "family",
    "map-moves": "operands",
    "moves": "move",
    "rounds": "call",
    "rounds-on-a-node": "call",
    "sizes": "contract",
    "tickets": "call",
    "duties": "call",
    "duties-on-a-node": "call",
    "disputes": "game",
    "money": "call",
    "seats": "call",
    "vouchers": "batch",
}
"""What a row of each table is."""


def table(name: str) -> str:
    """The table of docs/snapshots/NAME.json; raises ValueError or OSError when there is none."""
    if name not in ROWS:
        raise ValueError(f"there is no table of figures called {name}")
    cells: dict[str, dict[str, int]] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    head = f"| {ROWS[name]} | {' | '.join(columns)} |\n|---{'|---:' * len(columns)}|\n"
    rows = (f"| {key} | {' | '.join(_figure(row.get(c)) for c in columns)} |\n" for key, row in cells.items())
    return head + "".join(rows)


def _figure(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
