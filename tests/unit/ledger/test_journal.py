"""The journal: on disk before it is relied upon, whole lines only, one process at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.protocol.types import Wei
from assay_ledger.agents.folder_form import FORM, FORM_FILE, FolderNewer
from assay_ledger.agents.journal import FILE, DiskRefuses, FolderUnusable, Journal, JournalInUse
from assay_ledger.vouchers.kept import KeptVouchers, VouchersFolderUnusable
from assay_ledger.vouchers.purse import Purse, PurseInUse, PursePlace
from tests.harness.full_disks import writing_nothing
from tests.harness.payments.kept_samples import DOMAIN, GATEWAY, TOKEN, payer


def test_entries_are_there_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = Journal(tmp_path)
    journal.append("salt", value=b"\x01\x02", numbers=[1, b"\x03"])
    assert len(synced) == 3  # the folder's form, the names of both, when they were made, and the entry
    journal.close()
    assert list(Journal(tmp_path).entries("salt")) == [{"kind": "salt", "value": "0102", "numbers": [1, "03"]}]


@pytest.mark.parametrize("torn", [b'{"kind": "a", "n"', b"\x00\x00", b"[]\n", b'{"kind": 5}\n'])
def test_what_a_crash_left_of_a_line_is_dropped_and_written_over(tmp_path: Path, torn: bytes) -> None:
    journal = Journal(tmp_path)
    journal.append("a", n=1)
    journal.close()
    with (tmp_path / FILE).open("ab") as file:
        file.write(torn)
    journal = Journal(tmp_path)
    journal.append("a", n=2)
    journal.close()
    assert [e["n"] for e in Journal(tmp_path).entries("a")] == [1, 2]


def test_a_folder_has_one_journal_at_a_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalInUse):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_where_nothing_can_be_locked_nobody_is_said_to_hold_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad luck: a folder of a network without locks: its owner looked for a process that was not there."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(FolderUnusable, match="cannot be locked: No locks available"):
        Journal(tmp_path)
    with pytest.raises(VouchersFolderUnusable, match="cannot be locked"):
        KeptVouchers(tmp_path, DOMAIN, GATEWAY)
    with pytest.raises(PurseInUse, match="cannot be locked") as found:
        Purse(tmp_path, payer(0), PursePlace(DOMAIN, GATEWAY, TOKEN), Wei(0), Wei(1))
    assert "--purse" in found.value.remedy


_MAY_NOT = "-dac_override,-dac_read_search"
PLAIN_USER = () if os.geteuid() else ("setpriv", f"--bounding-set={_MAY_NOT}", f"--inh-caps={_MAY_NOT}")
"""What takes root's right to write everywhere away."""

READ_ONLY = """
import sys
from pathlib import Path
from assay_ledger.agents.journal import DiskRefuses, FolderUnusable, Journal
folder = Path(sys.argv[1])
journal = Journal(folder)
print([entry["n"] for entry in journal.entries("a")])
try:
    journal.append("a", n=2)
except DiskRefuses:
    print("refused")
journal.note("a", n=3)
print([entry["n"] for entry in journal.entries("a")])
journal.close()
try:
    Journal(folder / "new")
except FolderUnusable:
    print("unusable")
"""


def written(folder: Path, entries: int) -> bytes:
    """A journal of so many entries, as it lies on disk."""
    journal = Journal(folder)
    for n in range(entries):
        journal.append("a", n=n, value=bytes([n]) * 32)
    journal.close()
    return (folder / FILE).read_bytes()


def read_back(folder: Path) -> tuple[list[int], tuple[int, ...]]:
    """What a later life of the actor finds: entries, and numbers of damaged lines."""
    journal = Journal(folder)
    try:
        return [entry["n"] for entry in journal.entries("a")], tuple(journal.damaged)
    finally:
        journal.close()


def test_any_flipped_bit_costs_the_line_that_it_is_in_and_no_other(tmp_path: Path) -> None:
    data = written(tmp_path, 10)
    lines = data.split(b"\n")
    start = len(b"\n".join(lines[:2])) + 1
    for at in range(start, start + len(lines[2])):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            (tmp_path / FILE).write_bytes(damaged)
            found, where = read_back(tmp_path)
            # No flip makes an entry say something else; it may leave it as it was, in the spelling of JSON.
            assert found in ([0, 1, *range(3, 10)], list(range(10)))
            assert where[:1] == (3,) or found == list(range(10))
    # Where the end of a line is gone, both entries can still be told apart.
    damaged = bytearray(data)
    damaged[start + len(lines[2])] ^= 1
    (tmp_path / FILE).write_bytes(damaged)
    assert read_back(tmp_path) == (list(range(10)), (3,))


def test_damaged_lines_are_named_and_what_follows_is_written_behind_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = bytearray(written(tmp_path, 4))
    data[data.index(b'"n": 2') + 5] = ord("7")
    (tmp_path / FILE).write_bytes(data)
    journal = Journal(tmp_path)
    journal.append("a", n=4)
    journal.close()
    assert "in line 3" in caplog.text
    assert read_back(tmp_path) == ([0, 1, 3, 4], (3,))


def test_a_journal_of_an_earlier_release_is_read_and_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b'{"kind": "a", "n": 0}\n{"kind": "a", "n": 1}\n')
    journal = Journal(tmp_path)
    journal.append("a", n=2)
    journal.close()
    assert read_back(tmp_path) == ([0, 1, 2], ())
    # Once entries have sums, one without is one whose sum was damaged.
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"kind": "a", "n": 3}\n')
    assert read_back(tmp_path) == ([0, 1, 2], (4,))


def test_a_disk_that_takes_nothing_costs_a_crash_its_work_and_nobody_else(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("a", n=0)
    with writing_nothing():
        journal.note("a", n=1)
        with pytest.raises(DiskRefuses):
            journal.append("a", n=2)
        journal.note("a", n=3)
    assert [entry["n"] for entry in journal.entries("a")] == [0, 1, 3]
    journal.append("a", n=4)
    journal.close()
    assert read_back(tmp_path) == ([0, 1, 3, 4], ())


def test_a_line_that_a_full_disk_cut_short_is_taken_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("a", n=0)
    size = (tmp_path / FILE).stat().st_size
    with writing_nothing(beyond=size + 10):
        journal.note("a", n=1)
        assert (tmp_path / FILE).stat().st_size == size
    journal.close()
    assert read_back(tmp_path) == ([0, 1], ())


def test_a_folder_of_a_later_release_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    before = written(tmp_path, 2)
    (tmp_path / FORM_FILE).write_text(f"{FORM + 1}\n")
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"what only the later release reads")
    for _ in range(2):  # it holds nothing
        with pytest.raises(FolderNewer, match=f"form {FORM + 1}") as refused:
            Journal(tmp_path)
        assert "--data-dir" in refused.value.remedy
    assert (tmp_path / FILE).read_bytes() == before + b"what only the later release reads"


@pytest.mark.parametrize("said", [None, "", "\0\0", "-1", "1.5", "later", "0"])
def test_a_form_that_says_nothing_is_written_anew_and_loses_nothing(tmp_path: Path, said: str | None) -> None:
    written(tmp_path, 2)
    (tmp_path / FORM_FILE).unlink()
    if said is not None:
        (tmp_path / FORM_FILE).write_text(said)
    assert read_back(tmp_path) == ([0, 1], ())
    assert (tmp_path / FORM_FILE).read_text() == f"{FORM}\n"


def test_a_disk_that_takes_no_form_holds_no_actor_up(tmp_path: Path) -> None:
    written(tmp_path, 1)
    (tmp_path / FORM_FILE).unlink()
    with writing_nothing():
        assert read_back(tmp_path) == ([0], ())
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]


def test_a_disk_that_has_become_read_only_keeps_nobody_from_what_it_knows(tmp_path: Path) -> None:
    """Bad luck: a power cut, and the disk is mounted read-only; an actor that cannot start loses its game."""
    written(tmp_path, 2)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"half a line")
    for path in (tmp_path / FILE, tmp_path):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        done = subprocess.run(
            [*PLAIN_USER, sys.executable, "-c", READ_ONLY, str(tmp_path)], capture_output=True, text=True, check=False
        )
    finally:
        tmp_path.chmod(0o700)
    assert done.stdout.split("\n") == ["[0, 1]", "refused", "[0, 1, 3]", "unusable", ""], done.stderr
    assert "goes on from memory" in done.stderr and read_back(tmp_path) == ([0, 1], ())
