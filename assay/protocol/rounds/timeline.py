"""A number over chain time: what it was at a time never changes once later changes are all that is left to come."""

from __future__ import annotations

from bisect import bisect_right


class Timeline:
    """Values from chain times on, in ascending order of time; as OpenZeppelin's Trace208 keeps them."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: list[tuple[int, int]] = []

    def push(self, time: int, value: int) -> None:
        """Let a value count from a time on, which is no earlier than that of the last change."""
        if self._points and self._points[-1][0] == time:
            self._points.pop()
        self._points.append((time, value))

    def latest(self) -> int:
        """The value after all changes; 0 before the first."""
        return self._points[-1][1] if self._points else 0

    def at(self, time: int) -> int:
        """The value that counts at a time; 0 before the first change."""
        position = bisect_right(self._points, time, key=lambda point: point[0])
        return self._points[position - 1][1] if position else 0
