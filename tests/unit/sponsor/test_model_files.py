"""The file of a model is whole: its module loads it strictly, and nothing that a card says of it is taken blindly."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file
from torch import Tensor, nn

from assay.cli import weights as weights_of
from assay.engine.runtime.values.state_io import spec_of, to_lists_of_bytes
from assay.protocol.errors import ConfigError, UnavailableError, UserError
from assay.protocol.types import Address, Digest
from assay.sponsor.cards import Card, read_card
from assay.sponsor.model_files import MAX_CONFIG, ModelFile, put_outline, read_outline
from assay.sponsor.preparing import PreparedRounds, _origin, prepare_recipe_rounds
from assay.sponsor.publishing import publish_card
from assay.training.recipes.outline import Outline, configuration_of, outline_of
from assay.training.recipes.recipe import Recipe
from assay_ledger.store.blobs import open_store

RUN, ZERO = Address(bytes(20)), Digest(bytes(32))


class Config:
    """As transformers has them."""

    def to_dict(self) -> dict[str, object]:
        return {"model_type": "own", "epsilon": 1e-5, "auto_map": {"AutoModel": "other/code--model.Model"}}


class Whole(nn.Module):
    """Tied weights, a module under two names, statistics, a kept constant, one that is not kept, one nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.config = Config()
        self.table, self.norm, self.head = nn.Embedding(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 6, bias=False)
        self.head.weight = self.table.weight
        self.again = self.norm
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0, 4.0]))
        self.register_buffer("unread", torch.tensor(7, dtype=torch.int64))
        self.register_buffer("shift", torch.full((4,), 0.5), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.table(tokens)) * self.scale + self.shift)


@pytest.fixture(scope="module")
def prepared() -> PreparedRounds:
    torch.manual_seed(0)
    module, data = Whole(), torch.randint(0, 6, (64, 2))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def loss(m: nn.Module, rows: Tensor) -> Tensor:
        return nn.functional.cross_entropy(m(rows[:, 0].long()), rows[:, 1].long())

    recipe = Recipe(module, loss, optimizer, (data.to(torch.uint8),), batch_size=8)
    return prepare_recipe_rounds(recipe, "own", 2, inner_steps=10)


@pytest.fixture
def pulled(prepared: PreparedRounds, tmp_path: Path) -> tuple[weights_of.Weights, Outline]:
    """What `assay model pull` has in hand, by way of card and store."""
    store = open_store(tmp_path / "store")
    publish_card(store, prepared, RUN, 7)
    card = read_card(store, RUN)
    specs, (data,) = tuple(map(spec_of, prepared.parameters)), to_lists_of_bytes([list(prepared.parameters)])
    return weights_of.Weights(ZERO, 0, True, card.names, specs, data), read_outline(store, card.file, card.names)


def test_a_file_loads_strictly_with_tied_names_statistics_and_constants(pulled, tmp_path: Path) -> None:
    weights, outline = pulled
    path = tmp_path / "new" / "model.safetensors"
    weights_of.write_weights(path, weights, outline)
    found, fresh = load_file(path), Whole()
    assert found.keys() == fresh.state_dict().keys() and "shift" not in found
    assert {n: t.dtype for n, t in found.items()} == {n: t.dtype for n, t in fresh.state_dict().items()}
    fresh.load_state_dict(found, strict=True)
    assert fresh.head.weight is fresh.table.weight
    torch.manual_seed(0)
    assert all(torch.equal(t, found[n]) for n, t in Whole().state_dict().items())
    assert weights_of._read(path, weights.names, weights.specs, outline) == weights.tensors


def test_a_model_that_is_pulled_again_is_written_beside_and_never_in_place(pulled, tmp_path: Path) -> None:
    """Who has the former one mapped keeps it, and a disk that is full in the middle leaves it as it was."""
    weights, outline = pulled
    path, link = tmp_path / "model.safetensors", tmp_path / "link"
    weights_of.write_weights(path, weights, outline)
    link.symlink_to(path)
    whole, held = path.read_bytes(), path.open("rb")
    weights_of.write_weights(link, replace(weights, root=Digest(b"\x07" * 32)), outline)
    assert link.is_symlink() and path.read_bytes() != whole
    with held:
        assert held.read() == whole
    (tmp_path / "model.safetensors.new").mkdir()
    now = path.read_bytes()
    with pytest.raises(ConfigError, match="cannot be written"):
        weights_of.write_weights(path, weights, outline)
    assert path.read_bytes() == now


@pytest.mark.parametrize("name", ["head.weight", "scale", "unread", "norm.num_batches_tracked", "again.running_var"])
def test_a_file_is_not_the_runs_if_anything_beside_the_weights_was_altered(pulled, tmp_path: Path, name: str) -> None:
    weights, outline = pulled
    path = tmp_path / "model.safetensors"
    weights_of.write_weights(path, weights, outline)
    found = load_file(path)
    # What a counter loses when it is kept as i32.
    found[name] = found[name] + (1 << 32 if found[name].dtype is torch.int64 else 1)
    save_file(found, path)
    with pytest.raises(weights_of.WeightsNotOnChain, match="model has there"):
        weights_of._read(path, weights.names, weights.specs, outline)
    del found[name]
    save_file(found, path)
    with pytest.raises(weights_of.WeightsNotOnChain, match="hold the parameters"):
        weights_of._read(path, weights.names, weights.specs, outline)


def test_buffers_that_no_constant_of_the_program_proves_are_named(prepared: PreparedRounds, pulled) -> None:
    _, outline = pulled
    archive = SimpleNamespace(step=prepared.programs[0])
    assert weights_of.unproven(archive, outline) == ["unread"]
    forged = replace(outline, constants={**outline.constants, "scale": torch.zeros(4)})
    assert weights_of.unproven(archive, forged) == ["scale", "unread"]


def test_a_configuration_is_written_without_code_of_its_own_and_over_nothing(pulled, tmp_path: Path) -> None:
    _, outline = pulled
    written = weights_of.write_config(tmp_path, outline)
    assert written == tmp_path / "config.json"
    assert json.loads(written.read_text()) == {"model_type": "own", "epsilon": 1e-5}
    assert weights_of.write_config(tmp_path, outline) == written
    written.write_text("{}")
    assert weights_of.write_config(tmp_path, outline) is None and written.read_text() == "{}"
    assert weights_of.write_config(tmp_path, Outline()) is None


def test_what_has_no_json_is_no_configuration() -> None:
    module = nn.Linear(1, 1)
    for config in (None, 3, {"a": object()}, {"a": "x" * MAX_CONFIG}):
        module.config = config
        assert configuration_of(module) == b""
    module.config = {"a": [1, 2.5]}
    assert json.loads(configuration_of(module)) == {"a": [1, 2.5]}


def test_a_module_without_more_has_nothing_beside_its_names() -> None:
    module = nn.Linear(2, 2)
    assert outline_of(module, ["weight", "bias"]) == Outline()


NAMES = ("w", "n")
SCALE = save({"scale": torch.ones(2)})


@pytest.mark.parametrize(
    ("file", "constants", "config"),
    [
        (ModelFile(tied=(("w", "n"),)), b"", b""),
        (ModelFile(tied=(("a", "b"),)), b"", b""),
        (ModelFile(tied=(("a", "w"), ("a", "n"))), b"", b""),
        (ModelFile(tied=(("scale", "w"),)), SCALE, b""),
        (ModelFile(wide=("x",)), b"", b""),
        (ModelFile(), save({"w": torch.ones(2)}), b""),
        (ModelFile(), b"no file", b""),
        (ModelFile(), b"", b"[]"),
        (ModelFile(), b"", b"{"),
        (ModelFile(), b"", b"\xff"),
        (ModelFile(), b"", b'{"a":' * 100),
    ],
)
def test_what_a_card_says_of_a_file_and_cannot_be_is_not_used(
    tmp_path: Path, file: ModelFile, constants: bytes, config: bytes
) -> None:
    store = open_store(tmp_path)
    file = replace(file, constants=store.put(constants) if constants else None)
    file = replace(file, config=store.put(config) if config else None)
    with pytest.raises(UnavailableError) as refused:
        read_outline(store, file, NAMES)
    assert refused.value.code == "CardWrong"


def test_what_a_card_says_of_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    constants = {"scale": torch.ones(2, dtype=torch.bfloat16)}
    outline = Outline((("alias", "w"),), ("n",), constants, b'{\n  "a": 1\n}', b'{"model": {}}')
    card = Card.decode(Card(None, None, 7, "own", NAMES, put_outline(store, outline)).encode())
    got = read_outline(store, card.file, card.names)
    assert (got.tied, got.wide, got.config, got.tokenizer) == (
        outline.tied,
        outline.wide,
        outline.config,
        outline.tokenizer,
    )
    assert torch.equal(got.constants["scale"], outline.constants["scale"])
    assert Card.decode(Card(None, None, 7, "own", NAMES).encode()).file == ModelFile()


def test_a_pulled_model_says_which_tokenizer_it_was_trained_with_and_has_it_beside(pulled, tmp_path: Path) -> None:
    weights, outline = pulled
    file = b'{"format": "assay characters 1",  "characters": "abc"}\n'
    outline = replace(outline, tokenizer=file)
    weights_of.write_weights(tmp_path / "model.safetensors", weights, outline)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as opened:
        assert opened.metadata()["assay_tokenizer"] == sha256(file).hexdigest() == weights_of.tokenizer_digest(outline)
    written = weights_of.write_tokenizer(tmp_path, outline)
    assert written == tmp_path / "tokenizer.json" and written.read_bytes() == file
    written.write_bytes(b"{}")
    assert weights_of.write_tokenizer(tmp_path, outline) is None and written.read_bytes() == b"{}"
    assert weights_of.write_tokenizer(tmp_path, Outline()) is None


@pytest.mark.parametrize("file", [b"[]", b"{", b"\xff", b'{"a":' * 100])
def test_what_a_card_calls_a_tokenizer_and_is_none_is_neither_taken_nor_posted(tmp_path: Path, file: bytes) -> None:
    store = open_store(tmp_path)
    with pytest.raises(UnavailableError) as refused:
        read_outline(store, ModelFile(tokenizer=store.put(file)), NAMES)
    assert refused.value.code == "CardWrong"
    module, data = nn.Linear(2, 1), torch.zeros(8, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    recipe = Recipe(module, lambda m, x: m(x).mean(), optimizer, data=(data,), batch_size=2, tokenizer=file)
    with pytest.raises(UserError) as bad:
        _origin(recipe, "own", ["weight", "bias"])
    assert bad.value.code == "BadRunRecipe"


@pytest.mark.parametrize(
    "more",
    [
        {"tied": 3},
        {"tied": [["a"]]},
        {"tied": [["a", "w", "n"]]},
        {"tied": [["\u0007", "w"]]},
        {"wide": 3},
        {"wide": [""]},
        {"constants": "00"},
        {"constants": 3},
        {"config": "x"},
        {"tokenizer": "00"},
    ],
)
def test_a_card_whose_file_nobody_would_write_is_refused(more: dict[str, object]) -> None:
    document = {"first_block": 1, "recipe": "own", "names": list(NAMES)} | more
    with pytest.raises(ValueError, match=r"card|names"):
        Card.decode(json.dumps(document).encode())
