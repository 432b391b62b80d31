"""The recipes of docs/how-to, followed to the letter: every edit applies, and every command ends as the page says.

A page is a list of steps in its own order. "In `FILE` replace" a fenced text "by" another is an edit, "Write `FILE`" a
new file; a line of a block marked `sh` is a command, which must succeed, or fail where it begins with `!`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.house import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
STEP = re.compile(
    r"[Ii]n\s+`(?P<file>[^`]+)`\s+replace\n\n```\w+\n(?P<old>.*?)\n```\n\nby\n\n```\w+\n(?P<new>.*?)\n```$"
    r"|^Write `(?P<written>[^`]+)`\n\n```\w+\n(?P<text>.*?)\n```$"
    r"|^```sh\n(?P<commands>.*?)\n```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Edit:
    """Text of a file that stands there once, and what replaces it; nothing for a file that is new."""

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        path = root / self.file
        if not self.old:
            assert not path.exists(), self.file
            path.write_text(self.new, encoding="utf-8")
            return
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.file} has {text.count(self.old)} times: {self.old}"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def steps(page: Path) -> list[Edit | str]:
    """Edits and commands in the order of the page."""
    found: list[Edit | str] = []
    for m in STEP.finditer(page.read_text(encoding="utf-8")):
        if m["file"] is not None:
            found.append(Edit(m["file"], m["old"], m["new"]))
        elif m["written"] is not None:
            found.append(Edit(m["written"], "", m["text"] + "\n"))
        else:
            found += m["commands"].splitlines()
    return found


def tracked() -> list[str]:
    """Every file of the project, tracked or new."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def run(command: str, root: Path) -> subprocess.CompletedProcess[str]:
    """A command of a page, in a copy of the project, with the environment that `make setup` has made."""
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(str(root / folder) for folder in PACKAGES.values()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        ["bash", "-c", command.removeprefix("! ")], cwd=root, env=env, capture_output=True, text=True, timeout=1500
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_edit_of_a_recipe_applies_and_every_test_that_it_runs_exists(page: Path, tmp_path: Path) -> None:
    found = steps(page)
    edits = [step for step in found if isinstance(step, Edit)]
    commands = [step for step in found if isinstance(step, str)]
    assert edits and commands
    for name in {edit.file for edit in edits}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path / name)
    for edit in edits:
        edit.apply(tmp_path)
    for name in re.findall(r"\b[\w/]+\.(?:py|sol)\b", " ".join(commands)):
        assert (ROOT / name).is_file() or (tmp_path / name).is_file(), name


def test_the_list_of_places_of_a_family_is_that_of_the_tree() -> None:
    """Where the youngest family is named: tests of single modules, documents and records apart."""
    page = (ROOT / "docs" / "how-to" / "add-a-node-family.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"<!-- family-places -->\n(.*?)<!-- /family-places -->", page, re.DOTALL)
    listed = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    apart = ("docs/", "tests/unit/", "tests/integration/", "tests/house/", "tests/vectors/", "tools/recompute/")
    named = [
        name
        for name in tracked()
        if name.endswith((".py", ".sol", ".mjs", ".c", ".h")) and not name.startswith(apart)
        if re.search("scatter_?sum", (ROOT / name).read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    assert sorted(listed) == sorted(named)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_that_is_followed_ends_as_it_says(page: Path, tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    for name in tracked():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "node_modules").symlink_to((ROOT / "node_modules").resolve())
    shutil.copytree(ROOT / ".build" / "forge", root / ".build" / "forge")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for step in steps(page):
        if isinstance(step, Edit):
            step.apply(root)
            continue
        done = run(step, root)
        print(step, done.stdout, done.stderr, sep="\n")
        assert (done.returncode != 0) is step.startswith("! "), step
