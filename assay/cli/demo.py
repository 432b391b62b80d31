"""`assay demo`: train, cheat, catch, settle and claim, on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from assay.cli.common import print_json, talk
from assay.cli.options import JsonOption
from assay.demo.cast import DemoCheat

if TYPE_CHECKING:
    from assay.demo.play import RunningDemo

EPILOG = """Examples: assay demo; assay demo --cheat silent --cheat wrong-data; assay demo --keep ./demo --json  ->
{"parameters", "rounds", "val_loss_before", "val_loss_after", "letter_entropy", "cheats", "slashed", "disputes",
"shares", "revenue", "claimed", "conservation_difference", "cpu_seconds", "wall_seconds",
"decentralization_multiplier"}"""


def demo(
    cheat: Annotated[
        list[DemoCheat] | None, typer.Option(help="How somebody cheats, an actor each; may be repeated [bit-flip].")
    ] = None,
    rounds: Annotated[int, typer.Option(min=3, max=50, help="Rounds of training.")] = 3,
    preset: Annotated[str, typer.Option(help="demo, or tiny for a quick look.")] = "demo",
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="UTF-8 text to train on; pydoc's topics unless given.")
    ] = None,
    pay: Annotated[bool, typer.Option("--pay", help="Pay solvers as well as crediting shares.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="DIR", help="Keep node and data in this folder, and serve the explorer until Ctrl-C."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every command that is run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only what it ended in.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Posts a run on a local chain, starts solvers, verifiers and a whistleblower, and lets somebody cheat."""
    from assay.demo import play
    from assay.demo.report import judge_model, report
    from assay.demo.show import show
    from assay.engine.runtime.executor import how_programs_run

    options = play.DemoOptions(
        cheats=tuple(cheat or (DemoCheat.BIT_FLIP,)),
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
        play.watch(scene)
        play.settle(scene)
        quality = judge_model(scene)
        document = report(scene, quality)
        if as_json:
            print_json(document)
        else:
            show(scene, document, quality, Console(highlight=False))
        if keep is not None:
            _serve(scene)


def _serve(scene: RunningDemo) -> None:
    """The explorer over what was kept, until Ctrl-C, which is the good end of it."""
    from assay.explorer import serve

    server = serve(scene.run, scene.store, port=0, names={a: name for name, a in scene.addresses.items()})
    talk.print(f"explorer at {server.url}; Ctrl-C ends it. Look closer with:")
    for name in ("ETH_RPC_URL", "ASSAY_STORE", "ASSAY_RUN"):
        talk.print(f"  export {name}={scene.stage.environment[name]}", markup=False)
    try:
        while scene.node.is_running:
            time.sleep(0.2)
    except KeyboardInterrupt:
        talk.print(f"kept in {scene.stage.folder}")
    finally:
        server.close()
