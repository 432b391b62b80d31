"""What goes wrong around one actor, in front of the real thing: its store, its node, its disk, its clock.

Every fault is drawn from one seed and passes: after some calls, or at a chain time.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from assay.protocol.digests import keccak
from assay_ledger.chain.client import Chain
from assay_ledger.store.blobs import BlobStore, StorePace
from assay_ledger.store.folder import Folder
from assay_ledger.store.interfaces import ObjectVersion
from tests.harness.providers import BODIES, ERRORS, ProviderNode, Reply, Twist, changed, said

CALL_S: Final = 0.4
"""Of a store: what hangs costs so much real time."""

NODE_S: Final = 1.5
"""Of a node, which is one process for everybody and may be slow on a loaded machine."""

SLOW_S: Final = 0.01


class FaultyBackend:
    """The folder of a store, as one actor reaches it: `mode` says how it fails now, None that it does not."""

    def __init__(self, folder: Folder, rng: Random) -> None:
        self._folder, self._rng = folder, rng
        self.mode: str | None = None
        self.failed = 0

    def read(self, path: str, max_bytes: int, seconds: float, bytes_per_s: int) -> tuple[bytes, ObjectVersion]:
        """See Backend."""
        self._fail(seconds)
        if self.mode == "empty":
            self.failed += 1
            raise FileNotFoundError(errno.ENOENT, "gone", path)
        data, version = self._folder.read(path, max_bytes, seconds, bytes_per_s)
        if self.mode == "lies" and data:
            self.failed += 1
            at = self._rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        return data, version

    def write(self, path: str, data: bytes, seconds: float, bytes_per_s: int) -> ObjectVersion:
        """See Backend."""
        self._fail(seconds)
        if self.mode == "full":
            self.failed += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._folder.write(path, data, seconds, bytes_per_s)

    def version(self, path: str, seconds: float) -> ObjectVersion | None:
        """See Backend."""
        self._fail(seconds)
        return None if self.mode == "empty" else self._folder.version(path, seconds)

    def paths(self, prefix: str, after: str, limit: int, seconds: float) -> list[str]:
        """See Backend."""
        self._fail(seconds)
        return [] if self.mode == "empty" else self._folder.paths(prefix, after, limit, seconds)

    def _fail(self, seconds: float) -> None:
        match self.mode:
            case "dark":
                self.failed += 1
                raise ConnectionError("nobody answers")
            case "hangs":
                self.failed += 1
                time.sleep(min(seconds, CALL_S))
                raise TimeoutError("no answer")
            case "slow":
                self.failed += 1
                time.sleep(SLOW_S)


STORE_FAULTS: Final = ("dark", "hangs", "slow", "lies", "empty", "full")


def _behind(blocks: int) -> Twist:
    """The newest block is an older one."""

    def answer(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
        if params[:1] != ["latest"]:
            return None
        newest = int(ask(*params)["number"], 16)
        return said(ask(hex(max(newest - blocks, 0)), *params[1:]))

    return answer


def _ahead(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
    """The newest block is one that nobody has."""
    if params[:1] != ["latest"]:
        return None
    block = ask(*params)
    return said(block | {"number": hex(int(block["number"], 16) + 3), "hash": "0x" + "ab" * 32})


def _hangs(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
    time.sleep(NODE_S * 1.2)
    return None


def _loses(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
    """A transaction is taken, and never seen again."""
    return said("0x" + keccak(bytes.fromhex(params[0][2:])).hex())


_HEAD: Final = ("eth_getBlockByNumber",)
NODE_FAULTS: Final[dict[str, tuple[Twist | Reply, tuple[str, ...], int]]] = {
    **{name: (body, (), 3) for name, body in BODIES.items()},
    **{name: (error, (), 3) for name, error in ERRORS.items()},
    "hangs": (_hangs, (), 2),
    "two blocks behind": (_behind(2), _HEAD, 6),
    "fifty blocks behind": (_behind(50), _HEAD, 4),
    "ahead of everybody": (_ahead, _HEAD, 3),
    "loses transactions": (_loses, ("eth_sendRawTransaction",), 1),
    "no gas price": (changed(lambda _: None), ("eth_feeHistory",), 2),
}
"""What is answered, to which methods (any, unless named), and so many times at most."""


@dataclass
class SkewedClock:
    """Seconds that never run back, at a rate that is wrong, and that leap."""

    now: Callable[[], float]
    rate: float = 1.0
    leapt: float = 0.0

    def __call__(self) -> float:
        return self.now() * self.rate + self.leapt


class Surroundings:
    """One actor's own store, node and clock."""

    def __init__(
        self, url: str, folder: Folder, rng: Random, now: Callable[[], float], told: Callable[[str], None]
    ) -> None:
        """`url` is the real node's, `folder` the real store's, `now` chain time; `told` of what goes wrong."""
        self.rng, self._told = rng, told
        self.clock = SkewedClock(now, rate=rng.choice((0.5, 1.0, 1.0, 2.0)))
        self.backend = FaultyBackend(folder, rng)
        self.store = BlobStore(self.backend, "the store", StorePace(call_s=CALL_S), clock=self.clock)
        self.node = ProviderNode(url)
        self.chain = Chain(self.node.url, retry_for_s=0.2, timeout_s=NODE_S, receipt_for_s=NODE_S)
        self.ends_at: float | None = None
        """Chain time at which the store works again."""
        self.outages: list[tuple[float, float]] = []
        """When it did not answer as it should, in chain time; slow is no outage."""
        self._struck_at = 0.0
        self.counts: dict[str, int] = {}

    def strike(self) -> None:
        """Something goes wrong from now on."""
        kind = self.rng.choice(("store", "node", "node", "clock"))
        if kind == "store":
            self._note_outage()
            self.backend.mode = self.rng.choice(STORE_FAULTS)
            self._struck_at = self.clock.now()
            self.ends_at = self._struck_at + self.rng.choice((1, 20, 60))
            self._count(f"store {self.backend.mode}", f"until {self.ends_at:.0f}")
        elif kind == "node":
            name = self.rng.choice(sorted(NODE_FAULTS))
            answer, methods, most = NODE_FAULTS[name]
            calls = self.rng.randint(1, most)
            self.node.turn(answer, calls, methods)
            self._count(f"node: {name}", f"{calls} calls")
        else:
            leap = self.rng.choice((1.0, 60.0, 3600.0))
            self.clock.leapt += leap
            self._count("clock leaps", f"{leap:.0f} s")

    def heal(self, now: float) -> None:
        """What has passed by a chain time is over."""
        if self.ends_at is not None and now >= self.ends_at:
            self._note_outage()
            self.backend.mode, self.ends_at = None, None

    def close(self) -> None:
        """Ends the proxy."""
        self.node.close()

    def _note_outage(self) -> None:
        if self.ends_at is not None and self.backend.mode != "slow":
            self.outages.append((self._struck_at, self.clock.now()))

    def _count(self, name: str, how: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        self._told(f"{name}, {how}")
