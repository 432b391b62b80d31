"""Nothing that a well-formed program says ends a process: views that read nothing, at any address."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.program.nodes import Map
from assay.protocol.program.reference import ReferenceExecutor
from tests.harness.engine.fused_instruction_sets import PRESENT, needs_kernels
from tests.harness.engine.helpers import tensors_of
from tests.harness.engine.hostile_views import huge_tables, programs

ROOT = Path(__file__).resolve().parents[3]


def test_stock_torch_reads_hostile_maps_and_huge_tables_as_the_reference_does():
    small = [c for c in programs() if any(isinstance(n, Map) and n.spec.numel < 30 for n in c.program.nodes)]
    assert len(small) > 100
    for case in (*small[::5], *huge_tables()):
        reference = ReferenceExecutor(case.program).run(case.state)
        ends = Executor(case.program, variant=KernelVariant.STOCK).run(tensors_of(case.program, case.state))[0]
        assert [to_bytes(t) for t in ends] == list(reference[-len(ends) :]), case.name


@needs_kernels
def test_views_that_read_nothing_end_no_process_and_give_the_bits_of_stock_torch():
    """Every family and element type, offsets and strides of any 64 bits; in a process of its own, which may end."""
    command = [sys.executable, "-m", "tests.harness.engine.hostile_views", *PRESENT]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"ended by {done.returncode} in: {done.stderr.strip().splitlines()[-1:]}"
    assert done.stdout == f"ran {len(PRESENT) * sum(1 for _ in programs())}\n"
