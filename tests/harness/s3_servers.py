"""Servers of S3 that others wrote, as processes of their own: moto's, and Swift with its S3 interface from Debian."""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

START_S: Final = 60.0
SWIFT: Final = ("account", "container", "object", "proxy")

_SERVER: Final = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {folder}
devices = {folder}/srv
mount_check = false
[pipeline:main]
pipeline = {pipeline}
[app:{app}]
use = egg:swift#{kind}
account_autocreate = true
allow_account_management = true
"""
_FILTERS: Final = """[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
"""


def has_swift() -> bool:
    """Whether Swift is installed here (Debian: swift-proxy, swift-account, swift-container, swift-object)."""
    return (
        all(shutil.which(f"swift-{kind}-server") for kind in SWIFT) and shutil.which("swift-ring-builder") is not None
    )


@contextmanager
def running_moto(folder: Path) -> Iterator[None]:
    """moto's server with a bucket `assay`, which `open_store("s3://assay/")` finds while the block runs."""
    port = _free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, folder / "moto.log", port), _credentials(port, "tests", "tests"):
        yield


@contextmanager
def running_swift(folder: Path) -> Iterator[None]:
    """Swift's four servers with one device, and the same bucket."""
    user, ports = os.environ.get("USER", "root"), {kind: _free_port() for kind in SWIFT}
    (folder / "srv" / "d1").mkdir(parents=True)
    (folder / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = a\nswift_hash_path_prefix = b\n"
        "[storage-policy:0]\nname = p0\ndefault = yes\n"
    )
    with ExitStack() as servers:
        for kind in SWIFT:
            pipeline = "cache s3api tempauth proxy-server" if kind == "proxy" else f"{kind}-server"
            settings = {"port": ports[kind], "user": user, "folder": folder, "kind": kind, "app": f"{kind}-server"}
            text = _SERVER.format(pipeline=pipeline, **settings) + (_FILTERS if kind == "proxy" else "")
            (folder / f"{kind}.conf").write_text(text)
            if kind != "proxy":
                place = f"r1z1-127.0.0.1:{ports[kind]}/d1"
                for words in (["create", "4", "1", "0"], ["add", place, "1"], ["rebalance"]):
                    ring = ["swift-ring-builder", f"{kind}.builder", *words]
                    subprocess.run(ring, cwd=folder, check=True, capture_output=True)
            command = [f"swift-{kind}-server", str(folder / f"{kind}.conf")]
            servers.enter_context(_running(command, folder / f"{kind}.log", ports[kind]))
        with _credentials(ports["proxy"], "test:tester", "testing"):
            yield


@contextmanager
def _running(command: list[str], log: Path, port: int) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            until = time.monotonic() + START_S
            while not _answers(port):
                assert process.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def _credentials(port: int, key: str, secret: str) -> Iterator[None]:
    url = f"http://127.0.0.1:{port}"
    wanted = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
    }
    proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"))
    before = {name: os.environ.get(name) for name in (*wanted, *proxies)}
    _set({**wanted, **proxies})
    try:
        _make_bucket(url, key, secret)
        yield
    finally:
        _set(before)


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _make_bucket(url: str, key: str, secret: str) -> None:
    """PUT of a bucket, signed by version 4 of Amazon's rules."""
    now, empty = datetime.now(UTC), hashlib.sha256(b"").hexdigest()
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    host, scope = url.removeprefix("http://"), f"{day}/us-east-1/s3/aws4_request"
    signed = "host;x-amz-content-sha256;x-amz-date"
    head = f"host:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{stamp}\n"
    asked = hashlib.sha256(f"PUT\n/assay\n\n{head}\n{signed}\n{empty}".encode()).hexdigest()
    sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{asked}".encode()
    secret_now = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        secret_now = hmac.digest(secret_now, part.encode(), "sha256")
    proof = hmac.digest(secret_now, sign, "sha256").hex()
    request = urllib.request.Request(f"{url}/assay", data=b"", method="PUT")
    request.add_header("x-amz-content-sha256", empty)
    request.add_header("x-amz-date", stamp)
    request.add_header(
        "Authorization", f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={signed}, Signature={proof}"
    )
    with urllib.request.urlopen(request, timeout=START_S) as answer:
        assert answer.status == 200


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
