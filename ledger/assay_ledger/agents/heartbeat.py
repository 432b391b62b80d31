"""Heartbeats: what an actor is doing, signed, in a slot of the run's store. Advice for scheduling, never evidence.

The process that moves chain time reads them: time moves only when every live actor is idle at the present head, to the
earliest deadline that one of them waits for. Silent for DEAD_AFTER_S means dead, which costs nothing on chain.
Source: docs/adr/0007-actors.md.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from eth_account import Account
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Address
from assay_ledger.deadline import waiting_at_most
from assay_ledger.json_input import parse_json
from assay_ledger.keys.signing import GrantedSpeaker, grant_text
from assay_ledger.store.blobs import SlotStore, StoreUnreachable

SLOT: Final = "actors"
EVERY_S: Final = 2.0
"""A heartbeat is renewed at least so often."""

DEAD_AFTER_S: Final = 6.0
"""Without a new heartbeat for so long an actor counts as dead."""

WRITE_S: Final = 2.0
"""How long a heartbeat waits for the store; then the next one says more."""

READ_S: Final = 4.0
"""How long a reader waits for all heartbeats together."""

MAX_BYTES: Final = 4096
MAX_STRANGERS: Final = 256
"""Slots that are looked at beside those of known actors: anybody may write any number."""
DECODED_KEPT: Final = 512
"""Messages that are not decoded again: more than one look at MAX_STRANGERS and a full run's known actors reads anew."""
_VERSION: Final = 1


class Activity(StrEnum):
    """What an actor says of itself."""

    BUSY = "busy"
    IDLE = "idle"
    """Nothing to do at this head."""
    DONE = "done"
    """Nothing to do ever again, or leaving."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One signed message. `head` is the block processed, `deadline` the chain time waited for, `counter` only grows."""

    run: Address
    actor: Address
    role: str
    head: int
    activity: Activity
    deadline: int | None
    doing: str
    counter: int

    def encode(self, speaker: LocalAccount | GrantedSpeaker) -> bytes:
        """The message with its signature, and with the grant of an account that lets another key speak for it."""
        body = self._body()
        signature = speaker.sign_message(encode_defunct(body)).signature
        document = {"body": body.decode(), "signature": signature.to_0x_hex()}
        if isinstance(speaker, GrantedSpeaker):
            document["grant"] = "0x" + speaker.grant.hex()
        return json.dumps(document).encode()

    def _body(self) -> bytes:
        document = {
            "version": _VERSION,
            "run": self.run.hex(),
            "actor": self.actor.hex(),
            "role": self.role,
            "head": self.head,
            "activity": self.activity.value,
            "deadline": self.deadline,
            "doing": self.doing,
            "counter": self.counter,
        }
        return json.dumps(document, sort_keys=True).encode()


@lru_cache(DECODED_KEPT)
def decode(data: bytes) -> Heartbeat | None:
    """A heartbeat whose signature is its actor's, or None: anybody may write a slot.

    Readers look far more often than actors write, and to recover a signature takes a millisecond.
    """
    try:
        outer = parse_json(data, max_bytes=MAX_BYTES)
        text, signature = outer["body"], bytes.fromhex(outer["signature"][2:])
        body = parse_json(text.encode(), max_bytes=MAX_BYTES)
        beat = _from_body(body)
        signer = Account.recover_message(encode_defunct(text.encode()), signature=signature)
        if beat is not None and "grant" in outer:
            grant = encode_defunct(text=grant_text(to_checksum_address(beat.actor), signer))
            signer = Account.recover_message(grant, signature=bytes.fromhex(outer["grant"][2:]))
    except Exception:  # eth_keys raises several unrelated classes for a bad signature
        return None
    return beat if beat is not None and bytes.fromhex(signer[2:]) == beat.actor else None


def _from_body(body: dict[str, Any]) -> Heartbeat | None:
    numbers = (body["head"], body["counter"], *([] if body["deadline"] is None else [body["deadline"]]))
    if body["version"] != _VERSION or any(type(n) is not int or not 0 <= n < 1 << 64 for n in numbers):
        return None
    return Heartbeat(
        run=Address(bytes.fromhex(body["run"])),
        actor=Address(bytes.fromhex(body["actor"])),
        role=str(body["role"])[:64],
        head=body["head"],
        activity=Activity(body["activity"]),
        deadline=body["deadline"],
        doing=str(body["doing"])[:200],
        counter=body["counter"],
    )


class HeartbeatWriter:
    """One actor's heartbeats: `report` notes what to write, its thread writes it on a change and every EVERY_S.

    An actor never waits for the store here: a write that hangs ends after WRITE_S, and what was reported meanwhile
    is written at once by the next one. `clock` gives seconds that never run back. Without `beating`, `beat` writes.
    """

    def __init__(
        self,
        slots: SlotStore,
        speaker: LocalAccount | GrantedSpeaker,
        run: Address,
        role: str,
        clock: Callable[[], float],
    ) -> None:
        self._slots, self._account, self._run, self._role, self._clock = slots, speaker, run, role, clock
        self._me = Address(bytes.fromhex(speaker.address[2:]))
        self._name = f"{SLOT}/{self._me.hex()}"
        self._reported: tuple[int, Activity, int | None, str] = (0, Activity.BUSY, None, "starting")
        self._written: tuple[int, Activity, int | None, str] | None = None
        self._last = float("-inf")
        self._counter: int | None = None
        self._changed = threading.Event()

    def report(self, head: int, activity: Activity, deadline: int | None = None, doing: str = "") -> None:
        """What the actor does now; it returns at once."""
        reported = head, activity, deadline, doing
        if reported != self._reported:
            self._reported = reported
            self._changed.set()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Writes heartbeats from a thread during the block, and at its end the last word."""
        ended = threading.Event()

        def keep_beating() -> None:
            while not ended.is_set():
                self._changed.clear()
                self.beat()
                self._changed.wait(EVERY_S / 4)
            self.beat()

        pulse = threading.Thread(target=keep_beating, daemon=True, name="assay-heartbeat")
        pulse.start()
        try:
            yield
        finally:
            ended.set()
            self._changed.set()
            pulse.join(2 * WRITE_S)

    def beat(self) -> None:
        """Writes what was reported last if it is new, or if the last message is old; one thread at a time."""
        now, reported = self._clock(), self._reported
        if reported == self._written and now - self._last < EVERY_S / 2:
            return
        self._last = now
        try:
            with waiting_at_most(WRITE_S):
                self._write(reported)
        except UnavailableError:
            return
        self._written = reported

    def _write(self, reported: tuple[int, Activity, int | None, str]) -> None:
        if self._counter is None:
            # A later life of the same actor goes on counting.
            try:
                previous = decode(self._slots.read_slot(self._name, MAX_BYTES))
            except StoreUnreachable:
                raise
            except UnavailableError:
                previous = None
            self._counter = previous.counter if previous is not None else 0
        self._counter += 1
        beat = Heartbeat(self._run, self._me, self._role, *reported, self._counter)
        self._slots.write_slot(self._name, beat.encode(self._account))


def read_heartbeats(slots: SlotStore, run: Address, known: Iterable[Address] = ()) -> dict[Address, Heartbeat]:
    """The last genuine heartbeats: of the known actors, then of others as far as READ_S and MAX_STRANGERS reach.

    Anybody may fill the store with slots; `known` actors are found whatever else lies there.
    Raises StoreUnreachable, StoreDenied.
    """
    found: dict[Address, Heartbeat] = {}
    names = [f"{SLOT}/{actor.hex()}" for actor in sorted(set(known))]
    with waiting_at_most(READ_S):
        for name in names:
            _note(found, slots, run, name)
        for name in slots.list_slots(SLOT, MAX_STRANGERS + len(names)):
            if name not in names:
                _note(found, slots, run, name)
    return found


def read_every_heartbeat(slots: SlotStore) -> dict[Address, Heartbeat]:
    """The last genuine heartbeat of each actor, of whatever run, as far as READ_S and MAX_STRANGERS reach.

    For a store that only its owner's actors write to. Raises StoreUnreachable, StoreDenied.
    """
    found: dict[Address, Heartbeat] = {}
    with waiting_at_most(READ_S):
        for name in slots.list_slots(SLOT, MAX_STRANGERS):
            beat = _read(slots, name)
            if beat is not None and name == f"{SLOT}/{beat.actor.hex()}":
                found[beat.actor] = beat
    return found


def _note(found: dict[Address, Heartbeat], slots: SlotStore, run: Address, name: str) -> None:
    beat = _read(slots, name)
    # A copy of another actor's message under a wrong name says nothing about anybody.
    if beat is not None and beat.run == run and name == f"{SLOT}/{beat.actor.hex()}":
        found[beat.actor] = beat


def _read(slots: SlotStore, name: str) -> Heartbeat | None:
    try:
        return decode(slots.read_slot(name, MAX_BYTES))
    except UnavailableError:
        return None


class Pulse:
    """Who is alive, judged by the reader's own clock: an actor lives while its counter grows."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[Address, tuple[int, float]] = {}

    def alive(self, beats: dict[Address, Heartbeat]) -> dict[Address, Heartbeat]:
        """Those of the heartbeats whose actors live; one that is seen for the first time counts as alive."""
        now, living = self._clock(), {}
        for actor, beat in sorted(beats.items()):
            counter, since = self._seen.get(actor, (-1, now))
            if beat.counter > counter:
                counter, since = beat.counter, now
            self._seen[actor] = counter, since
            if now - since <= DEAD_AFTER_S:
                living[actor] = beat
        return living


def is_quiet(beats: Iterable[Heartbeat], head: int) -> bool:
    """Whether everybody that is not done is idle at this head: only then may chain time move."""
    waiting = [beat for beat in beats if beat.activity is not Activity.DONE]
    return all(beat.activity is Activity.IDLE and beat.head >= head for beat in waiting)


def is_at_rest(beat: Heartbeat, head: int) -> bool:
    """Whether an actor does nothing at this head and waits for nothing."""
    if beat.activity is Activity.DONE:
        return True
    return beat.activity is Activity.IDLE and beat.head >= head and beat.deadline is None


def earliest_deadline(beats: Iterable[Heartbeat], now: int) -> int | None:
    """The earliest chain time after `now` that an actor waits for; None when none waits."""
    times = [b.deadline for b in beats if b.activity is not Activity.DONE and b.deadline is not None]
    return min((t for t in times if t > now), default=None)
