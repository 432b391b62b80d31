"""The demo's document follows from chain and store, by a script that shares no code with what wrote it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from assay.explorer.money import Money
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Address
from assay_ledger.rounds.index import RunIndex
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects
from tests.harness.actors.world import COMPUTE
from tests.harness.demo.played_disputes import LOST, REVENUE, PlayedDisputes
from tools.recompute import bases, comparing
from tools.recompute import fields as recomputed
from tools.recompute.bases import counted_updates, false_merges, final_generations, generation
from tools.recompute.chain import DATA, PARAMETERS, RecordedRun
from tools.recompute.model import quality
from tools.recompute.store import Store

pytestmark = pytest.mark.timeout(600)

FOLDER = Path(__file__).resolve().parents[3] / "tools" / "recompute"


def test_the_script_imports_nothing_of_the_project_but_the_stock_module() -> None:
    imported = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    ours = {name for name in imported if name.split(".")[0].startswith(("assay", "tests", "tools"))}
    assert {name for name in ours if not name.startswith("tools.recompute.")} == {
        "assay.training.model",
        "assay.training.presets",
    }


@pytest.fixture(scope="module")
def document(disputes: PlayedDisputes) -> dict[str, Any]:
    """What the demo's own report says of the played run; losses are another test's."""
    from assay.demo.report import report

    made, view = disputes.made, disputes.view
    money, players = Money(made.run), {name: Address(p.agent.me) for name, p in made.players.items()}
    index = RunIndex(made.run, [lambda _, found: money.on_event(found.event)], made.run.all_contracts())
    scene: Any = SimpleNamespace(
        index=SimpleNamespace(state=index.sync()),
        view=view,
        run=made.run,
        chain=made.chain,
        money=money,
        cast=SimpleNamespace(players=[SimpleNamespace(name=name) for name in players]),
        addresses=players,
        meter=SimpleNamespace(seconds={"training": 1.0}, peak_pss=0),
        node=SimpleNamespace(url=made.chain.url),
        stage=SimpleNamespace(store=made.folder / "store"),
        options=SimpleNamespace(cheats=()),
        revenue_paid=REVENUE,
        asking=None,
        started=0.0,
    )
    # Whoever evaluates a model publishes its base, if nobody did.
    newest = max(g for g in range(len(view.books.commitments.rounds) + 1) if view.status(g) is GenerationStatus.FINAL)
    made.players["ada"].agent.archive.base(view, newest, COMPUTE)
    quality: Any = SimpleNamespace(
        parameters=1, loss_before=4.0, loss_after=3.0, letter_entropy=3.2, eager_step_cpu=0.001
    )
    return report(scene, quality)


@pytest.fixture(scope="module")
def ledger(disputes: PlayedDisputes) -> RecordedRun:
    return RecordedRun(disputes.made.chain.url, "0x" + disputes.made.run.address.hex())


@pytest.fixture(scope="module")
def fields(ledger: RecordedRun, document: dict[str, Any]) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        losses = {n: document[n] for n in ("parameters", "val_loss_before", "val_loss_after", "letter_entropy")}
        patch.setattr(recomputed, "quality", lambda *_: losses)
        found: dict[str, Any] = recomputed.recompute(ledger, Store(Path(document["store"])), document)
        return found


def test_every_field_of_the_report_is_recomputed(document: dict[str, Any], fields: dict[str, Any]) -> None:
    assert document.keys() - fields.keys() == {*comparing.MEASURED, *comparing.GIVEN, *comparing.ANSWERED, "cheats"}
    ours = [line for line in comparing.differences(document, fields) if not line.startswith("cheats")]
    assert ours == []


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))
    else:
        yield path


def test_a_document_that_says_anything_else_is_found_out(document: dict[str, Any], fields: dict[str, Any]) -> None:
    changed = 0
    for path in places({name: document[name] for name in fields if name != "card"}):
        altered = copy.deepcopy(document)
        at: Any = altered
        for key in path[:-1]:
            at = at[key]
        value = at[path[-1]]
        at[path[-1]] = f"{value}x" if isinstance(value, str) else (value or 0) + 1
        found = [line for line in comparing.differences(altered, fields) if not line.startswith("cheats")]
        assert found, f"{path} may be anything"
        changed += 1
    assert changed > 80
    assert comparing.differences(document | {"card": document["card"] | {"newest_final": 0}}, fields)
    for name in ("slashed", "disputes"):
        shorter = document | {name: document[name][:-1]}
        assert comparing.differences(shorter, fields)


def test_figures_are_the_contracts_own(disputes: PlayedDisputes, fields: dict[str, Any]) -> None:
    assert fields["revenue"] == REVENUE
    assert fields["conservation_difference"] == 0
    lost = {(kind.name, to_checksum_address(disputes.made.address(n))) for kind, names in LOST.items() for n in names}
    assert {e["address"] for e in fields["slashed"]} == {address for _, address in lost}
    assert {e["role"] for e in fields["slashed"]} == {"solver", "auditor"}
    # A silent defender never let its challenger bisect anything.
    assert {e["levels"] for e in fields["disputes"] if e["ended_by"] == "DEFAULT"} == {0}
    assert all(e["levels"] >= 3 for e in fields["disputes"] if e["ended_by"] == "LEAF")


def test_the_model_follows_from_the_genesis_by_merges_of_public_updates(
    disputes: PlayedDisputes, ledger: RecordedRun, document: dict[str, Any]
) -> None:
    store = Store(Path(document["store"]))
    final = final_generations(ledger)
    assert final[0] == 0 and len(final) == document["final_generations"] + 1 >= 3
    newest = generation(ledger, final[-1])
    assert newest["root"] == disputes.view.votes(final[-1]).root
    assert list(false_merges(ledger, store)) == []
    # One update less, and a parameter is not what the rest gives.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bases, "counted_updates", lambda *place: dict([*counted_updates(*place).items()][1:]))
        assert list(false_merges(ledger, store))


def test_what_the_chain_shows_of_cheats_is_compared() -> None:
    def document(cheats: list[str], *slashed: tuple[str, str, str]) -> dict[str, Any]:
        entries = [{"address": a, "role": role, "kind": kind} for a, role, kind in slashed]
        return {"cheats": cheats, "slashed": entries}

    check = comparing._cheats
    assert check(document(["none"])) == []
    assert check(document(["squatter", "hidden-update"])) == []
    assert check(document(["false-step"], ("a", "solver", "LEAF"))) == []
    assert check(document(["false-root", "blind-auditor"], ("a", "solver", "LEAF"), ("v", "auditor", "LEAF"))) == []
    assert check(document(["false-step"]))
    assert check(document(["none"], ("a", "solver", "LEAF")))
    assert check(document(["squatter"], ("a", "solver", "LEAF")))
    assert check(document(["blind-auditor"]))
    assert check(document(["false-step"], ("a", "solver", "LEAF"), ("v", "auditor", "LEAF")))


def test_losses_and_entropy_are_those_of_stock_pytorch_on_the_weights_named(tmp_path: Path) -> None:
    import torch

    from assay.engine.runtime.values.state_io import root_of, spec_of, to_lists_of_bytes
    from assay.sponsor.cards import Card
    from assay.training.data import corpus_from_text
    from assay.training.evaluate import validation_loss
    from assay.training.initialize import initialize
    from assay.training.model import build_model
    from assay.training.presets import preset

    text = "A small text that is long enough, repeated. " * 60
    tiny, corpus = preset("tiny"), corpus_from_text(text)
    model = build_model(tiny, len(corpus.vocabulary))
    store = open_store(tmp_path)
    roots, losses = [], []
    for seed in (1, 2):
        parameters = initialize(model, seed)
        specs = [spec_of(p) for p in parameters]
        roots.append(Objects(store).put_list(specs, to_lists_of_bytes([parameters])[0]))
        losses.append(validation_loss(model, parameters, corpus))
    run = "0x" + "12" * 20
    card = Card("tiny", store.put(text.encode()), 0)
    store.put(card.encode(), f"runs/{run[2:]}/card")
    training = [b""] * 16
    training[PARAMETERS], training[DATA] = roots[0], root_of(corpus.train)
    found = quality(Store(tmp_path), run, tuple(training), roots[1])
    assert found["parameters"] == sum(p.numel() for p in model.parameters())
    assert found["letter_entropy"] == pytest.approx(corpus.letter_entropy(), abs=1e-9)
    assert [found["val_loss_before"], found["val_loss_after"]] == pytest.approx(losses, abs=1e-5)
    assert torch.tensor(losses).unique().numel() == 2

    damaged = next((tmp_path / "objects").rglob("*"))
    while damaged.is_dir():
        damaged = next(damaged.iterdir())
    damaged.write_bytes(damaged.read_bytes() + b"x")
    with pytest.raises(SystemExit):
        [Store(tmp_path).object(p.name) for p in (tmp_path / "objects").glob("*/*")]
