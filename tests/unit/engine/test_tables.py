"""Tables that a step makes of numbers in the code alone: constants of the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from assay.engine.compiler.capture import CannotLowerError
from tests.harness.engine.helpers import captured, run_captured
from tests.unit.engine.test_layers import drawn


def rotary(places: Tensor) -> Tensor:
    """Cosines of places, in float64 as libraries compute them."""
    waves = 1.0 / (1e4 ** (torch.arange(0, 8, 2, dtype=torch.float64) / 8)) / 1.5
    return torch.outer(places, waves).cos().float()


@pytest.mark.parametrize("places", [lambda: torch.arange(5), lambda: torch.cat([torch.zeros(2), torch.zeros(3)])])
def test_tables_that_a_step_computes_in_float64_are_constants_of_the_program(places: Callable[[], Tensor]) -> None:
    x = drawn(5, 4)
    assert run_captured(lambda x: (x * rotary(places()),), x)[0].equal(x * rotary(places()))


def test_what_a_step_computes_of_its_tensors_in_float64_stays_refused() -> None:
    with pytest.raises(CannotLowerError, match="float64"):
        captured(lambda x: ((x[:, None] * torch.arange(3.0, dtype=torch.float64)).float(),), drawn(5))


def test_joined_fills_are_one_only_where_they_hold_one_number() -> None:
    x = drawn(4)
    assert run_captured(lambda x: (x + torch.cat([torch.zeros(1), torch.ones(3)]),), x)[0].equal(
        x + torch.tensor([0.0, 1.0, 1.0, 1.0])
    )
