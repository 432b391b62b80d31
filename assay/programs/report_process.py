"""Reports on many models, each made in a process of its own and within limits of time and memory.

The processes are forked from one that has imported PyTorch and what `preload` names, so that a small model takes no
longer than its own work. They write what they found into a file: one that crashes or is stopped leaves none.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

from assay.programs.capture_report import CaptureEnd, CaptureReport, report_of
from assay.programs.factory import load_recipe

_SAID = 2000
"""Characters of a crash's last words that are read."""

_PRELOADED = "assay.programs.report_preload"


@dataclass(frozen=True, slots=True)
class ReportTerms:
    """What every model gets. steps: beside stock. seconds: of wall time, and of processor time. memory: bytes."""

    steps: int = 20
    tier: str = "fixed22"
    seconds: float = 300.0
    memory: int = 12 << 30


def reports(
    names: Sequence[str], terms: ReportTerms, preload: Sequence[str] = ()
) -> Iterator[tuple[str, CaptureReport]]:
    """Each model's row as it is made, one at a time.

    names: as `load_recipe` takes them. preload: modules that the models' factories need; read at the first call alone.
    """
    # What is forked has none of its parent's threads, and would wait for them: the parent of all gets one alone.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_PRELOADED, *preload])
    for name in names:
        yield name, _in_process(context, name, terms)


def _in_process(context: ForkServerContext, name: str, terms: ReportTerms) -> CaptureReport:
    with tempfile.TemporaryDirectory(prefix="assay-report-") as folder:
        out, log = Path(folder) / "report.json", Path(folder) / "log"
        child = context.Process(target=_make_report, args=(name, terms, out, log), daemon=True)
        child.start()
        child.join(terms.seconds)
        how = f"it was not done after {terms.seconds:.0f} s"
        if child.exitcode is None:
            child.kill()
            child.join()
        else:
            how = f"its process ended with {child.exitcode}"
        if out.exists():
            document = json.loads(out.read_text(encoding="utf-8"))
            return CaptureReport(**document | {"outcome": CaptureEnd(document["outcome"])})
        said = log.read_text(encoding="utf-8", errors="replace")[-_SAID:].strip().splitlines() if log.exists() else []
        return CaptureReport(CaptureEnd.CRASHED, error=f"{how}{': ' + said[-1] if said else ''}")


def _make_report(name: str, terms: ReportTerms, out: Path, log: Path) -> None:
    """The child: what it prints goes into a log, what it finds into a file that is there whole or not at all."""
    with log.open("ab") as sink:
        for stream in (1, 2):
            os.dup2(sink.fileno(), stream)
    resource.setrlimit(resource.RLIMIT_AS, (terms.memory, terms.memory))
    # Should nobody be left to stop it.
    resource.setrlimit(resource.RLIMIT_CPU, (int(terms.seconds) + 1, int(terms.seconds) + 2))
    report = report_of(lambda: load_recipe(name), terms.steps, terms.tier)
    new = out.with_suffix(".new")
    new.write_text(json.dumps(report.to_json()), encoding="utf-8")
    new.replace(out)
    # Without the interpreter's end: libraries' threads and destructors crash there, after the work was done.
    os._exit(0)
