"""Who sees a run's values as it goes, and may replace them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Hook = Callable[[int, Tensor], Tensor]
"""Given a node's index and value, returns the value that later nodes shall read."""


class SeenOnce:
    """A hook that sees every node once, though a run is begun again by another executor: it may count what it sees."""

    def __init__(self, hook: Hook) -> None:
        self._hook, self._next = hook, 0
        self._replaced: dict[int, Tensor] = {}

    def __call__(self, k: int, value: Tensor) -> Tensor:
        """What later nodes read: of a node that was seen what the hook made of it, and made nothing of it again."""
        if k < self._next:
            return self._replaced.get(k, value)
        found = self._hook(k, value)
        self._next = k + 1
        if found is not value:
            self._replaced[k] = found
        return found
