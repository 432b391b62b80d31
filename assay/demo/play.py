"""The demo of the first design: set the stage, start all actors, move time while they are idle, settle, report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assay.amounts import tokens
from assay.demo import scene as scenes
from assay.demo.cast import Cast, DemoCheat, choose_cast
from assay.demo.lines import line
from assay.demo.scene import DemoScene, all_rest, make_keys, open_node
from assay.demo.stage import DemoActor
from assay.demo.timekeeper import Timekeeper
from assay.protocol.types import Address
from assay.sponsor.charters import DAY, TOKEN, prices
from assay.training.presets import preset as preset_of
from assay_ledger.agents.heartbeat import Heartbeat
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Event, Logged
from assay_ledger.index.indexer import Index
from assay_ledger.index.records import RunState
from assay_ledger.index.run import Run

REVENUE: Final = 1000 * TOKEN
GAS_EACH: Final = "10"
ESCROW: Final = "100000"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What a demo was asked for."""

    cheats: tuple[DemoCheat, ...] = (DemoCheat.BIT_FLIP,)
    rounds: int = 3
    preset: str = "demo"
    data: Path | None = None
    pays: bool = False
    verbose: bool = False
    folder: Path | None = None
    """Where everything stays afterwards; a private folder that vanishes unless given."""


@dataclass(kw_only=True)
class RunningDemo(DemoScene):
    """A demo under way."""

    options: DemoOptions
    cast: Cast
    _run: Run | None = None
    _index: Index | None = None

    @property
    def run(self) -> Run:
        """The run, once it is posted."""
        assert self._run is not None
        return self._run

    @property
    def index(self) -> Index:
        """The run's records."""
        assert self._index is not None
        return self._index

    @property
    def chain(self) -> Chain:
        """See DemoScene."""
        return self.run.chain

    @property
    def where(self) -> Address:
        """See DemoScene."""
        return self.run.address

    def sync(self) -> RunState:
        """See DemoScene."""
        return self.index.sync()

    def attach(self, address: str) -> None:
        """Follow the run at this address."""
        self.stage.name_run(address)
        self._run = Run(Chain(self.node.url), Address(bytes.fromhex(address[2:])))
        names = {address: name for name, address in self.addresses.items()}

        def tell(_contract: str, found: Logged[Event]) -> None:
            self.say(line(found.event, names))

        self._index = Index(self._run, [tell])


@contextmanager
def open_scene(options: DemoOptions, talk: Callable[[str], None]) -> Iterator[RunningDemo]:
    """A node and a stage; everything that was started ends with the block."""
    cast = choose_cast(options.cheats)
    preset_of(options.preset)
    with open_node(options.folder, talk if options.verbose else None) as (node, stage, processes):
        yield RunningDemo(cast.players, node, stage, talk, processes, options=options, cast=cast)


def post(scene: RunningDemo) -> None:
    """Keys for everybody, coins for gas, and the run."""
    options, stage, cast = scene.options, scene.stage, scene.cast
    make_keys(scene, {p.name for p in cast.verifiers + cast.whistleblowers})
    scene.talk("posting the run")
    words = ["run", "post", "--preset", options.preset, "--rounds", str(options.rounds), "--escrow", ESCROW]
    # Every duty is drawn by every verifier: p is their number.
    words += ["--whistle", str(cast.whistle_rate), "--audit", str(len(cast.verifiers)), "--key", "sponsor", "--yes"]
    if options.data is not None:
        words += ["--data", str(options.data.resolve())]
    if options.pays:
        words += ["--pay"]
    posted = stage.run(*words)
    scene.attach(str(posted["run"]))
    scene.talk("a stranger joins with these commands, and is seated when the next round opens:")
    for command in stage.join_commands(tokens(_stake(scene, DemoActor("solver", "me")))):
        scene.talk(f"  {command}")


def join(scene: RunningDemo) -> None:
    """Tokens, stake and a process for every actor."""
    stage, cast = scene.stage, scene.cast
    needed = {player.name: _stake(scene, player) for player in cast.players}
    scene.talk("funding and staking")
    # One account pays for all: its transactions come one after another, so one command sends them.
    everybody = ["0x" + scene.addresses[player.name].hex() for player in cast.players]
    most = tokens(max(needed.values()))
    stage.run("ledger", "faucet", *everybody, "--tokens", most, "--gas", GAS_EACH, "--key", "faucet")
    stage.run_all([["ledger", "stake", tokens(needed[p.name]), "--key", p.name, "--yes"] for p in cast.players])
    scene.talk("starting the actors")
    for player in cast.players:
        first = ["--first-seats", str(len(cast.solvers)), "--first-verifiers", str(len(cast.verifiers))]
        scene.processes[player.name] = stage.start(player, *([] if player.role == "whistleblower" else first))


def watch(scene: RunningDemo) -> None:
    """Moves time until the demo is over. Raises UnavailableError (ActorDied), DeadlineError (DemoStuck)."""
    scenes.watch(scene, lambda beats: is_over(scene, beats))


def is_over(scene: RunningDemo, beats: dict[Address, Heartbeat]) -> bool:
    """Whether every round was opened and no actor of the demo does, or waits for, anything."""
    state = scene.index.state
    return len(state.rounds) >= scene.run.charter.rounds and all_rest(scene, beats, state.head.number)


def settle(scene: RunningDemo) -> None:
    """Revenue is paid, streams for its four weeks, and every owner claims."""
    scene.talk("paying revenue, and letting its four weeks pass")
    stage, run = scene.stage, scene.run
    stage.run(
        "ledger", "faucet", "0x" + scene.addresses["sponsor"].hex(), "--tokens", tokens(REVENUE), "--key", "faucet"
    )
    stage.run("ledger", "pay", tokens(REVENUE), "--key", "sponsor", "--yes")
    scene.revenue_paid = REVENUE
    keeper = Timekeeper(run.chain, scene.store, run.address, frozenset())
    keeper.jump(run.chain.head().timestamp + 36 * DAY)
    owners = [p.name for p in scene.cast.players if _owns_shares(scene, p)]
    stage.run_all([["ledger", "claim", "--key", name] for name in owners])
    scene.index.sync()


def _owns_shares(scene: RunningDemo, player: DemoActor) -> bool:
    return scene.chain.ask(scene.run.shares.balance_of(scene.addresses[player.name])) > 0


def _stake(scene: RunningDemo, player: DemoActor) -> int:
    """What a player locks over the whole demo: a lock per round and the seat's fee, or a bond and challenges' bonds."""
    e = prices(preset_of(scene.options.preset).inner_steps, pays=scene.options.pays)
    games = 8 * (e.challenge_bond + e.challenge_deposit)
    if player.role == "solver":
        return scene.options.rounds * (e.claim_lock + e.price) + e.seat_fee + games
    return e.verifier_bond + scene.options.rounds * e.price + games
