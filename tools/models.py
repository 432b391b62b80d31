"""`make models`: captures every step of examples/models, runs it beside stock PyTorch, and writes docs/models.json.

Each model is a process of its own (assay/programs/report_process.py). Rows of models that were not asked for stay as
they are. Then the tables of docs/models.md are written anew.

python -m tools.models [--only PART...] [--steps N] [--out FILE]
"""

import argparse
import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from assay.programs.capture_report import CaptureEnd
from assay.programs.report_process import ReportTerms, reports
from examples.models import MODELS, STAYS_REFUSED
from tools.model_tables import ROWS, is_right, renew

_FOLDERS = re.compile(r"[^\s\"']*/(?:site-packages/|(?=examples/models/))")
DEFAULT = ReportTerms()
LIBRARIES = ("torch", "torchvision", "transformers", "timm", "diffusers", "peft", "torch-geometric")


def versions() -> dict[str, str]:
    """The libraries' versions, as far as they are installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def read(file: Path) -> dict[str, Any]:
    """The document of a file, or an empty one."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"models": {}}


def write(file: Path, rows: dict[str, Any], steps: int, tier: str) -> None:
    """The rows in the list's order, whole or not at all."""
    listed = {name: rows[name] for name in MODELS if name in rows}
    document = {"versions": versions(), "steps": steps, "tier": tier, "models": listed}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    new.replace(file)


def published(row: dict[str, Any]) -> dict[str, Any]:
    """The row without the folders of this machine: files of libraries by their path below site-packages."""
    said: dict[str, Any] = json.loads(_FOLDERS.sub("", json.dumps(row)))
    return said


def main(words: list[str]) -> int:
    """Write the rows asked for; 1 when a model crashed or is silently wrong."""
    parser = argparse.ArgumentParser(
        prog="make models", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="PART", help="models whose names hold one of these")
    parser.add_argument("--steps", type=int, default=DEFAULT.steps, help="steps beside stock PyTorch")
    parser.add_argument("--seconds", type=float, default=DEFAULT.seconds, help="wall time that a model gets")
    parser.add_argument("--tier", default=DEFAULT.tier, help="fixed8, fixed14 or fixed22")
    parser.add_argument("--out", type=Path, default=ROWS, help="where the rows are kept")
    parser.add_argument("--missing", action="store_true", help="only models without a row")
    parser.add_argument("--wrong", action="store_true", help="only models that were not as they should be")
    given = parser.parse_args(words)
    terms = ReportTerms(steps=given.steps, tier=given.tier, seconds=given.seconds)
    rows = read(given.out)["models"]
    names = [n for n in MODELS if not given.only or any(part in n for part in given.only)]
    names = [n for n in names if not given.missing or n not in rows]
    names = [n for n in names if not given.wrong or n not in rows or not is_right(rows[n])]

    wrong = grave = 0
    found = reports([f"examples.models:MODELS[{n}]" for n in names], terms, ["examples.models.preload"])
    for k, (name, (_, report)) in enumerate(zip(names, found, strict=True)):
        row = rows[name] = published(report.to_json()) | {"stays_refused": STAYS_REFUSED.get(name, "")}
        wrong += not is_right(row)
        grave += row["outcome"] in (CaptureEnd.CRASHED, CaptureEnd.WRONG)
        print(f"[{k + 1}/{len(names)}] {name}: {row['outcome']} {row['error'] or ''}"[:200], flush=True)
        write(given.out, rows, given.steps, terms.tier)
    print(f"models: {len(names) - wrong} of {len(names)} as they should be; {grave} crashed or silently wrong")
    if given.out == ROWS:
        renew()
    return 1 if grave else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
