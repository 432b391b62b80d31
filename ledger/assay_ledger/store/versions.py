"""Which bytes in a store a process knows to be right, so that it reads them again only where somebody wrote there."""

from __future__ import annotations

import threading
from typing import Final

from assay.protocol.types import Digest
from assay_ledger.store.interfaces import ObjectVersion

MAX_VERSIONS: Final = 1 << 14


class RightVersions:
    """Which version of an object this process put, or read and hashed; the oldest of MAX_VERSIONS goes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[Digest, ObjectVersion] = {}

    def note(self, digest: Digest, version: ObjectVersion | None) -> None:
        """The bytes of that version are right; None where nobody is sure which that was."""
        with self._lock:
            self._noted.pop(digest, None)
            if version is not None:
                self._noted[digest] = version
            while len(self._noted) > MAX_VERSIONS:
                del self._noted[next(iter(self._noted))]

    def known(self, digest: Digest) -> ObjectVersion | None:
        """The version whose bytes are right."""
        with self._lock:
            return self._noted.get(digest)

    def has(self, digest: Digest, version: ObjectVersion) -> bool:
        """Whether this is the one; from then on its time counts as well."""
        with self._lock:
            noted = self._noted.get(digest)
            if noted is None or not noted.is_of(version):
                return False
            self._noted[digest] = version
            return True
