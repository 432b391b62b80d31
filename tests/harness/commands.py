"""`assay` commands in this process, configured by their own options alone."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from typer import testing
from typer.testing import CliRunner, Result

from assay_ledger.rounds.run import Run

CONFIGURED = (
    "ETH_RPC_URL",
    "ASSAY_STORE",
    "ASSAY_RUN",
    "ASSAY_KEYS_DIR",
    "ETH_KEYSTORE",
    "ETH_PASSWORD",
    "ASSAY_ALLOW_CODE",
)


@dataclass(frozen=True)
class EndedCommand:
    """How a command line ended: what its process would have left."""

    returncode: int
    stdout: str
    stderr: str


def end_in_process(words: Sequence[str], environment: Mapping[str, str]) -> EndedCommand:
    """A whole command line, from `assay` to its exit code, with nobody at its terminal; nothing of ours is configured
    but by `environment`. What ends in a traceback is raised."""
    from assay.cli import main

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for name in [name for name in os.environ if name.startswith(("ETH_", "ASSAY_"))]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["assay", *words])
        patch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as end:
            main.main()
    assert isinstance(end.value.code, int)
    return EndedCommand(end.value.code, out.getvalue(), err.getvalue())


def run_in_process(words: Sequence[str], env: Mapping[str, str] | None = None, **options: Any) -> Result:
    """A command line of `assay` by typer's runner, on the tree that this process has made once: as often as it is run,
    making it anew takes 60 ms, and most command lines of tests take less."""
    from assay.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", lambda _: main.command_tree())
        return CliRunner().invoke(main.app, list(words), env=env, **options)


def assay(monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    """What a command printed and how it ended; the tests may run in an environment of its own."""
    for name in CONFIGURED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASSAY_CONFIG", "/dev/null")
    return run_in_process(words)


def assay_on(run: Run, *words: str) -> Result:
    """The same of a command that is told of a run by the environment."""
    environment = {
        "ETH_RPC_URL": run.chain.url,
        "ASSAY_RUN": "0x" + run.address.hex(),
        "ASSAY_CONFIG": "/dev/null",
    }
    return run_in_process(words, environment)
