"""Builds the release of the newest commit and installs it as strangers do: `make release-check`.

The sdist and the wheel are built from a clone, with the contracts that are compiled here; the wheel goes into two empty
environments with all that it needs, by pip and by a pinned uv, and its command is run there, away from the checkout. It
must hold the code that docs/snapshots/code.json names. Version, newest heading of the changelog and names of the files
must agree. Needs a network and, for each environment, about 1.5 GB in the folder for temporary
files; what is there is removed. Part of no gate.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = "uv==0.13.8"
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", re.MULTILINE)
COMMANDS = ("--version", "doctor", "bench --help")
NOT_IN_THE_WHEEL = {"anvil"}
"""What a checkout fetches beside the packages: `assay doctor` misses it where nothing names it."""

CONTRACTS = ROOT / ".build" / "forge" / "out"
HASHES = """
import json, sys
from eth_utils.crypto import keccak
from assay_ledger.chain.artifacts import load_artifact
print(json.dumps({name: "0x" + keccak(load_artifact(name).bytecode).hex() for name in sys.argv[1:]}))
"""


def version_of(pyproject: str, changelog: str) -> str:
    """The version of the release. Raises ValueError where the changelog's newest is another, or its date none."""
    version = str(tomllib.loads(pyproject)["project"]["version"])
    newest = HEADING.search(changelog)
    if newest is None or newest[1] != version:
        found = "none" if newest is None else newest[1]
        raise ValueError(f"pyproject.toml says {version}, the newest release of CHANGELOG.md is {found}")
    date.fromisoformat(newest[2])
    return version


def pip_sources(configured: str) -> dict[str, str]:
    """Where uv looks, which reads no settings of pip's, so that both find the same.

    configured: what `pip config list` prints.
    """
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "constraint": "UV_CONSTRAINT",
        "cert": "SSL_CERT_FILE",
    }
    found: dict[str, str] = {}
    for line in configured.splitlines():
        setting, _, value = line.partition("=")
        name = names.get(re.split(r"[.:]+", setting.strip())[-1])
        if name is not None:
            # uv takes lists with spaces, of find-links with commas.
            words = str(ast.literal_eval(value)).split()
            found[name] = ("," if name == "UV_FIND_LINKS" else " ").join(words)
    return found


def run(*words: str | Path, cwd: Path, more: Mapping[str, str] | None = None, ends: tuple[int, ...] = (0,)) -> str:
    """What a command prints; ends this program where it fails."""
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "ASSAY_ARTIFACTS")
    env = {k: v for k, v in os.environ.items() if k not in left_out} | dict(more or {})
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in ends:
        shown = " ".join(map(str, words))
        sys.exit(f"release check: {shown} ends with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of the newest commit."""
    run("git", "clone", "--quiet", ROOT, folder / "clone", cwd=folder)
    run("git", "-c", "advice.detachedHead=false", "checkout", "--quiet", head(), cwd=folder / "clone")
    # They are of the newest commit too: `make setup` compiled them, and nothing has changed since.
    env = {"ASSAY_ARTIFACTS": str(CONTRACTS)}
    run(sys.executable, "-m", "hatchling", "build", "-d", folder / "dist", cwd=folder / "clone", more=env)
    ((sdist,), (wheel,)) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return sdist, wheel


def head() -> str:
    """The newest commit."""
    return run("git", "rev-parse", "HEAD", cwd=ROOT).strip()


def by_pip(folder: Path, wheel: Path) -> Path:
    """An environment into which pip has installed the wheel and all that it needs."""
    venv.create(folder / "pip", with_pip=True)
    python = folder / "pip" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    run(python, "-m", "pip", "check", "--disable-pip-version-check", cwd=folder)
    return python.parent


def by_uv(folder: Path, wheel: Path) -> Path:
    """The same by uv, which is installed beside it."""
    venv.create(folder / "tool", with_pip=True)
    tool = folder / "tool" / "bin"
    run(tool / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV, cwd=folder)
    sources = pip_sources(run(tool / "python", "-m", "pip", "config", "list", cwd=folder))
    # Of packages that several sources have uv takes the first source's alone, unless it is told otherwise.
    env = {"UV_CACHE_DIR": str(folder / "uv-cache"), "UV_INDEX_STRATEGY": "unsafe-best-match"} | sources
    run(tool / "uv", "venv", "--quiet", "--python", sys.executable, folder / "uv", cwd=folder, more=env)
    python = folder / "uv" / "bin" / "python"
    run(tool / "uv", "pip", "install", "--quiet", "--python", python, wheel, cwd=folder, more=env)
    run(tool / "uv", "pip", "check", "--quiet", "--python", python, cwd=folder, more=env)
    return python.parent


def broken(findings: list[dict[str, str]]) -> dict[str, str]:
    """What `assay doctor` finds broken in a release, by name."""
    return {f["name"]: f["found"] for f in findings if f["state"] == "broken" and f["name"] not in NOT_IN_THE_WHEEL}


def try_out(bin_: Path, folder: Path, version: str) -> None:
    """Runs the installed command. Ends this program where it does not do as it should."""
    home = folder / f"home-{bin_.parent.name}"
    home.mkdir()
    env = {"HOME": str(home), "ASSAY_CACHE": str(home / "cache"), "ASSAY_CONFIG": "/dev/null"}
    assay = bin_ / "assay"
    if (said := run(assay, "--version", cwd=home, more=env).strip()) != f"assay {version}":
        sys.exit(f"release check: it says {said!r}, not {version}")
    if "step" not in run(assay, "bench", "--help", cwd=home, more=env):
        sys.exit("release check: `assay bench --help` names no bench")
    bare = json.loads(run(assay, "doctor", "--json", cwd=home, more=env, ends=(0, 3)))
    if found := broken(bare):
        sys.exit(f"release check: `assay doctor` finds broken: {found}")
    kept = json.loads((ROOT / "docs" / "snapshots" / "code.json").read_text())
    held = json.loads(run(bin_ / "python", "-I", "-c", HASHES, *kept, cwd=home, more=env))
    if others := sorted(name for name in kept if held[name] != kept[name]):
        sys.exit(f"release check: docs/snapshots/code.json names other code of {', '.join(others)}")
    lacks = sorted(f["name"] for f in bare if f["state"] == "broken")
    # With what a checkout has beside the packages nothing is broken.
    anvil = next(ROOT.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"), None)
    if anvil is not None:
        run(assay, "doctor", cwd=home, more=env | {"ASSAY_ANVIL": str(anvil)})
    print(f"  assay {', assay '.join(COMMANDS)}: as they should be; not in a wheel: {', '.join(lacks) or 'nothing'}")


def main() -> int:
    """0 when everything was built, installed and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="put the sdist and the wheel there")
    options = parser.parse_args()
    try:
        version = version_of((ROOT / "pyproject.toml").read_text(), (ROOT / "CHANGELOG.md").read_text())
    except ValueError as error:
        sys.exit(f"release check: {error}")
    if run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT):
        sys.exit("release check: there are changes that are not committed, which no release would hold")
    ways: dict[str, Callable[[Path, Path], Path]] = {"pip": by_pip, UV: by_uv}
    with tempfile.TemporaryDirectory(prefix="assay-release-") as made:
        folder = Path(made)
        sdist, wheel = build(folder)
        print(f"{sdist.name} ({sdist.stat().st_size:,} bytes), {wheel.name} ({wheel.stat().st_size:,} bytes)")
        if f"assay-{version}" not in sdist.name or f"assay-{version}-" not in wheel.name:
            sys.exit(f"release check: the files are not of {version}")
        for name, install in ways.items():
            began = time.monotonic()
            bin_ = install(folder, wheel)
            print(f"installed by {name} in {time.monotonic() - began:.0f} s", flush=True)
            try_out(bin_, folder, version)
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            for file in (sdist, wheel):
                (options.keep / file.name).write_bytes(file.read_bytes())
    print(f"release check: {version} at {head()[:12]} is built, installed and run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
