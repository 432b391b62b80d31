"""A virtual environment that holds torch and what torch itself needs, by links to what is installed here, and no more.

What is absent from it is absent to whatever its interpreter starts as well: workers of compilers, spawned processes.
"""

from __future__ import annotations

import os
import subprocess
import venv
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
ROOTS = (".", "ledger", "solver", "verifier", "whistleblower")


def needs_of(name: str) -> set[str]:
    """A distribution and all that it requires here, extras left out."""
    found: set[str] = set()
    left = [name]
    while left:
        try:
            wanted = distribution(left.pop())
        except PackageNotFoundError:
            continue
        if wanted.name in found:
            continue
        found.add(wanted.name)
        for requirement in map(Requirement, wanted.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                left.append(requirement.name)
    return found


@dataclass(frozen=True, slots=True)
class BareMachine:
    """An interpreter with torch alone, and a folder of its own for whatever is kept."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, *distributions: str) -> BareMachine:
        """One with these distributions and what they need."""
        venv.create(folder, with_pip=False, symlinks=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        for name in set().union(*map(needs_of, distributions)):
            files = distribution(name).files or ()
            for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
                if not (packages / top).exists():
                    (packages / top).symlink_to(Path(str(distribution(name).locate_file(top))))
        return cls(folder)

    def run(self, *words: str, seconds: int = 170, **variables: str) -> subprocess.CompletedProcess[str]:
        """What a command of this interpreter did, in the checkout, by the sources there."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join(str(ROOT / root) for root in ROOTS),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.run(
            [str(self.folder / "bin" / "python"), *words],
            cwd=ROOT,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
