"""Shared by all tests: the number of vectors, skips that fail on demand, and counts at the end."""

import contextlib
import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.harness.absent_packages import skip_without
from tests.harness.memory_folder import memory_folder

# A loaded machine must not turn a test red: no time limits inside, pytest's own catches what hangs.
settings.register_profile("assay", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("assay")

# Before anybody asks for a folder; workers are told of it by their environment.
FILES = memory_folder()

# Before a module of tests is imported.
skip_without()

# As the `assay` command does, before torch is loaded: tests share the cores, and must not spin while they wait.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Before Triton is loaded, which some library may do: tests run its kernels by its interpreter, with a GPU and without.
os.environ["TRITON_INTERPRET"] = "1"

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: tests of Ctrl-C would wait for ever.
with contextlib.suppress(ValueError):  # not the main thread: then the parent process has done it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


FAILED = pytest.StashKey[bool]()


@pytest.fixture(autouse=True)
def _no_device_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--device` is in force for a whole process, of which a test is a part."""
    monkeypatch.setenv("ASSAY_DEVICE", "")


@pytest.fixture(scope="module", autouse=True)
def _log_as_at_first() -> None:
    """A command that an earlier module ran in this process has configured its log, and would be listened to here."""
    root = logging.getLogger()
    root.handlers[:] = [h for h in root.handlers if type(h).__module__ != "assay.observing.logs"]
    logging.getLogger("assay").setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of captured programs for the tests of a module, and for the processes that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


UNMEASURED = (
    "tests/integration/actors/test_crashes.py",
    "tests/integration/actors/test_families.py",
    "tests/integration/actors/test_reorganizations.py",
    "tests/integration/actors/test_two_challengers.py",
    "tests/integration/commands/test_demo_processes.py",
    "tests/unit/bench/",
    "tests/integration/contracts/",
    "tests/unit/engine/test_causality.py",
    "tests/unit/engine/test_gradients.py",
    "tests/unit/engine/test_trace.py",
    "tests/unit/model/test_model_",
    "tests/unit/protocol/test_functions.py",
    "tests/unit/protocol/test_game_headline.py",
    "tests/unit/protocol/test_game_moves.py",
    "tests/unit/protocol/test_node_vectors.py",
    "tests/unit/training/test_programs.py",
)
"""Tests that walk the same lines thousands of times, where looking on costs twice the time of the test itself. The line
coverage of the others stands for them."""

OF_PLAYED_DISPUTES = frozenset(f"tests/integration/commands/test_{name}.py" for name in ("bundle", "recompute"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes stays to the end: to look through it for garbage, again and again, took 8 CPU seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _leave_cases_to_long_runs(items)
    for item in items:
        if item.nodeid.startswith(UNMEASURED) or item.get_closest_marker("vectors"):
            item.add_marker(pytest.mark.no_cover)


def _leave_cases_to_long_runs(items: list[pytest.Item]) -> None:
    """Of many cases alike the gate takes some; which, follows from their number alone. One that is named is run."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("gate_takes") is not None:
            cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    for of_one in cases.values():
        mark = of_one[0].get_closest_marker("gate_takes")
        assert mark is not None
        (count,) = mark.args
        taken = {round(k * (len(of_one) - 1) / max(1, count - 1)) for k in range(count)}
        for at, item in enumerate(of_one):
            if at not in taken:
                item.add_marker(pytest.mark.long)


class OnePlayInOneWorker(LoadFileScheduling):
    """Tests of a file stay in one worker, and so do files that read the same played run: it would be played again."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return "the played disputes" if file in OF_PLAYED_DISPUTES else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """See OnePlayInOneWorker; other ways to share tests out stay as they are."""
    return OnePlayInOneWorker(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fail-on-skip", action="store_true", help="a skipped test is a failed run")


@pytest.fixture(scope="session")
def vector_count() -> int:
    """Cases per operator in tests marked `vectors`: a fixed subset by default, ASSAY_VECTORS for more."""
    return int(os.environ.get("ASSAY_VECTORS", "500"))


def _count(terminal: pytest.TerminalReporter, outcome: str) -> int:
    return len(terminal.stats.get(outcome, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = {name: _count(terminalreporter, name) for name in ("passed", "failed", "error", "skipped", "xfailed")}
    terminalreporter.write_line("counts: " + ", ".join(f"{name} {number}" for name, number in counts.items()))


def pytest_unconfigure(config: pytest.Config) -> None:
    if FILES is not None and (kept := FILES.close(keep=config.stash.get(FAILED, False))) is not None:
        print(f"what the tests left is in {kept}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[FAILED] = exitstatus != 0
    if hasattr(session.config, "workerinput") or not session.config.getoption("--fail-on-skip"):
        return
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and exitstatus == 0 and _count(terminal, "skipped"):
        terminal.write_line("a test was skipped, and --fail-on-skip was given", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
