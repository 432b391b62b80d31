"""Recipes of 16 bits are mapped: state of half the size, arithmetic in the tier, one rounding at the end of a step."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.values.state_io import to_lists_of_bytes
from assay.programs.against_eager import beside_eager, difference_of
from assay.programs.capture import capture_recipe
from assay.protocol.errors import UserError
from assay.sponsor.preparing import prepare_recipe_rounds
from assay.training.optimizers.squares import Adafactor
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.recipes.storage import held, stored
from assay.training.recipes.torch_optimizers import translated
from tests.harness.engine.helpers import relative

STEPS = 4


def data(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(24, 3, generator=generator).bfloat16()
    return x.to(dtype), torch.randint(0, 2, (24,), generator=generator)


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(module(x), y)


def under_autocast(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = module(x)
    return F.cross_entropy(z.float(), y)


def recipe_of(dtype: torch.dtype, loss=loss, of_data: torch.dtype | None = None) -> Recipe:
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).to(torch.bfloat16).to(dtype)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.02)
    return Recipe(module, loss, optimizer, data=data(of_data or dtype), batch_size=8)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_step_of_16_bits_is_a_step_of_32_rounded_once(dtype: torch.dtype):
    narrow, wide = RecipeStep(recipe_of(dtype)), RecipeStep(recipe_of(torch.float32))
    assert narrow.slot_names == wide.slot_names
    state, plain = narrow.state(key=(3, 4)), wide.state(key=(3, 4))
    types = [*[dtype] * len(state[0]), *narrow._kept, dtype, dtype, torch.int64]
    program = capture(narrow, state).program
    ours = Executor(program).repeat(state, STEPS)
    step = Executor(capture(wide, plain).program)
    for _ in range(STEPS):
        lists = step.run(plain)
        near = [stored(t, kind) for t, kind in zip([*lists[0], *lists[1]], types, strict=True)]
        back = [held(t, kind).to(was.dtype) for t, kind, was in zip(near, types, [*lists[0], *lists[1]], strict=True)]
        plain = back[: len(lists[0])], back[len(lists[0]) :], lists[2]
    assert to_lists_of_bytes([[*ours[0], *ours[1]]]) == to_lists_of_bytes([near])
    assert to_lists_of_bytes(Executor(program, variant=KernelVariant.STOCK).repeat(state, STEPS)) == to_lists_of_bytes(
        ours
    )


def test_state_of_16_bits_has_half_the_size():
    sizes = [
        sum(t.nbytes for part in RecipeStep(recipe_of(dtype)).state()[:2] for t in part if t.numel() > 1)
        for dtype in (torch.bfloat16, torch.float32)
    ]
    assert sizes[0] * 2 == sizes[1]


def test_training_in_bfloat16_stays_beside_pytorchs_own():
    step = RecipeStep(recipe_of(torch.bfloat16))
    state = step.state(key=(3, 4))
    ours = Executor(capture(step, state).program).repeat(state, STEPS)[0]
    module = step.recipe.module
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.02)
    for number in range(STEPS):
        optimizer.zero_grad()
        loss(module, *step.batch(step.state(step=number, key=(3, 4))[2])).backward()
        optimizer.step()
    # Theirs rounds every intermediate result to 8 bits, ours none; biases before a norm follow such rounding alone.
    pairs = [(a, p.detach().float()) for a, p in zip(ours, module.parameters(), strict=True) if p.ndim > 1]
    assert [relative(held(a, torch.bfloat16).float(), b) < 0.02 for a, b in pairs] == [True, True]


@pytest.mark.parametrize(
    "given", [recipe_of(torch.bfloat16), recipe_of(torch.float32, under_autocast)], ids=["bfloat16", "autocast"]
)
def test_what_is_mapped_is_compared_with_stock_as_coarsely_as_stock_rounds(given: Recipe):
    captured = capture_recipe(given, calibrate=False)
    step = RecipeStep(given)
    assert beside_eager(captured.program, step, STEPS, "fixed14", mapped=True).parting is None
    assert beside_eager(captured.program, step, STEPS, "fixed14").worst > 1.0, "stock rounds more than fixed14"
    decayed = replace(given, optimizer=torch.optim.AdamW(given.module.parameters(), lr=0.02, weight_decay=9.0))
    assert beside_eager(captured.program, RecipeStep(decayed), STEPS, "fixed14", mapped=True).parting is not None


@pytest.mark.parametrize(("dtype", "eps"), [(torch.bfloat16, 2.0**-7), (torch.float16, 2.0**-10)], ids=str)
def test_a_tensor_that_stock_brings_back_may_be_off_by_a_unit_in_the_last_place(dtype: torch.dtype, eps: float):
    start = torch.ones(3, dtype=dtype)
    assert difference_of(start, start, start, start + eps, 0.1)[0] == 0.0
    assert difference_of(start, start, start, start + 2 * eps, 0.1)[0] == 1.0
    wide = start.float()
    assert difference_of(wide, wide, wide, wide + 2.0**-23, 0.1)[0] == 1.0


def test_autocast_is_said_and_changes_nothing_in_the_program():
    inside = capture_recipe(recipe_of(torch.float32, under_autocast), calibrate=False)
    plain = capture_recipe(recipe_of(torch.float32), calibrate=False)
    assert inside.program.root == plain.program.root
    assert not plain.mapped
    (sentence,) = inside.mapped
    line = under_autocast.__code__.co_firstlineno + 2
    assert sentence.startswith("cast to bfloat16 but computed in fixed14, without rounding: at ")
    assert f"test_sixteen_bits.py:{line}" in sentence
    assert inside.report()["mapped"] == [sentence]


def test_what_is_kept_in_16_bits_is_counted():
    found = capture_recipe(recipe_of(torch.bfloat16), calibrate=False).mapped
    kept = "parameters 6, optimizer tensors 12, buffers 2, data tensors 1"
    assert f"kept as bfloat16 in 16 bits and computed in fixed14, rounded once at the end of a step: {kept}" in found


def test_adafactors_floor_is_that_of_the_parameters_type():
    for dtype in (torch.bfloat16, torch.float32):
        matrix = nn.Parameter(torch.ones(2, 2, dtype=dtype))
        grouped, _ = translated(torch.optim.Adafactor([matrix]), [matrix], ["matrix"], [0])
        assert grouped.groups[0].optimizer == Adafactor(factored=True, epsilon1=torch.finfo(dtype).eps)


def test_64_bits_are_refused_with_what_to_write():
    with pytest.raises(UserError, match=r"Parameter 0.weight has the element type torch.float64") as caught:
        recipe_of(torch.float64)
    assert "module.float()" in str(caught.value.remedy)


class _Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(5, 4), nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.words(x))


def next_word(module: nn.Module, rows: Tensor) -> Tensor:
    return F.cross_entropy(module(rows[:, 0].int()).float(), rows[:, 1].long())


def words_of(dtype: torch.dtype, rate: float = 0.02, **options: bool) -> Recipe:
    torch.manual_seed(2)
    module = _Words().bfloat16().to(dtype)
    optimizer = torch.optim.SGD(module.parameters(), lr=rate, momentum=0.9)
    rows = torch.arange(20, dtype=torch.uint8).reshape(10, 2) % 5
    return Recipe(module, next_word, optimizer, (rows,), 4, clip_norm=1.0, **options)


def test_a_run_of_16_bits_is_the_run_of_its_float32_twin():
    twins = (torch.bfloat16, torch.float32)
    narrow, wide = (prepare_recipe_rounds(words_of(dtype), "own", 2, inner_steps=5) for dtype in twins)
    assert narrow.genesis == wide.genesis
    assert [p.root for p in narrow.programs] == [p.root for p in wide.programs]


def test_wide_parameters_move_by_less_than_their_own_type_could():
    for wide in (False, True):
        step = RecipeStep(words_of(torch.bfloat16, 1e-5, wide_parameters=wide))
        state = step.state()
        end = Executor(capture(step, state).program).repeat(state, STEPS)[0]
        assert [torch.equal(a, b) for a, b in zip(end, state[0], strict=True)] == [not wide] * 3
