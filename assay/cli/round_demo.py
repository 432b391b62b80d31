"""`assay demo-second`: a run of the second round on this machine: train, cheat, catch, settle and claim."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from assay.cli.common import print_json, talk
from assay.cli.options import JsonOption
from assay.demo.round_cast import RoundDemoCheat

if TYPE_CHECKING:
    from assay.demo.round_play import RoundDemo

EPILOG = """Examples: assay demo-second; assay demo-second --cheat false-root --cheat hidden-update;
assay demo-second --keep ./demo --json  ->  {"parameters", "rounds", "final_generations", "epochs", "findings",
"val_loss_before", "val_loss_after", "letter_entropy", "cheats", "slashed", "disputes", "shares", "revenue", "claimed",
"conservation_difference", "cpu_seconds", "wall_seconds", "decentralization_multiplier"}"""


def demo(
    cheat: Annotated[
        list[RoundDemoCheat] | None,
        typer.Option(help="How somebody cheats, an actor each; may be repeated [false-step]."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=3, max=50, help="Rounds of training.")] = 3,
    preset: Annotated[str, typer.Option(help="demo, or tiny for a quick look.")] = "demo",
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="UTF-8 text to train on; pydoc's topics unless given.")
    ] = None,
    pay: Annotated[bool, typer.Option("--pay", help="Pay solvers as well as crediting shares.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Keep node and data in this folder until Ctrl-C."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every command that is run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only what it ended in.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Posts a run on a local chain, starts solvers and auditors, and lets somebody cheat."""
    from assay.demo import round_play as play
    from assay.demo.round_report import judge_model, report
    from assay.demo.round_show import show
    from assay.engine.runtime.executor import how_programs_run

    options = play.RoundDemoOptions(
        cheats=tuple(cheat or (RoundDemoCheat.FALSE_STEP,)),
        rounds=rounds,
        preset=preset,
        data=data,
        pays=pay,
        verbose=verbose,
        folder=keep,
    )
    if data is not None:
        from assay.training.data import read_text

        read_text(data)  # a file that cannot be used is refused before anything is started

    def say(text: str) -> None:
        if not quiet:
            talk.print(text, markup=False, soft_wrap=True)

    say(how_programs_run())
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
        if keep is not None:
            _keep(scene)


def _keep(scene: RoundDemo) -> None:
    """Node and actors go on until Ctrl-C, which is the good end of it."""
    talk.print("The chain goes on; Ctrl-C ends it. Look closer with:")
    for name in ("ETH_RPC_URL", "ASSAY_STORE", "ASSAY_RUN"):
        talk.print(f"  export {name}={scene.stage.environment[name]}", markup=False)
    try:
        while scene.node.is_running:
            time.sleep(0.2)
    except KeyboardInterrupt:
        talk.print(f"kept in {scene.stage.folder}")
