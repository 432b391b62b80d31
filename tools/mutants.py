"""Applies every checked-in fault, runs the test that must catch it, and writes the table docs/mutants.md.

The faults stand in tests/mutants/; tools/mutant_tables.py says how an entry reads. Each is put into a private copy of
the tree, which imports before the installed one. A fault is caught when its test fails there by an assertion or error
of its own call; where an entry says so (`red`), in another phase. That the tests are green without it is `make check`'s
matter, and is checked here once per test.
"""

import argparse
import concurrent.futures
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import psutil

from tools import mutant_outcomes
from tools.mutant_tables import ROOT, Mutant, TableError, read_mutants

TABLE = ROOT / "docs" / "mutants.md"
LIMIT_S = 900

REPORT = "tmp/report.xml"
"""Where a run of pytest reports to, in the tree that it judges."""
CONTRACTS = "@openzeppelin"
"""The package of which contracts import."""
# As tests/harness/contracts/harness.py and forge say it: no test has caught that.
NOT_COMPILED = ("does not compile", "Compilation failed")


def command(mutant: Mutant) -> list[str]:
    """What must turn red."""
    if mutant.is_forge:
        return [sys.executable, "tools/forge.py", "test", *mutant.words]
    pytest = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--junitxml={REPORT}"]
    return [sys.executable, *pytest, *mutant.words]


def copy_tree(into: Path) -> None:
    """A private copy of the sources, with the installed dependencies and the build."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, into / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    link_packages(into / "node_modules")
    for name in ("forge", "native"):
        if (ROOT / ".build" / name).is_dir():
            shutil.copytree(ROOT / ".build" / name, into / ".build" / name)


def link_packages(into: Path) -> None:
    """The installed packages. Contracts are copied: forge compiles all anew that imports from another place."""
    into.mkdir()
    for package in (ROOT / "node_modules").iterdir():
        if package.name == CONTRACTS:
            shutil.copytree(package, into / package.name)
        else:
            (into / package.name).symlink_to(package)


def python_path(tree: Path) -> str:
    """The source roots of a tree, so that its modules come before the installed ones."""
    build = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    return os.pathsep.join(str(tree / root) for root in build["dev-mode-dirs"])


def run(command: list[str], tree: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in `tree`, whose sources it imports, and end what it leaves running."""
    (tree / "tmp").mkdir(exist_ok=True)
    env = os.environ | {"PYTHONPATH": python_path(tree), "TMPDIR": str(tree / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    env["OMP_NUM_THREADS"] = "1"
    try:
        (tree / REPORT).unlink(missing_ok=True)
        return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=LIMIT_S)
    finally:
        end_orphans(tree)


def end_orphans(tree: Path) -> None:
    """Kill what a faulty tree left running: its processes carry the tree's path in command line or environment."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = [*process.cmdline(), *process.environ().values()]
            if process.pid != os.getpid() and any(str(tree) in word for word in words):
                process.kill()


def judge(mutant: Mutant) -> tuple[Mutant, str]:
    """(mutant, "" when caught, else why not)."""
    with tempfile.TemporaryDirectory(prefix="assay-mutant-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        try:
            faulty = mutant.faulty(tree)
        except TableError as error:
            return mutant, str(error)
        (tree / mutant.file).write_bytes(faulty.encode())
        if mutant.file.endswith((".c", ".h")):
            # Objects are named after their sources: without the faulty ones, tests of kernels would be skipped.
            built = run([sys.executable, "-m", "assay.engine.runtime.native.build"], tree)
            if built.stderr:
                return mutant, f"its kernels cannot be built: {built.stderr.strip()[-300:]}"
        try:
            red = run(command(mutant), tree)
            if red.returncode == 0 and mutant.file.endswith(".sol"):
                # The tests' own compiler takes one contract in seconds; deployed as a whole it needs forge's minute.
                run([sys.executable, "tools/forge.py", "build", "--quiet"], tree)
                red = run(command(mutant), tree)
            return mutant, why_not_caught(mutant, red, tree / REPORT)
        except subprocess.TimeoutExpired:
            return mutant, f"its test did not end within {LIMIT_S} s"


def why_not_caught(mutant: Mutant, done: subprocess.CompletedProcess[str], report: Path) -> str:
    """Why the run of a fault's test has not caught it; "" where it has."""
    if done.returncode == 0:
        return "SURVIVED: its test stays green"
    output = done.stdout + done.stderr
    phases = mutant_outcomes.forge_phases(output) if mutant.is_forge else mutant_outcomes.pytest_phases(report)
    if not phases or any(words in output for words in NOT_COMPILED):
        return f"its test could not run (exit code {done.returncode}): {output.strip()[-300:]}"
    if mutant.red not in phases:
        output = f"its test turned red in {', '.join(sorted(phases))}, not in {mutant.red}"
        return f"{output}: {output.strip()[-300:]}"
    return ""


def red_without_fault(mutants: list[Mutant]) -> list[str]:
    """The tests that are red, or find nothing to run, in a tree without any fault."""
    with tempfile.TemporaryDirectory(prefix="assay-mutant-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        first = {mutant.test: mutant for mutant in mutants}
        return [test for test, mutant in sorted(first.items()) if not is_green(run(command(mutant), tree))]


def is_green(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether something ran and nothing failed; forge ends with 0 also when no test matches."""
    return done.returncode == 0 and "No tests match" not in done.stdout + done.stderr


def table(mutants: list[Mutant], rows: dict[str, str]) -> str:
    """The committed table: a row for each of these, and `rows` (by name) for faults that were judged another time."""
    rows = rows | {m.name: m.row() for m in mutants}
    return (
        "# Faults that the tests catch\n\n"
        "Written by `make mutants`, which puts in each fault of tests/mutants/ and sees its test turn red.\n\n"
        f"| fault | what it does | caught by |\n|---|---|---|\n{''.join(rows[name] for name in sorted(rows))}"
    )


def judged_before(names: set[str]) -> dict[str, str]:
    """The table's rows by name, for faults that are still there: `names`."""
    lines = TABLE.read_text(encoding="utf-8").splitlines(keepends=True) if TABLE.exists() else []
    found = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    return {name: line for name, line in found.items() if name in names}


def main() -> int:
    """Judge all faults, or those named; 0 when each is caught, and then docs/mutants.md has a row for each of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="judge only these faults, or those of these areas")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    options = parser.parse_args()
    try:
        mutants = read_mutants()
    except TableError as error:
        sys.exit(f"mutants: {error}")
    if unknown := set(options.names) - {m.name for m in mutants} - {m.area for m in mutants}:
        sys.exit(f"mutants: no such fault or area: {', '.join(sorted(unknown))}")
    chosen = [m for m in mutants if not options.names or {m.name, m.area} & set(options.names)]
    if not chosen:
        sys.exit("mutants: there are no faults in tests/mutants")
    if red := red_without_fault(chosen):
        sys.exit("mutants: red without any fault, or nothing to run: " + "; ".join(red))
    survived = 0
    caught = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutant, why in pool.map(judge, chosen):
            survived += bool(why)
            caught.append(mutant)
            print(
                f"{'NOT CAUGHT' if why else 'caught':10} {mutant.name}: {mutant.what}"
                + (f"\n    {why}" if why else ""),
                flush=True,
            )
    print(f"mutants: {len(chosen) - survived} of {len(chosen)} caught")
    if not survived:
        TABLE.write_text(table(caught, judged_before({m.name for m in mutants})), encoding="utf-8")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
