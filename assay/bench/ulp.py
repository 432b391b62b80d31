"""The largest error of every scalar function, over all 2^32 inputs or any others.

A function is run as the program of maps that training runs, by the native kernels where they are, and compared with the
binary64 values of `oracles`. Those are a little wrong themselves: where one lies so near a rounding boundary that it
does not tell the nearest binary32 number, mpmath does. Below 2^-125 gelu(x) and gelu_tanh(x) are x/2 plus something
positive far smaller than any boundary's distance, so that the halves of odd subnormals round up: settled by that alone.

Errors are in units of the last place of the true value (ulp), 2^-149 at least, or absolute where a value passes through
zero. What is finished is one JSON line per 2^24 inputs, under the digest of the function's code: a sweep goes on where
the last one stopped, and a changed function starts anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from assay.bench.function_table import code_digest, maps_of
from assay.bench.oracles import APPROXIMATE, BOUNDS, rounded, true_value
from assay.bench.screen import screen
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

NAMES: Final = tuple(APPROXIMATE)
"""In the order in which they are swept."""

BLOCK: Final = 1 << 24
"""Inputs per record."""

CHUNK: Final = 1 << 15
"""Inputs at a time: the binary64 passes over them stay in the second cache."""

OVERFLOW: Final = 2.0**128 - 2.0**103
"""True values from here on round to infinity."""

ABSOLUTE: Final = frozenset({"gelu_grad", "gelu_tanh", "sin", "cos"})
WITHIN: Final[dict[str, float]] = {"gelu_tanh": 7.0, "sin": 32768.0, "cos": 32768.0}
"""The inputs up to which an error is stated. Beyond, sin and cos must stay within [-1, 1]."""

FLOOR: Final = 2.0**-24
"""An ulp of gelu is at least that of this times |x|."""

UNSEEN_ULP: Final = 0.5
UNSEEN_ABSOLUTE: Final = 2.0**-25
"""Errors up to these are not looked for in a sweep, as every function has larger ones."""

_HALVED = frozenset({"gelu", "gelu_tanh"})
_EXPONENT = 0x7FF << 52
_LOWEST = (1023 - 126) << 52


@dataclass(frozen=True, slots=True)
class UlpErrors:
    """What was seen on some inputs.

    worst: largest error; at: its input. misrounded: results that are not the nearest binary32 number. settled: inputs
    that mpmath decided; by_series: those of gelu and gelu_tanh below 2^-125. special: inputs whose value is NaN or
    infinite. wrong: those for which the result is not, or is and should not be; first_wrong: one of them.
    """

    inputs: int = 0
    worst: float = 0.0
    at: int = 0
    misrounded: int = 0
    settled: int = 0
    by_series: int = 0
    special: int = 0
    wrong: int = 0
    first_wrong: int = 0

    def __add__(self, other: UlpErrors) -> UlpErrors:
        larger = other if other.worst > self.worst else self
        counts = {
            f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name not in _NOT_ADDED
        }
        first = self.first_wrong if self.wrong else other.first_wrong
        return UlpErrors(worst=larger.worst, at=larger.at, first_wrong=first, **counts)


_NOT_ADDED = frozenset({"worst", "at", "first_wrong"})


def program_of(name: str, count: int) -> Program:
    """The function on a vector of this many elements."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (count,))]])
    columns = [b.input(0, 0)]
    for scalar in maps_of(name):
        columns.append(b.map(scalar, columns, (count,)))
    return b.build([[columns[-1]]])


class UlpMeter:
    """One function with its executor; `variant` None takes the native kernels where they are."""

    def __init__(self, name: str, *, variant: KernelVariant | None = None, chunk: int = CHUNK) -> None:
        self.name, self.chunk = name, chunk
        self._executor = Executor(program_of(name, chunk), variant=variant)
        self.variant = self._executor.variant
        self._limit = WITHIN.get(name, 0.0)

    def results(self, x: Tensor) -> Tensor:
        """The function of f32 [chunk]."""
        return self._executor.run([[x]])[0][0]

    def measure(self, patterns: Tensor) -> UlpErrors:
        """What is seen on these patterns, i32 [n] with n a multiple of the chunk."""
        found = UlpErrors()
        for piece in torch.split(patterns, self.chunk):
            found += self._closely(piece)
        return found

    def measure_range(self, low: int, high: int) -> UlpErrors:
        """What is seen on all patterns from low to below high, multiples of the chunk."""
        found, steps = UlpErrors(), torch.arange(self.chunk, dtype=torch.int32)
        for start in range(low, high, self.chunk):
            patterns = steps + (start - (1 << 32) if start >> 31 else start)
            found += self._quickly(start & 0x7FFFFFFF, patterns, found.worst) or self._closely(patterns)
        return found

    def _quickly(self, least: int, patterns: Tensor, worst: float) -> UlpErrors | None:
        """What is seen on neighbours from this magnitude on, where nothing calls for a closer look."""
        if (self.name in _HALVED and least < 1 << 24) or (
            self.name == "gelu_grad" and 0x3F000000 <= least <= 0x3FC00000
        ):
            return None
        x = patterns.view(torch.float32)
        y = self.results(x)
        if self._limit and not float(x[-1].abs()) <= self._limit:
            # Largest, or NaN, is the last: beyond the limit from the first on, or look closer.
            fits = float(x[0].abs()) > self._limit and float(y.abs().max()) <= (
                torch.inf if self.name in _HALVED else 1.0
            )
            return UlpErrors(len(patterns)) if fits and least < 0x7F800000 else None
        counts = screen(
            x,
            y,
            APPROXIMATE[self.name](x.double()),
            floor=FLOOR if self.name == "gelu" else 0.0,
            is_absolute=self.name in ABSOLUTE,
            doubt=BOUNDS[self.name] * 2.0**-28 * (4 if self.name == "gelu_grad" else 1),
            worst=max(worst, UNSEEN_ABSOLUTE if self.name in ABSOLUTE else UNSEEN_ULP),
        )
        return None if counts is None else UlpErrors(len(patterns), special=counts[0], misrounded=counts[1])

    def _closely(self, patterns: Tensor) -> UlpErrors:
        """What is seen on any patterns, by passes over whole tensors."""
        x = patterns.view(torch.float32)
        y = self.results(x)
        exact = x.double()
        t = APPROXIMATE[self.name](exact)
        wide = y.double()
        one_over_unit = _one_over_unit(t)
        error = (wide - t).abs_()
        scaled = t * one_over_unit
        if self.name == "gelu":
            error *= _one_over_unit(torch.maximum(t.abs(), exact.abs() * FLOOR))
        elif self.name not in ABSOLUTE:
            error *= one_over_unit
        differs = t.float() != y
        special = wrong = 0
        first_wrong = 0
        worst = float(error.max())
        if worst != worst or worst >= 2.0**100:
            outside = ~(t.abs() < OVERFLOW)
            expected = torch.where(t > 0, torch.inf, -torch.inf).masked_fill_(t.isnan(), torch.nan)
            same = (wide == expected) | (wide.isnan() & expected.isnan())
            bad = torch.where(outside, ~same, ~wide.isfinite())
            special, wrong = int(outside.sum()), int(bad.sum())
            first_wrong = int(patterns[bad][0]) & 0xFFFFFFFF if wrong else 0
            aside = outside | ~wide.isfinite()
            error.masked_fill_(aside, 0.0)
            differs &= ~aside
            scaled.masked_fill_(aside, 0.0)
        if self._limit:
            beyond = ~(exact.abs() <= self._limit)
            error.masked_fill_(beyond, 0.0)
            if self.name in ("sin", "cos"):
                large = beyond & (wide.abs() > 1)
                wrong += int(large.sum())
            differs &= ~beyond
            scaled.masked_fill_(beyond, 0.0)
        near = (scaled - scaled.floor() - 0.5).abs_() <= self._doubt(exact, one_over_unit)
        settled = by_series = 0
        if bool(near.any()):
            if self.name in _HALVED:
                halves = near & (exact.abs() < 2.0**-125)
                by_series = int(halves.sum())
                nearest = ((exact * 2.0**148 + 0.5).floor() * 2.0**-149).float()
                differs = torch.where(halves, nearest != y, differs)
                near &= ~halves
            for k in near.nonzero().flatten().tolist():
                nearest_bits = rounded(true_value(self.name, float(exact[k])))
                got = int(y.view(torch.int32)[k]) & 0xFFFFFFFF
                differs[k] = nearest_bits != got and (nearest_bits | got) & 0x7FFFFFFF != 0
                settled += 1
        worst, at = (float(v) for v in error.max(0))
        return UlpErrors(
            inputs=len(patterns),
            worst=worst,
            at=int(patterns[int(at)]) & 0xFFFFFFFF,
            misrounded=int(differs.sum()),
            settled=settled,
            by_series=by_series,
            special=special,
            wrong=wrong,
            first_wrong=first_wrong,
        )

    def _doubt(self, x: Tensor, one_over_unit: Tensor) -> Tensor | float:
        """The oracle's error bound in ulps: |value| is below 2^24 of them."""
        doubt = BOUNDS[self.name] * 2.0**-28
        if self.name != "gelu_grad":
            return doubt
        # Phi + |x| phi is at most 4 times the value, but for x from -1.5 to -0.5: there it is at most 0.55.
        crossing = (x + 1.0).abs() <= 0.5
        return torch.where(crossing, one_over_unit * (BOUNDS[self.name] * 2.0**-52), 4 * doubt)


def _one_over_unit(t: Tensor) -> Tensor:
    """1 / ulp of values, a power of two in binary64: 2^(23 - floor(log2 |t|)), 2^149 at most."""
    field = t.view(torch.int64).bitwise_and(_EXPONENT).clamp_min_(_LOWEST)
    return field.neg_().add_(2069 << 52).view(torch.float64)


# --- sweeps


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """What was seen on the patterns from low to below high, by code of this digest."""

    function: str
    code: str
    low: int
    high: int
    found: UlpErrors


def read_records(path: Path) -> list[SweepRecord]:
    """The finished blocks that a file holds; a line that was cut off is left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
            records.append(SweepRecord(**(entry | {"found": UlpErrors(**entry["found"])})))
        except (ValueError, TypeError, KeyError):
            continue
    return records


def sweep(names: Sequence[str], path: Path, *, seconds: float | None = None) -> Iterator[SweepRecord]:
    """Measure the blocks that the file does not have yet, one after the other, and append each as it is finished."""
    ends = None if seconds is None else time.monotonic() + seconds
    done = {(r.function, r.code, r.low, r.high) for r in read_records(path)}
    with path.open("a", encoding="utf-8") as file:
        for name in names:
            code, meter = code_digest(name), None
            for low in range(0, 1 << 32, BLOCK):
                if (name, code, low, low + BLOCK) in done:
                    continue
                if ends is not None and time.monotonic() >= ends:
                    return
                meter = meter or UlpMeter(name)
                record = SweepRecord(name, code, low, low + BLOCK, meter.measure_range(low, low + BLOCK))
                file.write(json.dumps(asdict(record)) + "\n")
                file.flush()
                yield record


# --- the table of what is known


@dataclass(frozen=True, slots=True)
class UlpRow:
    """One function as far as it has been swept. covered: inputs seen, of 2^32; code: of what was measured."""

    function: str
    code: str
    covered: int
    found: UlpErrors


def rows(records: Sequence[SweepRecord]) -> list[UlpRow]:
    """What the records say of the functions as they are now; records of other code are left out."""
    table = []
    for name in NAMES:
        code = code_digest(name)
        mine = {r.low: r for r in records if r.function == name and r.code == code}
        found = sum((r.found for r in mine.values()), UlpErrors())
        if mine:
            table.append(UlpRow(name, code, found.inputs, found))
    return table


def random_patterns(seed: int, count: int) -> Tensor:
    """Patterns of all kinds alike, i32 [count]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(1 << 31), 1 << 31, (count,), generator=generator).to(torch.int32)
