"""The meter of `assay bench ulp`, held on 2^20 random inputs per function; native, stock and reference agree."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from assay.bench import function_table, ulp
from assay.bench.function_table import code_digest, maps_of
from assay.bench.oracles import APPROXIMATE, BOUNDS, true_value
from assay.bench.ulp import BLOCK, CHUNK, NAMES, UlpErrors, UlpMeter, random_patterns
from assay.engine.runtime.executor import KernelVariant
from assay.protocol.arithmetic.f32 import NAN
from assay.protocol.arithmetic.scalar import evaluate
from tests.harness.engine.fused_instruction_sets import needs_kernels

ERRORS = {
    "exp": 0.94, "log": 0.86, "tanh": 1.32, "sigmoid": 1.7, "rsqrt": 1.51, "erf": 1.61, "gauss": 1.11, "gelu": 2.82,
    "gelu_grad": 2.0**-22, "gelu_tanh": 2.0**-20, "sin": 2.0**-23, "cos": 2.0**-23,
}  # fmt: skip
"""Largest errors as published, ulp or absolute."""

COUNT = 1 << 20


@pytest.mark.parametrize("name", NAMES)
def test_the_error_on_a_million_random_inputs_is_within_its_bound(name: str) -> None:
    found = UlpMeter(name).measure(random_patterns(20, COUNT))
    assert found.inputs == COUNT
    assert 0 < found.worst <= ERRORS[name]
    assert found.wrong == 0
    assert found.special > 1000


@needs_kernels
@pytest.mark.parametrize("name", NAMES)
def test_native_stock_and_reference_compute_the_same(name: str) -> None:
    patterns = random_patterns(21, COUNT)
    native, stock = UlpMeter(name, variant=KernelVariant.FUSED), UlpMeter(name, variant=KernelVariant.STOCK)
    codes = [scalar.encode() for scalar in maps_of(name)]
    for n, piece in enumerate(torch.split(patterns, CHUNK)):
        x = piece.view(torch.float32)
        y, z = native.results(x), stock.results(x)
        assert torch.equal(y.view(torch.int32)[~y.isnan()], z.view(torch.int32)[~y.isnan()])
        assert torch.equal(y.isnan(), z.isnan())
        for k in range(8 * (n % 2), CHUNK, 4096):
            row = [int(piece[k]) & 0xFFFFFFFF]
            for code in codes:
                row.append(evaluate(code, tuple(row)) & 0xFFFFFFFF)
            assert row[-1] == (NAN if bool(y[k].isnan()) else int(y.view(torch.int32)[k]) & 0xFFFFFFFF)


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_is_within_its_bound_of_mpmath(name: str) -> None:
    x = random_patterns(22, 1024).view(torch.float32).double()
    x = x[(x.abs() > 2.0**-40) & (x.abs() < 2.0**20)]
    t = APPROXIMATE[name](x)
    for a, b in zip(x.tolist(), t.tolist(), strict=True):
        if b == b and abs(b) < 2.0**128:
            exact = true_value(name, a)
            assert abs(exact - b) <= BOUNDS[name] * 2.0**-52 * max(abs(exact), 2.0**-52) + 2.0**-170


def test_the_quick_look_and_the_close_one_see_the_same() -> None:
    for low in (0x3F000000, 0xBF800000, 0x42B00000, 0x7F7F8000, 0x80000000):
        meter, span = UlpMeter("exp"), 8 * CHUNK
        close = UlpErrors()
        for start in range(low, low + span, CHUNK):
            close += meter.measure((torch.arange(CHUNK) + start).to(torch.int32))
        quick = meter.measure_range(low, low + span)
        assert (quick.misrounded, quick.special, quick.wrong, quick.settled, quick.inputs) == (
            close.misrounded, close.special, close.wrong, close.settled, close.inputs
        )  # fmt: skip
        assert quick.worst == close.worst or max(quick.worst, close.worst) <= ulp.UNSEEN_ULP


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        UlpMeter, "measure_range", lambda self, low, high: UlpErrors(inputs=high - low, worst=1.0, at=low)
    )
    path = tmp_path / "records.jsonl"
    first = next(iter(ulp.sweep(["exp"], path)))
    path.write_text(path.read_text() + '{"function": "exp", "cut off')
    path.write_text(path.read_text() + "\n")
    rest = list(ulp.sweep(["exp"], path))
    assert [first.low, rest[0].low, len(rest)] == [0, BLOCK, 255]
    (row,) = ulp.rows(ulp.read_records(path))
    assert (row.covered, row.found.at, row.code) == (1 << 32, 0, code_digest("exp"))
    assert list(ulp.sweep(["exp"], path)) == []


def test_the_published_table_is_that_of_the_functions_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    assert function_table.stale() == []
    monkeypatch.setattr(function_table, "code_digest", lambda name: "0" * 64)
    assert function_table.stale()
    assert function_table.table() in (Path(__file__).parents[3] / "docs" / "functions.md").read_text()
