"""Files as read-only memory: what is not read takes none, and a machine takes pages back whenever it needs them."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, cast

_OPENED: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE: Final = 0o400

T = TypeVar("T")


class MappedFile(mmap.mmap):
    """A regular file of one's own, made read-only; `view` is its bytes, and `view.obj` this.

    The mapping stays with the file that was opened, whatever its name becomes. Written over, the file shows it in its
    time of change, which nobody can set back; then `is_right` compares the bytes anew. Cut short, it ends the process
    that reads beyond its end.

    fits: whether bytes are those that the file must hold.
    """

    fits: Callable[[memoryview], bool]
    _descriptor: int
    _seen: tuple[int, ...] | None
    _found: dict[object, tuple[tuple[int, ...], object]]

    @classmethod
    def open(cls, path: Path, size: int, fits: Callable[[memoryview], bool]) -> MappedFile:
        """The file of exactly `size` bytes, at least one; it is not looked at yet.

        Raises FileNotFoundError for anything else that stands there, OSError.
        """
        descriptor = os.open(path, _OPENED)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size != size:
                raise FileNotFoundError(errno.ENOENT, f"no regular file of {size} bytes", str(path))
            if stat.S_IMODE(found.st_mode) != _PRIVATE:
                os.fchmod(descriptor, _PRIVATE)
            made = cls(descriptor, size, mmap.MAP_PRIVATE, mmap.PROT_READ)
        except BaseException:
            os.close(descriptor)
            raise
        made._descriptor = descriptor
        made._seen, made._found, made.fits = None, {}, fits
        weakref.finalize(made, os.close, descriptor)
        # Rows are read at random: what lies beside one is not wanted.
        made.madvise(mmap.MADV_RANDOM)
        return made

    @property
    def view(self) -> memoryview:
        """The bytes."""
        return memoryview(self)

    def is_right(self) -> bool:
        """Whether the file holds what it must; it is read only where somebody may have written to it since."""
        now = self._now()
        if now != self._seen:
            # Before the bytes are read: what is written meanwhile is seen the next time.
            self._seen = now if now[0] == len(self) and self.fits(self.view) else None
        return self._seen is not None

    def once(self, what: object, compute: Callable[[], T]) -> T:
        """What is computed of all bytes, again only where somebody may have written to the file since."""
        now, (when, found) = self._now(), self._found.get(what, ((), None))
        if now != when:
            found = compute()
            self._found[what] = now, found
        return cast(T, found)

    def _now(self) -> tuple[int, ...]:
        found = os.fstat(self._descriptor)
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def let_go(self) -> None:
        """Takes its pages out of this process's memory; they are read again when they are wanted."""
        self.madvise(mmap.MADV_DONTNEED)


def mapping_of(data: object) -> MappedFile | None:
    """The mapped file that a slot's bytes lie in, if they do."""
    found = data.obj if isinstance(data, memoryview) else None
    return found if isinstance(found, MappedFile) else None
