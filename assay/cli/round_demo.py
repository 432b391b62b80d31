"""`assay demo --second`: a run of the second round on this machine: train, cheat, catch, settle and claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console

from assay.cli.common import print_json

if TYPE_CHECKING:
    from assay.demo.round_play import RoundDemo, RoundDemoOptions


def play_demo(
    options: RoundDemoOptions, say: Callable[[str], None], serve: Callable[[RoundDemo], None], *, as_json: bool
) -> None:
    """Posts a run on a local chain, starts solvers and auditors, lets somebody cheat, and tells what it ended in.

    `serve` shows what is kept of it, where a folder was named.
    """
    from assay.demo import round_play as play
    from assay.demo.round_report import judge_model, report
    from assay.demo.round_show import show

    with play.open_scene(options, say) as scene:
        play.post(scene)
        play.join(scene)
        play.launch(scene)
        play.play_rounds(scene)
        play.settle(scene)
        quality = judge_model(scene)
        document = report(scene, quality)
        if as_json:
            print_json(document)
        else:
            show(scene, document, quality, Console(highlight=False))
        if options.folder is not None:
            serve(scene)
