"""A program says what memory it takes before any of it is taken, and one that is too large is refused by name."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from assay.engine.runtime import footprint
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.room import check_memory
from assay.protocol.errors import UserError
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Dot, Input, Map, Operand, Output, Random, RowExp, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.fused_instruction_sets import needs_kernels
from tests.harness.programs import unary

F32, I32 = DType.F32, DType.I32
VARIANTS = [KernelVariant.STOCK, pytest.param(KernelVariant.FUSED, marks=needs_kernels)]


def one_node(node, *inputs: TensorSpec) -> Program:
    slots = [Input(s, 0, k) for k, s in enumerate(inputs)]
    found = Program((*slots, node, Output(node.spec, 0, 0, len(slots))), (len(slots),), (1,))
    assert not violations(found)
    return found


def of_one(dims: tuple[int, ...]) -> Operand:
    """The first element of the first input, everywhere."""
    return Operand(0, View(0, (0,) * len(dims), (0,) * len(dims), dims))


def large() -> dict[str, Program]:
    """A few hundred bytes each, 256 GiB and more when they run."""
    scalar, pair = TensorSpec(F32, ()), TensorSpec(I32, (2,))
    many = 1 << 36
    code = unary(F32, "add", 1.0).encode()
    e = Operand(1, View(0, (0,), (0,), (many,)))
    over = (1 << 18, 1 << 18, 2)
    b, eb = Operand(0, View(0, (0, 0, 0), (0, 0, 0), over)), Operand(1, View(0, (0, 0), (0, 0), over[:2]))
    return {
        "map": one_node(Map(TensorSpec(F32, (many,)), (of_one((many,)),), code), scalar),
        "rowexp": one_node(RowExp(TensorSpec(I32, (many,)), (1,), of_one((many, 1))), scalar),
        "sum": one_node(Sum(TensorSpec(F32, (many,)), (2,), of_one((many, 2)), e), scalar, pair),
        "dot": one_node(Dot(TensorSpec(F32, over[:2]), (2,), 14, 14, b, b, eb, eb), scalar, pair),
        "random": one_node(Random(TensorSpec(I32, (1 << 34,)), 1, 0, 0), pair),
    }


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", large())
def test_a_program_of_256_gib_is_refused_before_anything_is_allocated(name: str, variant: KernelVariant):
    program = large()[name]
    with pytest.raises(UserError) as caught:
        Executor(program, variant=variant, memory=64 << 30)
    assert caught.value.code == "ProgramTooLarge"
    assert int(str(caught.value.details["needed"])) >= (64 << 30 if name == "random" else 256 << 30)
    with pytest.raises(UserError):
        check_memory(program, 64 << 30)


def test_an_empty_reduction_is_refused_where_stock_torch_writes_its_terms_down():
    node = RowExp(TensorSpec(I32, ()), (1 << 36,), of_one((1 << 36,)))
    with pytest.raises(UserError, match="GiB"):
        Executor(one_node(node, TensorSpec(F32, ())), variant=KernelVariant.STOCK, memory=64 << 30)


def test_an_index_space_that_nobody_counts_is_refused_though_it_is_empty():
    for dims in ((0, 1 << 40, 1 << 20), (1 << 40, 1 << 40, 0)):
        view = View(0, (0,) * len(dims), (0,) * len(dims), tuple(0 for _ in dims))
        node = Map(TensorSpec(F32, dims), (Operand(0, view),), unary(F32, "add", 1.0).encode())
        for variant in (KernelVariant.STOCK, None):
            with pytest.raises(UserError) as caught:
                Executor(one_node(node, TensorSpec(F32, ())), variant=variant)
            assert caught.value.code == "ProgramTooLarge"


def test_what_fits_to_the_byte_is_run_and_one_byte_less_is_refused():
    b = ProgramBuilder([[TensorSpec(F32, (300, 50))]])
    program = b.build([[b.sum(b.input(0, 0), 1)]])
    for variant in (KernelVariant.STOCK, None):
        most = Executor(program, variant=variant).memory
        assert Executor(program, variant=variant, memory=most).memory == most
        with pytest.raises(UserError):
            Executor(program, variant=variant, memory=most - 1)


def test_a_cross_check_is_tried_whatever_it_takes(monkeypatch: pytest.MonkeyPatch):
    """It is made before an accusation: who refused it then would lose what is at stake."""
    b = ProgramBuilder([[TensorSpec(F32, (300, 50))]])
    program = b.build([[b.sum(b.input(0, 0), 1)]])
    monkeypatch.setenv("ASSAY_MEMORY", "100000")
    with pytest.raises(UserError):
        Executor(program, variant=KernelVariant.STOCK)
    assert Executor(program, cross_check=True).run([[torch.ones(300, 50)]])[0][0].tolist() == [50.0] * 300


def test_the_limit_is_what_is_named_or_what_there_is(tmp_path: Path):
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < footprint.limit({}) <= physical
    assert footprint.limit({"ASSAY_MEMORY": "12345"}) == 12345
    assert footprint.limit({"ASSAY_MEMORY": "3GiB"}) == 3 << 30
    assert footprint.limit({"ASSAY_MEMORY": "512 MiB"}) == 512 << 20
    for wrong in ("3 GB", "-1", "many", "1.5GiB"):
        with pytest.raises(UserError) as caught:
            footprint.limit({"ASSAY_MEMORY": wrong})
        assert caught.value.code == "BadMemoryLimit"
    assert footprint.limit({}, tmp_path) == physical


MIB = 1 << 20
UNIT = "0::/system.slice/assay.service\n"
OF_1 = "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n0::/\n"
GROUPS = {
    "the group of a unit": (UNIT, {"system.slice/assay.service/memory.max": "1048576\n"}, MIB),
    "the least on the way up": (
        UNIT,
        {"system.slice/assay.service/memory.max": "4194304", "system.slice/memory.max": "2097152", "memory.max": "max"},
        2 * MIB,
    ),
    "the root alone, as a container sees it": (UNIT, {"memory.max": "1048576"}, MIB),
    "a beginning of the path": (UNIT, {"system.slice/memory.max": "1048576"}, MIB),
    "version 1": (OF_1, {"memory/docker/ab/memory.limit_in_bytes": "1048576\n"}, MIB),
    "version 1, above": (OF_1, {"memory/memory.limit_in_bytes": "2097152\n"}, 2 * MIB),
    "of another unit": (UNIT, {"system.slice/other.service/memory.max": "1048576"}, None),
    "no limit": (UNIT, {"system.slice/assay.service/memory.max": "max"}, None),
    "no list of groups": (None, {"memory.max": "1048576"}, MIB),
    "a list of something else": ("nonsense\n:\n", {"memory.max": "1048576"}, MIB),
}


@pytest.mark.parametrize(("own", "files", "wanted"), GROUPS.values(), ids=GROUPS)
def test_the_limit_is_the_least_of_the_own_group_and_those_above_it(
    own: str | None, files: dict[str, str], wanted: int | None, tmp_path: Path
) -> None:
    """Attack: a unit with MemoryMax= stakes by what the machine has, and is killed inside a game."""
    texts = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    if own is not None:
        texts["proc/self/cgroup"] = own
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert footprint.limit({}, tmp_path) == (wanted or footprint.limit({}, tmp_path / "nothing"))


def high_water() -> int:
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def blocks_of_their_own() -> Iterator[None]:
    """Large blocks are mapped and given back one by one: what glibc leaves between them differs from run to run."""
    mallopt, threshold = getattr(ctypes.CDLL(None), "mallopt", None), -3
    if mallopt is None:
        pytest.skip("the C library keeps freed memory as it likes")
    mallopt(threshold, 128 << 10)
    yield
    mallopt(threshold, 32 << 20)


ROWS, COLUMNS = 1 << 11, 1 << 10


def by_index(b: ProgramBuilder, x: Ref, rows: int) -> Ref:
    """The rows of x added to few of many rows, as the gradient of an embedding is."""
    terms, width = x.dims
    index = b.const(TensorSpec(I32, (terms,)), struct.pack(f"<{terms}i", *(k * 7 % rows for k in range(terms))))
    exponent = b.const(TensorSpec(I32, (rows,)), struct.pack(f"<{rows}i", *[3] * rows))
    turned = x.permute(1, 0).unsqueeze(0).expand(rows, width, terms)
    by_term = index.unsqueeze(0).unsqueeze(0).expand(rows, width, terms)
    return b.scatter_sum(turned, by_term, exponent.unsqueeze(1).expand(rows, width), (rows, width), (terms,))


def test_the_gradient_of_a_large_embedding_takes_as_much_as_it_has_elements():
    b = ProgramBuilder([[TensorSpec(F32, (256, 768))]])
    program = b.build([[by_index(b, b.input(0, 0), 50_257)]])
    for stock in (None, footprint.left_to_stock(program)):
        assert footprint.needed(program, stock)[0] < 12 * 4 * 50_257 * 768


def programs() -> dict[str, Callable[[ProgramBuilder, Ref], Ref]]:
    """Nodes over an input of 8 MiB, so that what they take is far above what Python takes beside."""
    whole = (ROWS, COLUMNS)
    exponent = struct.pack("<i", 3)
    return {
        "map": lambda b, x: b.map(unary(F32, "add", 1.0), [x], whole),
        "map of a window": lambda b, x: b.map(unary(F32, "add", 1.0), [x.slice(1, 1, COLUMNS).pad(1, 0, 1)], whole),
        "map backwards": lambda b, x: b.map(unary(F32, "add", 1.0), [x.slice(0, ROWS - 1, -1, -1)], whole),
        "map of one element": lambda b, x: b.map(
            unary(F32, "add", 1.0), [x.select(0, 0).select(0, 0).expand(*whole, 4)], (*whole, 4)
        ),
        "rowexp": lambda b, x: b.rowexp(x, 1),
        "max of a window": lambda b, x: b.max(x.pad(1, 0, 1, 0), 1),
        "sum": lambda b, x: b.sum(x, 1),
        "sum of columns": lambda b, x: b.sum(x.permute(1, 0), 1),
        "sum by index, an exponent per row": lambda b, x: by_index(b, x, ROWS // 2),
        "sum under another exponent": lambda b, x: b.sum(x, 1, b.const(TensorSpec(I32, ()), exponent).expand(ROWS)),
    }


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", programs())
@pytest.mark.usefixtures("blocks_of_their_own")
def test_a_run_takes_no_more_than_was_said(name: str, variant: KernelVariant):
    b = ProgramBuilder([[TensorSpec(F32, (ROWS, COLUMNS))]])
    program = b.build([[programs()[name](b, b.input(0, 0))]])
    executor = Executor(program, variant=variant)
    x: Tensor = torch.randn(ROWS, COLUMNS)
    small = 4 << 20
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the peak of memory cannot be read anew here")
    before = resident() - x.nbytes
    executor.run([[x]])
    taken = high_water() - before
    assert taken <= executor.memory + small, (taken, executor.memory)
