"""`assay watch` as a process, with a real node and a webhook that first refuses: notices come signed, at least once."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.errors import ConfigError
from assay.watchdog.alarms import Alarm, AlarmKind
from assay.watchdog.told import KNOWN_S, ToldAlarms
from assay.watchdog.webhooks import READS, SEND_S, SIGNATURE, FolderWatched, Webhook, held_folder, signature
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.scraping import free_place, judged, one, wait_until
from tests.harness.actors.shells import SOURCE, ActorShells
from tests.harness.actors.shown import SteppedClock
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER
from tests.harness.commands import assay
from tests.harness.full_disks import writing_nothing

SECRET = b"0123456789abcdef0123456789abcdef"


@dataclass
class TakingHook:
    """A webhook that refuses the first requests, and keeps what it took."""

    refuses: int
    taken: list[dict[str, Any]] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)
    on_taken: Callable[[], object] = lambda: None

    def serve(self) -> ThreadingHTTPServer:
        hook = self

        class HookHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                header = self.headers[SIGNATURE]
                sent_at = int(header.split(",")[0].removeprefix("t="))
                assert header == signature(SECRET, sent_at, body) and abs(sent_at - time.time()) < 60
                hook.seen.append(body)
                refused = len(hook.seen) <= hook.refuses
                if not refused:
                    hook.taken.append(json.loads(body))  # before the answer, after which the next one may come
                    hook.on_taken()
                self.send_response(503 if refused else 204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), HookHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.mark.timeout(150)
def test_what_concerns_an_address_is_posted_signed_and_again_until_it_is_taken(desk: Desk, tmp_path: Path) -> None:
    made = new_whole_run(desk.stage, tmp_path, seats=2, rounds=3)
    shells = ActorShells(desk, made)
    shells.add("sol")
    hook = TakingHook(refuses=2)
    server = hook.serve()
    who = "0x" + shells.people["sol"].hex()
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    words = ["watch", "--webhook", f"http://127.0.0.1:{server.server_port}/hooks/key", "--every", "0.2"]
    words += ["--rpc-url", made.chain.url, "--run", "0x" + made.run.address.hex(), "--address", who]
    words += ["--secret-file", str(tmp_path / "secret"), "--data-dir", str(tmp_path / "watch")]
    words += ["--metrics", (place := free_place())]
    with open("/dev/full", "wb") as full:  # a file of notices whose disk takes nothing more
        watch = subprocess.Popen(
            [sys.executable, "-m", "assay", *words, "--gas-low", str(20 * ETHER), "--json"],
            env=os.environ | {"PYTHONPATH": SOURCE, "ASSAY_CONFIG": "/dev/null"},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(kind: str, state: str) -> dict[str, Any]:
        end = time.monotonic() + 180
        while not (found := [n for n in hook.taken if (n["kind"], n["state"]) == (kind, state)]):
            assert time.monotonic() < end and watch.poll() is None, hook.taken
            time.sleep(0.1)
        return found[0]

    try:
        low = wait_for("gas-low", "raised")
        assert (low["address"], low["figures"]["coin"]) == (who, str(10 * ETHER))
        # Refused twice, and the same notice by its id came a third time.
        assert {json.loads(body)["id"] for body in hook.seen[:3]} == {hook.taken[0]["id"]}
        shown = wait_until(place, lambda found: one(found, "assay_alarms", kind="gas-low", gravity="funds") == 1)
        assert shown["assay_process_info"][0][0]["address"] == who
        assert one(shown, "assay_look_age_seconds") < 60 and judged(place, "/health") == (200, {"alive": True})
        made.chain.transfer(made.stage.sponsor, who, 30 * ETHER)
        assert wait_for("gas-low", "cleared")["id"] != low["id"]
        desk.stage.node.process.send_signal(signal.SIGSTOP)
        wait_for("chain-unreachable", "raised")
        shown = wait_until(place, lambda found: one(found, "assay_alarms", kind="chain-unreachable") == 1)
        assert (one(shown, "assay_alarms", kind="gas-low"), one(shown, "assay_alive")) == (0, 1)
        assert any(has["outcome"] == "unanswered" for has, _ in shown["assay_rpc_requests_total"])
        desk.stage.node.process.send_signal(signal.SIGCONT)
        wait_for("chain-unreachable", "cleared")
    finally:
        desk.stage.node.process.send_signal(signal.SIGCONT)
        watch.send_signal(signal.SIGTERM)
        _, said = watch.communicate(timeout=60)
        server.shutdown()
    assert watch.returncode == 0 and "HTTP 503" in said and "hooks/key" not in said, said
    assert list((tmp_path / "watch").iterdir()) == []


def test_notices_are_posted_in_order_though_the_disk_takes_none_for_a_while(tmp_path: Path) -> None:
    """Attack: a full disk ends the watching, at the moment at which there is most to be said."""
    taking = TakingHook(refuses=0)
    server = taking.serve()
    told: list[str] = []
    hook = Webhook(f"http://127.0.0.1:{server.server_port}/", SECRET, tmp_path / "watch", say=told.append)
    hook.keep({"id": "0" * 64, "n": 0})
    with writing_nothing():
        hook.keep({"id": "1" * 64, "n": 1})
    hook.keep({"id": "2" * 64, "n": 2})
    hook.send()
    hook.keep({"id": "3" * 64, "n": 3})
    hook.send()
    server.shutdown()
    assert [notice["n"] for notice in taking.taken] == [0, 1, 2, 3] and "kept in memory" in told[0]
    assert list((tmp_path / "watch").iterdir()) == []


def test_a_webhook_that_takes_its_time_holds_no_look_up(tmp_path: Path) -> None:
    """What has waited for a webhook that was away goes to it in several looks, each of some seconds."""
    clock, taking = SteppedClock(), TakingHook(refuses=0, on_taken=lambda: clock.forward(SEND_S * 0.6))
    server = taking.serve()
    hook = Webhook(f"http://127.0.0.1:{server.server_port}/", SECRET, tmp_path / "watch", clock=clock)
    for n in range(4):
        hook.keep({"id": str(n) * 64, "n": n})
    with writing_nothing():
        hook.keep({"id": "4" * 64, "n": 4})
    for count in (2, 4, 5):
        hook.send()
        assert [notice["n"] for notice in taking.taken] == [*range(count)]
    server.shutdown()


def alarm_of(kind: AlarmKind) -> dict[Any, Alarm]:
    made = Alarm(kind, "somebody", "it is so", (("share", 0.5),))
    return {made.key: made}


def test_what_ended_while_nobody_watched_is_told_as_ended(tmp_path: Path) -> None:
    """A receiver that opened an incident by a notice would keep it open for ever."""
    path, clock = tmp_path / "told.json", SteppedClock()
    dark, silent, low = map(alarm_of, (AlarmKind.STORE_DARK, AlarmKind.PROCESS_SILENT, AlarmKind.GAS_LOW))
    first = ToldAlarms(path, clock)
    assert len(first.changes(dark | silent | low, is_read=True)) == 3
    first.are_told()
    assert [a.kind for _, a in first.changes(dark | silent, is_read=True)] == [AlarmKind.GAS_LOW]
    first.are_told()
    # It is killed; the process comes back, and the store does not.
    again = ToldAlarms(path, clock)
    assert [(raised, a.kind) for raised, a in again.changes(dark, is_read=True)] == [(True, AlarmKind.STORE_DARK)]
    clock.forward(KNOWN_S)
    assert again.changes(dark, is_read=True) == []
    clock.forward(1)
    assert again.changes(dark, is_read=False) == [], "nothing is known of a run that was not read"
    assert [(raised, a.kind) for raised, a in again.changes(dark, is_read=True)] == [(False, AlarmKind.PROCESS_SILENT)]
    again.are_told()
    assert [(raised, a.kind) for raised, a in again.changes({}, is_read=True)] == [(False, AlarmKind.STORE_DARK)]
    assert path.exists(), "until it was told"
    again.are_told()
    assert not path.exists()


@pytest.mark.parametrize("said", ["", "{}", "[1]", '[{"kind": "none of ours", "about": "", "text": ""}]', "[" * 99])
def test_a_file_of_told_alarms_that_says_nothing_holds_up_nobody(tmp_path: Path, said: str) -> None:
    path, clock = tmp_path / "told.json", SteppedClock()
    path.write_text(said)
    told = ToldAlarms(path, clock)
    with writing_nothing():
        assert len(told.changes(alarm_of(AlarmKind.GAS_LOW), is_read=True)) == 1
    clock.forward(KNOWN_S + 1)
    assert [raised for raised, _ in told.changes({}, is_read=True)] == [False]


def test_a_disk_that_turns_read_only_ends_no_watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a stick is pulled out or remounted, and the watchdog ends when it removes what was taken."""
    taking = TakingHook(refuses=0)
    server = taking.serve()
    told: list[str] = []
    hook = Webhook(f"http://127.0.0.1:{server.server_port}/", SECRET, tmp_path / "watch", say=told.append)

    def refuse(path: Path, *_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    hook.keep({"id": "0" * 64, "n": 0})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        hook.send()
    with monkeypatch.context() as patch:
        for name in ("unlink", "rename"):
            patch.setattr(Path, name, refuse)
        for _ in range(3):
            hook.send()
        hook.keep({"id": "1" * 64, "n": 1})
        hook.send()
        assert hook.waiting() == [] and len(list((tmp_path / "watch").glob("*.json"))) == 1
    hook.keep({"id": "2" * 64, "n": 2})
    hook.send()
    server.shutdown()
    assert [notice["n"] for notice in taking.taken] == [0, 1, 2]
    assert len(told) == 1 and "others wait behind it" in told[0]
    assert list((tmp_path / "watch").glob("*.json")) == []


def test_a_notice_that_cannot_be_read_is_waited_for_and_then_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was raised and cleared must not end as raised."""
    taking = TakingHook(refuses=0)
    server = taking.serve()
    hook = Webhook(f"http://127.0.0.1:{server.server_port}/", SECRET, tmp_path / "watch")
    for n in range(4):
        hook.keep({"id": f"{n:064d}", "n": n})
    bad, read, fails = [hook.waiting()[0]], Path.read_bytes, [0]

    def refuse(path: Path) -> bytes:
        if path in bad:
            fails[0] += 1
            raise OSError(errno.EIO, "Input/output error", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    hook.send()
    assert taking.taken == []
    bad[:] = [hook.waiting()[2]]
    hook.send()
    assert [notice["n"] for notice in taking.taken] == [0, 1]
    while len(taking.taken) < 3:
        hook.send()
    assert [notice["n"] for notice in taking.taken] == [0, 1, 3] and fails[0] == 1 + READS
    server.shutdown()


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be made") as refused:
        Webhook("http://127.0.0.1:1/", SECRET, tmp_path / "file" / "watch")
    assert refused.value.remedy


def test_two_watches_of_one_folder_do_not_post_each_others_notices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: two addresses, a webhook for each, and one folder: a notice went to whichever process looked first."""
    (tmp_path / "secret").write_bytes(SECRET)
    words = ("--webhook", "http://127.0.0.1:1/", "--secret-file", str(tmp_path / "secret"))
    at = ("--rpc-url", "http://127.0.0.1:1", "--run", "0x" + "11" * 20, "--address", "0x" + "22" * 20)
    monkeypatch.setattr("assay.cli.watch.open_round_run", lambda _: pytest.fail("both watch"))
    with held_folder(tmp_path):
        refused = assay(monkeypatch, "watch", *words, *at, "--data-dir", str(tmp_path)).exception
    assert isinstance(refused, FolderWatched) and "--data-dir" in refused.remedy
    with held_folder(tmp_path):  # it is let go
        pass


def test_a_folder_that_cannot_be_read_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a folder that another account made, and the watch ended in a traceback."""
    opened = os.open

    def refuse(path: object, *flags: int, **more: int) -> int:
        if path == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *flags, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("assay.watchdog.webhooks.os.open", refuse)
    with pytest.raises(ConfigError, match="cannot be read") as refused, held_folder(tmp_path):
        pass
    assert refused.value.code == "DataDirUnreadable" and "--data-dir" in refused.value.remedy


def test_files_that_are_no_notices_are_neither_posted_nor_removed(tmp_path: Path) -> None:
    """Attack on oneself: the folder named for notices holds keys."""
    taking = TakingHook(refuses=0)
    server = taking.serve()
    hook = Webhook(f"http://127.0.0.1:{server.server_port}/", SECRET, tmp_path)
    names = ["sol.json", "settings.json", "000000000001-sol.json"]
    for name in names:
        (tmp_path / name).write_text("{}")
    hook.keep({"id": "0" * 64, "n": 0})
    hook.send()
    server.shutdown()
    assert [notice["n"] for notice in taking.taken] == [0]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.parametrize("url", ["hooks.example/assay", "htps://hooks.example/assay", "https:///assay", "https://h:x/"])
def test_an_address_to_which_nothing_can_be_posted_is_refused_at_the_start(tmp_path: Path, url: str) -> None:
    """Whoever sleeps learns of it by the game that nobody told of."""
    with pytest.raises(ConfigError, match="webhook") as refused:
        Webhook(url, SECRET, tmp_path)
    assert refused.value.code == "WebhookUnfit" and "hooks.example" not in refused.value.message
