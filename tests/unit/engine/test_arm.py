"""The kernels for ARM give the reference's bits on emulated processors: with i8mm, with dot products, with NEON alone.

No processor of that kind is at hand: objects are cross-compiled and run by qemu, each on a processor that has its
instructions and no better ones.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache

import pytest
import torch

from assay.engine.runtime.exact import limits
from assay.engine.runtime.exact.limits import NativeVariant
from assay.engine.runtime.executor import Natives
from assay.engine.runtime.fused import layout
from assay.engine.runtime.native import build, library, sha256
from assay.engine.runtime.products import native_dot, native_selftest
from assay.engine.runtime.products.native_dot import DotKernels, NativeDot
from tests.harness.engine import kernel_checks
from tests.harness.engine.emulator.library import CPUS, MACHINE, EmulatedLibrary, built, missing

UNAVAILABLE = missing()

pytestmark = [
    pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE or "-"),
    pytest.mark.parametrize("instruction_set", list(CPUS)),
]

FLUSH_TO_ZERO = 1 << 24
"""FPCR.FZ."""


EMULATED: dict[tuple[str, str], EmulatedLibrary] = {}
"""By unit and instruction set."""


@pytest.fixture(scope="module", autouse=True)
def _emulators_end() -> Iterator[None]:
    yield
    for each in EMULATED.values():
        each.close()


def emulated(unit: str, instruction_set: str) -> EmulatedLibrary:
    key = unit, instruction_set
    if key not in EMULATED:
        EMULATED[key] = EmulatedLibrary(*key)
    return EMULATED[key]


@cache
def dot_kernels(instruction_set: str) -> DotKernels:
    return DotKernels(emulated("dot", instruction_set), instruction_set, tiles=False)


@cache
def node_kernels(instruction_set: str) -> Natives:
    return Natives(layout.NodeKernels(emulated("nodes", instruction_set), instruction_set), None)


@pytest.mark.long
def test_the_kernel_s_flags_choose_what_a_processor_has(instruction_set: str):
    flags = library.arm_flags(emulated("canary", instruction_set).getauxval)
    allowed = library.allowed_instruction_sets({}, flags)
    assert allowed[0] == ("neon" if instruction_set == "plain" else instruction_set)
    assert allowed[-1] == "plain"


def mnemonics(unit: str, instruction_set: str) -> set[str]:
    """The names of all instructions of an object."""
    assert built(instruction_set) == ""
    path = build.object_path(unit, instruction_set, machine=MACHINE)
    command = ["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split("\t")[1].strip() for line in lines if "\t" in line}


@pytest.mark.gate_takes(1)
def test_no_object_holds_a_fused_multiply_and_add(instruction_set: str):
    for unit in build.units():
        names = mnemonics(unit, instruction_set)
        assert "ret" in names
        assert not {n for n in names if n.startswith(("fmla", "fmls", "fmadd", "fmsub", "fnmadd", "fnmsub"))}


@pytest.mark.gate_takes(2)
def test_products_use_the_best_instructions_there_are(instruction_set: str):
    found = dot_kernels(instruction_set)
    wanted = "int8x4" if instruction_set in ("i8mm", "dotprod") else "int16x1"
    assert found.product_variant(14, 14, 64) == f"{wanted}/{instruction_set}"
    names = mnemonics("dot", instruction_set)
    assert ("smmla" in names, "sdot" in names) == (instruction_set == "i8mm", instruction_set == "dotprod")


@pytest.mark.parametrize(("pa", "pb"), kernel_checks.PRECISIONS, ids=lambda bits: str(bits))
@pytest.mark.gate_takes(8)
def test_products_are_exact_up_to_the_last_term(instruction_set: str, pa: int, pb: int):
    kernel_checks.products_are_exact_up_to_the_last_term(dot_kernels(instruction_set), pa, pb)


@pytest.mark.gate_takes(2)
def test_operands_are_read_through_any_view(instruction_set: str):
    kernel_checks.operands_are_read_through_any_view(dot_kernels(instruction_set))


def test_flushing_of_subnormals_by_a_library_changes_no_product(instruction_set: str):
    kernels = emulated("dot", instruction_set)
    a = torch.full((1, 4, 40), 3.0 * 2.0**-149)
    b = torch.ones(1, 2, 40)
    e = torch.full((1, 4), -147, dtype=torch.int32), torch.ones(1, 2, dtype=torch.int32)
    program, node = native_selftest.matrix_program((1, 4, 2, 40), 14, 14)
    product = NativeDot(dot_kernels(instruction_set), program, node, ((0,), (1,), (2,)))
    wanted = native_selftest.expected((a, e[0], b, e[1]), 14, 14)[1]
    kernels.control(FLUSH_TO_ZERO)
    try:
        ours = product.run([a, e[0], b, e[1]])
    finally:
        kernels.control(0)
    assert wanted.count_nonzero() and torch.equal(ours.view(torch.int32), wanted.view(torch.int32))


def test_the_canary_sees_flush_to_zero_and_other_rounding(instruction_set: str):
    canary = emulated("canary", instruction_set)
    for control, usual in ((0, 1), (FLUSH_TO_ZERO, 0), (1 << 22, 0), (1 << 25, 1)):  # the last: default NaNs
        canary.control(control)
        assert canary.assay_floats_are_usual() == usual
    canary.control(0)


def test_the_check_of_a_product_sees_one_wrong_sum(instruction_set: str, monkeypatch: pytest.MonkeyPatch):
    check = emulated("check", instruction_set).assay_check_product
    monkeypatch.setattr(native_dot, "checker", lambda: check)
    (_, operands), *_ = reversed(list(native_selftest.cases(14, 14, 700)))
    shape = (1, operands[0].shape[1], operands[2].shape[1], operands[0].shape[2])
    program, node = native_selftest.matrix_program(shape, 14, 14)
    product = NativeDot(dot_kernels(instruction_set), program, node, ((0,), (1,), (2,)))
    values, call = list(operands), NativeDot._call
    checked = product.checked(values, (7, 1))
    assert checked is not None
    assert torch.equal(checked.view(torch.int32), native_selftest.expected(operands, 14, 14)[1].view(torch.int32))

    def bent(self: NativeDot, values: list[torch.Tensor], out: int, raw: int, *piece: object) -> None:
        call(self, values, out, raw, *piece)
        if raw:
            native_dot.sums_memory(1)[3] += 1

    monkeypatch.setattr(NativeDot, "_call", bent)
    assert product.checked(values, (7, 1)) is None


def test_every_operation_and_reduction_agrees_on_edges(instruction_set: str):
    kernel_checks.every_operation_and_reduction_agrees_on_edges(node_kernels(instruction_set))


def test_random_programs_end_as_on_stock_torch(instruction_set: str, monkeypatch: pytest.MonkeyPatch):
    kernel_checks.random_programs_end_as_on_stock_torch(node_kernels(instruction_set), monkeypatch, 40)


@pytest.mark.parametrize("variant", [-1, 0, 2], ids=["fastest", "lanes", "plain C"])
def test_digests_are_those_of_hashlib(instruction_set: str, variant: int):
    assert sha256.failure(sha256.Hasher(emulated("sha256", instruction_set), instruction_set, variant=variant)) == ""


@pytest.mark.gate_takes(2)
def test_the_route_inequalities_admit_tiles_where_dot_products_are(instruction_set: str):
    has_tiles = NativeVariant.TILES in dot_kernels(instruction_set).variants
    assert has_tiles == (instruction_set in ("i8mm", "dotprod"))
    assert dot_kernels(instruction_set).refuses(14, 14, limits.MOST_TERMS + 1)
