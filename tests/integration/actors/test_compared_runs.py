"""Runs on a chain and `assay train compare` without one: the same method ends on the same base, by its root."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.train import app
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.sponsor.charters import Pace
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import TINY
from assay.training.robust import MergeKind
from assay.training.updates import UpdateWire
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
ROUNDS, PACE = 2, Pace(units=5, least=1, steps=2, commit=600)
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
    made = new_whole_run(stage, tmp_path, rounds=ROUNDS, pace=PACE, prepared=prepared)
    made.begin_with("ada", "bob", "cleo", "dan")
    view = made.end()
    assert view.state.money.phase is RunPhase.OVER and view.status(ROUNDS) is GenerationStatus.FINAL
    data, out = tmp_path / "text.txt", tmp_path / "compare.csv"
    data.write_text(TEXT, encoding="utf-8")
    words = f"compare --method {wire.value} --merge {kind.value} --workers 4 --rounds {ROUNDS} --preset tiny --json"
    files = ["--data", str(data), "--out", str(out), "--run-id", "0x" + made.run.charter.run.hex()]
    behind = [] if guard is None else ["--guard", str(guard)]
    result = CliRunner().invoke(app, [*words.split(), *files, *behind])
    assert result.exit_code == 0, result.output
    asked = {"method": wire.value, "merge": kind.value, "guard": guard}
    (row,) = [row for row in json.loads(result.stdout)["rows"] if asked.items() <= row.items()]
    assert row["root"] == view.votes(ROUNDS).root.hex()
