"""A shell completes keys and runs from what lies on this machine, and asks no node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli.completion import key_names, run_addresses
from assay_ledger.store.blobs import open_store

RUN = "ab" * 20


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of keys and a store with the card of a run, named by the environment; the node is nowhere."""
    for name in ("ada", "abe", "bob"):
        (tmp_path / "keys" / name).mkdir(parents=True)
    store = open_store(tmp_path / "store")
    store.put(b"a card", f"runs/{RUN}/card")
    (tmp_path / "store" / "names" / "runs" / "junk").mkdir()
    for name, value in (
        ("ASSAY_KEYS_DIR", str(tmp_path / "keys")),
        ("ASSAY_STORE", str(tmp_path / "store")),
        ("ASSAY_CONFIG", str(tmp_path / "none.toml")),
        ("ETH_RPC_URL", "http://127.0.0.1:1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ASSAY_RUN", raising=False)
    return tmp_path


def completed(words: str) -> list[str]:
    """What bash is offered for the last word."""
    asked = {"_ASSAY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "assay"], env=os.environ | asked, capture_output=True, text=True, timeout=120
    )
    assert not done.stderr, done.stderr
    return done.stdout.split()


def test_the_shell_is_offered_keys_and_runs(place: Path) -> None:
    assert completed("assay solver start --key a") == ["abe", "ada"]
    assert completed("assay key export b") == ["bob"]
    assert completed("assay run show --run 0x") == [f"0x{RUN}"]


def test_a_setting_that_cannot_be_read_completes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_names("") == ["abe", "ada", "bob"] and run_addresses("") == [f"0x{RUN}"]
    monkeypatch.setenv("ASSAY_STORE", "s3://bucket/prefix")
    assert run_addresses("") == []
    monkeypatch.setenv("ASSAY_RUN", "no address")
    assert key_names("") == [] and run_addresses("") == []
    monkeypatch.delenv("ASSAY_RUN")
    monkeypatch.setenv("ASSAY_KEYS_DIR", str(place / "not" / "there"))
    assert key_names("") == []
