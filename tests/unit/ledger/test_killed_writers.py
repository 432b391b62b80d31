"""What a process leaves in the folder of a store that was killed while it wrote a large object."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay_ledger.store import folder
from assay_ledger.store.blobs import StoreUnreachable, object_path, open_store

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


def test_what_a_killed_writer_left_on_a_network_disk_goes_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS locks a file for its writer alone only where it is opened to be written: no half was ever removed there."""

    def lock(descriptor: int, operation: int) -> None:
        is_read_only = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        if operation & fcntl.LOCK_EX and is_read_only:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, operation)

    flock = fcntl.flock
    monkeypatch.setattr("assay_ledger.store.folder.fcntl.flock", lock)
    monkeypatch.setattr(folder, "JUST_MADE_S", -1.0)
    store = open_store(tmp_path)
    digest = store.put(bytes(1 << 20))
    place = tmp_path / object_path(digest)
    half, held = (place.with_name(f".{place.name}-{k}") for k in (1, 2))
    for path in (half, held):
        path.write_bytes(b"half")
    with held.open("ab") as writer:
        lock(writer.fileno(), fcntl.LOCK_EX)
        store.put(bytes(1 << 20))
        assert halves(tmp_path) == [held]
    store.put(bytes(1 << 20))
    assert halves(tmp_path) == []


def test_a_share_whose_folders_cannot_be_synced_takes_what_is_put(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shared folders of virtual machines, and of older kernels SMB, refuse that: every object was written and then said
    to have failed, so that nobody committed."""
    refusal = errno.EINVAL
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(refusal, os.strerror(refusal))
        fsync(descriptor)

    monkeypatch.setattr("assay_ledger.store.folder.os.fsync", sync)
    store = open_store(tmp_path)
    digest = store.put(b"right bytes", "lists/root")
    assert store.serves(digest, 11) and list(store.candidates("lists/root")) == [digest]
    refusal = errno.EIO
    with pytest.raises(StoreUnreachable, match="Input/output error"):
        store.put(b"other bytes")
