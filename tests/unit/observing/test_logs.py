"""Log lines: documents with what they are about, plain ones for people, and no secret in either, however it is put."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from starlette.types import Receive, Scope, Send

from assay.observing import logs
from assay.protocol.errors import UnavailableError
from assay.web.connection import server_config


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """All that a test configured, bound or hid is forgotten after it."""
    yield
    logs.configure(logs.PLAIN, lambda _: None)
    logging.getLogger().handlers = [h for h in logging.getLogger().handlers if not isinstance(h, logs._Lines)]
    for known in (logs._bound, logs._secrets, logs._urls):
        known.clear()


@pytest.fixture
def lines(forgotten: None) -> list[str]:
    """What was written, but by the writer of a mirror: a store that hung in an earlier test is tried on and on."""
    written: list[str] = []
    logs.configure(
        logs.JSON, lambda line: None if threading.current_thread().name == "assay-mirror" else written.append(line)
    )
    return written


def documents(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


LOG = logging.getLogger("assay.agent")

HOSTILE = {
    "password": "https://user:hunter22@node.example:8545/",
    "key in path": "https://mainnet.node.example/v3/0123456789abcdef0123456789abcdef",
    "key in query": "wss://node.example/ws?apikey=sekretsekret&x=1",
    "key in fragment": "https://node.example/#sekretsekret",
    "at in password": "https://user:p@ss@wordword@node.example/",
    "space in password": "https://user:hunter22 and more@node.example/",
    "escaped": "https://user:hunter%2022@node.example/",
    "port is no number": "https://user:hunter22@node.example:port/key/sekretsekret",
    "open bracket": "https://user:hunter22@[::1/v3/sekretsekret",
    "upper case": "HTTPS://user:hunter22@NODE.example/V3/sekretsekret",
}
SECRETS = ("hunter22", "hunter 22", "hunter%2022", "sekretsekret", "0123456789abcdef", "wordword", "and more@")


@pytest.mark.parametrize("url", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("how", ["message", "argument", "field", "nested", "bare part", "exception"])
def test_nothing_of_a_url_that_may_be_a_key_is_logged(lines: list[str], url: str, how: str) -> None:
    logs.hide_url(url)
    match how:
        case "message":
            LOG.warning(f"no answer from {url} in time")
        case "argument":
            LOG.warning("no answer from %s", url)
        case "field":
            LOG.warning("no answer", extra={"node": url})
        case "nested":
            structlog.get_logger("assay.agent").warning("no answer", about={"nodes": [url, (url,)], url: 1})
        case "bare part":
            LOG.warning("the node says: %s is over its limit", url.partition("://")[2])
        case "exception":
            try:
                raise ValueError(f"cannot open '{url}'")
            except ValueError:
                LOG.exception("failed")
    (line,) = lines
    assert not [secret for secret in SECRETS if secret in line], line


@pytest.mark.parametrize("url", ("http://127.0.0.1:8545", "https://node.example:8545/"))
def test_a_url_without_keys_says_in_a_line_which_node_is_meant(lines: list[str], url: str) -> None:
    """Of two nodes that contradict each other one is asked no more: an operator must know which."""
    logs.hide_url(url)
    LOG.error("the node at %s is asked no more", url.rstrip("/"))
    (line,) = lines
    assert f"the node at {url.rstrip('/')} is asked no more" in line


def test_plain_lines_say_where_an_error_came_from_too() -> None:
    """Whoever is told that a gateway's batch failed finds in its log what did."""
    written: list[str] = []
    logs.configure(logs.PLAIN, written.append)
    try:
        raise ValueError("no such row")
    except ValueError:
        LOG.exception("the batch ends")
    (line,) = [line for line in written if "batch" in line]
    assert line.startswith("the batch ends\n  Traceback") and line.endswith("\n  ValueError: no such row")


@pytest.mark.parametrize("form", (logs.PLAIN, logs.JSON))
def test_a_long_traceback_still_names_its_error(form: str) -> None:
    written: list[str] = []
    logs.configure(form, written.append)

    def deep(left: int) -> None:
        if not left:
            raise ValueError("no such row")
        (deep if left % 2 else other)(left - 1)

    def other(left: int) -> None:
        deep(left)

    try:
        deep(60)
    except ValueError:
        LOG.exception("the batch ends")
    (line,) = [line for line in written if "batch" in line]
    assert 4000 < len(line) < 5000 and "Traceback" in line and "ValueError: no such row" in line


def test_what_a_server_says_is_a_line_of_the_log(lines: list[str]) -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        return

    server_config(app, ending_s=1)
    said = logging.getLogger("uvicorn.error")
    said.info("Started server process")
    said.error("ASGI callable returned without starting response.")
    (found,) = [line for line in documents(lines) if line["logger"] == "uvicorn.error"]
    assert found["level"] == "error"


def test_a_url_that_nobody_named_before_keeps_scheme_host_and_port_alone(lines: list[str]) -> None:
    LOG.warning("two: http://a:b@one.example:1/x?key=1 and (https://two.example/v3/abc).")
    assert documents(lines)[0]["event"] == "two: http://one.example:1/... and (https://two.example/..."


def test_passwords_are_taken_out_by_their_value_and_by_their_name(lines: list[str]) -> None:
    logs.hide("correct horse")
    LOG.warning("unlocked with correct horse", extra={"password": "other", "about": {"api_key": "k", "fine": 1}})
    (found,) = documents(lines)
    assert found["event"] == "unlocked with ..." and found["password"] == "..."
    assert found["about"] == {"api_key": "...", "fine": 1}


def test_a_document_names_run_role_level_time_and_what_the_action_is_about(lines: list[str]) -> None:
    logs.bind(run="0xabc", role="solver")
    with structlog.contextvars.bound_contextvars(action="Play", game=3):
        LOG.info("moved", extra={"transaction": "0x12"})
    LOG.info("rests")
    first, second = documents(lines)
    assert {first[k] for k in ("run", "role", "action", "level", "logger")} == {
        *("0xabc", "solver", "Play", "info", "assay.agent"),
    }
    assert first["game"] == 3 and first["transaction"] == "0x12" and first["timestamp"].endswith("Z")
    assert "game" not in second and second["run"] == "0xabc"


def test_another_thread_has_the_run_and_not_the_action(lines: list[str]) -> None:
    logs.bind(run="0xabc")
    with structlog.contextvars.bound_contextvars(game=3):
        other = threading.Thread(target=lambda: LOG.info("beats"))
        other.start()
        other.join()
    (found,) = documents(lines)
    assert found["run"] == "0xabc" and "game" not in found


def test_a_line_end_or_an_escape_in_a_strangers_words_stays_inside_its_line(lines: list[str]) -> None:
    LOG.warning('a name:\n{"event": "forged"}\x1b[2J\u2028')
    assert len(lines) == 1 and "\n" not in lines[0] and "\x1b" not in lines[0]
    assert documents(lines)[0]["level"] == "warning"


def test_a_text_without_end_is_cut(lines: list[str]) -> None:
    LOG.warning("x" * 10**6)
    assert len(lines[0]) < 5000


def test_plain_lines_are_what_an_actor_tells_and_others_warnings() -> None:
    written: list[str] = []
    logs.configure(logs.PLAIN, written.append)
    logs.configure(logs.PLAIN, written.append)
    LOG.info("solver: train: too early")
    logging.getLogger("assay.chain").info("transaction mined")
    logging.getLogger("assay.outbox").warning("a line is damaged")
    logging.getLogger("urllib3").info("chatter")
    assert written == ["solver: train: too early", "a line is damaged"]


@pytest.mark.parametrize("form", [logs.PLAIN, logs.JSON])
def test_what_a_stranger_says_moves_no_cursor_and_begins_no_line(form: str) -> None:
    """Attack: a node's error that clears the screen, or goes on in a line that looks like one of ours."""
    written: list[str] = []
    logs.configure(form, written.append)
    told = "no\x1b[2J\x1b]0;won\x07 \u202egnp\ngame 7: you have won\r\x9b31m"
    LOG.warning("%s", told)
    LOG.warning("%s", UnavailableError(told).explain())
    shown = "".join(json.loads(line)["event"] for line in written) if form == logs.JSON else "".join(written)
    assert "you have won" in shown and all(c.isprintable() or c == "\n" for c in shown)
    assert not any(line.startswith("game 7") for text in written for line in text.splitlines())
