"""How long commands and actors ask a node again: as docs/nodes.md and docs/stores.md say it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.harness.commands import assay

DOCS = Path(__file__).parents[3] / "docs"
RUN = ("--rpc-url", "http://127.0.0.1:1", "--run", "0x" + "11" * 20)


class ChainOpened(Exception):
    """A chain is opened: what for does not matter here."""


def patience(monkeypatch: pytest.MonkeyPatch, *words: str) -> float:
    """Seconds for which the chain that a command line opens asks again."""

    def refuse(_url: str, **options: Any) -> NoReturn:
        raise ChainOpened(options["retry_for_s"])

    monkeypatch.setattr("assay_ledger.chain.client.Chain", refuse)
    opened = assay(monkeypatch, *words, *RUN).exception
    assert isinstance(opened, ChainOpened), opened
    return float(opened.args[0])


def said(page: str, pattern: str) -> list[float]:
    """The seconds that a page says."""
    found = re.search(pattern, " ".join((DOCS / page).read_text(encoding="utf-8").split()))
    assert found is not None, pattern
    return [float(seconds) for seconds in found.groups()]


@pytest.mark.parametrize("role", ["solver", "verifier", "whistleblower"])
def test_an_actor_asks_a_node_again_for_as_long_as_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, role: str
) -> None:
    actors, _ = said("nodes.md", r"asked again for (\d+) s \(commands: (\d+) s\)")
    assert said("stores.md", r"tried again for (\d+) s") == [actors]
    assert patience(monkeypatch, role, "start", "--store", str(tmp_path), "--key", "me") == actors


def test_a_command_asks_a_node_again_for_as_long_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _, commands = said("nodes.md", r"asked again for (\d+) s \(commands: (\d+) s\)")
    assert patience(monkeypatch, "run", "show") == commands
