"""What somebody reads whose store refuses, is full, or finds that the clock is wrong: what it said, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest
from assay_ledger.store.blobs import BlobStore, StorePace, StoreUnreachable, open_store
from assay_ledger.store.folder import Folder
from tests.harness.buckets import ServedBucket, running_bucket


@pytest.fixture
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


def answering(status: int, code: str, message: str) -> Callable[[BaseHTTPRequestHandler], bool]:
    """Every request is answered by an error in the words of S3."""
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    ).encode()

    def mistreats(handler: BaseHTTPRequestHandler) -> bool:
        handler.reply(status, body)  # type: ignore[attr-defined]
        return True

    return mistreats


CALLS: dict[str, Callable[[BlobStore], object]] = {
    "read": lambda store: store.get(Digest(bytes(32)), 10),
    "written": lambda store: store.put(b"bytes"),
    "listed": lambda store: store.list("lists"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (403, "RequestTimeTooSkewed", "clock"),
        (403, "SignatureDoesNotMatch", "credentials"),
        (400, "ExpiredToken", "new credentials"),
        (403, "QuotaExceeded", "Make room"),
        (507, "XMinioStorageFull", "Make room"),
        (503, "SlowDown", "up"),
    ],
)
def test_what_a_bucket_says_is_shown_with_what_to_do(
    bucket: ServedBucket, monkeypatch: pytest.MonkeyPatch, status: int, code: str, remedy: str, call: str
) -> None:
    """It stood behind the object's address, twice, and was cut off: who reads that checks credentials in vain."""
    monkeypatch.setattr(bucket, "mistreats", answering(status, code, "The server says more."))
    with pytest.raises(UnavailableError, match=code) as raised:
        CALLS[call](open_store("s3://bucket/", StorePace(call_s=5.0)))
    assert "The server says more." in raised.value.message and remedy in str(raised.value.remedy)


def test_a_folder_on_a_full_disk_says_that_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Folder, "_write", full)
    with pytest.raises(StoreUnreachable, match="No space left") as raised:
        open_store(tmp_path / "store").put(b"bytes")
    assert "Make room on the store's disk" in str(raised.value.remedy)
