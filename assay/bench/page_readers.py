"""Readers of the explorer: many at once, from a process of their own, each asking for one page after another.

Run as `python -m assay.bench.page_readers URL READERS SECONDS PAUSE < paths.json`; prints seconds by kind of page.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from urllib.parse import urlsplit

SEED = 7


async def read_pages(
    url: str, paths: dict[str, list[str]], readers: int, seconds: float, pause: float
) -> dict[str, list[float]]:
    """How long each answer took, by kind; a reader waits up to twice `pause` seconds before each page.

    Raises AssertionError for an answer that is neither a page nor 304.
    """
    took: defaultdict[str, list[float]] = defaultdict(list)
    end = time.monotonic() + seconds
    await asyncio.gather(*(_reader(url, paths, end, pause, random.Random(SEED + k), took) for k in range(readers)))
    return dict(took)


async def _reader(
    url: str, paths: dict[str, list[str]], end: float, pause: float, chance: random.Random, took: dict[str, list[float]]
) -> None:
    place, kinds = urlsplit(url), sorted(paths)
    stream, sink = await asyncio.open_connection(place.hostname, place.port)
    await asyncio.sleep(chance.random() * pause)
    while time.monotonic() < end:
        kind = chance.choice(kinds)
        began = time.monotonic()
        sink.write(f"GET {chance.choice(paths[kind])} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        head = await stream.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), 0)
        await stream.readexactly(length)
        took[kind].append(time.monotonic() - began)
        assert lines[0].split()[1] in ("200", "303", "304"), (kind, lines[0])
        if pause:
            await asyncio.sleep(chance.random() * 2 * pause)
    sink.close()


if __name__ == "__main__":
    found = read_pages(sys.argv[1], json.load(sys.stdin), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
    json.dump(asyncio.run(found), sys.stdout)
