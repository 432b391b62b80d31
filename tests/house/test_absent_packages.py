"""A test whose package has no build here is skipped and says so, wherever it comes by it; what is installed stays."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.harness.absent_packages import NOT_EVERYWHERE, skip_without

ROOT = Path(__file__).resolve().parents[2]
ABSENT = "no_such_package_of_anybody"


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, ABSENT, None)
    monkeypatch.delitem(sys.modules, ABSENT)
    skip_without((ABSENT, "json"))


@pytest.mark.usefixtures("absent")
def test_what_is_not_there_is_imported_and_skips_who_uses_it() -> None:
    module = import_module(ABSENT)
    assert find_spec(ABSENT) is not None, "whoever looks for it first would take another way, and pass"
    with pytest.raises(pytest.skip.Exception, match=f"{ABSENT} has no build for Python 3") as skipped:
        module.Anything(number=1)
    assert skipped.value.allow_module_level


@pytest.mark.usefixtures("absent")
def test_what_is_there_stays_itself() -> None:
    assert import_module("json").loads("[1]") == [1]


def test_what_may_be_absent_is_what_the_lock_leaves_out_somewhere() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    left_out = {line.split("==")[0] for line in lock.splitlines() if "==" in line and "python_version <" in line}
    assert set(NOT_EVERYWHERE) == left_out
