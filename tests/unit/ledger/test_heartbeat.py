"""Heartbeats: signed, renewed, and believed only as advice."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.messages import SignableMessage, encode_defunct
from eth_account.signers.local import LocalAccount

from assay.protocol.types import Address
from assay_ledger.agents.heartbeat import (
    DEAD_AFTER_S,
    EVERY_S,
    Activity,
    Heartbeat,
    HeartbeatWriter,
    Pulse,
    decode,
    earliest_deadline,
    is_quiet,
    read_heartbeats,
)
from assay_ledger.store.blobs import BlobStore, StoreSilent, open_store
from tests.harness.buckets import eventually, soon
from tests.harness.clocks import MovedClock

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

RUN = Address(b"r" * 20)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol" / "store.md"


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return open_store(tmp_path)


def beat(account: object, **changes: object) -> Heartbeat:
    values = {
        "run": RUN,
        "actor": Address(bytes.fromhex(account.address[2:])),  # type: ignore[attr-defined]
        "role": "solver",
        "head": 7,
        "activity": Activity.IDLE,
        "deadline": 1000,
        "doing": "waiting",
        "counter": 3,
    }
    return Heartbeat(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("is_granted", [False, True], ids=["own key", "granted key"])
def test_what_other_programs_sign_by_the_page_is_heard(is_granted: bool) -> None:
    actor, key = Account.create(), Account.create()
    said = {"version": 1, "run": RUN.hex(), "actor": actor.address[2:].lower(), "role": "solver", "head": 7}
    text = json.dumps({**said, "activity": "idle", "deadline": 1000, "doing": "waiting", "counter": 3})
    template = re.search(r'EIP-191 over "(assay: KEY [^"]+)"', " ".join(PAGE.read_text(encoding="utf-8").split()))
    assert template is not None
    grant = encode_defunct(text=template[1].replace("KEY", key.address).replace("ACTOR", actor.address))

    def signed(by: LocalAccount, message: SignableMessage) -> str:
        return "0x" + bytes(by.sign_message(message).signature).hex()

    document = {"body": text, "signature": signed(key if is_granted else actor, encode_defunct(text=text))}
    assert decode(json.dumps(document).encode()) == (None if is_granted else beat(actor))
    document["grant"] = signed(actor, grant)
    assert decode(json.dumps(document).encode()) == (beat(actor) if is_granted else None)


def test_a_heartbeat_is_read_back_as_it_was_written() -> None:
    account = Account.create()
    reported = beat(account)
    assert decode(reported.encode(account)) == reported
    assert decode(beat(account, deadline=None).encode(account)) == beat(account, deadline=None)


def test_another_key_does_not_speak_for_an_actor() -> None:
    account, stranger = Account.create(), Account.create()
    assert decode(beat(account).encode(stranger)) is None


def test_every_altered_byte_of_the_body_is_noticed() -> None:
    account = Account.create()
    document = json.loads(beat(account).encode(account))
    for i in range(len(document["body"])):
        altered = document["body"][:i] + chr(ord(document["body"][i]) ^ 1) + document["body"][i + 1 :]
        assert decode(json.dumps({**document, "body": altered}).encode()) is None


@pytest.mark.parametrize("junk", [b"", b"{}", b"[1]", b'{"body": 1, "signature": 2}', b"[" * 100_000, b"\xff"])
def test_junk_is_nobodys_heartbeat(junk: bytes) -> None:
    assert decode(junk) is None


def test_a_writer_of_heartbeats_writes_what_is_new_and_renews_what_is_old(store: BlobStore) -> None:
    clock, account = MovedClock(100.0), Account.create()
    heartbeat_writer = HeartbeatWriter(store, account, RUN, "verifier", clock)

    def reported(heartbeat_writer: HeartbeatWriter, *words: object) -> Heartbeat:
        heartbeat_writer.report(*words)  # type: ignore[arg-type]
        heartbeat_writer.beat()
        return read_heartbeats(store, RUN)[me]

    me = Address(bytes.fromhex(account.address[2:]))
    first = reported(heartbeat_writer, 5, Activity.BUSY, None, "replaying")
    assert (first.head, first.activity, first.doing, first.role) == (5, Activity.BUSY, "replaying", "verifier")
    assert reported(heartbeat_writer, 5, Activity.BUSY, None, "replaying") == first
    clock.now += EVERY_S
    assert reported(heartbeat_writer, 5, Activity.BUSY, None, "replaying").counter == first.counter + 1
    # A later life of the same actor goes on counting.
    assert (
        reported(HeartbeatWriter(store, account, RUN, "verifier", clock), 9, Activity.IDLE, 50).counter
        == first.counter + 2
    )


def test_a_heartbeat_under_another_name_or_of_another_run_is_passed_over(store: BlobStore) -> None:
    account = Account.create()
    store.write_slot("actors/" + "00" * 20, beat(account).encode(account))
    store.write_slot("actors/" + account.address[2:].lower(), beat(account, run=Address(b"x" * 20)).encode(account))
    assert read_heartbeats(store, RUN) == {}


def test_an_actor_lives_while_its_counter_grows() -> None:
    clock, account = MovedClock(100.0), Account.create()
    pulse, reported = Pulse(clock), beat(account)
    assert pulse.alive({reported.actor: reported})
    clock.now += DEAD_AFTER_S
    assert pulse.alive({reported.actor: reported})
    clock.now += 0.1
    assert not pulse.alive({reported.actor: reported})
    assert pulse.alive({reported.actor: beat(account, counter=4)})


def test_time_moves_to_the_earliest_deadline_once_everybody_is_idle_at_the_head() -> None:
    account = Account.create()
    idle = [beat(account, deadline=900), beat(account, deadline=None), beat(account, deadline=1200)]
    assert is_quiet(idle, head=7) and earliest_deadline(idle, now=500) == 900
    assert earliest_deadline(idle, now=900) == 1200
    assert not is_quiet([*idle, beat(account, activity=Activity.BUSY)], head=7)
    assert not is_quiet(idle, head=8)
    gone = beat(account, activity=Activity.DONE, head=1, deadline=600)
    assert is_quiet([*idle, gone], head=7) and earliest_deadline([*idle, gone], now=500) == 900


def test_a_report_never_waits_for_a_hanging_store_and_is_written_once_it_answers(store: BlobStore) -> None:
    account, gate, asked = Account.create(), threading.Event(), threading.Event()
    me = Address(bytes.fromhex(account.address[2:]))

    class Hanging:
        def __getattr__(self, name: str) -> object:
            asked.set()
            gate.wait(60)
            return getattr(store, name)

    heartbeat_writer = HeartbeatWriter(Hanging(), account, RUN, "solver", time.monotonic)  # type: ignore[arg-type]
    with heartbeat_writer.beating():
        assert asked.wait(60)
        start = time.monotonic()
        try:
            for head in range(100):
                heartbeat_writer.report(head, Activity.BUSY, None, "moving")
                assert time.monotonic() - start < 30, "the store answers after a minute"
        finally:
            gate.set()
        assert eventually(lambda: read_heartbeats(store, RUN).get(me, beat(account, head=0)).head == 99)
        heartbeat_writer.report(100, Activity.DONE)
    # The last word is written before the writer stops.
    assert read_heartbeats(store, RUN)[me].activity is Activity.DONE


def test_a_writer_of_heartbeats_ends_though_its_store_never_answers() -> None:
    gate = threading.Event()

    class SilentStore:
        def __getattr__(self, name: str) -> object:
            gate.wait(60)
            raise StoreSilent("never")

    before = set(threading.enumerate())
    with soon(10.0), HeartbeatWriter(SilentStore(), Account.create(), RUN, "solver", time.monotonic).beating():  # type: ignore[arg-type]
        (pulse,) = (t for t in threading.enumerate() if t.name == "assay-heartbeat" and t not in before)
    # What still hangs dies with the process; here it must not outlive its test.
    assert pulse.daemon and pulse.is_alive()
    gate.set()
    pulse.join(10.0)
    assert not pulse.is_alive()


def test_any_number_of_junk_slots_hides_nobody_who_takes_part(tmp_path: Path, store: BlobStore) -> None:
    accounts = [Account.create() for _ in range(3)]
    for account in accounts:
        store.write_slot("actors/" + account.address[2:].lower(), beat(account).encode(account))
    for k in range(600):
        (tmp_path / "slots" / "actors" / f"{k:040x}").write_bytes(b"junk")
    participants = {Address(bytes.fromhex(account.address[2:])) for account in accounts}
    assert read_heartbeats(store, RUN) == {}
    assert read_heartbeats(store, RUN, participants).keys() == participants


def test_a_slot_that_is_a_fifo_is_nobodys_heartbeat(tmp_path: Path, store: BlobStore) -> None:
    account = Account.create()
    store.write_slot("actors/" + account.address[2:].lower(), beat(account).encode(account))
    for k in range(100):
        os.mkfifo(tmp_path / "slots" / "actors" / f"{k:040x}")
    assert len(read_heartbeats(store, RUN, [Address(bytes.fromhex(f"{k:040x}")) for k in range(5)])) == 1
