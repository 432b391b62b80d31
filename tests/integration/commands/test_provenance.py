"""Where a model comes from, asked of a run on a real node: its card beside the weights, and what cannot be known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from safetensors.torch import load_file, save_file
from starlette.testclient import TestClient

from assay.datasets.convert import DataTerms, convert
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.errors import ExitCode
from assay.provenance.books import history_of
from assay.provenance.document import NO_STORE, card_document
from assay_ledger.rounds.index import KeepsEvents, ReadsEvents
from assay_ledger.store.blobs import open_store
from tests.harness.actors.desk import Desk, open_desk

TEXT = "\n".join(f"{n} times {n} is {n * n}." for n in range(300))
CREATOR = "<b>Ada</b> | [click](http://evil.example) \U0001f600"


@pytest.fixture(scope="module")
def posted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, Any]]:
    """A run of a text whose card is stated, and one that starts from a file of its first weights."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "text").write_text(TEXT)
    convert([folder / "text"], folder / "data", DataTerms(licence="CC-BY-4.0", creator=CREATOR))
    with open_desk(folder) as desk:
        words = ("--preset", "tiny", "--seats", "2", "--rounds", "1", "--data", str(folder / "text"))
        first = desk.post(*words)
        at = (*desk.at(desk.opened(first)).run_words, *desk.store_words)
        desk.json("model", "pull", "--out", str(folder / "start.safetensors"), *at)
        started = ("--start-from", str(folder / "start.safetensors"), "--data-card", str(folder / "data"))
        started += ("--licence", "Apache-2.0 OR MIT")
        document = desk.post(*words, "--update", "int8", "--merge", "median-norm", *started)
        yield desk.at(desk.opened(document)), document | {"first": first["run"]}


def pulled(desk: Desk, folder: Path, *words: str) -> tuple[Any, bytes, bytes]:
    """What `model pull` says, and the bytes of the two files of the card."""
    out = str(folder / "model.safetensors")
    said = desk.json("model", "pull", "--out", out, *(words or desk.run_words), *desk.store_words)
    return said, (folder / "README.md").read_bytes(), (folder / "model-card.json").read_bytes()


@pytest.mark.long
def test_two_pulls_write_the_same_card_though_blocks_went_by(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, document = posted
    said, *files = pulled(desk, tmp_path)
    assert (said["readme"], said["card"]) == (str(tmp_path / "README.md"), str(tmp_path / "model-card.json"))
    weights = (tmp_path / "model.safetensors").read_bytes()
    for _ in range(3):
        desk.stage.chain.rpc("evm_mine")
        assert pulled(desk, tmp_path)[1:] == tuple(files)
        assert (tmp_path / "model.safetensors").read_bytes() == weights
    card, run = json.loads(files[1]), desk.opened(document)
    assert rfc8785.dumps(card) == files[1]
    assert (card["run"], card["weights"]["root"], card["weights"]["status"]) == (
        document["run"],
        said["root"],
        "genesis",
    )
    rules = {"tier": "fixed14", "update": "int8", "merge": "median-norm", "licence": "Apache-2.0 OR MIT"}
    assert card["told"] == {"preset": "tiny", "recipe": None} | rules
    assert 0 < card["block"] < run.chain.head().number
    text = files[0].decode()
    assert r"said: licence of the model Apache\-2\.0 OR MIT" in text and "A licence of the model is said" in text
    assert (
        text.startswith("---\n# Written by assay model pull\nlicense: unknown\n")
        and f'run: "{document["run"]}"' in text
    )


def test_the_card_tells_data_and_first_weights_as_they_were_stated(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, document = posted
    _, text, data = pulled(desk, tmp_path)
    card, start = json.loads(data), (desk.folder / "start.safetensors").read_bytes()
    terms = desk.opened(document).charter.training
    assert card["start"] == {
        "parameters": "0x" + terms.parameters.hex(),
        "momentum": "0x" + terms.momentum.hex(),
        "said": {"kind": "files", "files": [{"name": "start.safetensors", "sha256": sha256(start).hexdigest()}]},
    }
    stated = card["data"]
    assert (stated["licence"], stated["creator"], stated["sources"]) == ("CC-BY-4.0", CREATOR, 1)
    assert stated["root"] == "0x" + terms.data.hex()
    assert stated["text_sha256"] == sha256(TEXT.encode()).hexdigest()
    # A hub shows the creator's words, and obeys none of them.
    assert b"<b>" not in text and b"[click]" not in text and b"http://" not in text
    assert rb"\[click\]\(http\:\/\/evil\.example\)" in text


def test_what_nobody_stated_is_said_to_be_not_stated(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, document = posted
    words = (*desk.chain_words, "--run", document["first"])
    _, text, data = pulled(desk, tmp_path, *words)
    card = json.loads(data)
    assert card["start"]["said"] == {"kind": "own"}
    assert [card["data"][name] for name in ("licence", "creator", "sources")] == ["not stated", "not stated", None]
    assert b"No licence of the model is stated" in text and card["told"]["licence"] == "not stated"
    assert b"- licence: not stated" in text and b"No claim was challenged." in text and b"Nobody yet." in text


def test_a_file_that_somebody_else_wrote_is_no_card_and_stays(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, _ = posted
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "model-card.json").write_text("{}")
    said, *files = pulled(desk, tmp_path)
    assert said["readme"] == said["card"] == "another file stands in its place"
    assert files == [b"mine", b"{}"]


def test_a_replay_of_work_that_nobody_did_is_refused(posted: tuple[Desk, Any]) -> None:
    desk, _ = posted
    for words in (("--round", "0", "--seat", "0"), ("--round", str(10**30), "--seat", str(10**30))):
        refused = desk.refused("model", "replay", *words, *desk.run_words, *desk.store_words)
        assert refused.code == "NoSuchWork" and "has begun 0 rounds" in refused.remedy
    assert desk("model", "replay", "--round", "-1", "--seat", "0").exit_code == ExitCode.USAGE


def test_scores_of_a_round_that_nobody_began_are_refused(posted: tuple[Desk, Any]) -> None:
    desk, _ = posted
    refused = desk.refused("model", "scores", "--round", "0", *desk.run_words, *desk.store_words)
    assert refused.code == "RoundNotOpen" and "assay run show" in refused.remedy


def test_two_models_of_a_run_are_compared_by_file_and_by_number(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, _ = posted
    pulled(desk, tmp_path)
    at = (*desk.run_words, *desk.store_words)
    found = desk.json("model", "diff", str(tmp_path), "0", *at)
    assert found["equal"] and found["a"]["root"] == found["b"]["root"] == found["a"]["says"]
    assert found["a"]["sha256"] == found["b"]["sha256"] and found["b"]["generation"] == 0
    # The card names this file as what the run started from, and it is.
    started = desk.json("model", "diff", str(desk.folder / "start.safetensors"), "0", *at)
    assert started["equal"]
    altered = load_file(tmp_path / "model.safetensors")
    altered["token.weight"][3, 1] += 0.25
    save_file(altered, tmp_path / "altered.safetensors")
    other = desk.json("model", "diff", str(tmp_path / "altered.safetensors"), "0", *at, ends=ExitCode.NO)
    (differing,) = [t for t in other["tensors"] if not t["equal"]]
    assert (differing["name"], differing["differing"]) == ("token.weight", 1)
    assert differing["largest"] == pytest.approx(0.25, rel=1e-5)
    assert other["a"]["root"] != other["b"]["root"] and other["a"]["says"] is None
    assert desk.refused("model", "diff", "0", "7", *at).code == "NoSuchModel"


def test_the_explorer_shows_the_document_that_a_pull_writes(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, document = posted
    _, _, data = pulled(desk, tmp_path)
    reader = RunReader(desk.opened(document), open_store(desk.folder / "store"))
    with TestClient(make_app(reader)) as client:
        assert client.get("/api/v1/card").json() == json.loads(data)
        page = client.get("/card").text
    for words in ("CC-BY-4.0", escape(CREATOR), "start.safetensors", "median-norm", "Nobody yet."):
        assert words in page
    assert "<b>Ada" not in page
    told = json.loads(data)["told"]
    assert f"tier {told['tier']}, updates {told['update']}, merge {told['merge']}" in page
    # Without a store the chain's part is the same, and the page says what it lacks.
    with TestClient(make_app(RunReader(desk.opened(document)))) as client:
        bare = client.get("/api/v1/card").json()
        assert bare["told"] == {"why": "no store is named"} and bare["data"]["licence"] == "not stated"
        assert bare["generations"] == json.loads(data)["generations"]
        assert client.get("/card").status_code == 200


def test_a_history_read_from_what_an_explorer_keeps_is_the_chain_s(posted: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, document = posted
    run, url = desk.opened(document), f"sqlite:///{tmp_path / 'events.sqlite'}"
    reader = RunReader(run, keeps=KeepsEvents(url, "explorer"))
    with reader.reading():
        wanted = card_document(reader.view, reader.known.history, NO_STORE)
    reader.close()
    view, books = history_of(run, ReadsEvents((url,)))
    assert card_document(view, books, NO_STORE) == wanted and wanted["block"] > 0
    # Rows of another run, or none, are no history of this one.
    view, books = history_of(run, ReadsEvents((f"sqlite:///{tmp_path / 'none.sqlite'}",)))
    assert card_document(view, books, NO_STORE) == wanted
