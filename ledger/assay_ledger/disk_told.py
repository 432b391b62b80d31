"""What is said of a disk that does not take what is written to it: once, and once more when it takes as much again."""

from __future__ import annotations

import logging
from pathlib import Path


class DiskTold:
    """Of one kind of files, told in the log that is given. What is refused meanwhile is for logs of machines alone.

    A disk that is nearly full takes a line and no state, so it is well again when as many bytes were written as it
    refused.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._refused: int | None = None

    def refused(self, size: int, text: str, *values: object) -> None:
        """It refused a write of so many bytes, as far as they are known; `text` says what that costs."""
        self._log.log(logging.WARNING if self._refused is None else logging.INFO, text, *values)
        self._refused = max(size, self._refused or 0)

    def took(self, size: int, place: Path) -> None:
        """It took so many bytes of a file in a place."""
        if self._refused is not None and size >= self._refused:
            self._refused = None
            self._log.warning("%s takes what is written to it again.", place)
