"""Writes the lock files: every Python dependency but torch, each with the hashes of all its files.

requirements.lock is the project's environment, requirements-slither.lock that of `make slither`,
requirements-models.lock that of `make models`, from which torch is taken out again. Works in a throw-away
environment with a pinned pip-tools, so nothing has to be installed first. The files name no host. Needs a network and
some minutes. torch must not come in through the back door: a lock that holds it is refused.

tools/lock.py [LOCK_FILE...]
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {
    "requirements.lock": ["requirements.in", "requirements-dev.in"],
    "requirements-slither.lock": ["requirements-slither.in"],
    "requirements-models.lock": ["requirements-models.in", "requirements-torch.in"],
}
"""Each lock file and what it is written from."""

HEADER = "# Written by `make lock` from {}. Do not edit.\n"
PIP_TOOLS = "pip-tools==7.6.2"


TORCHS = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==")
"""torch and what only its builds for CUDA need."""


def compile_lock(python: Path, sources: list[str], out: Path) -> None:
    """Let pip-tools resolve `sources` into `out`."""
    flags = "--quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate"
    flags += " --no-emit-index-url --no-emit-find-links --no-emit-trusted-host"
    command = [python, "-m", "piptools", "compile", *flags.split(), "--output-file", out, *sources]
    subprocess.run(command, cwd=ROOT, check=True)


def without_torch(text: str) -> str:
    """The lock without the entries of torch and of its CUDA libraries."""
    return "".join(entry for entry in re.split(r"(?<=\n)(?=\S)", text) if not TORCHS.match(entry))


def tidy(text: str, sources: list[str]) -> str:
    """The lock with our header; raises ValueError when it holds torch, a host or a package without hash."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if found := [line for line in lines if re.match(r"torch==|nvidia-", line)]:
        raise ValueError(f"the lock must not hold {found[0].split()[0]}: torch is installed apart")
    if found := [line for line in lines if "://" in line]:
        raise ValueError(f"the lock must name no host: {found[0]}")
    body = "\n".join(lines) + "\n"
    for entry in re.split(r"\n(?=\S)", body):
        if "--hash=sha256:" not in entry:
            raise ValueError(f"no hash for {entry.split()[0]}")
    return HEADER.format(" and ".join(sources)) + body


def write(python: Path, name: str, folder: Path) -> None:
    """Write one lock file; raises ValueError when what was resolved must not be locked."""
    out = folder / name
    # Start from the present lock, so that only what has to change does.
    out.write_text((ROOT / name).read_text() if (ROOT / name).exists() else "")
    compile_lock(python, LOCKS[name], out)
    text = without_torch(out.read_text()) if "requirements-torch.in" in LOCKS[name] else out.read_text()
    (ROOT / name).write_text(tidy(text, LOCKS[name]))


def main(names: list[str]) -> int:
    """Write the lock files named, or all; 1 with one sentence when one cannot be written."""
    if unknown := set(names) - set(LOCKS):
        print(f"lock: no such lock file: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", PIP_TOOLS], check=True)
        try:
            for name in names or LOCKS:
                write(python, name, Path(folder))
        except ValueError as error:
            print(f"lock: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
