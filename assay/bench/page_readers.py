"""Readers of the explorer: many at once, from a process of their own, each as a person with a browser.

A reader opens a page, reads it for some seconds, and goes on: by a link of the page half of the time, else to any page
of any kind, as who comes by a link from elsewhere. While it reads, the page's own script asks for it again every few
seconds by its ETag. Answers are asked for compressed, and redirections followed. Links to tables for download and to
JSON are not followed.

Run as `python -m assay.bench.page_readers URL READERS SECONDS PAUSE < paths.json`; prints seconds by kind of page.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlsplit

SEED = 7

LIVE_S = 4.0
"""What `live.js` waits between two looks at its page."""

AGAIN = "again"
"""The kind of a page that is asked for by its ETag."""

MOST_REDIRECTS = 3

_LINK = re.compile(r'href="(/(?!api/|style\.css)[^"#]*)')


@dataclass(slots=True)
class OnePageReader:
    """One person: a connection, what it looks at, and how long it waited for answers, by kind."""

    host: str
    port: int
    paths: dict[str, list[str]]
    pause: float
    chance: random.Random
    took: defaultdict[str, list[float]]
    links: list[str] = field(default_factory=list)
    path: str = "/"
    tag: str = ""
    _stream: asyncio.StreamReader | None = None
    _sink: asyncio.StreamWriter | None = None

    async def read(self, end: float) -> None:
        """Reads until a second of the monotonic clock. Raises AssertionError for an answer that is no page."""
        await asyncio.sleep(self.chance.random() * self.pause)
        while time.monotonic() < end:
            await self._open(*self._next())
            until = min(end, time.monotonic() + (self.chance.expovariate(1 / self.pause) if self.pause else 0.0))
            while time.monotonic() + LIVE_S < until:
                await asyncio.sleep(LIVE_S)
                await self._look_again()
            await asyncio.sleep(max(0.0, until - time.monotonic()))

    def _next(self) -> tuple[str, str]:
        """Kind and path of the next page."""
        if self.links and self.chance.random() < 0.5:
            path = self.chance.choice(self.links)
            return path.split("/")[1].split("?")[0] or "front", path
        kind = self.chance.choice(sorted(self.paths))
        return kind, self.chance.choice(self.paths[kind])

    async def _open(self, kind: str, path: str) -> None:
        """Opens a page, behind redirections too, and remembers its links."""
        began = time.monotonic()
        for _ in range(MOST_REDIRECTS):
            status, headers, body = await self._ask(path)
            if status != 303:
                break
            path = headers["location"]
        self.took[kind].append(time.monotonic() - began)
        assert status == 200, (kind, path, status)
        text = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        self.links = [unescape(link) for link in _LINK.findall(text.decode())]
        self.path, self.tag = path, headers.get("etag", "")

    async def _look_again(self) -> None:
        began = time.monotonic()
        status, headers, _ = await self._ask(self.path, f"If-None-Match: {self.tag}\r\n" if self.tag else "")
        self.took[AGAIN].append(time.monotonic() - began)
        assert status in (200, 304), (self.path, status)
        self.tag = headers.get("etag", "")

    async def _ask(self, path: str, more: str = "") -> tuple[int, dict[str, str], bytes]:
        head = f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAccept-Encoding: gzip\r\n{more}\r\n"
        try:
            lines = await self._answered(head)
        except (OSError, EOFError):
            # A server closes connections that are idle; a browser opens another.
            self._stream, self._sink = await asyncio.open_connection(self.host, self.port)
            lines = await self._answered(head)
        pairs = (line.partition(": ") for line in lines[1:] if line)
        headers = {name.lower(): value for name, _, value in pairs}
        assert self._stream is not None
        body = await self._stream.readexactly(int(headers.get("content-length", "0")))
        return int(lines[0].split()[1]), headers, body

    async def _answered(self, head: str) -> list[str]:
        """The lines before an answer's body."""
        if self._stream is None or self._sink is None:
            raise ConnectionError("there is no connection yet")
        self._sink.write(head.encode())
        return (await self._stream.readuntil(b"\r\n\r\n")).decode().split("\r\n")


async def read_pages(
    url: str, paths: dict[str, list[str]], readers: int, seconds: float, pause: float
) -> dict[str, list[float]]:
    """How long each answer took, in seconds, by kind; a reader stays with a page for `pause` seconds on average.

    Raises AssertionError for an answer that is no page.
    """
    took: defaultdict[str, list[float]] = defaultdict(list)
    place, end = urlsplit(url), time.monotonic() + seconds
    people = (
        OnePageReader(str(place.hostname), int(place.port or 80), paths, pause, random.Random(SEED + k), took)
        for k in range(readers)
    )
    await asyncio.gather(*(person.read(end) for person in people))
    return dict(took)


if __name__ == "__main__":
    found = read_pages(sys.argv[1], json.load(sys.stdin), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
    json.dump(asyncio.run(found), sys.stdout)
