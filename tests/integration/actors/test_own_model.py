"""A run of a sponsor's own module: trained by strangers, and the weights pulled under their names."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from assay.cli.acting import TellsLosses
from assay.cli.common import archive_of
from assay.cli.joining import start_faults
from assay.cli.starting import read_wanted
from assay.cli.weights import fetch_weights, find_weights, names_and_outline, standing_generations, write_weights
from assay.explorer.losses import evaluation
from assay.programs.factory import load_recipe
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Address, Digest
from assay.sponsor.cards import Card, read_card, read_corpus
from assay.sponsor.cards import parameter_names as names_of
from assay.sponsor.charters import AuditRates, Pace
from assay.sponsor.posting import post_run
from assay.sponsor.preparing import prepare_recipe_rounds
from assay.sponsor.publishing import publish_card
from assay.sponsor.work_losses import WorkLosses
from assay.training.recipes.recipe import Recipe
from assay_ledger.rounds.index import RunIndex
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import open_store
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain

NAME = "examples.own_run:factory"
RUN = Address(bytes(20))


def accuracy(tensors: dict[str, torch.Tensor], *, strict: bool = True) -> float:
    """The share of new points that a fresh module with these tensors gets right, as one uses it: in eval mode."""
    module = load_recipe(NAME).module
    module.load_state_dict(tensors, strict=strict)
    torch.manual_seed(9)
    points = torch.rand(4096, 2) * 4 - 2
    with torch.no_grad():
        right = module.eval()(points).argmax(1) == (points[:, 0].sin() * points[:, 1] > 0)
    return float(right.float().mean())


def goes_on_in_another_run(made: WholeRun, view: RunView) -> None:
    """A run resumed from the last generation begins with its parameters and its momentum, and everybody can join it."""
    address, chain, store = "0x" + made.run.address.hex(), made.chain, made.store
    lists = view.lists(2)
    start = read_wanted(None, f"{address}@2", chain, store)
    newest = read_wanted(address, None, chain, store)
    assert lists is not None and start is not None and newest is not None and not newest.momentum
    assert "generation 2" in newest.source and "not final" not in newest.source
    resumed, anew = (
        prepare_recipe_rounds(load_recipe(NAME), NAME, 2, inner_steps=50, start=values) for values in (start, newest)
    )
    assert resumed.genesis.parameters == anew.genesis.parameters == lists.parameters
    assert resumed.genesis.momentum == lists.momentum != anew.genesis.momentum
    run = post_run(
        *(chain, made.stage.sponsor, store, resumed), name="on", rounds=1, seats=2, pace=PACE, token=made.stage.token
    )
    assert start_faults(run, store) == []
    state = RunView(run.charter, run.facts, made.view.me, RunIndex(run).sync())
    assert archive_of(run, store).fetch_base(state, 0) == archive_of(made.run, store).fetch_base(view, 2)
    with pytest.raises(RejectedError) as refused:
        read_wanted(None, f"{address}@3", chain, store)
    assert refused.value.code == "NoSuchModel"


PACE = Pace(units=5, least=2, steps=10, commit=600)


def test_strangers_train_a_module_of_ones_own_and_anybody_pulls_it(stage: SharedChain, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    prepared = prepare_recipe_rounds(load_recipe(NAME), NAME, 2, inner_steps=50)
    # One ticket a shift and p = 1: whoever is called replays all, so that no chance leaves the run without a result.
    rates = AuditRates(audit_ppm=1_000_000, capacity=10, shifts=5, drawn_bounty_ppm=1_000_000)
    made = new_whole_run(stage, tmp_path, seats=2, rounds=2, pace=PACE, rates=rates, prepared=prepared)
    said: list[str] = []
    for name in ("ada", "bob"):
        agent = made.solver(name)
        agent.on_commit = TellsLosses(WorkLosses(agent.archive, lambda: 0.0), said.append)
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    made.fund()
    made.launch()
    view = made.end()
    assert view.state.money.phase is RunPhase.OVER and not view.games
    assert view.state.attestations and not view.state.accusations
    assert all(view.status(generation) is GenerationStatus.FINAL for generation in (1, 2))

    archive, file = archive_of(made.run, made.store), tmp_path / "model.safetensors"
    names, outline = names_and_outline(archive, made.store)
    weights = fetch_weights(archive, view, names, COMPUTE)
    assert (weights.generation, weights.is_final) == (2, True)
    write_weights(file, weights, outline)
    assert find_weights(archive, view, names, file, outline).root == weights.root
    final, start = load_file(file), load_recipe(NAME).module
    assert accuracy(final) > 0.95 > accuracy(start.state_dict()) + 0.2
    assert int(final["1.num_batches_tracked"]) == 100 and final["1.num_batches_tracked"].dtype is torch.int64
    weigh, _ = evaluation(made.store, made.run.charter, made.run.address)
    losses = [weigh(root) for root in standing_generations(view).values()]
    assert len(losses) == 3 and losses[2] < losses[1] + 0.05 < losses[0] - 0.2
    # Each solver was told in each round what its own work had come to.
    assert len(said) == 4 and all("training loss 0." in line and "validation loss 0." in line for line in said)
    # Without the statistics that the seats kept, the same weights are worth little.
    parameters = {n: final[n] for n, _ in start.named_parameters()}
    assert accuracy(parameters, strict=False) < accuracy(final) - 0.1
    goes_on_in_another_run(made, view)
    # What nobody published any more is merged again, from genesis and the updates that counted.
    for generation in (1, 2):
        lists = view.lists(generation)
        assert lists is not None
        for root in (lists.parameters, lists.momentum):
            digest = archive.objects.list_digest(root, weights.specs)
            removed = [path.unlink() for path in (tmp_path / "store").rglob(f"*{digest.hex()[4:]}*")]
            assert removed
    # Also by whoever may not write to the store: nothing is published by looking at a model.
    before = sorted((tmp_path / "store").rglob("*"))
    assert fetch_weights(archive_of(made.run, made.store), view, names, COMPUTE).tensors == weights.tensors
    assert sorted((tmp_path / "store").rglob("*")) == before
    # A run of a preset has a text whose losses anybody can compute; this one says why not.
    card = read_card(made.store, made.run.address)
    assert card.model == NAME
    with pytest.raises(UnavailableError, match="own"):
        read_corpus(made.store, card, made.run.charter.training.data)


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


def test_a_card_whose_names_do_not_fit_the_program_is_not_used(tmp_path: Path) -> None:
    store, module = open_store(tmp_path), nn.Linear(1, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    recipe = Recipe(module, lambda m, rows: m(rows).square().mean(), optimizer, (torch.ones(64, 1),), batch_size=2)
    publish_card(store, prepare_recipe_rounds(recipe, "own", 8, inner_steps=10), RUN, 7)
    card = read_card(store, RUN)
    assert (card.first_block, card.names) == (7, ("weight", "bias"))
    assert names_of(store, card, Digest(bytes(32)), 2) == ("weight", "bias")
    for names in (("weight",), ("weight", "weight"), ("weight", "bias", "more")):
        forged = Card(None, None, 7, "own", names)
        with pytest.raises(UnavailableError) as refused:
            names_of(store, forged, Digest(bytes(32)), 2)
        assert refused.value.code == "CardWrong"
