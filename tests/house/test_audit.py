"""`make audit` reads every pin of a lock, and finds what a list calls insecure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import audit
from tools.audit import ASKED_NOBODY, FOUND, LOCKS, advised, insecure, is_affected, pins, read_folder
from tools.house import ROOT


def test_every_pin_of_every_lock_is_read() -> None:
    for name in LOCKS:
        text = (ROOT / name).read_text()
        assert len(pins(text)) == sum("==" in line and not line.startswith((" ", "#")) for line in text.splitlines())
    assert ("web3", "8.0.0") in pins((ROOT / "requirements.lock").read_text())


def test_a_version_that_a_list_calls_insecure_is_found_under_any_spelling() -> None:
    known = {"$meta": {"timestamp": 1}, "Py_YAML": ["<5.4", ">=6.0,<6.0.1"], "other": ["<9"]}
    found = insecure([("py-yaml", "5.3"), ("py-yaml", "5.4"), ("py-yaml", "6.0"), ("third", "1")], known)
    assert list(found) == ["py-yaml 5.3 is among py-yaml<5.4", "py-yaml 6.0 is among py-yaml>=6.0,<6.0.1"]


RANGE = {"type": "ECOSYSTEM", "events": [{"introduced": "2.0"}, {"fixed": "2.3"}, {"introduced": "3.0"}]}
LAST = {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"last_affected": "1.5"}]}
OF_COMMITS = {"type": "GIT", "events": [{"introduced": "0"}]}


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.5", True), ("1.5.1", False), ("1.9", False), ("2.0", True), ("2.2.9", True), ("2.3", False), ("3.0", True)],
)
def test_a_range_of_versions_holds_its_first_and_not_the_one_that_is_mended(version: str, expected: bool) -> None:
    assert is_affected(version, {"ranges": [OF_COMMITS, RANGE, LAST]}) is expected


def test_an_advisory_is_found_by_version_unless_it_was_withdrawn() -> None:
    entry = {"package": {"name": "Py_Yaml"}, "versions": ["6.0"]}
    known = [{"id": "A-1", "aliases": ["C-1"], "affected": [entry]}]
    assert list(advised([("py-yaml", "6.0"), ("py-yaml", "6.1")], known)) == ["py-yaml 6.0 is named by A-1 (C-1)"]
    assert not list(advised([("py-yaml", "6.0")], [{**known[0], "withdrawn": "2026-01-01"}]))


def test_a_folder_without_advisories_is_no_clean_audit(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no advisories"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "known", "ends"),
    [
        (["--offline"], None, {}, 0),
        (["--offline"], None, {"web3": [">0"]}, FOUND),
        ([], 0, {"web3": [">0"]}, 0),  # the service knows better than an old list
        ([], FOUND, {}, FOUND),
        ([], ASKED_NOBODY, {}, ASKED_NOBODY),
        ([], ASKED_NOBODY, {"web3": [">0"]}, FOUND),
    ],
)
def test_what_was_asked_for_and_is_clean_ends_with_0(
    arguments: list[str],
    code: int | None,
    known: dict[str, list[str]],
    ends: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(audit, "ask_service", lambda *_: code)
    monkeypatch.setattr(audit, "read_list", lambda *_: (known, "2020-01-01"))
    assert audit.main(arguments) == ends
