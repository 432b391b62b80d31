"""The tables of docs/models.md, from the rows that `make models` keeps in docs/models.json."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from examples.models import MODELS
from tools.markdown import table

_DOCS = Path(__file__).resolve().parent.parent / "docs"
ROWS, PAGE = _DOCS / "models.json", _DOCS / "models.md"
SAID = 160
"""Characters of a refusal that a table shows; models.json has all of it."""

Row = Mapping[str, Any]


def is_right(row: Row) -> bool:
    """Captured and trained as stock trains it; or refused, where no program can hold it."""
    return row["outcome"] == "right" or (row["outcome"] == "refused" and bool(row["stays_refused"]))


def read_rows(file: Path = ROWS) -> dict[str, Row]:
    """The rows by model, in the list's order."""
    rows: dict[str, Row] = json.loads(file.read_text(encoding="utf-8"))["models"]
    return rows


def summary(rows: Mapping[str, Row]) -> str:
    """How many models of each library came to which end."""
    by_library: dict[str, Counter[str]] = {}
    for name, row in rows.items():
        by_library.setdefault(name.split("/")[0], Counter())[_end(row)] += 1
    ends = ["right", "refused, rightly", "refused, still", "not compared", "crashed", "silently wrong"]
    lines = [[name, counts.total(), *(counts[end] for end in ends)] for name, counts in sorted(by_library.items())]
    whole = sum(by_library.values(), Counter[str]())
    share = sum(map(is_right, rows.values())) / max(1, len(rows))
    lines.append(["**all**", whole.total(), *(whole[end] for end in ends)])
    missing = [name for name in MODELS if name not in rows]
    text = table(["library", "steps", *ends], lines) + f"\n{share:.1%} are as they should be."
    return text + (f" {len(missing)} more steps of the list have not been run.\n" if missing else "\n")


def _end(row: Row) -> str:
    if row["outcome"] == "refused":
        return "refused, rightly" if row["stays_refused"] else "refused, still"
    return str(row["outcome"])


def failures(rows: Mapping[str, Row]) -> str:
    """What is not as it should be: model, end, and why."""
    lines = [[name, _end(row), _why(row)] for name, row in rows.items() if not is_right(row)]
    return table(["step", "end", "why"], lines) if lines else "None.\n"


def refusals(rows: Mapping[str, Row]) -> str:
    """What is refused and stays it."""
    lines = [[name, row["stays_refused"], _why(row)] for name, row in rows.items() if _end(row) == "refused, rightly"]
    return table(["step", "what no program can hold", "what capture says"], lines)


def successes(rows: Mapping[str, Row]) -> str:
    """What is captured and right, with figures."""
    bits = {True: "yes", False: "**no**", None: "stock alone"}
    lines = [
        [
            name,
            row["nodes"],
            f"{row['seconds']:.1f}",
            bits[row["equal_bits"]],
            f"{row['loss_eager']:.5f}",
            f"{row['loss_exact']:.5f}",
            _difference(row),
            _meaning(row),
            _rounding(row),
        ]
        for name, row in rows.items()
        if row["outcome"] == "right"
    ]
    head = [
        "step",
        "nodes",
        "seconds",
        "equal bits",
        "loss, stock",
        "loss, exact",
        "difference",
        "in meaning",
        "moved by rounding",
    ]
    return table(head, lines)


def _difference(row: Row) -> str:
    found = row["difference"]
    return "-" if found is None or not math.isfinite(found) else f"{found:.0e}"


def _meaning(row: Row) -> str:
    found = row.get("meaning")
    return "-" if found is None else f"{found['worst']:.0e}"


def _rounding(row: Row) -> str:
    return f"{len(row['undetermined'])} of {row['tensors']}" if row["undetermined"] else "-"


def _why(row: Row) -> str:
    if row["parting"] is not None:
        p = row["parting"]
        m = row.get("meaning")
        said = "" if m is None else f", {m['worst']:.2g} without rounding in {m['worst_tensor']}"
        text = (
            f"parts after step {p['step']} in {p['tensor']} by {p['difference']:.2g} (rounding: {p['limit']:.2g}){said}"
        )
    elif row["frozen_state"]:
        text = f"frozen: {', '.join(row['frozen_state'])}"
    elif row["refusals"]:
        text = "; ".join(row["refusals"])
    else:
        text = row["error"] or "stock and native kernels differ"
    text = text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
    return text if len(text) <= SAID else text[: SAID - 3] + "..."


def _from_file(make: Callable[[Mapping[str, Row]], str]) -> Callable[[], str]:
    return lambda: make(read_rows())


MODEL_TABLES: dict[str, Callable[[], str]] = {
    "models-summary": _from_file(summary),
    "models-failures": _from_file(failures),
    "models-refusals": _from_file(refusals),
    "models-right": _from_file(successes),
}
"""What stands between the marks of docs/models.md."""


def renew() -> None:
    """Write the tables of docs/models.md from docs/models.json."""
    text = PAGE.read_text(encoding="utf-8")
    for name, make in MODEL_TABLES.items():
        block = re.compile(rf"(<!-- table: {name} -->\n)(.*?)(<!-- /table -->)", re.DOTALL)
        text = block.sub(lambda found: found[1] + make() + found[3], text)  # noqa: B023 - called at once
    PAGE.write_text(text, encoding="utf-8")
