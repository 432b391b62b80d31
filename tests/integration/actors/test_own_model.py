"""A run of a sponsor's own module: trained by strangers, a cheater convicted, the weights pulled under their names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from assay.cli.weights import fetch_weights, find_weights, write_weights
from assay.programs.factory import load_recipe
from assay.protocol.errors import RejectedError, UnavailableError, UsageError, UserError
from assay.protocol.game.state import Outcome
from assay.protocol.types import Address, Digest, Status
from assay.sponsor.cards import Card, parameter_names, read_card, read_corpus
from assay.sponsor.charters import windows
from assay.sponsor.posting import post_run, publish_card
from assay.sponsor.preparing import Prepared, pace_of, prepare_recipe
from assay.training.recipes.recipe import Recipe
from assay_ledger.index.run import Run
from assay_ledger.store.blobs import open_store
from assay_solver.cheats import cheat_named
from tests.harness.actors.claims import world_of
from tests.harness.actors.world import ETHER, SharedChain
from tests.harness.commands import assay

NAME = "examples.own_run:factory"
RUN = Address(bytes(20))


def losses(weights: list[dict[str, torch.Tensor]]) -> list[float]:
    """What the sponsor's own loss says of the whole data, in stock PyTorch and in training mode."""
    recipe, found = load_recipe(NAME), []
    for tensors in weights:
        recipe.module.load_state_dict(tensors, strict=False)
        torch.manual_seed(1)
        with torch.no_grad():
            found.append(float(recipe.loss(recipe.module, *recipe.data)))
    return found


def test_strangers_train_a_module_of_ones_own_and_a_cheater_is_convicted(stage: SharedChain, tmp_path) -> None:
    from safetensors.torch import load_file

    world = world_of(stage, tmp_path, prepare_recipe(load_recipe(NAME), NAME, inner_steps=50), rounds=2)
    founders = {"first_seats": 3, "first_verifiers": 1}
    for name, cheat in (("ada", None), ("bob", None), ("mallory", cheat_named("bit-flip", 1))):
        world.solver(name, cheat=cheat, **founders)
    world.verifier("vera", **founders)
    before = {name: world.wealth(name) for name in world.players}
    state = world.settle()

    assert len(state.rounds) == 2
    convicted = [g for g in world.verdicts() if g.convicted]
    assert {(world.name_of(g.defender), g.outcome) for g in convicted} == {("mallory", Outcome.LEAF)}
    honest = {world.address(name) for name in ("ada", "bob")}
    endings = [c.status for r in state.rounds for c in r.commitments.values() if c.solver in honest]
    assert endings == [Status.FINAL] * 4
    assert all(world.wealth(name) >= before[name] for name in ("ada", "bob", "vera"))
    assert world.wealth("mallory") < before["mallory"]

    weights, file = fetch_weights(world.run, state, world.store), tmp_path / "model.safetensors"
    write_weights(file, weights)
    assert find_weights(world.run, state, world.store, file).root == weights.root
    final = load_file(file)
    start = {n: p.detach() for n, p in load_recipe(NAME).module.named_parameters()}
    assert final.keys() == start.keys()
    first, last = losses([start, final])
    assert last < first - 0.1
    # A run of a preset has a text whose losses anybody can compute; this one says why not.
    card = read_card(world.store, world.run.address)
    assert card.model == NAME
    with pytest.raises(UnavailableError, match="own"):
        read_corpus(world.store, card, world.run.charter.training.data)


def test_the_command_posts_a_recipe_and_lists_it_by_name(stage: SharedChain, tmp_path, monkeypatch) -> None:
    chain, store = stage.chain, str(tmp_path / "store")
    password = tmp_path / "password"
    password.write_text("a password")
    at = ("--keys-dir", str(tmp_path / "keys"), "--password-file", str(password))
    made = assay(monkeypatch, "key", "new", "sponsor", "--kdf", "pbkdf2", *at, "--json")
    assert made.exit_code == 0, made.output
    chain.transfer(stage.sponsor, json.loads(made.stdout)["address"], 10 * ETHER)
    where = ("--rpc-url", chain.url, "--store", store)
    words = ["run", "post", "--recipe", NAME, "--steps", "10", "--tier", "fixed8", "--rounds", "1", "--yes", "--json"]
    posted = assay(monkeypatch, *words, *where, "--key", "sponsor", *at)
    assert posted.exit_code == 0, posted.output
    document = json.loads(posted.stdout)
    listed = json.loads(assay(monkeypatch, "run", "list", "--json", *where).stdout)
    assert [(entry["run"], entry["model"]) for entry in listed] == [(document["run"], NAME)]
    for more in (("--preset", "tiny"), ("--data", str(password))):
        refused = assay(monkeypatch, *words, *where, "--key", "sponsor", *at, *more)
        assert refused.exit_code != 0 and isinstance(refused.exception, UsageError)
    refused = assay(monkeypatch, "run", "post", "--steps", "10", "--yes", *where, "--key", "sponsor", *at)
    assert isinstance(refused.exception, UsageError) and "--steps" in str(refused.exception)


def recipe_of(*data: torch.Tensor, window: int | None = None) -> Recipe:
    """A recipe over these tensors."""
    module = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    return Recipe(module, lambda m, rows, *_: m(rows).square().mean(), optimizer, data, batch_size=2, window=window)


@pytest.mark.parametrize(
    ("recipe", "steps", "words"),
    [
        (recipe_of(torch.ones(64, 1), torch.ones(64, 1)), 10, "2 data tensors"),
        (recipe_of(torch.ones(64, 1)), 12, "divide"),
        (recipe_of(torch.ones(7, 1)), 10, "7 examples"),
        (recipe_of(torch.ones(63), window=8), 10, "63 examples"),
    ],
)
def test_what_no_run_can_train_is_refused_with_its_reason(recipe: Recipe, steps: int, words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        prepare_recipe(recipe, "own", inner_steps=steps)
    assert refused.value.code == "BadRunRecipe" and refused.value.remedy


def test_slow_steps_lengthen_every_window_in_which_one_is_executed() -> None:
    prepared = prepare_recipe(recipe_of(torch.ones(64, 1)), "own", inner_steps=10)
    assert pace_of(prepared, windows().commit) == 1
    slow = type(prepared)(*(getattr(prepared, f) for f in prepared.__slots__[:-1]), step_seconds=windows().commit / 10)
    assert pace_of(slow, windows().commit) == 4
    usual, longer = windows(), windows(4)
    for name in ("commit", "attest", "whistle", "longest_dispute"):
        assert getattr(longer, name) == 4 * getattr(usual, name)
    assert longer.exit > usual.exit


def slowed(pace: int) -> Prepared:
    """A prepared run whose steps take so long that every window is stretched this many times."""
    prepared = prepare_recipe(recipe_of(torch.ones(64, 1)), "own", inner_steps=10)
    return replace(prepared, step_seconds=pace * windows().commit / 40)


@pytest.mark.parametrize("pace", [1, 4, 40, 180])
def test_a_charter_of_any_pace_is_one_that_the_contracts_take(stage: SharedChain, tmp_path, pace: int) -> None:
    store = open_store(tmp_path)
    address = post_run(stage.chain, stage.sponsor, store, slowed(pace), name="slow", rounds=1, token=stage.token)
    charter = Run(stage.chain, address).charter
    assert charter.windows == windows(pace) and charter.clocks.replay == pace * 600


def test_steps_too_slow_for_any_charter_are_refused_by_name(stage: SharedChain, tmp_path) -> None:
    with pytest.raises(RejectedError, match="window is too long") as refused:
        post_run(
            stage.chain, stage.sponsor, open_store(tmp_path), slowed(181), name="slow", rounds=1, token=stage.token
        )
    assert refused.value.code == "ScheduleTooLong"


def test_names_that_no_card_can_hold_are_refused_before_anything_is_posted() -> None:
    with pytest.raises(UserError, match="names") as refused:
        prepare_recipe(recipe_of(torch.ones(64, 1)), "x" * 300, inner_steps=10)
    assert refused.value.code == "BadRunRecipe"


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{}",
        b"[]",
        b'{"first_block": 1, "recipe": "a"}',
        b'{"first_block": 1, "recipe": "", "names": []}',
        b'{"first_block": 1, "recipe": "a", "names": ["\\u0007"]}',
        b'{"first_block": 1, "recipe": "a", "names": 3}',
        b'{"first_block": 1, "recipe": "a", "names": ["' + b"x" * 257 + b'"]}',
        b'{"first_block": "x", "recipe": "a", "names": ["b"]}',
        b'{"first_block": 1, "preset": "demo", "text": "00"}',
        b'{"first_block": 1, "preset": "demo", "text": 4}',
    ],
)
def test_cards_that_nobody_would_write_are_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"card|names|text"):
        Card.decode(document)


def test_a_card_whose_names_do_not_fit_the_program_is_not_used(tmp_path) -> None:
    store = open_store(tmp_path)
    prepared = prepare_recipe(recipe_of(torch.ones(64, 1)), "own", inner_steps=10)
    publish_card(store, prepared, RUN, 7)
    card = read_card(store, RUN)
    assert (card.first_block, card.names) == (7, ("weight", "bias"))
    assert parameter_names(store, card, Digest(bytes(32)), 2) == ("weight", "bias")
    for names in (("weight",), ("weight", "weight"), ("weight", "bias", "more")):
        forged = Card(None, None, 7, "own", names)
        with pytest.raises(UnavailableError) as refused:
            parameter_names(store, forged, Digest(bytes(32)), 2)
        assert refused.value.code == "CardWrong"
