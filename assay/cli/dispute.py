"""`assay dispute`: games as they are and as they go on; needs no key."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from assay.amounts import Currency
from assay.cli.common import open_blobs, open_round_run, parse_address, print_fields, print_json, print_table, talk
from assay.cli.options import RUN, SHOWN, STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.cli.progress import progress
from assay.cli.seeing import read_run
from assay.cli.watch import say_strangers, usual_age
from assay.protocol.errors import UnavailableError
from assay.settings import Settings
from assay.watchdog.alarms import Alarm, Standing, changes, exit_code_of

if TYPE_CHECKING:
    from assay.cli.showing import Showing
    from assay.explorer.reader import RunReader
    from assay.watchdog.watch import Watchdog

app = typer.Typer(no_args_is_help=True, help="Disputes: challenge, descent, verdict.")

GameArgument = Annotated[int, typer.Argument(metavar="GAME", min=1, help="Number of the game.")]
EVERY_S: Final = 1.0


@app.command("list", epilog='Example: assay dispute list --json  ->  [{"game", "what", "stage", "verdict", ...}]')
@with_settings(*RUN)
def list_(
    settings: Settings,
    open_only: Annotated[bool, typer.Option("--open", help="Only games without a verdict.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Every dispute of the run: who challenged what, where it stands, who lost."""
    from assay.explorer.games import game_document
    from assay.explorer.words import short

    with read_run(open_round_run(settings)).reading() as reader:
        games = [
            game_document(reader, g) for _, g in sorted(reader.state.games.items()) if not (open_only and g.is_over)
        ]
    if as_json:
        print_json(games)
        return
    if not games:
        talk.print("No claim was challenged." if not open_only else "No game is open.")
        return
    # Tables show the ends of addresses; `show` and --json all of them.
    rows = [
        [g["game"], g["what"], short(g["defender"]), short(g["challenger"]), _stand(g), g["transactions"], g["gas"]]
        for g in games
    ]
    print_table("", ["game", "about", "defender", "challenger", "stands", "transactions", "gas"], rows)


@app.command("show", epilog='Example: assay dispute show 1 --json  ->  {"game", "steps": [...], "verdict", "replay"}')
@with_settings(*RUN)
def show(settings: Settings, game: GameArgument, as_json: JsonOption = False) -> None:
    """One dispute step by step, with our own replay of its signed transactions."""
    from assay.explorer.descent import descent_document

    with read_run(open_round_run(settings)).reading() as reader, progress("replaying the dispute"):
        document = descent_document(reader, _record(reader, game))
    if as_json:
        print_json(document)
        return
    _print_head(document, reader.run.currency)
    for number, step in enumerate(document["steps"], 1):
        typer.echo(_line(number, step))
    _print_end(document)


@app.command(
    "follow", epilog="Example: assay dispute follow 1   (ends with the verdict; --json prints one step per line)"
)
@with_settings(*RUN)
def follow(
    settings: Settings,
    game: GameArgument,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks at the chain.")] = EVERY_S,
    as_json: JsonOption = False,
) -> None:
    """Follow a dispute move by move until its verdict."""
    from assay.explorer.descent import descent_document

    reader, seen, is_silent = read_run(open_round_run(settings)), -1, False
    while True:
        try:
            with reader.reading():
                document = descent_document(reader, _record(reader, game))
        except UnavailableError as error:
            # Bad luck: a node that is started anew in the days that a game may last.
            if seen < 0:
                raise
            if not is_silent:
                talk.print(f"The node does not answer, and is asked again: {error.message}", markup=False)
            is_silent = True
            time.sleep(every)
            continue
        is_silent = False
        if seen < 0 and not as_json:
            _print_head(document, reader.run.currency)
        steps = document["steps"]
        for number, step in enumerate(steps, 1):
            if number > seen:
                print_json(step) if as_json else typer.echo(_line(number, step))
        if document["verdict"] is not None:
            if as_json:
                print_json({"verdict": document["verdict"], "replay": document["replay"]})
            else:
                _print_end(document)
            return
        if len(steps) != seen and not as_json:
            talk.print(_clock(document))
        seen = max(seen, len(steps))
        time.sleep(every)


@app.command(
    "watch",
    epilog="Exit codes with --once, the gravest alarm's: 0 nothing wrong (or notes only), 8 an honest party is losing "
    "or has lost, 9 a deadline is near or missed, 5 a bond, lock or purse is short, 4 chain or store does not answer. "
    "Example: assay dispute watch --run 0xabc... --store ./store --once --json",
)
@with_settings(*STORED_RUN, *SHOWN)
def watch(
    settings: Settings,
    party: Annotated[
        list[str] | None, typer.Option("--party", metavar="ADDRESS", help="Watch for this party; may be repeated.")
    ] = None,
    near: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of a clock below which its deadline is near.")
    ] = 0.25,
    stale_after: Annotated[float, typer.Option(min=1.0, help="Seconds that the head may stand still.")] = 300.0,
    max_age: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            help="Seconds that the newest block may be old by this machine's clock: 900, and any on a local chain.",
        ),
    ] = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks at the chain.")] = EVERY_S,
    once: Annotated[bool, typer.Option("--once", help="Look once; the exit code says what was found.")] = False,
    _device: DeviceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document per line.")] = False,
) -> None:
    """Watch a run and say when an honest party is about to lose something; needs no key and changes nothing.

    With a store, disputed claims are recomputed here and a party that says the same is honest; a --party is taken to be
    honest without asking, and its stakes and calls are watched too. Of the run: epochs, escrow, disputed roots.
    One line per change: raised, or cleared. Without --once it goes on until you stop it.
    """
    from assay.cli.showing import showing

    with showing(settings, "watchdog") as shown:
        looks = shown.looks(every)
        dog = _watchdog(settings, party or [], near, stale_after, max_age, once, shown)
        before: Standing = {}
        has_said = False
        while True:
            looks.begun()
            after = dict(dog.look())
            looks.looked(after.values())
            has_said = has_said or say_strangers(dog)
            for raised, alarm in changes(before, after):
                _say(dog.head, raised, alarm, as_json)
            if once:
                raise typer.Exit(int(exit_code_of(after.values())))
            before = after
            looks.rests()
            time.sleep(every)


def _watchdog(
    settings: Settings,
    parties: list[str],
    near: float,
    stale_after: float,
    max_age: float | None,
    waits: bool,
    shown: Showing,
) -> Watchdog:
    from assay.protocol.types import Address
    from assay.watchdog.looking import WatchOptions
    from assay.watchdog.watch import Watchdog

    named = frozenset(Address(parse_address(p)) for p in parties)
    if not named:
        talk.print("No party is named: nobody's stakes and calls are watched.")
    run = open_round_run(settings)
    age = usual_age(run.chain) if max_age is None else max_age
    options = WatchOptions(named, near, stale_after, age, settings.allowed_code, waits)
    store = None if settings.store is None else open_blobs(settings)
    shown.follow(run, store)
    if store is None:
        if not named:
            talk.print("No store is named: nothing is recomputed, and it is not known who is right.")
        return Watchdog(run, options=options)
    from assay.training.rounds import TorchCompute

    return Watchdog(run, store, TorchCompute(), options)


def _say(head: tuple[int, int], raised: bool, alarm: Alarm, as_json: bool) -> None:
    if as_json:
        line = {
            "block": head[0],
            "time": head[1],
            "state": "raised" if raised else "cleared",
            "level": "note" if alarm.is_note else "alarm",
            "kind": str(alarm.kind),
            "about": alarm.about,
            "text": alarm.text,
            **dict(alarm.figures),
        }
        print_json(line)
        return
    word = ("note" if alarm.is_note else "ALARM") if raised else "clear"
    typer.echo(f"{head[1]}  {word:<5}  {alarm.kind:<17}  {alarm.about}: {alarm.text}")


def _record(reader: RunReader, game: int) -> Any:
    from assay.bundle.errors import GameUnknown

    if game not in reader.state.games:
        raise GameUnknown(f"The run has {len(reader.state.games)} games; there is no game {game}.")
    return reader.state.games[game]


def _stand(document: dict[str, Any]) -> str:
    verdict = document["verdict"]
    if verdict is None:
        return f"{document['stage']}, {document['turn']} to move"
    return f"{verdict['side']} lost ({verdict['outcome']})"


def _clock(document: dict[str, Any]) -> str:
    return f"     {document['stage']}: the {document['turn']} is to move until chain time {document['deadline']}"


def _line(number: int, step: dict[str, Any]) -> str:
    return f"{number:3}  {step['stage']:<6}  {step['side']:<10}  {step['says']}  ({step['used']} s, {step['gas']} gas)"


def _print_head(document: dict[str, Any], money: Currency) -> None:
    print_fields(
        {
            "game": document["game"],
            "about": document["what"],
            "claim": document["claim"],
            "defender": document["defender"],
            "challenger": document["challenger"],
            "bond": f"{money.show(int(document['bond']))} tokens",
        }
    )
    typer.echo("")


def _print_end(document: dict[str, Any]) -> None:
    verdict, replay = document["verdict"], document["replay"]
    if verdict is None:
        talk.print(_clock(document))
        return
    typer.echo("")
    fields: dict[str, object] = {"verdict": f"the {verdict['side']} {verdict['loser']} lost ({verdict['outcome']})"}
    if verdict["outcome"] == "LEAF":
        fields["node"] = (
            f"{verdict['node']} ({verdict['family']}), element {verdict['element']}, term {verdict['term']}"
        )
    fields |= {name: replay[name] for name in ("expected", "claimed") if name in replay}
    words = {
        True: "the same verdict",
        None: f"not yet: {replay['reason']}",
        False: f"NOT this verdict: {replay['reason']}",
    }
    fields["replayed here"] = words[replay["agrees"]]
    print_fields(fields)
