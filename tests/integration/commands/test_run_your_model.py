"""docs/run-your-model.md, walked to the letter: from an empty home to a model that strangers trained.

Its blocks marked `sh` are typed in their order. What stands behind "In a shell of its own" goes on in the background,
with what was exported by then; all others share one shell.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.house import PACKAGES

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "run-your-model.md"
STEP = re.compile(
    r"Write `(?P<file>[^`]+)`\n\n```python\n(?P<text>.*?)\n```$"
    r"|(?P<apart>[Ii]n a shell of its own:\n\n)?^```sh\n(?P<commands>.*?)\n```$",
    re.MULTILINE | re.DOTALL,
)
LIMIT_S = 600.0
"""The page promises ten minutes, beside nothing else."""

INHERITED = ("ASSAY_ARTIFACTS", "ASSAY_CACHE", "ASSAY_ANVIL")


@dataclass
class PageReader:
    """Somebody who types what the page says, in a folder that looks like a clone, with an empty home."""

    folder: Path
    apart: list[subprocess.Popen[bytes]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "home").mkdir(parents=True)
        bin_ = self.folder / ".venv" / "bin"
        bin_.mkdir(parents=True)
        for name in ("python", "assay"):
            wrapped = "" if name == "python" else " -m assay"
            (bin_ / name).write_text(f'#!/bin/sh\nexec {sys.executable}{wrapped} "$@"\n')
            (bin_ / name).chmod(0o755)
        self._state = self.folder / "home" / "exports"
        self._state.write_text("")

    def environment(self) -> dict[str, str]:
        """What a new shell has, and where the code under test lies."""
        source = os.pathsep.join(str(ROOT / where) for where in PACKAGES.values())
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        more = os.environ.get("ASSAY_TEST_PACKAGES", "")
        return kept | {
            "HOME": str(self.folder / "home"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, (source, str(self.folder), more))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
        }

    def type(self, commands: str, left_s: float) -> None:
        """Types commands into the one shell; its exports stay."""
        script = f"set -ea; . {self._state}; set +a\n{commands}\nexport -p > {self._state}\n"
        log = self.folder / "typed.log"
        begin = time.monotonic()
        with log.open("ab") as file:
            file.write(f"\n$ {commands}\n".encode())
            file.flush()
            shell = self._shell(script, file)
            try:
                code = shell.wait(timeout=left_s)
            finally:
                _end(shell)
        self.seconds[commands] = time.monotonic() - begin
        assert code == 0, (commands, log.read_text()[-4000:], *self.logs())

    def type_apart(self, commands: str) -> None:
        """Types commands into a shell of their own, which goes on."""
        with (self.folder / f"apart-{len(self.apart)}.log").open("ab") as file:
            self.apart.append(self._shell(f". {self._state}\nexec {commands}\n", file))

    def _shell(self, script: str, log: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,  # type: ignore[call-overload]
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def logs(self) -> list[str]:
        """How the other shells ended."""
        return [path.read_text(errors="replace")[-1500:] for path in sorted(self.folder.glob("apart-*.log"))]


def _end(shell: subprocess.Popen[bytes]) -> None:
    if shell.poll() is None:
        os.killpg(shell.pid, signal.SIGTERM)
        try:
            shell.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()


@contextmanager
def reading(folder: Path) -> Iterator[PageReader]:
    """A reader whose shells end with the block."""
    reader = PageReader(folder)
    try:
        yield reader
    finally:
        for shell in reversed(reader.apart):
            _end(shell)


def walk(reader: PageReader, text: str) -> None:
    """Everything that the page asks for, in its order."""
    end = time.monotonic() + LIMIT_S
    for step in STEP.finditer(text):
        if step["file"] is not None:
            (reader.folder / step["file"]).write_text(step["text"] + "\n")
        elif step["apart"] is not None:
            reader.type_apart(step["commands"])
        else:
            reader.type(step["commands"], end - time.monotonic())
        gone = [number for number, shell in enumerate(reader.apart) if shell.poll() not in (None, 0)]
        assert not gone, (step[0], reader.logs())


def free_ports(text: str) -> str:
    """The same page where nothing else can stand in the way: ports of this test's own."""
    import socket

    found = []
    for _ in range(2):
        with socket.socket() as open_:
            open_.bind(("127.0.0.1", 0))
            found.append(str(open_.getsockname()[1]))
    text = text.replace("8545", found[0]).replace("--state ./node\n", f"--state ./node --port {found[0]}\n")
    return text.replace("assay service start\n", f"assay service start --port {found[1]}\n")


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("recipe", ["my_model:factory", "my_gpt2:factory"])
def test_the_page_leads_from_an_empty_home_to_a_model_that_strangers_trained(tmp_path: Path, recipe: str) -> None:
    has_transformers = importlib.util.find_spec("transformers") or os.environ.get("ASSAY_TEST_PACKAGES")
    if recipe.startswith("my_gpt2") and not has_transformers:
        pytest.skip("transformers is the reader's own to install; name its folder by ASSAY_TEST_PACKAGES")
    text = free_ports(PAGE.read_text(encoding="utf-8"))
    assert text.count("export RECIPE=my_model:factory\n") == 1
    with reading(tmp_path / "clone") as reader:
        walk(reader, text.replace("export RECIPE=my_model:factory\n", f"export RECIPE={recipe}\n"))
        said = (reader.folder / "typed.log").read_text()
        assert (reader.folder / "model.safetensors").exists() and "on_chain" in said
        for command, seconds in reader.seconds.items():
            print(f"{seconds:7.1f} s  {command.splitlines()[0]}")


def test_every_step_of_the_page_is_found() -> None:
    steps = [m["file"] or m["commands"] for m in STEP.finditer(PAGE.read_text(encoding="utf-8"))]
    assert [s for s in steps if s.endswith(".py")] == ["my_model.py", "my_gpt2.py"]
    assert sum(m["apart"] is not None for m in STEP.finditer(PAGE.read_text(encoding="utf-8"))) == 5
    assert len(steps) == PAGE.read_text(encoding="utf-8").count("```sh") + 2


def test_no_page_waits_by_a_loop_which_goes_on_where_a_command_is_refused_for_good() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    loops = re.compile(r"^\s*(until|while)\b.*\bassay\b", re.MULTILINE)
    assert [page.name for page in pages if loops.search(page.read_text(encoding="utf-8"))] == []
    typed = [step["commands"] for step in STEP.finditer(PAGE.read_text(encoding="utf-8"))]
    assert {"assay run open --wait --key sponsor", "assay run show --wait"} <= set(typed)
