"""Lengths of time as people type and read them."""

from __future__ import annotations

import re
from typing import Final

from assay.protocol.errors import UsageError

UNITS: Final = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
"""Seconds of each unit that may be typed."""

_TYPED = re.compile(r"(\d{1,12})\s*(s|min|h|d|w)?")


def parse_duration(text: str) -> int:
    """Seconds of a length as typed, such as 90, 90s, 15min, 2h, 3d or 4w. Raises UsageError (DurationInvalid)."""
    match = _TYPED.fullmatch(text.strip())
    seconds = int(match[1]) * UNITS[match[2] or "s"] if match else 0
    if seconds <= 0:
        raise UsageError(
            f"{text!r} is no length of time.",
            code="DurationInvalid",
            remedy=f"Give a number above zero and one of {', '.join(UNITS)}, such as 90s or 2d.",
        )
    return seconds


def duration(seconds: int) -> str:
    """A length in its two largest units, such as `2 d 13 h`; seconds that are no whole number of them are left out."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (rest // 60, "min"), (rest % 60, "s")) if n]
    return " ".join(parts[:2]) or "0 s"
