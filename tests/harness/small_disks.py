"""A file system of a few MiB, as the system has one: what does not fit is refused with ENOSPC until there is room.

It is mounted in a namespace of its own, which needs no rights where the system lets users make such.
"""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay_ledger.processes.children import spawn, stop

FILLER = "filler"


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs at `folder`, for processes that are started by `words`."""

    folder: Path
    holder: int

    @property
    def words(self) -> tuple[str, ...]:
        """Stand before a command that shall see the file system."""
        return ("nsenter", "-t", str(self.holder), "-U", "-m", "--preserve-credentials", "--")

    @property
    def seen(self) -> Path:
        """Where it is seen from outside."""
        return Path(f"/proc/{self.holder}/root{self.folder}")

    @contextmanager
    def full(self) -> Iterator[None]:
        """In this block nothing more fits; what is removed meanwhile is taken at once."""
        self._fill()
        is_over = threading.Event()

        def go_on() -> None:
            while not is_over.wait(0.02):
                self._fill()

        filling = threading.Thread(target=go_on, daemon=True)
        filling.start()
        try:
            yield
        finally:
            is_over.set()
            filling.join()
            (self.seen / FILLER).unlink()

    def _fill(self) -> None:
        with (self.seen / FILLER).open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError as error:
                    assert error.errno == errno.ENOSPC


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """Mounts one, or skips the test with the reason."""
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        pytest.skip("no `unshare` and `nsenter`, which mount a small file system without rights")
    folder.mkdir(parents=True)
    script = 'mount -t tmpfs -o size="$1"m none "$0" && echo ready && exec sleep 3600'
    holder = spawn(["unshare", "-rm", "sh", "-c", script, str(folder), str(mebibytes)], pipe_stdout=True)
    try:
        assert holder.stdout is not None
        if not holder.stdout.readline().strip():
            pytest.skip("this system lets nobody mount a file system in a namespace")
        yield SmallDisk(folder, holder.pid)
    finally:
        stop([holder])
