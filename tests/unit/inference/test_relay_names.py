"""A relay pays for its own machine: not for web pages, whatever their names are made to mean."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.inference.relay.app import make_relay

BODY = {"model": "assay", "prompt": "the", "max_tokens": 16}


class CountedPurse:
    """Answers anything, and notes what it would have paid for."""

    def __init__(self) -> None:
        self.paid: list[Any] = []
        self.gateway = SimpleNamespace(document={})

    def ask(self, asked: Any, _has_left: object) -> Iterator[dict[str, Any]]:
        self.paid.append(asked)
        yield {"choices": [{"text": "x"}], "statement": "s"}


def asked_by(purse: CountedPurse, headers: dict[str, str], hosts: tuple[str, ...] = ()) -> Any:
    app = make_relay(purse, 5.0, hosts=hosts)  # type: ignore[arg-type]
    with TestClient(app, base_url="http://127.0.0.1:8091") as client:
        return client.post("/v1/completions", json=BODY, headers=headers)


@pytest.mark.parametrize(
    "page",
    [
        {"Host": "evil.example:8091", "Origin": "http://evil.example:8091"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8091"},
        {"Host": "localhost:8091@evil.example"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_a_page_of_another_name_spends_nothing_and_is_told_why(page: dict[str, str]) -> None:
    purse = CountedPurse()
    answer = asked_by(purse, page)
    assert not purse.paid
    said = answer.json()["error"]
    assert (answer.status_code, said["code"]) == (403, "HostNotAllowed")
    assert "no web page spends its purse" in said["message"]
    if "evil.example" in page.get("Host", page.get("Origin", "")) and "@" not in str(page):
        assert "--allow-host" in said["message"]


@pytest.mark.parametrize("host", ["127.0.0.1:8091", "localhost", "LOCALHOST:1", "[::1]:8091"])
def test_programs_and_pages_of_this_machine_are_answered(host: str) -> None:
    purse = CountedPurse()
    assert asked_by(purse, {"Host": host}).status_code == 200
    assert asked_by(purse, {"Host": host, "Origin": "http://localhost:3000"}).status_code == 200
    assert len(purse.paid) == 2


def test_a_name_that_is_allowed_is_answered_and_its_pages_are() -> None:
    purse, page = CountedPurse(), {"Host": "relay.lan:8091", "Origin": "http://relay.lan:8091"}
    assert asked_by(purse, page, ("Relay.lan",)).status_code == 200
    assert asked_by(purse, page | {"Origin": "http://other.lan"}, ("Relay.lan",)).status_code == 403
    assert len(purse.paid) == 1
