"""What a process leaves in the folder of a store that was killed while it wrote a large object."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay_ledger.store import folder
from assay_ledger.store.blobs import open_store

WRITER = """
import os, sys, time
from assay_ledger.store import folder
from assay_ledger.store.blobs import open_store
folder.os.fsync = lambda _: (print("written", flush=True), time.sleep(60))
open_store(sys.argv[1]).put(bytes(1 << 20))
"""


def halves(root: Path) -> list[Path]:
    return [path for path in root.rglob(".*") if path.is_file()]


def test_what_a_killed_writer_left_goes_with_the_next_write_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a machine that kills by memory does so in the middle of a large object. Each time another half stayed,
    which no listing shows and `assay store prune` never deleted, until the disk was full."""
    monkeypatch.setattr(folder, "JUST_MADE_S", 0.2)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline() == "written\n"
        store = open_store(tmp_path)
        time.sleep(0.3)
        digest = store.put(bytes(1 << 20))
        assert len(halves(tmp_path)) == 1, "its writer is at work"
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    assert len(halves(tmp_path)) == 1
    assert store.put(bytes(1 << 20)) == digest and halves(tmp_path) == []
    assert store.get(digest, 1 << 20) == bytes(1 << 20)
