"""What befell and what was done, line by line in chain time: why a round was missed is read here, not guessed."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.errors import AssayError
from assay_ledger.agents.game_actions import describe


class SoakLog:
    """A file of lines `seconds name: what`; of lines that repeat at one time only the first is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 0.0
        self._file = path.open("w")
        self._last: dict[str, str] = {}

    def note(self, who: str, what: str) -> None:
        """One more line, at the chain time that it is."""
        line = f"{self.now:.0f} {who}: {' '.join(what.split())}\n"
        if self._last.get(who) != line:
            self._last[who] = line
            self._file.write(line)

    def lines(self, who: str, start: float, end: float) -> list[str]:
        """What befell somebody between two chain times, and everybody (`all`)."""
        named = f"{who}:", "all:"
        self._file.flush()
        with self.path.open() as lines:
            return [
                line.rstrip()
                for line in lines
                if start <= float(line.split(" ", 1)[0]) <= end and line.split(" ", 1)[1].startswith(named)
            ]


class NotedSteps:
    """Notes what an actor's loop tried, and what came of it. See LoopObserver."""

    def __init__(self, log: SoakLog, who: str) -> None:
        self._log, self._who = log, who

    def turned(self, view: object, deadline: int | None) -> None:
        """See LoopObserver."""

    def begun(self, action: object) -> None:
        """See LoopObserver."""

    def tried(self, action: object, error: AssayError | None) -> None:
        """See LoopObserver."""
        outcome = "done" if error is None else f"{error.code}: {error.message}"
        self._log.note(self._who, f"{describe(action)}: {outcome}")
