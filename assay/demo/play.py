"""The demo itself: post and fund a run, start all actors, open it, move time while they are idle, settle, claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from assay.amounts import TEST_MONEY
from assay.demo.asking import ask, refund_words, withdraw_words
from assay.demo.cast import BOUNTY_PERCENT, Cast, choose_cast
from assay.demo.scene import OTHERS, DemoOptions, DemoScene, all_rest, make_keys, open_node, watch
from assay.demo.stage import DemoActor
from assay.demo.timekeeper import Timekeeper
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.types import Address
from assay.sponsor.charters import DAY
from assay.sponsor.launching import launch_lacks, stake_of
from assay.training.presets import Preset
from assay.training.presets import preset as preset_of
from assay_ledger.agents.heartbeat import Heartbeat

REVENUE: Final = TEST_MONEY.parse("1000")
GAS_EACH: Final = "10"
GAMES: Final = 8
"""Challenges that each actor can pay for at once, beside what it locks."""

UNITS: Final = 5
LEAST_UNITS: Final = 2
COMMIT_S: Final = 600


@contextmanager
def open_scene(options: DemoOptions, talk: Callable[[str], None], cast: Cast | None = None) -> Iterator[DemoScene]:
    """A node and a stage; what is started ends with the block. The cast follows from cheats unless given."""
    cast = cast or choose_cast(options.cheats)
    preset_of(options.preset)
    with open_node(options.folder, talk if options.verbose else None) as (node, stage, processes):
        yield DemoScene(options, cast, node, stage, talk, processes)


def play(scene: DemoScene) -> None:
    """All of it, in its order. Raises what its parts do, and whatever their commands end with."""
    post(scene)
    join(scene)
    launch(scene)
    play_rounds(scene)
    settle(scene)


def post(scene: DemoScene) -> None:
    """Keys for everybody, coins for gas, and a funded run."""
    options, stage, cast = scene.options, scene.stage, scene.cast
    make_keys(scene)
    scene.talk("posting the run")
    words = ["run", "post", "--preset", options.preset, "--rounds", str(options.rounds or cast.rounds)]
    words += ["--seats", str(cast.seats), "--units", str(UNITS), "--least", str(LEAST_UNITS)]
    words += ["--commit", str(COMMIT_S), "--beacon", "local"]
    words += ["--audit", f"{cast.audit_percent / 100:.2f}", "--shifts", str(cast.shifts)]
    words += ["--reaudit", f"{cast.reaudit_percent / 100:.2f}", "--capacity", str(cast.capacity)]
    words += ["--bounty", f"{BOUNTY_PERCENT / 100:.2f}", "--key", "sponsor", "--yes"]
    if options.data is not None:
        words += ["--data", str(options.data.resolve())]
    if options.pays:
        words += ["--pay"]
    posted = stage.run(*words)
    scene.attach(str(posted["run"]))
    for line in terms(scene):
        scene.talk(line)
    if not cast.strangers:
        return
    scene.talk("a stranger joins with these commands, and is seated from the next round on:")
    for command in stage.join_commands(_amount(_stake(scene, DemoActor("solver", "me")))):
        scene.talk(f"  {command}")


def terms(scene: DemoScene) -> Iterator[str]:
    """What the run's charter says, in sentences."""
    c, cast = scene.run.charter, scene.cast
    t, e = c.training, c.economics
    chosen: Preset = preset_of(scene.options.preset)
    yield (
        f"{c.rounds} rounds of up to {t.max_units} units of {t.steps_per_unit} steps a seat (preset {chosen.name}); "
        f"{t.seats} seats" + (", one of them for a stranger" if cast.strangers else "")
    )
    yield (
        f"a seat locks {TEST_MONEY.brief(e.seat_lock)} tokens; a ticket of an auditor locks "
        f"{TEST_MONEY.brief(e.ticket_bond)}, "
        f"since it answers for up to {e.capacity} replays at a call"
    )
    if cast.is_certain:
        yield (
            "here each commitment is drawn for certain (p = 1) for the one ticket that its epoch calls, whose owner is "
            "honest, so that the liar is caught in every demo; other runs draw one in ten and rely on what a lie costs"
        )
    elif cast.audit_percent < 100:
        yield (
            f"{cast.audit_percent} % of a replay are expected of each commitment (p), {cast.reaudit_percent} % of each "
            "finding (q), by every ticket at once"
        )
    else:
        yield (
            "here each commitment is drawn for one ticket in expectation (p = 1), and "
            f"{cast.reaudit_percent} % of each finding, so that the auditor that cheats is caught in all but one of "
            "many thousand demos"
        )


def join(scene: DemoScene) -> None:
    """Tokens, and a process for every actor, which puts its stake into the vault."""
    stage, cast = scene.stage, scene.cast
    needed = {player.name: _amount(_stake(scene, player)) for player in cast.players}
    scene.talk("handing out test tokens")
    # One account pays for all: its transactions come one after another, so one command sends them.
    everybody = ["0x" + scene.addresses[player.name].hex() for player in cast.players]
    most = _amount(max(_stake(scene, player) for player in cast.players))
    stage.run("ledger", "faucet", *everybody, "--tokens", most, "--gas", GAS_EACH, "--key", "faucet")
    scene.talk("starting the actors")
    for player in cast.players:
        options = ["--deposit", needed[player.name]]
        if player.role != "solver":
            options += ["--tickets", str(player.tickets)]
        scene.processes[player.name] = stage.start(player, *options)


def launch(scene: DemoScene) -> None:
    """Time passes until all have their seats and their tickets count; then the sponsor opens the run.

    Where a stranger has taken the last seat any actor may open it, from the charter's day on, and may be first.

    Raises UnavailableError (ActorDied), DeadlineError (DemoStuck).
    """
    seasoning = scene.run.charter.timing.seasoning
    scene.talk(f"tickets count {seasoning} s of chain time after they are registered; then the sponsor opens the run")
    watch(scene, lambda _: scene.index.state.money.phase > RunPhase.FUNDING or _is_ready(scene))
    scene.stage.run("run", "open", "--key", "sponsor")


def play_rounds(scene: DemoScene) -> None:
    """Moves time until the run is over. Raises UnavailableError (ActorDied), DeadlineError (DemoStuck)."""
    watch(scene, lambda beats: is_over(scene, beats), waits_for_strangers=True)


def is_over(scene: DemoScene, beats: dict[Address, Heartbeat]) -> bool:
    """Whether the run has ended and no actor of the demo does, or waits for, anything."""
    state = scene.index.state
    return state.money.phase.has_ended and all_rest(scene, beats, state.head.number)


def settle(scene: DemoScene) -> None:
    """The escrow's rest goes back; a reader pays for text; revenue streams for its four weeks, every owner claims."""
    stage, run = scene.stage, scene.run
    payers = ["0x" + scene.addresses[name].hex() for name in ("sponsor", *OTHERS)]
    each = TEST_MONEY.show(REVENUE + run.charter.economics.seat_lock)
    stage.run_all(
        [
            ["run", "refund", "--key", "sponsor"],
            ["ledger", "faucet", *payers, "--tokens", each, "--key", "faucet"],
        ]
    )
    scene.asking = asking = ask(scene)
    scene.talk("paying revenue, and letting its four weeks pass")
    pay = ["ledger", "pay", TEST_MONEY.show(REVENUE), "--key", "sponsor", "--yes"]
    stage.run_all([pay, refund_words(scene, asking)])
    scene.revenue_paid = REVENUE + asking.to_owners
    keeper = Timekeeper(run.chain, scene.store, run.address, frozenset())
    keeper.jump(run.chain.head().timestamp + 36 * DAY)
    owners = [p.name for p in scene.cast.players if _owns_shares(scene, p)]
    found = stage.run_all([withdraw_words(scene), *(["ledger", "claim", "--key", name] for name in owners)])
    asking.withdrawn = found[0]["withdrawn"]
    scene.index.sync()


def _is_ready(scene: DemoScene) -> bool:
    lacks, state = launch_lacks(scene.run), scene.index.state
    seated = {t.holder for t in state.books.tenures.tenures.values()}
    wanted = {scene.addresses[p.name] for p in scene.cast.solvers}
    count = sum(p.tickets for p in scene.cast.auditors)
    now, registry = state.head.timestamp, state.books.registry
    return not (lacks.tickets or lacks.escrow) and wanted <= seated and registry.count_at(now, now) >= count


def _owns_shares(scene: DemoScene, player: DemoActor) -> bool:
    return scene.chain.ask(scene.run.shares.balance_of(scene.addresses[player.name])) > 0


def _amount(wei: int) -> str:
    """Tokens that are no less, as typed."""
    return TEST_MONEY.at_least(wei)


def _stake(scene: DemoScene, player: DemoActor) -> int:
    """What a player locks over the whole demo, and what challenges may cost it."""
    charter = scene.run.charter
    games = GAMES * (charter.economics.challenge_bond + charter.economics.challenge_deposit)
    if player.role == "solver":
        return stake_of(charter, seats=1) + games
    return stake_of(charter, tickets=player.tickets) + games
