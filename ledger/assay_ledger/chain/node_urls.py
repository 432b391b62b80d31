"""URLs of nodes as they may be shown: keys stand in them, and some nodes repeat them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

_LEAST_KEY: Final = 8
"""Shorter words in a URL (`v3`, `mainnet`) are in other sentences too."""


def redacted(url: str) -> str:
    """A URL as it may be shown: scheme, host and port. Keys stand in all other parts."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return "(a URL that cannot be read)"
    if not parts.scheme or not parts.hostname:
        return "(a URL without a host)"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    has_more = parts.path.strip("/") or parts.query or parts.fragment
    return f"{parts.scheme}://{host}{port}" + ("/..." if has_more else "")


def urls_in(named: str) -> tuple[str, ...]:
    """The URLs of a setting that names several, with commas between."""
    return tuple(part.strip() for part in named.split(",") if part.strip()) or (named,)


def without_keys(text: str, url: str) -> str:
    """What a node said, with what only its user should know of its URL taken out: some nodes repeat it."""
    for one in urls_in(url):
        text = _without_keys_of(text, one)
    return text


def _without_keys_of(text: str, url: str) -> str:
    try:
        parts = urlsplit(url)
        secrets = {parts.username or "", parts.password or "", *re.split(r"[/&=?#]", url.partition("://")[2])}
        secrets -= {parts.netloc, parts.hostname or ""}
    except ValueError:
        return "..."
    # A URL without keys stays: it says which node is meant.
    text = text.replace(url, redacted(url))
    for secret in sorted((s for s in secrets if len(s) >= _LEAST_KEY), key=len, reverse=True):
        text = text.replace(secret, "...")
    return text
