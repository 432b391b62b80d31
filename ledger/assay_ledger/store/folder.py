"""A store in a folder that strangers may write to, read so that nothing in it can hold the reader up.

Only regular files below the folder count. A FIFO, socket, device, directory or symbolic link in a file's place is
nothing: it is opened without blocking, looked at, and "missing". Links are never followed below the folder, so nothing
outside is read or written. What stands in the way of a write is renamed aside.

Every method may hang with a disk or a network folder that hangs: `assay_ledger.store.blobs` calls them through a
`Lane`.
"""

from __future__ import annotations

import errno
import fcntl
import heapq
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from assay_ledger.deadline import Lane, within_budget
from assay_ledger.store.errors import ObjectTooLarge, ObjectTruncated
from assay_ledger.store.interfaces import ObjectVersion
from assay_ledger.store.late_reads import LARGE, LateRead, LateReads

MAX_DEPTH: Final = 10
"""Of folders: a name has at most 8 parts, below `names`, above its digests."""

MAX_LATE: Final = 256
"""Writes that were cut short, of which it is known."""

JUST_MADE_S: Final = 2.0

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_FRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTHING: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG)
_NOT_KNOWN: Final = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
_IN_THE_WAY: Final = (errno.ENOTDIR, errno.ELOOP)


def read_regular(name: str, max_bytes: int, at: int | None = None, start: int = 0, length: int | None = None) -> bytes:
    """The bytes of a regular file, at most as many as it had when it was opened; or `length` of them from `start` on.

    Raises FileNotFoundError for anything else, ObjectTooLarge before any byte is read, ObjectTruncated, OSError.
    """
    return read_version(name, max_bytes, at, start, length)[0]


def read_version(
    name: str, max_bytes: int, at: int | None, start: int = 0, length: int | None = None
) -> tuple[bytes, ObjectVersion]:
    """The same, and which version of the file that was when it was opened."""
    with _as_missing(name):
        descriptor = os.open(name, _FILE, dir_fd=at)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(errno.ENOENT, "not a regular file", name)
            size = found.st_size
            if size > max_bytes:
                raise ObjectTooLarge(f"{name} has {size} bytes; it may have {max_bytes}.")
            wanted = size if length is None else length
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                file.seek(start)
                data = file.read(wanted)  # into memory of that size at once
        finally:
            os.close(descriptor)
    if len(data) < wanted:
        raise ObjectTruncated(f"{name} ended after {len(data)} of {wanted} bytes.")
    return data, _version_of(found)


def _version_of(found: os.stat_result) -> ObjectVersion:
    """By the time of its last change as the system saw it, which nobody can set as they can that of writing."""
    return ObjectVersion(f"{found.st_ino} {found.st_size}", f"{found.st_ctime_ns}")


class _Write:
    """A write of so many bytes, and what came of it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.is_begun = False
        self.ended = threading.Event()
        self.version: ObjectVersion | None = None


class Folder:
    """See `assay_ledger.store.interfaces.Backend`. The folder itself may be reached through links; nothing below it."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        if not root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(root))
        self._root = root
        self._lane = Lane()
        self._reads = LateReads(self._lane, self.version)
        self._late: dict[str, _Write] = {}
        """Writes of large objects that were cut short, by path: as many as hang, and those that ended since."""

    def read(self, path: str, max_bytes: int, seconds: float, bytes_per_s: int) -> tuple[bytes, ObjectVersion]:
        """The bytes of a file, and its version when it was opened. What is cut short goes on: see LateReads."""

        def read(begun: LateRead) -> tuple[bytes, ObjectVersion]:
            *parents, name = path.split("/")
            with self._opened(parents) as at:
                if path.startswith("objects/"):  # all else may say something else by then
                    with _as_missing(path):
                        begun.size = os.stat(name, dir_fd=at, follow_symlinks=False).st_size
                return read_version(name, max_bytes, at)

        return self._reads.read(path, read, max_bytes, within_budget(seconds + max_bytes / bytes_per_s))

    def read_range(self, path: str, start: int, length: int, max_bytes: int, seconds: float, bytes_per_s: int) -> bytes:
        """Some bytes of a file."""

        def read() -> bytes:
            *parents, name = path.split("/")
            with self._opened(parents) as at:
                return read_version(name, max_bytes, at, start, length)[0]

        return self._lane.call(read, within_budget(seconds + length / bytes_per_s))

    def write(self, path: str, data: bytes, seconds: float, bytes_per_s: int) -> ObjectVersion:
        """Replaces a file; readers see the old bytes or the new ones.

        The write of a large object that is cut short goes on, and its next one waits for it: each began anew beside
        those before it, over a slow network none in time. Whoever writes an object writes right bytes, however packed.
        """
        until = time.monotonic() + within_budget(seconds + len(data) / bytes_per_s)
        is_large = len(data) >= LARGE and path.startswith("objects/")
        if is_large and (late := self._late.get(path)) is not None and late.size == len(data):
            if not late.ended.wait(max(until - time.monotonic(), 0.0)):
                raise TimeoutError("its write goes on")
            # Others may have written over it, or deleted it, since.
            is_there = late.version is not None and late.version == self.version(path, until - time.monotonic())
            self._late.pop(path, None)
            if is_there:
                assert late.version is not None
                return late.version
        begun = _Write(len(data))

        def write() -> ObjectVersion:
            begun.is_begun = True
            try:
                begun.version = self._write(path, data)
                return begun.version
            finally:
                begun.ended.set()

        try:
            return self._lane.call(write, until - time.monotonic())
        except TimeoutError:
            if is_large and begun.is_begun:
                self._late[path] = begun
                while len(self._late) > MAX_LATE:
                    self._late.pop(next(iter(self._late)))
            raise

    def version(self, path: str, seconds: float) -> ObjectVersion | None:
        """Which regular file is there, as of its last change; None where there is none."""

        def look() -> ObjectVersion | None:
            *parents, name = path.split("/")
            with self._opened(parents) as at, _as_missing(path):
                found = os.stat(name, dir_fd=at, follow_symlinks=False)
            return _version_of(found) if stat.S_ISREG(found.st_mode) else None

        try:
            return self._lane.call(look, seconds)
        except FileNotFoundError:
            return None

    def paths(self, prefix: str, after: str, limit: int, seconds: float) -> list[str]:
        """At most `limit` paths of regular files below a prefix and after a path, the first ones of those seen in time.

        `seconds` ends the search with what it found: a folder of any size can be listed.
        """
        return [path for path, _ in self._listed(prefix, after, limit, seconds, is_sized=False)]

    def sizes(self, prefix: str, after: str, limit: int, seconds: float) -> list[tuple[str, int]]:
        """The first of all, each with its size: whoever deletes by names must have seen each one."""
        return self._listed(prefix, after, limit, seconds, is_sized=True)

    def _listed(self, prefix: str, after: str, limit: int, seconds: float, *, is_sized: bool) -> list[tuple[str, int]]:
        until = time.monotonic() + seconds * 0.8

        def walk() -> list[tuple[str, int]]:
            try:
                with self._opened(prefix.split("/")) as at:
                    if is_sized:
                        return _first(limit, _in_order(at, prefix, MAX_DEPTH, after, until))
                    found = (e for e in _below(at, prefix, MAX_DEPTH, until) if e[0] > after)
                    return heapq.nsmallest(limit, found)
            except FileNotFoundError:
                return []

        return self._lane.call(walk, seconds)

    def delete(self, path: str, seconds: float) -> None:
        """Deletes a file."""

        def delete() -> None:
            *parents, name = path.split("/")
            with suppress(FileNotFoundError), self._opened(parents) as at, _as_missing(path):
                os.unlink(name, dir_fd=at)

        self._lane.call(delete, seconds)

    @contextmanager
    def _opened(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """A descriptor of a folder below the root, which is made if asked for. Raises FileNotFoundError, OSError."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                inner = _made(part, descriptor) if make else _entered(part, descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _write(self, path: str, data: bytes) -> ObjectVersion:
        *parents, name = path.split("/")
        is_lasting = parents[0] != "slots"  # heartbeats are written every 2 s and worth nothing after a crash
        with self._opened(parents, make=True) as at:
            if len(data) >= LARGE:
                _remove_halves(name, at)
            fresh = f".{name}-{secrets.token_hex(8)}"
            descriptor = os.open(fresh, _FRESH, 0o666, dir_fd=at)
            try:
                with suppress(OSError):  # of a file system without locks
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    if is_lasting:
                        os.fsync(descriptor)
                    try:
                        os.rename(fresh, name, src_dir_fd=at, dst_dir_fd=at)
                    except (IsADirectoryError, NotADirectoryError, FileExistsError):
                        _set_aside(name, at)
                        os.rename(fresh, name, src_dir_fd=at, dst_dir_fd=at)
                    written = _version_of(os.fstat(descriptor))  # a rename counts as a change
                if is_lasting:
                    _sync_names(at)
                return written
            except BaseException:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=at)
                raise


def _sync_names(at: int) -> None:
    """Names that were given in a folder are on disk when it returns; a file system that knows no such thing refuses."""
    try:
        os.fsync(at)
    except OSError as error:
        if error.errno not in _NOT_KNOWN:
            raise


def _entered(part: str, at: int) -> int:
    with _as_missing(part):
        return os.open(part, _DIRECTORY, dir_fd=at)


def _made(part: str, at: int) -> int:
    for _ in range(3):
        try:
            return os.open(part, _DIRECTORY, dir_fd=at)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            _set_aside(part, at)
    return os.open(part, _DIRECTORY, dir_fd=at)


def _remove_halves(name: str, at: int) -> None:
    """What writers of an object left beside its place who were killed: a name begins with a dot, so no listing has it.

    Whoever still writes holds its file locked; one that has just been made may not be locked yet.
    """
    with suppress(OSError), os.scandir(at) as entries:
        for entry in [e for e in entries if e.name.startswith(f".{name}-")]:
            with suppress(OSError):
                descriptor = os.open(entry.name, _FILE, dir_fd=at)
                try:
                    # A lock that is shared: NFS gives no other to who opens a file to read it.
                    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    if time.time() - os.fstat(descriptor).st_mtime > JUST_MADE_S:
                        os.unlink(entry.name, dir_fd=at)
                finally:
                    os.close(descriptor)


def _set_aside(name: str, at: int) -> None:
    """What a stranger put where a file or folder of ours belongs gets a name that no reader looks at."""
    with suppress(FileNotFoundError):
        os.rename(name, f".aside-{secrets.token_hex(8)}", src_dir_fd=at, dst_dir_fd=at)


def _below(at: int, path: str, depth: int, until: float) -> Iterator[tuple[str, int]]:
    """Paths of the regular files below an open folder, in no order, until a time; 0 beside each."""
    folders = []
    with os.scandir(at) as entries:
        for entry in entries:
            if time.monotonic() > until:
                return
            if entry.name.startswith("."):
                continue
            if entry.is_file(follow_symlinks=False):
                yield f"{path}/{entry.name}", 0
            elif depth and entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    for name in folders:
        with _inside(name, at) as inner:
            if inner is not None:
                yield from _below(inner, f"{path}/{name}", depth - 1, until)


def _in_order(at: int, path: str, depth: int, after: str, until: float) -> Iterator[tuple[str, int]]:
    """Paths of the regular files below an open folder that come after a path, in order, with sizes; until a time.

    Raises TimeoutError where it is over before the first one.
    """
    with os.scandir(at) as entries:
        # As their paths are ordered: what is below a folder has a slash behind its name.
        found = sorted(
            entry.name if entry.is_file(follow_symlinks=False) else f"{entry.name}/"
            for entry in entries
            if not entry.name.startswith(".")
        )
    for name in found:
        whole = f"{path}/{name}"
        if whole <= after and not (name.endswith("/") and after.startswith(whole)):
            continue
        if time.monotonic() > until:
            raise TimeoutError("no time is left")
        if not name.endswith("/"):
            with suppress(FileNotFoundError):
                yield whole, os.stat(name, dir_fd=at, follow_symlinks=False).st_size
        elif depth:
            with _inside(name[:-1], at) as inner:
                if inner is not None:
                    yield from _in_order(inner, whole[:-1], depth - 1, after, until)


def _first(limit: int, entries: Iterator[tuple[str, int]]) -> list[tuple[str, int]]:
    """As many as come in time. Raises TimeoutError where none does."""
    found: list[tuple[str, int]] = []
    try:
        found.extend(islice(entries, limit))  # keeps what came before the time was over
    except TimeoutError:
        if not found:
            raise
    return found


@contextmanager
def _inside(name: str, at: int) -> Iterator[int | None]:
    """A folder that is opened; None where it cannot be."""
    try:
        inner = _entered(name, at)
    except OSError:
        yield None
        return
    try:
        yield inner
    finally:
        os.close(inner)


@contextmanager
def _as_missing(path: str) -> Iterator[None]:
    """Whatever is there and no regular file is missing, like what is not there."""
    try:
        yield
    except OSError as error:
        if error.errno in _NOTHING:
            raise FileNotFoundError(errno.ENOENT, "missing", path) from None
        raise
