"""Says where a run of tests turned red: in a test's own call, before or after it, or because its time was up.

Only a test that fails by an assertion or error of its own call has caught a fault. Set-up, collection and time limits
turn red for other reasons too, such as a loaded machine.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

from pytest_timeout import PYTEST_FAILURE_MESSAGE

CALL = "call"
PHASES = (CALL, "collection", "set-up", "teardown", "timeout")
"""Where a run can turn red. An entry of tests/mutants names one of them where it is not the call."""

TIMED_OUT = re.compile(re.escape(PYTEST_FAILURE_MESSAGE).replace("%s", r"[\d.]+"))
# As pytest's JUnit report begins its messages; a failure there is always a call's.
ERRORS = {"collection failure": "collection", "failed on setup": "set-up", "failed on teardown": "teardown"}
FORGE_SET_UP = re.compile(r"^\[FAIL.*\] setUp\(\)", re.MULTILINE)


def pytest_phases(report: Path) -> set[str]:
    """The phases in which a run of pytest turned red, by its JUnit report.

    Without a report there are none: the run ended before it was written, as it does when a time limit ends the process.
    """
    if not report.is_file():
        return set()
    return {
        "timeout" if TIMED_OUT.search(f"{red.get('message')}\n{red.text}") else _phase(red)
        for red in ElementTree.parse(report).iter()
        if red.tag in ("failure", "error")
    }


def _phase(red: ElementTree.Element) -> str:
    if red.tag == "failure":
        return CALL
    (phase,) = (phase for words, phase in ERRORS.items() if str(red.get("message")).startswith(words))
    return phase


def forge_phases(output: str) -> set[str]:
    """The phases in which a run of forge that ended with 1 turned red: a contract's set-up, or its tests' calls."""
    if "[FAIL" not in output:
        return set()
    return {"set-up" if FORGE_SET_UP.search(output) else CALL}
