"""`assay demo`: train, cheat, catch, settle and claim, on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from assay.cli.common import print_json, talk
from assay.cli.options import JsonOption
from assay.demo.cast import DemoCheat
from assay.demo.round_cast import RoundDemoCheat
from assay.protocol.errors import UsageError

if TYPE_CHECKING:
    from assay.demo.play import RunningDemo
    from assay.demo.round_play import RoundDemo

C = TypeVar("C", DemoCheat, RoundDemoCheat)

EPILOG = """Examples: assay demo; assay demo --cheat silent --cheat wrong-data; assay demo --second; assay demo --keep
./demo --json  ->  {"parameters", "rounds", "val_loss_before", "val_loss_after", "letter_entropy", "cheats", "slashed",
"disputes", "shares", "revenue", "claimed", "conservation_difference", "cpu_seconds", "wall_seconds",
"decentralization_multiplier"}"""


def demo(
    cheat: Annotated[
        list[str] | None,
        typer.Option(
            help=f"How somebody cheats, an actor each; may be repeated: {', '.join(DemoCheat)}. With --second: "
            f"{', '.join(RoundDemoCheat)}. Unless given: bit-flip, with --second false-step."
        ),
    ] = None,
    second: Annotated[bool, typer.Option("--second", help="Play a run of the second round.")] = False,
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

    def say(text: str) -> None:
        if not quiet:
            talk.print(text, markup=False, soft_wrap=True)

    if second:
        from assay.cli.round_demo import play_demo
        from assay.demo.round_play import RoundDemoOptions

        named = tuple(_cheat(RoundDemoCheat, name) for name in cheat or [RoundDemoCheat.FALSE_STEP])
        _check_data(data)
        say(how_programs_run())
        chosen = RoundDemoOptions(
            cheats=named, rounds=rounds, preset=preset, data=data, pays=pay, verbose=verbose, folder=keep
        )
        play_demo(chosen, say, _serve, as_json=as_json)
        return
    options = play.DemoOptions(
        cheats=tuple(_cheat(DemoCheat, name) for name in cheat or [DemoCheat.BIT_FLIP]),
        rounds=rounds,
        preset=preset,
        data=data,
        pays=pay,
        verbose=verbose,
        folder=keep,
    )
    _check_data(data)
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


def _cheat(kind: type[C], name: str) -> C:
    """The cheat of this name. Raises UsageError (UnknownCheat)."""
    if name not in set(kind):
        raise UsageError(
            f"There is no cheat called {name!r}.",
            code="UnknownCheat",
            remedy=f"Choose one of: {', '.join(sorted(kind))}.",
        )
    return kind(name)


def _check_data(data: Path | None) -> None:
    """A file that cannot be used is refused before anything is started."""
    if data is not None:
        from assay.training.data import read_text

        read_text(data)


def _serve(scene: RunningDemo | RoundDemo) -> None:
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
