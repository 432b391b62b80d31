"""The explorer: everything that a person without a key reads about a run, as pages and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.explorer.server import Server as Server
    from assay.explorer.server import serve as serve


def __getattr__(name: str) -> Any:
    """`serve` and `Server`, without loading a web server for those who only read documents."""
    if name not in ("serve", "Server"):
        raise AttributeError(name)
    from assay.explorer import server

    return getattr(server, name)
