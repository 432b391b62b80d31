"""`assay dispute follow` while its node answers now and then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from assay.cli import dispute
from assay.protocol.errors import ExitCode, UnavailableError
from tests.harness.commands import run_in_process

WORDS = ("dispute", "follow", "1", "--rpc-url", "http://127.0.0.1:9", "--run", "0x" + "11" * 20)


class Answers:
    """A reader whose node answers some looks; each shows one move more."""

    def __init__(self, *answers: bool) -> None:
        self.answers, self.looks = answers, 0
        self.state = SimpleNamespace(games={1: None})

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See RunReader."""
        self.looks += 1
        if not self.answers[self.looks - 1]:
            raise UnavailableError("Nobody answers.", code="ChainUnavailable")
        yield

    def document(self, *_: Any) -> dict[str, Any]:
        """See descent_document."""
        is_over = self.looks == len(self.answers)
        steps = [{"number": k} for k in range(sum(self.answers[: self.looks]))]
        return {"steps": steps, "verdict": {"outcome": "LEAF"} if is_over else None, "replay": None}


def followed(monkeypatch: pytest.MonkeyPatch, reader: Answers) -> Any:
    monkeypatch.setattr(dispute, "open_round_run", lambda _: None)
    monkeypatch.setattr(dispute, "read_run", lambda _: reader)
    monkeypatch.setattr("assay.explorer.descent.descent_document", reader.document)
    monkeypatch.setattr(dispute, "time", SimpleNamespace(sleep=lambda _: None))
    return run_in_process([*WORDS, "--json"], catch_exceptions=True)


def test_a_node_that_is_silent_for_a_while_ends_no_following(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad luck: a node that is started anew in the days that a game may last."""
    reader = Answers(True, False, False, True, True, False, True)
    done = followed(monkeypatch, reader)
    assert done.exit_code == ExitCode.OK, done.output
    *steps, end = map(json.loads, done.stdout.splitlines())
    assert [step["number"] for step in steps] == [0, 1, 2, 3] and end["verdict"]["outcome"] == "LEAF"
    assert done.stderr.count("does not answer, and is asked again: Nobody answers.") == 2, "once each time"


def test_a_node_that_never_answered_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done = followed(monkeypatch, Answers(False))
    assert getattr(done.exception, "code", "") == "ChainUnavailable"
