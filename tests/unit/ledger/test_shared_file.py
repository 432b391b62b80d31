"""Files that several processes add to and replace."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

from assay_ledger.shared_file import held_alone, replace_whole


def test_a_file_is_made_held_and_replaced_whole_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with held_alone(path):
        assert path.read_bytes() == b""
        replace_whole(path, b"a\n")
    with held_alone(path), path.open("ab") as file:
        file.write(b"b\n")
    assert path.read_bytes() == b"a\nb\n" and list(tmp_path.iterdir()) == [path]


def one_who_waits(path: Path, seen: list[bytes]) -> threading.Thread:
    """Notes what the file holds once it is its turn."""

    def look() -> None:
        with held_alone(path):
            seen.append(path.read_bytes())

    return threading.Thread(target=look)


def test_who_waited_for_a_file_that_was_replaced_waits_for_the_new_one(tmp_path: Path) -> None:
    path, seen = tmp_path / "rows.csv", list[bytes]()
    waiter = one_who_waits(path, seen)
    with held_alone(path):
        waiter.start()
        waiter.join(timeout=0.2)
        replace_whole(path, b"new\n")
        third = path.open("ab")
        fcntl.flock(third, fcntl.LOCK_EX)
    waiter.join(timeout=0.2)
    assert waiter.is_alive() and seen == [], "it goes on beside whoever holds the new file"
    third.write(b"more\n")
    third.close()
    waiter.join()
    assert seen == [b"new\nmore\n"]


def test_a_file_that_was_deleted_while_somebody_waited_is_made_anew(tmp_path: Path) -> None:
    path, seen = tmp_path / "rows.csv", list[bytes]()
    waiter = one_who_waits(path, seen)
    with held_alone(path):
        waiter.start()
        waiter.join(timeout=0.2)
        path.unlink()
    waiter.join()
    assert seen == [b""] and path.exists()
