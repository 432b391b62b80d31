"""Numbers of things as people read them."""

from __future__ import annotations


def count(number: int, one: str, many: str | None = None) -> str:
    """A number of things in words: `1 game`, `2 games`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
