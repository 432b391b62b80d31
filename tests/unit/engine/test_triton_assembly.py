"""Triton's kernels compiled for GPUs that need not be here: tensor cores multiply integers, nothing is fused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


TARGETS = ["80", "89", "90", "100", "gfx942"]

SHARED = {"80": 163 << 10, "89": 99 << 10, "90": 227 << 10, "100": 227 << 10}
"""Bytes that the warps of a program may share. Without a GPU kernels are cut for 96 KiB, which AMD's devices do not
have; where one is, for what it has. Source: NVIDIA's CUDA programming guide, compute capabilities.
"""


def compiled_for(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return without_interpreter(cache, "-m", "assay.engine.runtime.triton.assembly", *arguments)


def without_interpreter(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(cache)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170)


@pytest.mark.parametrize("target", ["90", "100", "gfx942"])
def test_what_a_step_is_made_of_multiplies_integers_and_rounds_as_it_says(target: str, tmp_path: Path):
    """The kernels in which most of a step's time goes; all of them, for all targets, are looked at below."""
    names = ["i8x4 of 14 bits, packed", "map", "causal rows"]
    done = compiled_for(tmp_path, target, *(word for name in names for word in ("--only", name)))
    findings = json.loads(done.stdout)
    assert done.returncode == 0, findings
    assert {f["kernel"] for f in findings} == set(names), done.stderr
    assert all((f["integer_products"] > 0) == ("bits" in f["kernel"]) for f in findings)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_for_gpus_multiply_integers_and_fuse_flush_and_approximate_nothing(target: str, tmp_path: Path):
    """In a process of its own, without the interpreter, and with a cache of its own."""
    done = compiled_for(tmp_path, target)
    findings = json.loads(done.stdout)
    assert {f["kernel"]: f["forbidden"] for f in findings if f["forbidden"]} == {}, done.stderr
    assert done.returncode == 0
    products = {f["kernel"]: f["integer_products"] for f in findings if "bits" in f["kernel"]}
    left_out = {f"i8x4 of 14 bits, {what}" for what in ("gap 2, cut 0", "gap 0, cut 1", "gap 0, cut 2")}
    integer = {f"{name}{how}" for name in {"i8x4 of 14 bits", "i8x1 of 8 bits"} | left_out for how in ("", ", packed")}
    tiles = ("a product by rows", "a product by columns", "a sum", "exponents of columns")
    integer |= {f"{reader} of tiles of 14 bits" for reader in tiles}
    assert {name for name, count in products.items() if count} == integer
    assert {f["kernel"]: f["shared"] for f in findings if f["shared"] > SHARED.get(target, f["shared"])} == {}
    assert products["i8x4 of 14 bits"] % 4 == products["i8x4 of 14 bits, packed"] % 4 == 0
    kinds = {"map", "rowexp", "max", "sum", "gather", "scatter_sum", "rank", "random", "dot by element"}
    kinds |= {"sha256 of leaves", "sha256 of a level", "words of a draw"}
    kinds |= {"rows together", "causal rows", "maps computed again", "maps together"}
    assert {f["kernel"] for f in findings} == kinds | set(products)


LOOPS = """
import json, re, torch
from assay.engine.runtime.products.freivalds import ProductWatch
from assay.engine.runtime.triton import assembly, backend, nodes, products, reductions
from assay.engine.runtime.triton.checks import ProductChecks
from assay.engine.runtime.triton.routes import route
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

found = {}
for terms in ((1 << 31) - 1, (1 << 31) + 1):
    rows = reductions.ENOUGH_PROGRAMS
    b = ProgramBuilder([[TensorSpec(DType.F32, (1, 1)), TensorSpec(DType.I32, (rows,))]])
    program = b.build([[b.sum(b.input(0, 0).expand(rows, terms), 1, b.input(0, 1))]])
    with backend.recorded() as seen:
        nodes.kernel(program, program.nodes[-2])[0]([torch.zeros(1, 1), torch.zeros(rows, dtype=torch.int32)])
    (launch,) = seen
    text = str(assembly.compiled(launch, "90").asm["ttir"])
    ends = {name: int(value) for name, value in re.findall(r"(%\\S+) = arith.constant (-?\\d+) : i", text)}
    loops = re.findall(r"scf.for .* to (\\S+) step .* : (i\\d+) {", text)
    found[terms] = [(ends.get(end), kind) for end, kind in loops]
program, node, values = assembly._matrices(64, 64, 96, 14, 14)
with backend.recorded() as seen:
    k = program.nodes.index(node)
    check = ProductChecks(program, ProductWatch((k,))), k
    products.by_digits(program, node, route(14, 14), ((), (0,), (1,)), packed=False, check=check)(values)
text = str(assembly.compiled(seen[0], "90").asm["ttir"])
found["weighed"] = re.findall(r"scf.for .* : (i\\d+) {", text)
print(json.dumps(found))
"""


def test_a_loop_over_more_terms_than_an_i32_counts_ends_behind_the_last_one(tmp_path: Path):
    """Few elements that repeat have as many terms as there may be. A compiler counted to 2^31 - 1 by i32, which has no
    step behind that, and beyond by u32, whose loops it takes for i32: of no terms, so none was left in the kernel.
    """
    done = without_interpreter(tmp_path, "-c", LOOPS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("weighed") == ["i64"], "528 programs share up to 2^31 - 1 blocks, and step past the last one"
    assert found == {str(terms): [[terms, "i64"]] for terms in ((1 << 31) - 1, (1 << 31) + 1)}


INSTRUCTIONS = """
import json, re, torch
from assay.engine.runtime.triton import assembly, backend, probe, products
from assay.engine.runtime.triton.routes import Carrier, route

MULTIPLIES = re.compile(r"wgmma.mma_async|mma.sync|tcgen05.mma")
found = {}
for carrier, target in ((Carrier.I8, "90"), (Carrier.F16, "90"), (Carrier.F16, "100")):
    by = route(14, 14, carrier)
    own = {p.constants["BM"]: p for p in probe._launches(by, 14, 14) if p.kernel.__name__ == "product"}
    taken = []
    for m, n in ((1024, 768), (16, 64)):
        program, node, values = assembly._matrices(m, n, 768, 14, 14)
        with backend.recorded() as seen:
            products.by_digits(program, node, by, ((), (0,), (1,)))(values)
        taken.append(seen[-1])
    texts = [[str(assembly.compiled(launch, target).asm["ptx"]) for launch in part] for part in (own.values(), taken)]
    found[f"{carrier.name} {target}"] = [sorted(set(MULTIPLIES.findall(" ".join(part)))) for part in texts]
print(json.dumps(found))
"""


@pytest.mark.long
def test_the_probe_multiplies_by_every_instruction_that_products_take(tmp_path: Path):
    """Small blocks by those of a warp, large ones by those of several: one of them says nothing of the other."""
    done = without_interpreter(tmp_path, "-c", INSTRUCTIONS)
    assert done.returncode == 0, done.stderr
    of_many = {"I8 90": "wgmma.mma_async", "F16 90": "wgmma.mma_async", "F16 100": "tcgen05.mma"}
    assert json.loads(done.stdout) == {name: [["mma.sync", many]] * 2 for name, many in of_many.items()}


SMALL_TILES = """
import json
from assay.engine.runtime.triton import arena, assembly, backend
from assay.engine.runtime.triton.routes import route
from assay.engine.runtime.triton.tiles import VirtualKernels
from assay.engine.runtime.triton.virtual import virtual_nodes
from assay.engine.runtime.values.dtypes import TORCH
from assay.protocol.program.nodes import Dot
from tests.harness.engine.scores import readers
import torch

program, _ = readers()
virtual = virtual_nodes(program)
made = VirtualKernels(program, virtual, route)
values = [torch.zeros(spec.dims, dtype=TORCH[spec.dtype]) for spec in program.specs]
found = []
for k in virtual.readers:
    if isinstance(program.nodes[k], Dot):
        with backend.recorded() as seen:
            made.of(k)(values)
        text = str(assembly.compiled(seen[-1], "90").asm["ptx"])
        found.append(len(assembly.INTEGER_PRODUCT.findall(text)))
print(json.dumps(found))
"""


@pytest.mark.long
def test_products_of_tiles_of_few_rows_or_columns_can_be_compiled(tmp_path: Path):
    """Heads of 20 by 14: tensor cores multiply 32 bytes at least, which the interpreter does not ask for."""
    done = without_interpreter(tmp_path, "-c", SMALL_TILES)
    assert done.returncode == 0, done.stderr
    assert len(found := json.loads(done.stdout)) == 2 and min(found) > 0
