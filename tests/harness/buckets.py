"""A small S3 in this process, honest or hostile in every way that a server can be.

`answer` may replace the reply to a GET of an object; `hostility` is what happens to requests whose path contains
`victims`: it never answers, sends headers and no body, drips a byte at a time, or answers with garbage.
"""

from __future__ import annotations

import bisect
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse
from xml.sax.saxutils import escape

PAGE = 1000
"""Keys of a page of a listing, as S3 has it."""

EPOCH_S = 1_704_067_200
SOON_S = 20.0
"""Far below any clock of the protocol, far above what a loaded machine adds."""

HOSTILITIES = ("hangs", "headers only", "drips", "garbage", "closes")


class ServedBucket:
    """What it holds, and how it lies. `drip_s` is the time between two bytes."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.written: dict[str, int] = {}
        """When, in seconds: each object that is put comes a second after the one before."""

        self.answer: Callable[[BaseHTTPRequestHandler, bytes], None] | None = None
        self.status = 200
        self.hostility: str | None = None
        self.victims = ""
        self.drip_s = 0.2
        self.requests = 0
        self.uploads: dict[str, dict[int, bytes]] = {}
        """Parts that have come, by upload."""

        self.part_s = 0.0
        """How long it takes a part."""

        self.part_bytes = 0
        """Of all parts that have come."""

        self.listed: set[str] = set()
        self.keys: list[str] = []
        self._over = threading.Event()
        bucket = self

        class BucketHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def reply(self, status: int, body: bytes = b"", of: bytes | None = None) -> None:
                key = urlparse(self.path).path.removeprefix("/bucket/")
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", f'"{md5(body if of is None else of).hexdigest()}"')
                self.send_header("Last-Modified", formatdate(EPOCH_S + bucket.written.get(key, 0), usegmt=True))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bucket.requests += 1
                if bucket.mistreats(self):
                    return
                part = parse_qs(urlparse(self.path).query)
                if "partNumber" in part:
                    bucket._over.wait(bucket.part_s)
                    bucket.part_bytes += len(body)
                    bucket.uploads[part["uploadId"][0]][int(part["partNumber"][0])] = body
                elif bucket.status == 200:
                    bucket.put(urlparse(self.path).path.removeprefix("/bucket/"), body)
                self.reply(bucket.status, of=body)

            def do_POST(self) -> None:
                """Begins an upload in parts, or ends it."""
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                bucket.requests += 1
                url = urlparse(self.path)
                if bucket.mistreats(self):
                    return
                if (upload := parse_qs(url.query).get("uploadId", [""])[0]) in bucket.uploads:
                    whole = b"".join(part for _, part in sorted(bucket.uploads.pop(upload).items()))
                    bucket.put(url.path.removeprefix("/bucket/"), whole)
                    tag = f"&quot;{md5(whole).hexdigest()}&quot;"
                    self.reply(
                        200,
                        f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>".encode(),
                    )
                else:
                    upload = f"upload-{bucket.requests}"
                    bucket.uploads[upload] = {}
                    begun = f"<UploadId>{upload}</UploadId>"
                    self.reply(200, f"<InitiateMultipartUploadResult>{begun}</InitiateMultipartUploadResult>".encode())

            def do_GET(self) -> None:
                bucket.requests += 1
                url = urlparse(self.path)
                key = url.path.removeprefix("/bucket/")
                if bucket.mistreats(self):
                    return
                if bucket.status != 200:
                    self.reply(bucket.status)
                elif "list-type" in url.query:
                    self.reply(200, bucket.page(parse_qs(url.query)))
                elif key not in bucket.objects:
                    self.reply(404)
                elif bucket.answer is not None:
                    bucket.answer(self, bucket.objects[key])
                else:
                    self.reply(200, bucket.objects[key])

            do_HEAD = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), BucketHandler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def put(self, key: str, body: bytes) -> None:
        """A party that may write puts whatever it likes."""
        if key not in self.objects:
            bisect.insort(self.keys, key)
        self.objects[key] = body
        self.written[key] = max(self.written.values(), default=0) + 1

    def page(self, query: dict[str, list[str]]) -> bytes:
        """A page of keys in order, as ListObjectsV2 gives it."""
        prefix = query.get("prefix", [""])[0]
        self.listed.add(prefix.strip("/"))
        last = max(query.get("start-after", [""])[0], query.get("continuation-token", [""])[0])
        start = max(bisect.bisect_left(self.keys, prefix), bisect.bisect_right(self.keys, last))
        keys = []
        for key in self.keys[start:]:
            if not key.startswith(prefix) or len(keys) > PAGE:
                break
            keys.append(key)
        more = len(keys) > PAGE
        entries = "".join(
            f"<Contents><Key>{escape(k)}</Key><Size>{len(self.objects[k])}</Size><ETag>t</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for k in keys[:PAGE]
        )
        token = f"<NextContinuationToken>{keys[PAGE - 1]}</NextContinuationToken>" if more else ""
        flag = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        return f"<ListBucketResult>{entries}{flag}{token}</ListBucketResult>".encode()

    def mistreats(self, handler: BaseHTTPRequestHandler) -> bool:
        """Does to a request what the hostility says, until the connection or the bucket ends; False for none."""
        if self.hostility is None or self.victims not in handler.path:
            return False
        handler.close_connection = True
        head = b'HTTP/1.1 200 OK\r\nContent-Length: 10000\r\nETag: "t"\r\n'
        head += b"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n"
        with suppress(OSError):
            match self.hostility:
                case "hangs":
                    self._over.wait()
                case "headers only":
                    handler.wfile.write(head)
                    self._over.wait()
                case "drips":
                    handler.wfile.write(head)
                    while not self._over.wait(self.drip_s):
                        handler.wfile.write(b"x")
                case "garbage":
                    handler.wfile.write(b"\x00" * 100)
                case "closes":
                    pass
        return True

    def close(self) -> None:
        """Lets go of every connection."""
        self._over.set()
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def running_bucket() -> Iterator[ServedBucket]:
    """A bucket that `open_store("s3://bucket/")` finds while the block runs."""
    bucket = ServedBucket()
    settings = {
        "AWS_ENDPOINT_URL": bucket.url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
    }
    proxies = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    before = {name: os.environ.get(name) for name in (*settings, *proxies)}
    os.environ.update(settings)
    for name in proxies:
        os.environ.pop(name, None)
    try:
        yield bucket
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        bucket.close()


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Does it come true within so many seconds?"""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@contextmanager
def soon(seconds: float = SOON_S) -> Iterator[None]:
    """The block takes seconds at most."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds
