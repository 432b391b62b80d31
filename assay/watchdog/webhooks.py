"""Notices to webhooks, at least once: kept on disk until they are taken, signed, sent again with growing waits.

A webhook is trusted with nothing: of its answer the status counts, and it has SEND_S seconds.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from assay.protocol.errors import ConfigError
from assay.watchdog.alarms import Alarm
from assay_ledger.chain.node_urls import redacted
from assay_ledger.timed_session import TimedSession

SEND_S: Final = 10.0
FIRST_WAIT_S: Final = 1.0
MOST_WAIT_S: Final = 300.0
MOST_WAITING: Final = 10_000
"""Notices kept for a webhook that is away; beyond it the oldest are dropped, and the next one says how many."""

READS: Final = 10
"""Rounds in which a notice that cannot be read holds up those behind it."""

SIGNATURE: Final = "Assay-Signature"
_NOTICE: Final = re.compile(r"\d{12}-[0-9a-f]{64}\.json")


class FolderWatched(ConfigError):
    """Another watch keeps its notices in this folder, and would be posted them to its own webhook, signed by it."""

    remedy = "Give each watch a --data-dir of its own, or stop the other one."


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """In this block nobody else keeps notices in a folder that is there. Raises FolderWatched, and ConfigError
    (DataDirUnreadable) where this account may not look into it: what waits there would never be sent.

    The folder itself is held: a disk that takes nothing keeps no watch from its start, nor does one without locks.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be read ({error.strerror}): notices that wait there could not be sent.",
            code="DataDirUnreadable",
            remedy="Let this account read and write the folder, or name another one (--data-dir).",
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderWatched(f"Another process keeps its notices in {folder}.") from None
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class WatchedPlace:
    """Whom notices are about: a run and an address, 0x and hex digits."""

    run: str
    address: str


def notice_of(place: WatchedPlace, alarm: Alarm, is_raised: bool, block: int, chain_time: int) -> dict[str, Any]:
    """An alarm as a document. The id is that of this occurrence, however often it is sent.

    Attack by chance: a store that is away twice within one block, or a block that comes twice; under an id that follows
    from what it says, the second notice is one that its receiver has, and drops.
    """
    state = "raised" if is_raised else "cleared"
    return {
        "id": secrets.token_hex(32),
        "kind": str(alarm.kind),
        "state": state,
        "about": alarm.about,
        "text": alarm.text,
        "figures": dict(alarm.figures),
        "run": place.run,
        "address": place.address,
        "block": block,
        "time": chain_time,
    }


def signature(secret: bytes, sent_at: int, body: bytes) -> str:
    """What stands in the header: when it was sent, by this machine's clock, and HMAC-SHA256 of time, dot and body."""
    mac = hmac.new(secret, str(sent_at).encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={sent_at},v1={mac}"


def _is_web(url: str) -> bool:
    """Whether something can be posted there; who answers is another question."""
    with suppress(ValueError):
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    return False


@dataclass
class Webhook:
    """One webhook with what waits for it in `folder`. Times: `clock` never runs back, `wall` is the calendar's.

    Raises ConfigError (WebhookUnfit, WebhookSecretUnfit, DataDirUnwritable).
    """

    url: str
    secret: bytes
    folder: Path
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    say: Callable[[str], None] = lambda _text: None
    _tries: int = 0
    _not_before: float = field(default=float("-inf"))
    _unkept: list[bytes] = field(default_factory=list)
    """What the disk did not take."""
    _done: set[str] = field(default_factory=set)
    """Names of files that the disk does not give up, though nobody is to be sent them any more."""
    _unread: Counter[str] = field(default_factory=Counter)
    """By name of a file, in how many rounds it could not be read."""
    _is_disk_well: bool = True

    def __post_init__(self) -> None:
        # Bad luck: an address without https:// takes no notice ever, and the first one is of a game.
        if not _is_web(self.url):
            raise ConfigError(
                "The webhook is no address that begins with http:// or https://.",
                code="WebhookUnfit",
                remedy="Give all of it: --webhook https://hooks.example/assay.",
            )
        if len(self.secret) < 16:
            raise ConfigError(
                "The webhook's secret has fewer than 16 bytes.",
                code="WebhookSecretUnfit",
                remedy="Make one: `openssl rand -hex 32`.",
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{self.folder} cannot be made ({error.strerror}).",
                code="DataDirUnwritable",
                remedy="Name a folder (--data-dir) on a disk that can be written.",
            ) from None

    def keep(self, notice: Mapping[str, Any]) -> None:
        """On disk before anything is sent; files are sent in the order of their names. Never raises for the disk."""
        waiting = self.waiting()
        for old in waiting[: max(0, len(waiting) + 1 - MOST_WAITING)]:
            self.say("too many notices wait for the webhook: the oldest is dropped")
            self._remove(old)
        files = self._files()
        number = int(files[-1].name.split("-")[0]) + 1 if files else 1
        body = json.dumps(notice, sort_keys=True).encode()
        if self._unkept or not self._is_written(self.folder / f"{number:012d}-{notice['id']}.json", body):
            # In the order in which they came: what is in memory is sent behind what is on disk.
            self._unkept = [*self._unkept[1 - MOST_WAITING :], body]

    def _is_written(self, path: Path, body: bytes) -> bool:
        beside = path.with_suffix(".new")
        try:
            with beside.open("wb") as out:
                out.write(body)
                out.flush()
                os.fsync(out.fileno())
            beside.rename(path)
        except OSError as error:
            self._say_refused("written to", error)
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            return False
        self._is_disk_well = True
        return True

    def _remove(self, path: Path) -> None:
        self._done.add(path.name)
        del self._unread[path.name]
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._say_refused("removed from", error)
            return
        self._done.remove(path.name)
        self._is_disk_well = True

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except OSError as error:
            self._unread[path.name] += 1
            self._say_refused("read in", error, "it is tried again, and others wait behind it")
            return None

    def _say_refused(self, what: str, error: OSError, then: str = "what comes is kept in memory") -> None:
        """Once until something is written or removed again."""
        if self._is_disk_well:
            self.say(f"a notice cannot be {what} {self.folder} ({error.strerror}): {then}")
        self._is_disk_well = False

    def waiting(self) -> list[Path]:
        """What was not taken yet, the oldest first."""
        return [path for path in self._files() if path.name not in self._done]

    def _files(self) -> list[Path]:
        """Attack on oneself: a folder that holds other files, keys say, which would be posted and removed."""
        try:
            return sorted(path for path in self.folder.glob("*.json") if _NOTICE.fullmatch(path.name))
        except OSError as error:
            self._say_refused("read in", error)
            return []

    def send(self) -> None:
        """Sends what waits, in order, until one is not taken; then nothing before its wait is over. Never raises for
        the disk: what cannot be removed is sent once, what cannot be read READS times lets others go first.

        Begins none after SEND_S: whoever sends has more to look at, however slowly a webhook takes what waits.
        """
        if self.clock() < self._not_before:
            return
        until = self.clock() + SEND_S
        for path in self._files():
            if self.clock() > until:
                return
            if path.name not in self._done:
                body = self._read(path)
                if body is None and self._unread[path.name] < READS:
                    return
                if body is None:
                    continue
                if not self._is_taken(body):
                    return
            self._remove(path)
        while self._unkept and self.clock() <= until:
            if not self._is_taken(self._unkept[0]):
                return
            self._unkept = self._unkept[1:]

    def _is_taken(self, body: bytes) -> bool:
        why = self._post(body)
        if why is None:
            self._tries = 0
            return True
        self._tries += 1
        wait = min(FIRST_WAIT_S * 2 ** min(self._tries - 1, 16), MOST_WAIT_S)
        self._not_before = self.clock() + wait
        self.say(f"the webhook at {redacted(self.url)} did not take a notice ({why}); again in {wait:g} s")
        return False

    def _post(self, body: bytes) -> str | None:
        sent_at = int(self.wall())
        headers = {"Content-Type": "application/json", SIGNATURE: signature(self.secret, sent_at, body)}
        try:
            with TimedSession(SEND_S, 1 << 16) as session:
                answer = session.post(self.url, data=body, headers=headers, allow_redirects=False)
        except (requests.RequestException, OSError, ValueError) as error:
            return type(error).__name__
        return None if 200 <= answer.status_code < 300 else f"HTTP {answer.status_code}"
