"""What takes long says so: a bar at a terminal, plain lines elsewhere, all on stderr; what is short says nothing."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from assay.cli import progress as shown
from assay.cli.progress import moved, progress, size, told_steps, written
from assay_ledger.store.blobs import open_store

SOON = "from assay.cli import main, progress; progress.AFTER_S = progress.EVERY_S = progress.DRAWN_EVERY_S = 0.05; "
"""The command line, which says sooner than usually that something takes long."""

LIMIT_S = 60.0


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], io.StringIO]:
    """What a terminal, or a file in its place, is sent from now on."""

    def listen(is_terminal: bool) -> io.StringIO:
        file = io.StringIO()
        monkeypatch.setattr(shown, "talk", Console(file=file, force_terminal=is_terminal, width=80, emoji=False))
        for name in ("AFTER_S", "EVERY_S", "DRAWN_EVERY_S"):
            monkeypatch.setattr(shown, name, 0.01)
        monkeypatch.setattr(shown, "time", SimpleNamespace(monotonic=lambda: 0.0))  # none passes for what is said
        return file

    return listen


class AskedConsole:
    """A measure that says when it was asked often enough."""

    def __init__(self, words: str = "") -> None:
        self._words, self._left, self._often = words, 3, threading.Event()

    def __call__(self) -> str:
        self._left -= 1
        if not self._left:
            self._often.set()
        return self._words

    def wait(self) -> None:
        """Until it was."""
        assert self._often.wait(LIMIT_S)


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "file"])
def test_long_work_says_how_far_it_is(heard: Callable[[bool], io.StringIO], is_terminal: bool) -> None:
    file, measure = heard(is_terminal), AskedConsole("12.3 MB")
    with progress("fetching the weights", 7, measure) as done:
        done()
        done(2)
        measure.wait()
    said = file.getvalue()
    assert "fetching the weights" in said and "12.3 MB" in said
    if is_terminal:
        assert "3/7" in said and "\x1b[2K" in said and said.rstrip().endswith("\x1b[1A\x1b[2K"), "the bar is taken away"
    else:
        assert "\x1b" not in said and set(said.splitlines()) == {"fetching the weights: 3 of 7, 12.3 MB, 0 s so far"}


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "file"])
def test_short_work_says_nothing(
    heard: Callable[[bool], io.StringIO], is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = heard(is_terminal)
    monkeypatch.setattr(shown, "AFTER_S", LIMIT_S)
    monkeypatch.setattr(shown, "EVERY_S", LIMIT_S)
    with progress("hashing"):
        pass
    with pytest.raises(KeyboardInterrupt), progress("hashing"):
        raise KeyboardInterrupt
    assert file.getvalue() == ""


def test_steps_are_said_as_they_begin_and_work_inside_work_is_a_part_of_it(
    heard: Callable[[bool], io.StringIO],
) -> None:
    file, measure, later = heard(False), AskedConsole(), AskedConsole()
    with told_steps(measure) as say:
        say("publishing")
        with progress("inside") as done:
            done()
            measure.wait()
        say("deploying [the contracts]")
    said = file.getvalue().splitlines()
    assert said[0] == "publishing" and said[-1] == "deploying [the contracts]"
    assert "publishing: 0 s so far" in said and not any("inside" in line for line in said)
    with progress("afterwards", measure=later):
        later.wait()
    assert "afterwards" in file.getvalue()


def test_what_a_store_moves_and_what_a_folder_grows_by_are_measured(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.put(bytes(5000))
    measure = moved(store)
    assert measure() == ""
    name = store.put(bytes(2_500_000))
    assert measure() == "2.5 MB" and store.get(name, 3_000_000) and measure() == "5.0 MB"
    growing = written(tmp_path / "data")
    assert growing() == ""
    (tmp_path / ".data-0123" / "rows").mkdir(parents=True)
    (tmp_path / ".data-0123" / "rows" / "one").write_bytes(bytes(70_000))
    assert growing() == "70 kB" and size(3_210_000_000) == "3.21 GB"


CAPTURE = ("program", "capture", "own:factory", "--out", "own.program", "--json")
COMMAND = [sys.executable, "-c", SOON + "main.main()", *CAPTURE]


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with a model, and the surroundings in which its commands run."""
    (tmp_path / "own.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "from assay.training.recipes.recipe import Recipe\n"
        "def factory():\n"
        "    torch.manual_seed(0)\n"
        "    module = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(16, 16), nn.ReLU())))\n"
        "    data = torch.randn(64, 16), torch.randn(64, 16)\n"
        "    loss = lambda module, x, y: ((module(x) - y) ** 2).mean()\n"
        "    return Recipe(module, loss, torch.optim.AdamW(module.parameters(), lr=1e-3), data=data, batch_size=16)\n"
    )
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("ETH_", "ASSAY_"))}
    more = {"ASSAY_CONFIG": "/dev/null", "TERM": "xterm", "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(sys.path)}
    return tmp_path, kept | more


@pytest.mark.parametrize("columns", [80, pytest.param(120, marks=pytest.mark.long)])
def test_a_command_draws_a_bar_at_a_terminal_and_prints_one_document(
    own: tuple[Path, dict[str, str]], columns: int
) -> None:
    folder, surroundings = own
    here, there = pty.openpty()
    process = subprocess.Popen(
        COMMAND,
        cwd=folder,
        env=surroundings | {"COLUMNS": str(columns)},
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=there,
        start_new_session=True,
    )
    os.close(there)
    said = b""
    while chunk := _read(here):
        said += chunk
    os.close(here)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert json.loads(output)["files"] and b"capturing own:factory" in said and "━".encode() in said
    assert b"capturing" not in output and b"\x1b" not in output


@pytest.mark.long
def test_a_command_says_plain_lines_where_nobody_looks(own: tuple[Path, dict[str, str]]) -> None:
    folder, surroundings = own
    done = subprocess.run(COMMAND, cwd=folder, env=surroundings, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["files"] and "\x1b" not in done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert any(line.startswith("capturing own:factory: ") and line.endswith(" so far") for line in lines)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
