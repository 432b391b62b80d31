"""Runs stages, each in a process of its own and for its share of the time, and keeps what each gives in a file.

A kernel that hangs or kills its process ends its stage alone. A stage's file, OUT/NAME.json, is replaced whole every
time; `finished` says whether the stage came to its end, `error` why not, or which models `failed` in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.device.machine import machine
from assay.device.stages import SHARES, STAGES, DeviceTerms, sentence
from assay_ledger.processes.children import spawn, stop

_GRACE_S = 10.0
"""Seconds after its end at which a stage that goes on is stopped."""


@dataclass(frozen=True, slots=True)
class StageEnd:
    """How a stage ended. wrong: how much in it has other bits than the processor gives, or than are known."""

    name: str
    error: str | None
    wrong: int


def run_stages(names: list[str], terms: DeviceTerms) -> list[StageEnd]:
    """One after another; what a stage does not use of its time is left to the others."""
    terms.out.mkdir(parents=True, exist_ok=True)
    ends = []
    for k, name in enumerate(names):
        share = SHARES[name] / sum(SHARES[later] for later in names[k:])
        ends.append(_in_process(name, replace(terms, ends=time.monotonic() + max(0.0, terms.left()) * share)))
    return ends


def run_here(name: str, terms: DeviceTerms) -> None:
    """One stage in this process, to its end or its error."""
    begin = time.monotonic()
    kept: dict[str, Any] = {"stage": name, "device": terms.device, "finished": False, "error": None}
    kept["machine"] = machine()
    write(terms.out / f"{name}.json", kept)
    try:
        for figures in STAGES[name](terms):
            kept |= figures | {"seconds": round(time.monotonic() - begin, 1)}
            write(terms.out / f"{name}.json", kept)
    except Exception as error:  # a stage has no caller who could know what to do: it is said in its file
        kept["error"] = sentence(error)
        write(terms.out / f"{name}.json", kept)
        raise
    kept["error"] = "; ".join(f"{model}: {why}" for model, why in kept.get("failed", {}).items()) or None
    write(terms.out / f"{name}.json", kept | {"finished": True, "seconds": round(time.monotonic() - begin, 1)})


def _in_process(name: str, terms: DeviceTerms) -> StageEnd:
    file = terms.out / f"{name}.json"
    file.unlink(missing_ok=True)
    words = ["--here", "--only", name, "--device", terms.device, "--out", str(terms.out)]
    words += ["--minutes", str(terms.left() / 60)]
    words += ["--data", str(terms.data)] if terms.data else []
    words += ["--small"] if terms.is_small else []
    child = spawn([sys.executable, "-m", "assay.device", *words])
    try:
        child.wait(timeout=terms.left() + _GRACE_S)
        how = f"its process ended with {child.returncode}"
    except subprocess.TimeoutExpired:
        how = f"it was stopped {_GRACE_S:.0f} s after its time was over"
    finally:
        stop([child])
    kept: dict[str, Any] = {"stage": name, "finished": False}
    if file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))
    if not kept["finished"]:
        kept["error"] = kept.get("error") or how
        write(file, kept)
    return StageEnd(name, kept["error"], len(kept.get("wrong", ())))


def write(file: Path, document: dict[str, Any]) -> None:
    """The document in its file, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    new.replace(file)
