"""Run as a script: cases one after the other by every executor, said line by line; it may die at any of them.

python -m assay.conformance.fuzz.worker '{"first": 7, "stride": 2, "skip": 0, "only": null, "cases": 1000}'

Lines: `here [...]` names what is compared and what is absent; `at SEED NAME` before each comparison; `did` with its
result as JSON after it. It goes on until it is ended; after so many cases in a fresh image, since what libraries keep
of thousands of programs fills the memory.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from typing import Any

from assay.conformance.fuzz.executors import ReferenceRun, executors
from assay.conformance.fuzz.programs import draw
from assay.conformance.nodes import Absent


def say(word: str, value: Any) -> None:
    """One line, written at once: whatever ends this process next, it was said."""
    os.write(1, f"{word} {json.dumps(value)}\n".encode())


def main(options: dict[str, Any]) -> None:
    """Compares until its reader is gone. skip: how many executors of the first case are left out."""
    found = list(executors(None if options["only"] is None else frozenset(options["only"])))
    present = [each for each in found if not isinstance(each, Absent)]
    absent = [[each.name, each.reason] for each in found if isinstance(each, Absent)]
    say("here", {"pairs": [name for name, _ in present], "absent": absent})
    skip = int(options["skip"])
    for done, seed in enumerate(itertools.count(options["first"], options["stride"])):
        if done == options["cases"]:
            fresh = json.dumps({**options, "first": seed, "skip": 0})
            os.execv(sys.executable, [sys.executable, "-m", "assay.conformance.fuzz.worker", fresh])
        say("at", [seed, "reference"])
        truth = ReferenceRun(draw(seed))
        for name, compare in present[skip:]:
            say("at", [seed, name])
            try:
                elements, difference = compare(truth)
            except Exception as error:
                # Whatever it is: a well-formed program must run.
                say("did", [seed, name, 0, "", f"{type(error).__name__}: {error}"[:300]])
            else:
                say("did", [seed, name, elements, difference, ""])
        skip = 0


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
