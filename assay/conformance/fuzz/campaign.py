"""A campaign: processes that compare executors for some time, counted here; one that dies is counted and replaced."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from subprocess import Popen
from typing import Any, Final

from assay_ledger.processes.children import spawn, stop

PATIENCE_S: Final = 120.0
"""Seconds of its own processor time after which a comparison that says nothing is taken for one that never ends."""

LONGEST_S: Final = 1800.0
"""The same of all time, for one that computes nothing; on a machine with much other work one waits for its turn."""

CASES: Final = 1000
"""Cases after which a process starts afresh: by then it has taken about a gigabyte."""

NAMED: Final = 20
"""Most differences and crashes that are told one by one."""


@dataclass(slots=True)
class ExecutorPair:
    """The reference and one executor."""

    pair: str
    programs: int = 0
    elements: int = 0
    differences: int = 0
    crashes: int = 0


@dataclass(slots=True)
class CampaignResult:
    """What a campaign found. Totals are sums over pairs; `skipped` names the pairs that could not be run, and why.

    cases: differences and crashes with the seed that draws the case again (`--fuzz SECONDS --seed SEED`).
    """

    seed: int
    seconds: float = 0.0
    programs: int = 0
    elements: int = 0
    differences: int = 0
    crashes: int = 0
    pairs: list[ExecutorPair] = field(default_factory=list)
    skipped: list[list[str]] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


class _Process:
    """One process and where it stands. It takes every stride-th seed from `seed` on."""

    def __init__(self, seed: int, stride: int, only: list[str] | None) -> None:
        self.seed, self._stride, self._only = seed, stride, only
        self.drawn: int | None = None
        self.start(0)

    def start(self, skip: int) -> None:
        """A fresh process from this seed on, without some executors of its first case."""
        options = {"first": self.seed, "stride": self._stride, "skip": skip, "only": self._only, "cases": CASES}
        # Threads that wait must not spin: there are more processes than cores.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        command = [sys.executable, "-m", "assay.conformance.fuzz.worker", json.dumps(options)]
        self.child: Popen[bytes] = spawn(command, pipe_stdout=True, env=environment)
        self.name, self.rest = "start", b""
        self._note()

    def lines(self) -> list[bytes]:
        """Whole lines that have come; none when the process has ended, or is said to be there but silent."""
        assert self.child.stdout is not None
        data = os.read(self.child.stdout.fileno(), 1 << 16)
        if not data:
            return []
        self._note()
        *whole, self.rest = (self.rest + data).split(b"\n")
        return whole or [b""]

    def is_stuck(self) -> bool:
        """Whether it has said nothing for too long."""
        silent = time.monotonic() - self._heard
        return silent > LONGEST_S or (silent > PATIENCE_S and self._spent() - self._spent_then > PATIENCE_S)

    def _note(self) -> None:
        self._heard, self._spent_then = time.monotonic(), self._spent()

    def _spent(self) -> float:
        """Processor seconds of the process; 0 once it is gone, which its output's end tells."""
        import psutil  # which a bare checkout has not

        with contextlib.suppress(psutil.Error):
            times = psutil.Process(self.child.pid).cpu_times()
            return times.user + times.system
        return 0.0


class Campaign:
    """Compares for some time. only: names of executors; jobs: processes at once. talk: told of every finding."""

    def __init__(
        self,
        seconds: float,
        seed: int,
        *,
        jobs: int = 1,
        only: list[str] | None = None,
        programs: int | None = None,
        talk: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._seconds, self._jobs, self._only, self._talk = seconds, jobs, only, talk
        self._most = programs
        self.found = CampaignResult(seed)
        self._pairs: dict[str, ExecutorPair] = {}
        self._order: list[str] = []
        self._cases = 0

    def run(self) -> CampaignResult:
        """Until the time is over, or so many programs were drawn where `programs` says so."""
        begin = time.monotonic()
        workers = [_Process(self.found.seed + k, self._jobs, self._only) for k in range(self._jobs)]
        selector = selectors.DefaultSelector()
        for worker in workers:
            selector.register(worker.child.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
        try:
            while time.monotonic() - begin < self._seconds and (self._most is None or self._cases < self._most):
                for key, _ in selector.select(timeout=1.0):
                    worker = key.data
                    lines = worker.lines()
                    for line in lines:
                        self._hear(worker, line)
                    if not lines:
                        self._replace(worker, selector, f"ended by signal {-(worker.child.wait() or 0)}")
                for worker in workers:
                    if worker.is_stuck():
                        self._replace(worker, selector, f"silent for {PATIENCE_S:.0f} s of its processor time")
        finally:
            selector.close()
            for worker in workers:
                worker.child.kill()
            stop([worker.child for worker in workers])
        found = self.found
        found.seconds = round(time.monotonic() - begin, 1)
        found.pairs = [self._pairs[name] for name in self._order]
        found.programs, found.elements, found.differences, found.crashes = (
            sum(getattr(pair, what) for pair in found.pairs)
            for what in ("programs", "elements", "differences", "crashes")
        )
        return found

    def _hear(self, worker: _Process, line: bytes) -> None:
        word, _, rest = line.decode().partition(" ")
        if word == "here":
            here = json.loads(rest)
            self._order = self._order or here["pairs"]
            self.found.skipped = here["absent"]
            for name in self._order:
                self._pairs.setdefault(name, ExecutorPair(name))
        elif word == "at":
            seed, worker.name = json.loads(rest)
            # A process that goes on after one that died draws its case again.
            self._cases += worker.name == "reference" and worker.drawn != seed
            worker.seed = worker.drawn = seed
        elif word == "did":
            seed, name, elements, difference, error = json.loads(rest)
            pair = self._pairs[name]
            pair.programs += 1
            pair.elements += elements
            if difference:
                pair.differences += 1
                self._tell(seed, name, "difference", difference)
            if error:
                pair.crashes += 1
                self._tell(seed, name, "crash", error)

    def _replace(self, worker: _Process, selector: selectors.BaseSelector, why: str) -> None:
        """The process died, or hangs, where it stood: counted, and another one goes on after that."""
        selector.unregister(worker.child.stdout)  # type: ignore[arg-type]
        worker.child.kill()
        stop([worker.child])
        pair = self._pairs.get(worker.name)
        if pair is None:
            raise RuntimeError(f"A fuzzing process {why} at {worker.name} of seed {worker.seed}.")
        pair.programs += 1
        pair.crashes += 1
        self._tell(worker.seed, worker.name, "crash", why)
        worker.start(self._order.index(worker.name) + 1)
        selector.register(worker.child.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]

    def _tell(self, seed: int, name: str, what: str, how: str) -> None:
        if len(self.found.cases) < NAMED:
            self.found.cases.append({"seed": seed, "pair": name, "what": what, "how": how})
            self._talk(f"{what}: {name}, seed {seed}: {how}")
