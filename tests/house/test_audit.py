"""`make audit` reads every pin of a lock, and finds what a list calls insecure."""

from __future__ import annotations

from tools.audit import LOCKS, insecure, pins
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
