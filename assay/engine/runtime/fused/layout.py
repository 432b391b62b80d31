"""The structures of `assay/engine/runtime/native/kernels/nodes.h` and `tile.h`, field by field, and the functions
that take them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import Structure, Union, c_int32, c_int64, c_void_p
from enum import IntEnum
from functools import cache
from pathlib import Path

import torch

from assay.engine.runtime.native.library import Native, native

MAX_RANK = 16
_Dims = c_int64 * MAX_RANK


class OpKind(IntEnum):
    """What a node is to the kernels."""

    MAP = 0
    ROWEXP = 1
    MAX = 2
    SUM = 3
    GATHER = 4
    SCATTER_SUM = 5
    RANDOM = 6
    DOT = 7


class Mode(IntEnum):
    """How a view is read, see `tile.h`."""

    DIRECT = 0
    SCALAR = 1
    ROW_SCALAR = 2
    REPEATED = 3
    STRIDED = 4


class Strategy(IntEnum):
    """How a reduction finds its terms, see `nodes.h`."""

    BY_ROWS = 0
    BY_COLUMNS = 1
    BY_TILES = 2
    BY_PLANES = 3


class CView(Structure):
    """View."""

    _fields_ = (
        ("node", c_int64),
        ("dtype", c_int64),
        ("mode", c_int64),
        ("offset", c_int64),
        ("bounded", c_int64),
        ("fill", c_int64),
        ("stride", _Dims),
        ("lo", _Dims),
        ("hi", _Dims),
    )


class CSpace(Structure):
    """Space."""

    _fields_ = (("rank", c_int64), ("size", _Dims))


class CCode(Structure):
    """Code."""

    _fields_ = tuple((name, c_int32) for name in ("function", "out", "a", "b", "c", "single"))


class CGather(Structure):
    """Of a table: entries, the stride from one to the next; whether the index is the same along the last dimension."""

    _fields_ = (("entries", c_int64), ("stride", c_int64), ("same_inside", c_int64))


class CScatterSum(Structure):
    """Dimensions of a row of out, rows of out, elements from one row's exponents to the next's."""

    _fields_ = (("rest", c_int64), ("rows", c_int64), ("exponent_stride", c_int64))


class CRandom(Structure):
    """The stream's number, and the nodes of key and step."""

    _fields_ = (("stream", c_int64), ("key", c_int64), ("step", c_int64))


class CDot(Structure):
    """The function of the unit `dot`, its plan, the nodes that it reads, and whether threads are worth it."""

    _fields_ = (
        ("run", c_int64),
        ("plan", c_void_p),
        ("a", c_int64),
        ("exponent_a", c_int64),
        ("b", c_int64),
        ("exponent_b", c_int64),
        ("threaded", c_int64),
    )


class CByOpKind(Union):
    """What one kind of node alone has."""

    _fields_ = (("gather", CGather), ("scatter_sum", CScatterSum), ("random", CRandom), ("dot", CDot))


class COp(Structure):
    """Op."""

    _anonymous_ = ("by_kind",)
    _fields_ = (
        ("kind", c_int64),
        ("node", c_int64),
        ("dtype", c_int64),
        ("numel", c_int64),
        ("out_rank", c_int64),
        ("space", CSpace),
        ("n_views", c_int64),
        ("views", c_void_p),
        ("strategy", c_int64),
        ("terms", c_int64),
        ("own_exponents", c_int64),
        ("tile", c_int64),
        ("by_runs", c_int64),
        ("n_code", c_int64),
        ("n_first", c_int64),
        ("n_slots", c_int64),
        ("slot_bytes", c_int64),
        ("code", c_void_p),
        ("constants", c_void_p),
        ("by_kind", CByOpKind),
    )


class CGroup(Structure):
    """Group."""

    _fields_ = (
        ("n_ops", c_int64),
        ("ops", c_void_p),
        ("per_row", c_void_p),
        ("rows", c_int64),
        ("block", c_int64),
        ("n_scratch", c_int64),
        ("scratch_node", c_void_p),
        ("scratch_offset", c_void_p),
        ("scratch_row_bytes", c_void_p),
        ("scratch_bytes", c_int64),
    )


def dims(values: Sequence[int]) -> ctypes.Array[c_int64]:
    """A field of up to 16 numbers."""
    return _Dims(*values)


class NodeKernels:
    """The functions of one library of the unit `nodes`."""

    def __init__(self, handle: ctypes.CDLL, instruction_set: str) -> None:
        self.instruction_set = instruction_set
        handle.assay_layout.restype = c_int64
        handle.assay_layout.argtypes = [c_int64]
        handle.assay_tile_functions.restype = ctypes.c_char_p
        run = handle.assay_run_groups
        run.restype = ctypes.c_int
        run.argtypes = [c_void_p, c_int64, c_int64, c_void_p, c_int64, c_int64]
        self.run_groups = run
        runtime = Path(torch.__file__).parent / "lib" / "libgomp.so.1"
        if runtime.exists():
            # Torch's own threads: they spin for a while after each piece of work, so others would find no core.
            handle.assay_set_team.argtypes, handle.assay_set_team.restype = [c_void_p], None
            handle.assay_set_team(ctypes.cast(ctypes.CDLL(str(runtime)).GOMP_parallel, c_void_p))
        names = handle.assay_tile_functions().decode().split()
        self.functions = {name: number for number, name in enumerate(names)}
        sizes = [ctypes.sizeof(s) for s in (CView, CSpace, CCode, COp, CGroup)]
        found = [int(handle.assay_layout(k)) for k in range(6)]
        if found[:5] != sizes:
            raise OSError("the native library lays its structures out otherwise")
        self.slots = found[5]


@cache
def kernels() -> tuple[NodeKernels | None, str]:
    """The kernels for this machine, or None and the reason."""
    unit: Native = native("nodes")
    if unit.handle is None:
        return None, unit.reason
    try:
        return NodeKernels(unit.handle, unit.instruction_set), ""
    except (OSError, AttributeError) as error:
        return None, str(error)
