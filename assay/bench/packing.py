"""How much smaller what a run publishes lies in a store: updates of every rule, and bases.

What a store could have besides is measured here alone: a base against that of the round before, which joiners lack.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from assay.bench.compare import ComparedRun, Training
from assay.bench.methods.trained import TrainedModel
from assay.engine.runtime.values.dtypes import to_bytes
from assay.engine.runtime.values.state_io import spec_of
from assay.protocol.errors import InvariantError
from assay_ledger.store import listfile
from assay_ledger.store.packing import ElementRun, packed, unpacked

UPDATE: Final = "update"
BASE: Final = "parameters"
MOMENTUM: Final = "outer momentum"
AGAINST: Final = ", against those of the round before"


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One list of the last round. bytes: of its file. packed: as it lies in a store. ratio: of these.

    pack, unpack: megabytes of the list a CPU second.
    """

    method: str
    what: str
    bytes: int
    packed: int
    ratio: float
    pack_rate: float
    unpack_rate: float


def packed_rows(
    methods: Sequence[str], model: TrainedModel, *, workers: int, rounds: int, inner_steps: int, seed: int = 1
) -> Iterator[PackedRow]:
    """Train by each method, and pack what it published last: its update, and of f32 its base as well."""
    for method in methods:
        training = Training(ComparedRun(method, model.name, workers, seed, rounds, inner_steps), model)
        before: tuple[list[Tensor], list[Tensor]] = ([], [])
        for number in range(rounds):
            before = training.parameters, training.momentum
            training.round(number)
        yield _row(method, UPDATE, training.newest, None)
        if method != methods[0]:
            continue
        for what, now, old in zip((BASE, MOMENTUM), (training.parameters, training.momentum), before, strict=True):
            yield _row(method, what, now, None)
            yield _row(method, what + AGAINST, now, old)


def _row(method: str, what: str, tensors: Sequence[Tensor], base: Sequence[Tensor] | None) -> PackedRow:
    """Raises InvariantError: PackedOtherwise, what comes out is not what went in."""
    specs, data = [spec_of(t) for t in tensors], [to_bytes(t) for t in tensors]
    known = None if base is None else listfile.pack(specs, [to_bytes(t) for t in base])
    size, file, runs = sum(map(len, data)), listfile.pack(specs, data), listfile.runs(specs)
    begun = time.process_time()
    kept = packed(file, runs) if known is None else packed(_folded(file, known, runs), _unturned(runs))
    between = time.process_time()
    found = file if kept is None else unpacked(kept, len(file))
    if kept is not None and known is not None and found is not None:
        found = _unfolded(found, known, runs)
    ended = time.process_time()
    if found != file:
        raise InvariantError("A list was packed into another one.", code="PackedOtherwise")
    sent = len(file if kept is None else kept)
    rates = [round(size / 1e6 / max(spent, 1e-6), 1) for spent in (between - begun, ended - between)]
    return PackedRow(method, what, len(file), sent, round(len(file) / sent, 3), *rates)


def _folded(file: bytes, base: bytes, runs: Sequence[ElementRun]) -> bytes:
    """The steps from the base modulo 2^n, where 0, -1, 1, -2, 2 ... are 0, 1, 2, 3, 4: small ones have high zeros."""
    parts = []
    for x, known in zip(_elements(file, runs), _elements(base, runs), strict=True):
        step, top = x - known, 8 * x.itemsize - 1
        parts.append(((step << 1) ^ (0 - (step >> top))).astype(x.dtype).tobytes())
    return b"".join(parts)


def _unfolded(folded: bytes, base: bytes, runs: Sequence[ElementRun]) -> bytes:
    pairs = zip(_elements(folded, runs), _elements(base, runs), strict=True)
    return b"".join((known + ((x >> 1) ^ (0 - (x & 1)))).astype(x.dtype).tobytes() for x, known in pairs)


def _elements(file: bytes, runs: Sequence[ElementRun]) -> Iterator[NDArray[np.unsignedinteger]]:
    """The patterns of each run, unsigned."""
    at = 0
    for run in runs:
        yield np.frombuffer(file, f"<u{run.width}", run.count, at)
        at += run.nbytes


def _unturned(runs: Sequence[ElementRun]) -> list[ElementRun]:
    """A step has no exponent."""
    return [replace(run, is_turned=False) for run in runs]
