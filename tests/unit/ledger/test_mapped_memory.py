"""Resident memory of an actor does not grow with its data: measured in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from assay.engine import ops
from assay.engine.compiler.capture import capture
from assay.protocol.program.programfile import encode_program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects

ROW, MIB = 1024, 1 << 20
BATCH, STEPS = 64, 90

ACTOR = """
import json, sys
from pathlib import Path
from assay.protocol.program.programfile import decode_program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.long_runs import LongRun, MemoryProgress
from assay.training.rounds import TorchCompute
from assay_ledger.store.blobs import open_store
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects

def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":"))

folder, root, rows, steps, is_mapped = Path(sys.argv[1]), bytes.fromhex(sys.argv[2]), *map(int, sys.argv[3:6])
program = decode_program((folder / f"{rows}.program").read_bytes(), 1 << 28)
compute = TorchCompute()
objects = Objects(open_store(folder / "store"), LocalCache(folder / f"cache-{rows}-{is_mapped}") if is_mapped else None)
Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
before = resident("VmRSS")
data = objects.mapped(root, TensorSpec(DType.U8, (rows, 1024)))
start = (bytes(4),), (bytes(4),), (bytes(8), data)
run = LongRun(compute, program, start, steps // 3, MemoryProgress(), room=1 << 20)
marks = [run.advance().hex() for _ in range(3)]
print(json.dumps({"grown": resident("VmHWM") - before, "marks": marks}))
"""


def picked(parameters: list[Tensor], optimizer: list[Tensor], scalars: list[Tensor]) -> tuple[list[Tensor], ...]:
    """A step that counts and adds up rows drawn from all of the data, which is passed through."""
    count, data = scalars
    drawn = ops.random_words(count, count, 7, BATCH)
    rows = ops.take(data, ops.mulhi_u32(drawn, torch.tensor(data.shape[0], dtype=torch.int32)))  # [BATCH, ROW]
    total = rows.to(torch.int32).sum().to(torch.int32)
    return [parameters[0] + total], list(optimizer), [torch.stack([count[0] + 1, count[1]]), data]


def published(folder: Path, mib: int) -> tuple[Digest, int]:
    """Data of so many MiB in the store, and the program for it; its root, and its rows."""
    rows = mib * MIB // ROW
    zero = torch.zeros((), dtype=torch.int32)
    state = [[zero], [zero], [torch.zeros(2, dtype=torch.int32), torch.zeros(rows, ROW, dtype=torch.uint8)]]
    (folder / f"{rows}.program").write_bytes(encode_program(capture(picked, state).program))
    data = torch.arange(rows * ROW // 4, dtype=torch.int32).mul_(40503).numpy().tobytes()
    return Objects(open_store(folder / "store")).put_data(TensorSpec(DType.U8, (rows, ROW)), data), rows


def measured(folder: Path, root: Digest, rows: int, *, is_mapped: bool) -> tuple[int, list[str]]:
    """Bytes that an actor's peak grew by, in MiB, and its marks."""
    words = [sys.executable, "-c", ACTOR, folder, root.hex(), str(rows), str(STEPS), str(int(is_mapped))]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return found["grown"] >> 20, found["marks"]


@pytest.mark.long
def test_four_times_the_data_take_no_more_memory(tmp_path: Path) -> None:
    grown: dict[tuple[int, bool], int] = {}
    for mib in (128, 512):
        root, rows = published(tmp_path, mib)
        grown[mib, True], marks = measured(tmp_path, root, rows, is_mapped=True)
    grown[mib, False], others = measured(tmp_path, root, rows, is_mapped=False)
    assert marks == others
    print({f"{mib} MiB, {'mapped' if m else 'in memory'}": f"{g} MiB" for (mib, m), g in grown.items()})
    # A part in memory, as bytes and as they came, and what is hashed at once.
    assert grown[128, True] < 256 > grown[512, True]
    assert grown[512, True] - grown[128, True] < 32
    # The measure can fail: without a mapping all of it is there, more than once.
    assert grown[512, False] > 512
