"""Runs all native kernels under gcc's address and undefined-behaviour sanitizers, driven by random programs.

tools/sanitize.py [--instruction-sets vnni avx2 sse41 plain] [--programs 300] [--seed 1] [--views 1]

The kernels are built once per digest of their sources beside the usual ones; a process per instruction set then loads
them into Python (`tests/harness/engine/sanitized.py`). Instruction sets that this processor does not have are passed
over.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from assay.engine.runtime.native import build  # noqa: E402
from assay.engine.runtime.native.library import allowed_instruction_sets, processor_flags  # noqa: E402

INSTRUCTION_SETS = ("vnni", "avx2", "sse41", "plain")
UNITS = ("nodes", "dot", "check", "sha256", "canary")

OPTIONS = {
    # Python and torch keep memory to the end. An allocation that is refused is for the kernels to handle.
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:allocator_may_return_null=1:detect_odr_violation=0:exitcode=99",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=99",
    # Small values would otherwise lie in Python's own pools, which no sanitizer watches.
    "PYTHONMALLOC": "malloc",
    "OMP_NUM_THREADS": "2",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def runtime(cc: str, name: str) -> str | None:
    """The compiler's own copy of a sanitizer's library."""
    done = subprocess.run([cc, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    path = Path(done.stdout.strip())
    return str(path) if path.is_absolute() and path.exists() else None


def missing() -> str:
    """Why nothing can be sanitized here; empty when it can."""
    cc = build.compiler()
    if cc is None:
        return "no C compiler was found"
    if runtime(cc, "libasan.so") is None or runtime(cc, "libubsan.so") is None:
        return f"{cc} has no libasan and libubsan of its own"
    return ""


def run(instruction_set: str, programs: int, seed: int, views: int) -> subprocess.CompletedProcess[str]:
    """One instruction set in a process of its own, under both sanitizers."""
    cc = build.compiler()
    assert cc is not None
    libraries = " ".join(filter(None, (runtime(cc, "libasan.so"), runtime(cc, "libubsan.so"))))
    numbers = map(str, (programs, seed, views))
    command = [sys.executable, "-m", "tests.harness.engine.sanitized", instruction_set, *numbers]
    environment = {**os.environ, **OPTIONS, "LD_PRELOAD": libraries}
    environment.pop("ASSAY_NATIVE", None)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def main() -> int:
    """0 when no sanitizer says anything and no bit differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--instruction-sets", nargs="+", default=INSTRUCTION_SETS, choices=tuple(build.INSTRUCTION_SETS)
    )
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1, help="of the first random program")
    parser.add_argument("--views", type=int, default=1, help="run every so many of the views that read nothing")
    options = parser.parse_args()
    if reason := missing():
        print(f"sanitize: {reason}", file=sys.stderr)
        return 1
    allowed = allowed_instruction_sets({}, processor_flags())
    present = [name for name in options.instruction_sets if name in allowed]
    if reasons := build.build(UNITS, present, sanitized=True):
        print("\n".join(f"sanitize: {reason}" for reason in reasons), file=sys.stderr)
        return 1
    failed = False
    for instruction_set in present:
        start = time.monotonic()
        done = run(instruction_set, options.programs, options.seed, options.views)
        failed |= done.returncode != 0
        if done.returncode:
            print("\n".join(done.stderr.splitlines()[-200:]), file=sys.stderr)
        output = done.stdout.strip() or f"{instruction_set}: ended by {done.returncode}"
        print(f"{output} ({time.monotonic() - start:.0f} s)", flush=True)
    return int(failed or not present)


if __name__ == "__main__":
    sys.exit(main())
