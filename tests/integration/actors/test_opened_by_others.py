"""A demo whose run somebody else opens first: any actor may, once seats and tickets suffice."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.demo.cast import Cast
from assay.demo.play import launch
from assay.demo.scene import DemoOptions, DemoScene
from assay.demo.stage import DemoStage
from assay.protocol.rounds.escrow import RunPhase
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain


@pytest.mark.long
def test_a_demo_goes_on_when_its_run_was_opened_before_it_looked(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path)
    for name in ("ada", "bob", "cleo", "dan"):
        made.solver(name)
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    nobody = Cast(solvers=(), auditors=(), capacity=1, reaudit_percent=10)
    place = DemoStage(tmp_path / "demo", stage.node.url)
    scene = DemoScene(DemoOptions(weighs=False), nobody, stage.node, place, lambda _: None, {})
    scene.attach("0x" + made.run.address.hex())
    launch(scene)
    assert scene.index.state.money.phase is RunPhase.RUNNING
