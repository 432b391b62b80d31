"""`make setup` that was broken off: what it left half installed is not taken for whole."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
READ = ("package-lock.json", "requirements.lock", "requirements-torch.in", "requirements.in", "pyproject.toml")

PYTHON = """#!/bin/sh
echo "$*" >> calls
case "$*" in
  "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "#!$PWD/.venv/bin/python" > .venv/bin/pip
              chmod +x .venv/bin/pip ;;
  *"requirements.lock"*) [ ! -e killed ] ;;
esac
"""
"""Stands in for Python, venv and pip, which would take gigabytes; it is killed in the middle where `killed` is."""


def set_up(clone: Path) -> list[str]:
    """How environments were made by one set-up in this clone."""
    (clone / "calls").unlink(missing_ok=True)
    variables = {"PATH": f"{clone / 'bin'}:{os.environ['PATH']}", "PYTHON": str(clone / "bin" / "python")}
    subprocess.run([clone / "tools" / "setup.sh"], env=variables, capture_output=True, timeout=60, check=False)
    return [call for call in (clone / "calls").read_text().splitlines() if call.startswith("-m venv")]


def test_an_environment_whose_set_up_was_broken_off_is_made_anew(tmp_path: Path) -> None:
    """Bad luck: pip is killed while it unpacks, and counts the package as installed ever after."""
    for folder in ("tools", "contracts", "bin"):
        (tmp_path / folder).mkdir()
    for name in READ:
        shutil.copy(ROOT / name, tmp_path)
    for name in ("setup.sh", "package_metadata.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    for name, text in (("python", PYTHON), ("npm", "#!/bin/sh\nmkdir -p node_modules\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "killed").touch()
    assert set_up(tmp_path) == ["-m venv --clear .venv"]
    (tmp_path / "killed").unlink()
    assert set_up(tmp_path) == ["-m venv --clear .venv"]
    assert set_up(tmp_path) == []
    with (tmp_path / "requirements.lock").open("a") as lock:
        lock.write("# a release later\n")
    assert set_up(tmp_path) == ["-m venv .venv"], "what was whole is brought up to date in its place"
