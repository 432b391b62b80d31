"""`assay demo`: train, cheat, catch, settle and claim, on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from assay.cli.common import print_json, talk
from assay.cli.options import DeviceOption, JsonOption
from assay.demo.cast import FALSE_AUDIT_ROUNDS, ROUNDS, DemoCheat
from assay.protocol.errors import UsageError
from assay.training.presets import PRESETS

if TYPE_CHECKING:
    from assay.demo.scene import DemoScene

EPILOG = """Examples: assay demo; assay demo --cheat false-update --cheat late-commitment; assay demo --cheat
blind-auditor --preset tiny; assay demo --rounds 20 --keep ./demo; assay demo --data ./book.txt --pay -v; assay demo
--json -q  ->  {"run", "parameters", "rounds", "final_generations", "findings", "val_loss_before", "val_loss_after",
"letter_entropy", "cheats", "slashed", "fined", "disputes", "card", "deposited", "earned", "lost", "stake", "shares",
"inference", "revenue", "claimed", "conservation_difference", "cpu_seconds", "wall_seconds",
"decentralization_multiplier"}"""


def demo(
    cheat: Annotated[
        list[str] | None,
        typer.Option(
            help="How somebody cheats; of solvers' ways several, an actor each, of auditors' one: "
            f"{', '.join(DemoCheat)}. Unless given: {DemoCheat.FALSE_STEP}."
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=3,
            max=50,
            help=f"Rounds of training; {ROUNDS} unless given, {FALSE_AUDIT_ROUNDS} where an auditor cheats.",
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(help=f"What is trained: {', '.join(PRESETS)}; tiny is for a quick look.")
    ] = "demo",
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
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Posts a run on a local chain, starts solvers, verifiers and a whistleblower, and lets somebody cheat."""
    from assay.demo import play
    from assay.demo.report import judge_model, report
    from assay.demo.scene import DemoOptions
    from assay.demo.show import show
    from assay.engine.runtime.executor import how_programs_run

    def say(text: str) -> None:
        if not quiet:
            talk.print(text, markup=False, soft_wrap=True)

    cheats = tuple(map(_cheat, cheat or [DemoCheat.FALSE_STEP]))
    options = DemoOptions(cheats, rounds, preset, data, pay, verbose, keep)
    _check_data(data, preset)
    say(how_programs_run())
    with play.open_scene(options, say) as scene:
        play.play(scene)
        quality = judge_model(scene)
        document = report(scene, quality)
        if as_json:
            print_json(document)
        else:
            show(scene, document, quality, Console(highlight=False))
        if keep is not None:
            _serve(scene)


def _cheat(name: str) -> DemoCheat:
    """The cheat of this name. Raises UsageError (UnknownCheat)."""
    if name not in set(DemoCheat):
        raise UsageError(
            f"There is no cheat called {name!r}.",
            code="UnknownCheat",
            remedy=f"Choose one of: {', '.join(sorted(DemoCheat))}.",
        )
    return DemoCheat(name)


def _check_data(data: Path | None, preset: str) -> None:
    """A file that cannot be used, or is too short, is refused before anything is started."""
    if data is not None:
        from assay.training.data import corpus_from_text, read_text
        from assay.training.presets import preset as preset_of

        corpus_from_text(read_text(data), min_tokens=preset_of(preset).context + 1)


def _serve(scene: DemoScene) -> None:
    """The explorer over what was kept, until Ctrl-C, which is the good end of it."""
    from assay.explorer import serve

    names = {a: name for name, a in scene.addresses.items()}
    server = serve(scene.run, scene.store, port=0, names=names, bonds=scene.gates)
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
