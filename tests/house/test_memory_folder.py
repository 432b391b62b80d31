"""Where the tests' own files go, and what stays of them after a failed run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.harness.memory_folder import MOST_KEPT, MemoryFolder, memory_folder


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where files would go without it."""
    monkeypatch.setenv("TMPDIR", "restored at the end")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this machine has no folder in memory")
@pytest.mark.parametrize("keeps", [False, True])
def test_what_a_failed_run_leaves_is_kept_on_the_disk_without_its_holes(disk: Path, keeps: bool) -> None:
    folder = MemoryFolder()
    inside = Path(tempfile.gettempdir())
    assert inside.is_relative_to("/dev/shm") and os.environ["TMPDIR"] == str(inside)
    (inside / "deep").mkdir()
    (inside / "deep" / "text").write_text("written")
    os.mkfifo(inside / "pipe")
    with (inside / "holes").open("wb") as file:
        file.truncate(MOST_KEPT + 1)
    kept = folder.close(keeps)
    assert not inside.exists() and "TMPDIR" not in os.environ
    assert kept == (disk / inside.name if keeps else None)
    if kept is not None:
        assert {path.name for path in kept.rglob("*")} == {"deep", "text"}
        assert (kept / "deep" / "text").read_text() == "written"


def test_whoever_says_where_files_go_is_obeyed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert memory_folder() is None
