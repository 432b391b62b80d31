"""The demo itself: set the stage, start all actors, move time while they are idle, settle, report."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.amounts import tokens
from assay.demo.cast import Cast, DemoCheat, choose_cast
from assay.demo.lines import line
from assay.demo.meter import CpuMeter
from assay.demo.stage import DemoActor, DemoStage
from assay.demo.timekeeper import STRANGER_LIMIT_S, Timekeeper
from assay.protocol.errors import DeadlineError, UnavailableError
from assay.protocol.types import Address
from assay.sponsor.charters import DAY, TOKEN, prices
from assay.training.presets import preset as preset_of
from assay_ledger.agents.heartbeat import Heartbeat, is_at_rest, read_heartbeats
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.contract import Event, Logged
from assay_ledger.index.indexer import Index
from assay_ledger.index.run import Run
from assay_ledger.processes.children import stop
from assay_ledger.processes.scratch import ScratchDir
from assay_ledger.store.blobs import BlobStore, open_store

POLL_S: Final = 0.05
LOOK_EVERY_S: Final = 0.25
WEIGH_EVERY_S: Final = 1.0
STUCK_AFTER_S: Final = 1.5 * STRANGER_LIMIT_S
"""Nothing on chain and no actor busy for so long: something is wrong, and waiting longer will not fix it."""

ACTOR_GRACE_S: Final = 2.0
"""An actor that is told to end finishes what it sends; whatever takes longer is safe to kill."""

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


@dataclass(slots=True)
class RunningDemo:
    """A demo under way."""

    options: DemoOptions
    cast: Cast
    node: Anvil
    stage: DemoStage
    talk: Callable[[str], None]
    meter: CpuMeter = field(default_factory=CpuMeter)
    started: float = field(default_factory=time.monotonic)
    addresses: dict[str, Address] = field(default_factory=dict)
    """Of every key by its name."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    revenue_paid: int = 0
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
        """The demo's chain."""
        return self.run.chain

    @property
    def store(self) -> BlobStore:
        """The run's store."""
        return open_store(self.stage.store)

    def attach(self, address: str) -> None:
        """Follow the run at this address."""
        self.stage.name_run(address)
        self._run = Run(Chain(self.node.url), Address(bytes.fromhex(address[2:])))
        names = {address: name for name, address in self.addresses.items()}

        def tell(_contract: str, found: Logged[Event]) -> None:
            text = line(found.event, names)
            if text is not None:
                self.talk(f"[{time.monotonic() - self.started:6.1f} s] {text}")

        self._index = Index(self._run, [tell])


@contextmanager
def open_scene(options: DemoOptions, talk: Callable[[str], None]) -> Iterator[RunningDemo]:
    """A node and a stage; everything that was started ends with the block."""
    cast = choose_cast(options.cheats)
    preset_of(options.preset)
    scratch = ScratchDir("demo") if options.folder is None else None
    folder = scratch.path if scratch is not None else (options.folder or Path()).resolve()
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with Anvil(data_dir=folder / "chain", accounts=1) as node:
            stage = DemoStage(folder, node.url, talk if options.verbose else None)
            scene = RunningDemo(options, cast, node, stage, talk, processes=processes)
            try:
                yield scene
            finally:
                stop(list(processes.values()), grace_s=ACTOR_GRACE_S)
    finally:
        if scratch is not None:
            scratch.remove()


def post(scene: RunningDemo) -> None:
    """Keys for everybody, coins for gas, and the run."""
    options, stage, cast = scene.options, scene.stage, scene.cast
    faucet: LocalAccount = Account.from_key(scene.node.dev_keys[0])
    secret = stage.folder / "faucet.hex"
    secret.write_text(scene.node.dev_keys[0].hex())
    secret.chmod(0o600)
    names = ["sponsor", *(player.name for player in cast.players)]
    made = stage.run_all(
        [
            ["key", "import", "faucet", str(secret), "--kdf", "pbkdf2"],
            *(["key", "new", name, "--kdf", "pbkdf2", *_key_options(cast, name)] for name in names),
        ]
    )
    secret.unlink()
    for entry in made:
        scene.addresses[entry["name"]] = Address(bytes.fromhex(str(entry["address"])[2:]))
    chain = Chain(scene.node.url)
    chain.transfer(faucet, scene.addresses["sponsor"], 100 * TOKEN)
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
    """Moves time until no actor of the demo has anything left to do, nor any stranger that took part.

    Raises UnavailableError (ActorDied), DeadlineError (DemoStuck).
    """
    keeper = Timekeeper(
        scene.chain,
        scene.store,
        scene.run.address,
        frozenset(scene.addresses[p.name] for p in scene.cast.players),
        participants=lambda: scene.index.state.participants(),
    )
    last_head, last_change = -1, time.monotonic()
    looked = weighed = 0.0
    rested: float | None = None
    beats: dict[Address, Heartbeat] = {}
    while True:
        now = time.monotonic()
        state = scene.index.sync()
        if state.head.number != last_head:
            last_head, last_change = state.head.number, now
        if now - looked >= LOOK_EVERY_S:
            looked = now
            beats = read_heartbeats(scene.store, scene.run.address, scene.addresses.values())
            book(scene, beats)
            _check_alive(scene)
            rested = (rested or now) if is_over(scene, beats) else None
            # Strangers end what they began, if they do not take forever over it.
            if rested is not None and (not keeper.strangers_work or now - rested > STRANGER_LIMIT_S):
                return
        if now - weighed >= WEIGH_EVERY_S:
            weighed = now
            scene.meter.weigh(pids(scene))
        if keeper.tick() is None:
            time.sleep(POLL_S)
        if keeper.is_anyone_busy:
            last_change = now
        if now - last_change > STUCK_AFTER_S:
            raise DeadlineError(
                f"Nothing has happened for {STUCK_AFTER_S:g} s.",
                code="DemoStuck",
                remedy="Run it again with -v --keep DIR and look at the logs there.",
            )


def is_over(scene: RunningDemo, beats: dict[Address, Heartbeat]) -> bool:
    """Whether every round was opened and no actor of the demo does, or waits for, anything."""
    state = scene.index.state
    if len(state.rounds) < scene.run.charter.rounds:
        return False
    own = [beats.get(scene.addresses[p.name]) for p in scene.cast.players]
    return all(beat is not None and is_at_rest(beat, state.head.number) for beat in own)


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


def pids(scene: RunningDemo) -> dict[str, int]:
    """Processes of the demo that live."""
    import os

    running = {name: p.pid for name, p in scene.processes.items() if p.poll() is None}
    return running | {"node": scene.node.process.pid, "runner": os.getpid()}


def book(scene: RunningDemo, beats: dict[Address, Heartbeat]) -> None:
    """Books everybody's CPU time since the last look."""
    doing = {name: beats[address].doing or "idle" for name, address in scene.addresses.items() if address in beats}
    scene.meter.book(pids(scene), doing, {"node": "chain", "runner": "chain"})


def _check_alive(scene: RunningDemo) -> None:
    for player in scene.cast.players:
        process = scene.processes[player.name]
        if process.poll() not in (None, 0):
            raise UnavailableError(
                f"{player.name} ended with exit code {process.returncode}: {scene.stage.log_tail(player)}",
                code="ActorDied",
                remedy="Run it again with -v; if it ends so again, that is a defect to report.",
            )


def _owns_shares(scene: RunningDemo, player: DemoActor) -> bool:
    return scene.chain.ask(scene.run.shares.balance_of(scene.addresses[player.name])) > 0


def _key_options(cast: Cast, name: str) -> list[str]:
    return [] if name in {p.name for p in cast.verifiers + cast.whistleblowers} else ["--no-bls"]


def _stake(scene: RunningDemo, player: DemoActor) -> int:
    """What a player locks over the whole demo: a lock per round and the seat's fee, or a bond and challenges' bonds."""
    e = prices(preset_of(scene.options.preset).inner_steps, pays=scene.options.pays)
    games = 8 * (e.challenge_bond + e.challenge_deposit)
    if player.role == "solver":
        return scene.options.rounds * (e.claim_lock + e.price) + e.seat_fee + games
    return e.verifier_bond + scene.options.rounds * e.price + games
