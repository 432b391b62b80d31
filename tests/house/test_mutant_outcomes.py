"""A fault counts as caught by a failure of its test's own call alone, as real runs in a toy project show."""

import subprocess
from pathlib import Path

import pytest

from tools import mutants
from tools.mutant_outcomes import forge_phases
from tools.mutant_tables import Mutant, Place

PROJECT = """
[tool.hatch.build]
dev-mode-dirs = ["."]

[tool.pytest.ini_options]
# As in ours: half a second of each start.
addopts = "-p no:schemathesis"
"""
SOURCE = "VALUE = 1\n"
TESTS = """
import time
from pathlib import Path

import pytest
import source


@pytest.fixture
def positive():
    assert source.VALUE > 0
    yield source.VALUE
    assert source.VALUE < 3


def test_one(positive):
    assert source.VALUE in (1, 3)


def test_error():
    assert 1 // source.VALUE == 1


@pytest.fixture
def slow():
    time.sleep(60 * (source.VALUE == 4))


@pytest.mark.timeout(1)
def test_slow_set_up(slow):
    pass


@pytest.mark.timeout(1)
def test_slow():
    time.sleep(60 * (source.VALUE == 4))


@pytest.mark.timeout(1, method="thread")
def test_slow_process():
    time.sleep(60 * (source.VALUE == 4))


def test_node_modules():
    packages = Path("node_modules")
    assert (packages / "there").is_file() and source.VALUE == 1
    # What forge compiled is known to it by its place in the tree.
    assert (packages / "@openzeppelin").resolve().is_relative_to(Path.cwd())
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one module and its tests, as tools/mutants.py copies them; node_modules lies elsewhere."""
    root = tmp_path / "project"
    (tmp_path / "modules" / "@openzeppelin").mkdir(parents=True)
    (tmp_path / "modules" / "there").touch()
    root.mkdir()
    (root / "pyproject.toml").write_text(PROJECT)
    (root / ".gitignore").write_text((mutants.ROOT / ".gitignore").read_text())
    (root / "source.py").write_text(SOURCE)
    (root / "test_source.py").write_text(TESTS)
    (root / "node_modules").symlink_to(tmp_path / "modules")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.setattr(mutants, "ROOT", root)
    return root


def fault(value: str, test: str, red: str = "call") -> Mutant:
    places = (Place("VALUE = 1", f"VALUE = {value}"),)
    return Mutant("toy", "area", "a toy", False, f"test_source.py -k {test}", "source.py", places, red)


@pytest.mark.parametrize(
    ("value", "test", "message"),
    [
        pytest.param("2", "'one and not slow'", "", id="quoted"),
        ("0", "test_error", ""),
        ("2", "test_node_modules", ""),
        ("1 + 0", "test_one", "SURVIVED: its test stays green"),
        ("-1", "test_one", "its test turned red in set-up, not in call"),
        ("3", "test_one", "its test turned red in teardown, not in call"),
        ("absent", "test_one", "its test turned red in collection, not in call"),
        ("4", "test_slow_set_up", "its test turned red in timeout, not in call"),
        ("4", "test_slow", "its test turned red in timeout, not in call"),
        ("4", "test_slow_process", "its test could not run (exit code 1)"),
        ("2", "test_gone", "its test could not run (exit code 5)"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_fault_is_caught_by_its_tests_own_call_alone(value: str, test: str, message: str) -> None:
    _, why = mutants.judge(fault(value, test))
    assert why.startswith(message) if message else why == ""


@pytest.mark.usefixtures("project")
def test_a_test_that_finds_nothing_to_run_judges_no_fault() -> None:
    """Neither as green nor as red: before any fault is put in, it is named."""
    nothing = fault("2", "test_gone")
    assert mutants.red_without_fault([nothing]) == [nothing.test]


@pytest.mark.parametrize(
    ("value", "red", "message"),
    [("-1", "set-up", ""), ("absent", "collection", ""), ("2", "set-up", "its test turned red in call, not in set-up")],
)
@pytest.mark.usefixtures("project")
def test_an_entry_may_name_another_phase_and_then_needs_it(value: str, red: str, message: str) -> None:
    _, why = mutants.judge(fault(value, "test_one", red))
    assert why.startswith(message) if message else why == ""


@pytest.mark.parametrize(
    ("output", "phases"),
    [
        ("[PASS] test_a() (gas: 1)\n[FAIL: 3 != 4] test_b(uint256[]) (runs: 2)\n", {"call"}),
        ("[FAIL: assertion; counterexample: calldata=0x args=[[1]]] testFuzz_c(uint256) (runs: 1)", {"call"}),
        ("[FAIL: EvmError: Revert] setUp() (gas: 0)\n", {"set-up"}),
        ("Error: no such contract\n", set()),
    ],
)
def test_a_failure_of_forge_is_its_set_ups_or_its_tests(output: str, phases: set[str]) -> None:
    assert forge_phases(output) == phases
