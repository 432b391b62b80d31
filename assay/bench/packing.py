"""How much smaller what a run publishes is when it is packed without loss: updates of every rule, and bases."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from torch import Tensor

from assay.bench.compare import ComparedRun, Training
from assay.engine.runtime.values.dtypes import to_bytes
from assay.engine.runtime.values.state_io import spec_of
from assay.protocol.errors import InvariantError
from assay.protocol.types import Digest
from assay.training.data import Corpus
from assay_ledger.store import listfile
from assay_ledger.store.packing import pack_list, unpack_list

UPDATE: Final = "update"
BASE: Final = "parameters"
MOMENTUM: Final = "outer momentum"
AGAINST: Final = ", against those of the round before"


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One list of the last round. bytes: of its tensors. ratio: of these over the packed ones.

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
    methods: Sequence[str], corpus: Corpus, *, preset: str, workers: int, rounds: int, inner_steps: int, seed: int = 1
) -> Iterator[PackedRow]:
    """Train by each method, and pack what it published last: its update, and of f32 its base as well."""
    for method in methods:
        training = Training(ComparedRun(method, preset, workers, seed, rounds, inner_steps), corpus)
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
    known = None if base is None else [to_bytes(t) for t in base]
    digest, size = Digest(sha256(listfile.pack(specs, data)).digest()), sum(map(len, data))
    begun = time.process_time()
    packed = pack_list(specs, data, known)
    between = time.process_time()
    found = unpack_list(specs, packed, digest, known)
    ended = time.process_time()
    if list(found) != data:
        raise InvariantError("A list was packed into another one.", code="PackedOtherwise")
    rates = [round(size / 1e6 / max(spent, 1e-6), 1) for spent in (between - begun, ended - between)]
    return PackedRow(method, what, size, len(packed), round(size / len(packed), 3), *rates)
