"""The validation loss of a recipe's run is its own loss, in eval mode, by a program that every reader runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.runtime.values.state_io import list_roots, spec_of, to_lists_of_bytes
from assay.explorer.losses import evaluation
from assay.protocol.errors import UnavailableError, UserError
from assay.protocol.types import Address, Digest
from assay.sponsor.cards import Card, read_card
from assay.sponsor.preparing import PreparedRounds, prepare_recipe_rounds
from assay.sponsor.publishing import publish, publish_card
from assay.sponsor.validation import MOST_EXAMPLES, CardValidation, validation_of
from assay.training.recipes.recipe import Recipe
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects

RUN = Address(bytes(20))


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)
    return F.cross_entropy(module(x), y)


def recipe(**options: object) -> Recipe:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    with torch.no_grad():
        module[1].running_var.fill_(0.25)
    x = torch.randn(100, 2)
    y = (x[:, 0] > 0).long()
    given = {"data": (x[:64], y[:64]), "validation": (x[64:], y[64:]), "batch_size": 8, **options}
    return Recipe(module, given.pop("loss", loss), torch.optim.SGD(module.parameters(), lr=0.1), **given)


@pytest.fixture(scope="module")
def prepared() -> PreparedRounds:
    return prepare_recipe_rounds(recipe(), "own", 2, inner_steps=10)


def test_anybody_with_the_card_finds_the_loss_that_stock_pytorch_finds(
    prepared: PreparedRounds, tmp_path: Path
) -> None:
    store, own = open_store(tmp_path), recipe()
    publish(store, prepared)
    publish_card(store, prepared, RUN, 7)
    charter = SimpleNamespace(step=prepared.genesis.step, training=SimpleNamespace(data=prepared.genesis.data))
    weigh, letters = evaluation(store, charter, RUN)
    (root,) = list_roots([list(prepared.parameters)])
    assert own.validation is not None
    with torch.no_grad():
        # Whole batches of eight: of 36 examples the last four are left out.
        expected = float(loss(own.module.eval(), *(t[:32] for t in own.validation)))
        training = float(loss(own.module.train(), *(t[:32] for t in own.validation)))
    assert weigh(root) == pytest.approx(expected, rel=1e-4) and letters is None
    assert abs(training - expected) > 0.01, "dropout and statistics of the batch would show"
    assert weigh(root) == weigh(root)


@pytest.mark.long
def test_a_loss_that_draws_is_measured_with_the_same_draws_each_time() -> None:
    def noisy(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return loss(module, x + torch.rand(x.shape), y)

    made = [prepare_recipe_rounds(recipe(loss=noisy), "own", 2, inner_steps=10) for _ in range(2)]
    programs = [one.origin.validation.program for one in made if one.origin.validation is not None]
    assert len({program.root for program in programs}) == 1 and len(programs) == 2


def test_other_weights_have_another_loss(prepared: PreparedRounds, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    publish_card(store, prepared, RUN, 7)
    card = read_card(store, RUN).validation
    assert card is not None and card.count == 32
    of = validation_of(Objects(store), card, [spec_of(p) for p in prepared.parameters])
    first, second = (
        of(to_lists_of_bytes([[p * factor if p.is_floating_point() else p for p in prepared.parameters]])[0])
        for factor in (1.0, 1.5)
    )
    assert first != second


def test_capture_leaves_a_module_in_the_mode_that_each_part_had() -> None:
    own = recipe()
    own.module[3].eval()
    prepare_recipe_rounds(own, "own", 2, inner_steps=10)
    assert [part.training for part in own.module] == [True, True, True, False, True]


def test_a_stream_is_held_out_in_windows() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(16, 4), nn.Linear(4, 16))

    def next_symbol(m: nn.Module, windows: Tensor) -> Tensor:
        return F.cross_entropy(m(windows[:, :-1].long()).flatten(0, 1), windows[:, 1:].long().flatten())

    stream, held_out = (torch.arange(n, dtype=torch.uint8) % 16 for n in (90, 47))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    own = Recipe(module, next_symbol, optimizer, (stream,), batch_size=4, window=5, validation=(held_out,))
    validation = prepare_recipe_rounds(own, "own", 2, inner_steps=10).origin.validation
    assert validation is not None
    assert torch.equal(validation.examples, held_out[:40].reshape(8, 5)), "nine windows, of which two whole batches"


@pytest.mark.parametrize(
    ("held_out", "words"),
    [
        ((torch.ones(4, 2),), "laid out"),
        ((torch.ones(4, 2), torch.ones(4)), "laid out"),
        ((torch.ones(4, 3), torch.ones(4, dtype=torch.int64)), "laid out"),
        ((torch.ones(4, 2), torch.ones(3, dtype=torch.int64)), "examples"),
        ((torch.ones(0, 2), torch.ones(0, dtype=torch.int64)), "examples"),
        ((torch.ones(4, 2), 3), "laid out"),
    ],
)
def test_held_out_tensors_unlike_the_data_are_refused(held_out: tuple[Tensor, ...], words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        recipe(validation=held_out)
    assert refused.value.code == "BadRecipe" and refused.value.remedy


def test_a_run_without_held_out_examples_says_so(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(Card(None, None, 7, "own", ("w",)).encode(), f"runs/{RUN.hex()}/card")
    with pytest.raises(UnavailableError) as refused:
        evaluation(store, SimpleNamespace(), RUN)
    assert refused.value.code == "NoValidation"


@pytest.mark.parametrize("what", ["step", "merge", "count", "other"])
def test_a_program_that_is_no_validation_of_the_model_is_not_run(
    prepared: PreparedRounds, tmp_path: Path, what: str
) -> None:
    store = open_store(tmp_path)
    publish(store, prepared)
    publish_card(store, prepared, RUN, 7)
    card = read_card(store, RUN).validation
    assert card is not None
    specs = [spec_of(p) for p in prepared.parameters]
    forged = {
        "step": replace(card, program=prepared.programs[0].root),
        "merge": replace(card, program=prepared.programs[2].root),
        "count": replace(card, count=31),
        "other": card,
    }[what]
    with pytest.raises(UnavailableError) as refused:
        validation_of(Objects(store), forged, specs[1:] if what == "other" else specs)
    assert refused.value.code == "CardWrong"


ROOT = "00" * 32


@pytest.mark.parametrize(
    "document",
    [
        3,
        {},
        {"program": ROOT, "examples": ROOT},
        {"program": ROOT, "examples": "00", "count": 1},
        {"program": ROOT, "examples": ROOT, "count": 0},
        {"program": ROOT, "examples": ROOT, "count": MOST_EXAMPLES + 1},
    ],
)
def test_a_card_whose_validation_nobody_would_write_is_refused(document: object) -> None:
    card = {"first_block": 1, "recipe": "own", "names": ["w"], "validation": document}
    with pytest.raises(ValueError, match="card"):
        Card.decode(json.dumps(card).encode())


def test_a_validation_is_read_as_it_was_written() -> None:
    for count in (1, MOST_EXAMPLES):
        found = CardValidation(Digest(bytes(32)), Digest(bytes(31) + b"\x01"), count)
        assert Card.decode(Card(None, None, 7, "own", ("w",), validation=found).encode()).validation == found
