"""Runs on a chain and `assay train compare` without one: the same method ends on the same base, by its root."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.train import app
from assay.programs.factory import load_recipe
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.sponsor.charters import Pace
from assay.sponsor.preparing import PreparedRounds, prepare_recipe_rounds, prepare_rounds
from assay.training.presets import TINY
from assay.training.robust import MergeKind
from assay.training.updates import UpdateWire
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
ROUNDS, PACE = 2, Pace(units=5, least=1, steps=2, commit=600)
STEPS = PACE.units * PACE.steps
RULES = [
    *((wire, MergeKind.MEAN, None) for wire in UpdateWire),
    *((UpdateWire.F32, kind, None) for kind in list(MergeKind)[1:]),
    (UpdateWire.F32, MergeKind.MEAN, 0.02),
]
NAMES = [f"{wire.value}-{kind.value}{'-guarded' if guard else ''}" for wire, kind, guard in RULES]


@pytest.mark.parametrize(("wire", "kind", "guard"), RULES, ids=NAMES)
def test_a_run_ends_on_the_root_that_comparing_ends_on(
    stage: SharedChain, tmp_path: Path, wire: UpdateWire, kind: MergeKind, guard: float | None
) -> None:
    prepared = prepare_rounds(TINY, TEXT, 4, wire=wire, kind=kind, guard=guard)
    made, root = _ended(stage, tmp_path, prepared)
    data = tmp_path / "text.txt"
    data.write_text(TEXT, encoding="utf-8")
    words = f"--method {wire.value} --merge {kind.value} --preset tiny --data {data}"
    row = _compared(made, tmp_path, [*words.split(), *([] if guard is None else ["--guard", str(guard)])])
    assert {"method": wire.value, "merge": kind.value, "guard": guard}.items() <= row.items()
    assert row["root"] == root


def test_a_run_of_a_recipe_with_running_statistics_does_too(stage: SharedChain, tmp_path: Path) -> None:
    recipe = "examples.own_run:factory"
    prepared = prepare_recipe_rounds(load_recipe(recipe), recipe, 4, inner_steps=STEPS)
    made, root = _ended(stage, tmp_path, prepared)
    words = ["--recipe", recipe, "--method", "f32", "--inner-steps", str(STEPS)]
    assert _compared(made, tmp_path, words)["root"] == root


def _ended(stage: SharedChain, folder: Path, prepared: PreparedRounds) -> tuple[WholeRun, str]:
    """A run with its last base's root."""
    made = new_whole_run(stage, folder, rounds=ROUNDS, pace=PACE, prepared=prepared)
    made.begin_with("ada", "bob", "cleo", "dan")
    view = made.end()
    assert view.state.money.phase is RunPhase.OVER and view.status(ROUNDS) is GenerationStatus.FINAL
    return made, view.votes(ROUNDS).root.hex()


def _compared(made: WholeRun, folder: Path, words: list[str]) -> dict[str, object]:
    """The last row of as many workers and rounds on the run's batches."""
    of_run = ["--run-id", "0x" + made.run.charter.run.hex(), "--workers", "4", "--rounds", str(ROUNDS)]
    result = CliRunner().invoke(app, ["compare", *words, *of_run, "--out", str(folder / "compare.csv"), "--json"])
    assert result.exit_code == 0, result.output
    rows: list[dict[str, object]] = json.loads(result.stdout)["rows"]
    return rows[-1]
