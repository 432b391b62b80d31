"""All kernels of one instruction set under address and undefined-behaviour sanitizers: `tools/sanitize.py` starts it.

    python -m tests.harness.engine.sanitized LEVEL PROGRAMS FIRST_SEED EVERY_VIEW

Self-tests of every unit, products at their limits, views that read nothing, and random programs with hostile states,
with hooks and without, on one thread and on two. A fault that a sanitizer sees ends the process; bits that differ from
those of stock torch are said on standard output, and end it with 1.
"""

from __future__ import annotations

import ctypes
import sys

from assay.engine.runtime.native import library
from assay.engine.runtime.native.build import object_path


def take_sanitized(instruction_set: str) -> None:
    """Every unit that is loaded from now on is the sanitized one of this instruction set."""

    def load(unit: str, _: str) -> ctypes.CDLL:
        path = object_path(unit, instruction_set, sanitized=True)
        if path is None or not path.exists():
            raise OSError(f"{unit} is not built for {instruction_set} with sanitizers")
        return ctypes.CDLL(str(path))

    library.load = load
    library.allowed_instruction_sets = lambda *_: [instruction_set]


def products(instruction_set: str) -> list[str]:
    """Every precision's self-test, each way of multiplying at its limit; what is wrong."""
    from assay.engine.runtime.products import native_dot

    found = native_dot.kernels()
    assert found is not None, library.native("dot").reason
    wrong = []
    for pa, pb in ((15, 15), (14, 14), (22, 14), (24, 24), (16, 9), (8, 8), (2, 3)):
        for product_variant in sorted(
            {found.product_variant(pa, pb, k) for k in (1, 40)} | {found.on("int16").product_variant(pa, pb, 1)}
        ):
            wrong.append(native_dot.failure(found, pa, pb, product_variant))
    return [w for w in wrong if w]


def program_differs(seed: int) -> str:
    """What of a random program differs from stock torch."""
    import torch

    from assay.conformance.fuzz.programs import draw
    from assay.engine.runtime.executor import Executor, KernelVariant
    from assay.engine.runtime.values.dtypes import to_bytes
    from tests.harness.engine.helpers import tensors_of

    case = draw(seed)
    inputs = tensors_of(case.program, case.state)
    torch.set_num_threads(1 + seed % 2)
    stock = [to_bytes(t) for part in Executor(case.program, variant=KernelVariant.STOCK).run(inputs) for t in part]
    fused = Executor(case.program, variant=KernelVariant.FUSED)
    # As many runs as products, so that each is checked once: the check has kernels of its own.
    for hook in (*(None,) * max(1, min(3, len(fused.product_variants))), lambda _, value: value):
        if [to_bytes(t) for part in fused.run(inputs, hook) for t in part] != stock:
            return f"seed {seed} differs"
    return ""


def main(instruction_set: str, programs: int, first: int, every: int) -> int:
    """0 when everything is right; progress to standard error, so that its reader knows what ended the process."""
    take_sanitized(instruction_set)
    from assay.engine.runtime.executor import usable_natives
    from assay.engine.runtime.native.sha256 import hasher
    from tests.harness.engine import hostile_views

    def say(what: str) -> None:
        sys.stderr.write(f"{instruction_set}: {what}\n")
        sys.stderr.flush()

    say("self-test of nodes")
    found, reason = usable_natives()
    assert found is not None and found.nodes.instruction_set == instruction_set, reason
    say("self-test of hashing")
    assert hasher() is not None
    say("products")
    wrong = products(instruction_set)
    say("hostile views")
    wrong += hostile_views.differing([instruction_set], every)
    for seed in range(first, first + programs):
        say(f"random program {seed}")
        wrong += filter(None, [program_differs(seed)])
    for line in wrong:
        print(line)
    print(f"{instruction_set}: {programs} random programs, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
