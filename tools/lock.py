"""Writes requirements.lock: every Python dependency but torch, each with the hashes of all its files.

Works in a throw-away environment with a pinned pip-tools, so nothing has to be installed first. The file names no host.
Needs a network and some minutes. torch must not come in through the back door: a lock that holds it is refused.
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ["requirements.in", "requirements-dev.in"]
HEADER = "# Written by `make lock` from requirements.in and requirements-dev.in. Do not edit.\n"
PIP_TOOLS = "pip-tools==7.6.2"


def compile_lock(python: Path, out: Path) -> None:
    """Let pip-tools resolve SOURCES into `out`."""
    flags = "--quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate"
    flags += " --no-emit-index-url --no-emit-find-links --no-emit-trusted-host"
    command = [python, "-m", "piptools", "compile", *flags.split(), "--output-file", out, *SOURCES]
    subprocess.run(command, cwd=ROOT, check=True)


def tidy(text: str) -> str:
    """The lock with our header; raises ValueError when it holds torch, a host or a package without hash."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if found := [line for line in lines if re.match(r"(torch|nvidia-|triton)", line)]:
        raise ValueError(f"the lock must not hold {found[0].split()[0]}: torch is installed apart")
    if found := [line for line in lines if "://" in line]:
        raise ValueError(f"the lock must name no host: {found[0]}")
    body = "\n".join(lines) + "\n"
    for entry in re.split(r"\n(?=\S)", body):
        if "--hash=sha256:" not in entry:
            raise ValueError(f"no hash for {entry.split()[0]}")
    return HEADER + body


def main() -> int:
    """Write the lock; 1 with one sentence when it cannot be written."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", PIP_TOOLS], check=True)
        out = Path(folder) / "lock"
        # Start from the present lock, so that only what has to change does.
        out.write_text((ROOT / "requirements.lock").read_text() if (ROOT / "requirements.lock").exists() else "")
        compile_lock(python, out)
        try:
            text = tidy(out.read_text())
        except ValueError as error:
            print(f"lock: {error}", file=sys.stderr)
            return 1
    (ROOT / "requirements.lock").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
