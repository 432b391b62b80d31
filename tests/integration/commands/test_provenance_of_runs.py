"""The history of a run that was really played, asked for by commands: replays, and its card."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from assay.protocol.errors import ExitCode
from assay.protocol.types import Round
from assay.provenance.books import history_of
from assay.provenance.document import card_document, told_card
from assay.provenance.readme import readme
from assay_solver.cheats import FalseStep
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain, actors_artifacts
from tests.harness.commands import assay_on

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

LIAR = "mallory"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeRun]:
    """Two rounds in which one solver lies about a step of the second; its game is not over, if anybody plays one."""
    folder = tmp_path_factory.mktemp("played")
    with actors_artifacts(folder / "artifacts"):
        stage = SharedChain()
        try:
            made = new_whole_run(stage, folder, rounds=2)
            for name in (LIAR, "ada", "bob", "cleo"):
                made.solver(name, FalseStep(Round(1)) if name == LIAR else None)
            made.auditor("vera", tickets=6)
            made.enrol()
            made.fund()
            made.launch()
            made.settle(lambda view: view.newest >= 2)
            yield made
        finally:
            stage.close()


def replayed(made: WholeRun, round_: int, seat: int, *words: str, ends: ExitCode = ExitCode.OK) -> Any:
    """The document of a replay that ends so."""
    store = ("--store", str(made.folder / "store"))
    at = ("--round", str(round_), "--seat", str(seat), *store, "--json", *words)
    done = assay_on(made.run, "model", "replay", *at)
    assert done.exit_code == ends, (done.output, done.exception)
    return json.loads(done.stdout)


def test_every_commitment_of_a_run_is_replayed_and_the_lie_is_placed(played: WholeRun) -> None:
    view, liar = played.view, played.players[LIAR].agent.me
    lies = []
    for (round_, seat), work in sorted(view.state.works.items()):
        holder = view.books.tenures.existing(work.tenure).holder
        false = (round_, holder) == (1, liar)
        found = replayed(played, round_, seat, ends=ExitCode.FRAUD if false else ExitCode.OK)
        assert found["equal"] is not false and found["commitment"] == "0x" + work.digest.hex()
        assert found["solver"] == "0x" + holder.hex()
        lies += [found] if false else []
    (lie,) = lies
    assert lie["parts"] == {"what": "end", "unit": 2, "first_step": 3, "last_step": 4}
    at = ("--round", "1", "--seat", str(lie["seat"]))
    assert replayed(played, 1, lie["seat"], "--step", "1")["equal"]
    said = assay_on(played.run, "model", "replay", *at, "--store", str(played.folder / "store"))
    assert said.exit_code == ExitCode.FRAUD and "at one of the steps 3 to 4" in said.stdout


def test_a_card_counts_what_was_paid_held_and_audited(played: WholeRun) -> None:
    view, books = history_of(played.run)
    card = card_document(view, books, told_card(played.store, played.run.address))
    people = {p["address"]: p for p in card["contributors"]}
    for name in ("ada", "bob", "cleo", LIAR):
        me = played.players[name].agent.me
        mine = [w for w in view.state.works.values() if view.books.tenures.existing(w.tenure).holder == me]
        assert people["0x" + me.hex()]["rounds"] == len(mine)
    assert sum(p["shares_ppm"] for p in people.values()) <= 1_000_000
    assert card["audited"]["steps"] == 2 * sum(w.work.units for w in view.state.works.values())
    assert 0 <= card["audited"]["audited"] <= card["audited"]["steps"]
    for made in card["generations"][1:]:
        receipt = played.chain.w3.eth.get_transaction_receipt(made["tx"])
        assert receipt["blockNumber"] == made["opened_in"]
    assert f"| `{min(people)}` |" in readme(card).decode()
