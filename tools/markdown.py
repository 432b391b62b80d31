"""Markdown that tools write into documents."""

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(str(cell) for cell in row) for row in [head, ["---"] * len(head), *rows]]
    return "".join(f"| {line} |\n" for line in lines)
