"""What an action may wait bounds the bodies of objects, too: read, read in part, and written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.types import Digest
from assay_ledger.deadline import waiting_at_most
from assay_ledger.store import folder
from assay_ledger.store.blobs import BlobStore, StorePace, StoreSilent, open_store

SIZE = 1 << 20
ASKED = Digest(bytes(32))
PACE = StorePace(call_s=0.2, bytes_per_s=1 << 17)
"""By itself the object has 8.2 s."""


class SlowBodies(BaseHTTPRequestHandler):
    """Serves any object of SIZE bytes, and takes any, in about ten seconds."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """Headers at once, then a hundredth of the body every tenth of a second."""
        asked = self.headers.get("Range")
        first, last = (0, SIZE - 1) if asked is None else map(int, asked.removeprefix("bytes=").split("-"))
        self.send_response(200 if asked is None else 206)
        self.send_header("Content-Length", str(last + 1 - first))
        if asked is not None:
            self.send_header("Content-Range", f"bytes {first}-{last}/{SIZE}")
        self.send_header("Last-Modified", "Sun, 29 Nov 2026 00:00:00 GMT")
        self.send_header("ETag", '"x"')
        self.end_headers()
        try:
            while not self.server.is_over.wait(0.1):  # type: ignore[attr-defined]
                self.wfile.write(bytes(SIZE // 100))
        except OSError:
            return

    def do_PUT(self) -> None:
        """Reads, and says nothing."""
        self.server.is_over.wait(10.0)  # type: ignore[attr-defined]


@pytest.fixture
def slow() -> Iterator[BlobStore]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowBodies)
    server.is_over = threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield open_store(f"http://127.0.0.1:{server.server_port}/", PACE)
    server.is_over.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()


CALLS: dict[str, Callable[[BlobStore], object]] = {
    "read": lambda store: store.get(ASKED, SIZE),
    "read in part": lambda store: store.get_range(ASKED, 5, SIZE // 2, SIZE),
    "written": lambda store: store.put_as(ASKED, bytes(SIZE)),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_object_that_comes_slowly_takes_no_more_than_the_time_allowed(slow: BlobStore, call: str) -> None:
    """Attack: a store that is just fast enough never to be cut off, asked for something large while a clock runs."""
    began = time.monotonic()
    with pytest.raises(StoreSilent), waiting_at_most(0.7) as budget:
        CALLS[call](slow)
    assert budget.left == 0.0
    assert time.monotonic() - began < 3.0


@pytest.mark.parametrize("call", CALLS)
def test_a_folder_on_a_slow_disk_takes_no_more_than_the_time_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    over, store = threading.Event(), open_store(tmp_path / "store", PACE)
    store.put_as(ASKED, b"it is there")

    def slowly(*_: object) -> None:
        over.wait(10.0)

    monkeypatch.setattr(folder, "read_version", slowly)
    monkeypatch.setattr(folder.Folder, "_write", slowly)
    began = time.monotonic()
    with pytest.raises(StoreSilent), waiting_at_most(0.5):
        CALLS[call](store)
    assert time.monotonic() - began < 3.0
    over.set()


def test_a_store_too_slow_for_what_waits_rests_and_one_with_no_time_does_not(slow: BlobStore) -> None:
    """So that a mirror behind it is asked at once the next time."""
    for allowed in (0.1, 0.1, 0.3, 0.6):
        with pytest.raises(StoreSilent, match="no answer"), waiting_at_most(allowed):
            slow.get(ASKED, SIZE)
    with pytest.raises(StoreSilent, match="is not asked for another"):
        slow.get(ASKED, SIZE)


class Large(bytes):
    """An object of 100 GiB, as far as anybody counts it."""

    def __len__(self) -> int:
        return 100 << 30


def test_a_large_object_is_uploaded_in_no_more_parts_than_a_bucket_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 refuses the part after the ten thousandth, when half of a large list had been uploaded."""
    sizes: list[int] = []

    async def put(_: object, __: str, data: object, *, chunk_size: int, **___: object) -> dict[str, str | None]:
        sizes.append(chunk_size)
        return {"e_tag": None}

    monkeypatch.setattr("obstore.put_async", put)
    store = open_store("memory://")
    for data in (Large(), bytes(100)):
        store.put_as(ASKED, data)
    assert [-(-len(data) // size) for data, size in zip((Large(), bytes(100)), sizes, strict=True)] == [10_000, 1]
