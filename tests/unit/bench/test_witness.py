"""`assay bench witness`: demand is followed exactly, and figures are of a real step."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from assay.bench.demand import demand_of, demanded, everything
from assay.bench.witness import guesses_at, saved_shares
from assay.cli.bench import app
from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.witness_rows import sampled_products
from tests.harness.programs import mlp_step
from tools.witness_vectors import chain, outer_products

SMALL = "gpt-2x96"


def one(program: Program, k: int, element: int) -> dict[int, Tensor]:
    """One element of a node."""
    mask = torch.zeros(program.specs[k].numel, dtype=torch.bool)
    mask[element] = True
    return {k: mask}


def test_an_element_of_a_product_takes_a_row_of_one_side_and_a_column_of_the_other() -> None:
    program = chain(3)
    products = sampled_products(program)
    # f32[2, 2], two terms: the last element takes one row of the product before, which takes one row of the first.
    assert [demand_of(program, one(program, k, 0)).products for k in products] == [2, 4 + 2, 4 + 4 + 2]
    assert demand_of(program, everything(program)).products == 3 * 4 * 2


def test_what_is_not_read_is_not_demanded() -> None:
    program = outer_products(3, 4, 4)
    assert demand_of(program, everything(program)).products == 1, "Y keeps one element of the last product"


@pytest.mark.parametrize("last", sampled_products(mlp_step().program)[1:])
def test_what_is_not_demanded_can_be_anything_and_what_is_cannot(last: int) -> None:
    example = mlp_step()
    program = example.program
    honest = ReferenceExecutor(program).run(example.state)[last][:4]
    masks = demanded(program, one(program, last, 0))
    some = False
    for k in sampled_products(program):
        if k >= last or k not in masks:
            continue
        for is_demanded in (False, True):
            chosen = [n for n, hit in enumerate(masks[k].tolist()) if hit is is_demanded]

            def alter(j: int, data: bytes, k: int = k, chosen: list[int] = chosen) -> bytes:
                if j != k:
                    return data
                words = [data[4 * n : 4 * n + 4] for n in range(len(data) // 4)]
                return b"".join(b"\0\0\x40\x41" if n in chosen else w for n, w in enumerate(words))

            found = ReferenceExecutor(program).run(example.state, alter)
            changed = found[last][:4] != honest
            assert is_demanded or not changed
            some |= changed
    assert some


def test_a_step_of_training_leaves_little_to_guess_and_a_third_of_the_products() -> None:
    result = CliRunner().invoke(app, ["witness", "--model", SMALL, "--at", "1", "--at", "3", "--json"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    assert (row["model"], row["tier"], row["steps"]) == (SMALL, "fixed14", [1, 3])
    assert row["words"] == 8 * row["products"] >= 64
    assert 0.25 < row["saved_products"] < 0.40
    assert 0 < row["saved_others"] < 0.40
    assert row["zeros"] < 0.01
    assert row["bits"] > 10 and row["low_bits"] > 7
    assert row["bits_of_a_step"] > 1000


def test_a_product_of_zeros_is_guessed_at_once() -> None:
    program = chain(8)
    state = from_lists_of_bytes(input_specs(program), ((bytes(16),), (), (bytes(8),)))
    guesses = guesses_at(program, state, [1])
    assert [(g.bits, g.zeros, g.low_bits) for g in guesses] == [(0.0, 1.0, 0.0)] * 8
    assert saved_shares(program, 1)[0] >= 0
