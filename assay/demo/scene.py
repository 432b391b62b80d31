"""A demo under way: its node, its stage, its processes, its records, and the loop that moves chain time."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.amounts import COIN
from assay.demo.cast import Cast, DemoCheat
from assay.demo.lines import RunLines
from assay.demo.meter import CpuMeter
from assay.demo.stage import DemoStage
from assay.demo.timekeeper import STRANGER_LIMIT_S, Timekeeper
from assay.explorer.money import Money
from assay.protocol.errors import DeadlineError, UnavailableError
from assay.protocol.types import Address
from assay_ledger.agents.heartbeat import Heartbeat, is_at_rest
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.contract import Event, Logged
from assay_ledger.deployment.answers import AnswerGates
from assay_ledger.index.listeners import Once
from assay_ledger.processes.children import stop
from assay_ledger.processes.scratch import ScratchDir
from assay_ledger.rounds.index import RunIndex
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, open_store

if TYPE_CHECKING:
    from assay.demo.measured import PaidReading

POLL_S: Final = 0.05
LOOK_EVERY_S: Final = 0.25
WEIGH_EVERY_S: Final = 1.0
WEIGH_SHARE: Final = 60
"""Of the time that the demo has taken."""
STUCK_AFTER_S: Final = 1.5 * STRANGER_LIMIT_S
"""Nothing on chain and no actor busy for so long: something is wrong, and waiting longer will not fix it."""

ACTOR_GRACE_S: Final = 2.0
"""An actor that is told to end, and whose folder is kept, finishes what it sends; what takes longer is safe to kill."""


OTHERS: Final = ("reader", "gateway", "liar")
"""Who uses the model that the others train, who serves it, and who serves it falsely."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What a demo was asked for."""

    cheats: tuple[DemoCheat, ...] = (DemoCheat.FALSE_STEP,)
    rounds: int | None = None
    """As many as the cast needs, unless told."""
    preset: str = "demo"
    data: Path | None = None
    pays: bool = False
    verbose: bool = False
    folder: Path | None = None
    """Where everything stays afterwards; a private folder that vanishes unless given."""
    weighs: bool = True
    """Whether memory is measured. To look at that of many large processes costs CPU time itself."""


@dataclass
class DemoScene:
    """A demo under way."""

    options: DemoOptions
    cast: Cast
    node: Anvil
    stage: DemoStage
    talk: Callable[[str], None]
    processes: dict[str, subprocess.Popen[bytes]]
    meter: CpuMeter = field(default_factory=CpuMeter)
    started: float = field(default_factory=time.monotonic)
    addresses: dict[str, Address] = field(default_factory=dict)
    """Of every key by its name."""
    names: dict[Address, str] = field(default_factory=dict)
    """As lines call who does something."""
    revenue_paid: int = 0
    asking: PaidReading | None = None
    """What was asked of the model, once it is."""
    gates: AnswerGates | None = None
    """Where its gateways have bonds, once one has."""
    _run: Run | None = None
    _index: RunIndex | None = None
    _money: Money | None = None

    @property
    def run(self) -> Run:
        """The run, once it is posted."""
        assert self._run is not None
        return self._run

    @property
    def index(self) -> RunIndex:
        """The run's records."""
        assert self._index is not None
        return self._index

    @property
    def money(self) -> Money:
        """Who has, earned and lost what, by the run's events."""
        assert self._money is not None
        return self._money

    @property
    def chain(self) -> Chain:
        """The demo's chain, once the run is posted."""
        return self.run.chain

    @property
    def view(self) -> RunView:
        """The run as its sponsor sees it."""
        return RunView(self.run.charter, self.run.facts, self.addresses["sponsor"], self.index.state)

    @property
    def store(self) -> BlobStore:
        """The run's store."""
        return open_store(self.stage.store)

    @property
    def own(self) -> frozenset[Address]:
        """The addresses of the demo's own actors."""
        return frozenset(self.addresses[p.name] for p in self.cast.players)

    def sync(self) -> RunState:
        """The run's records at the newest head."""
        return self.index.sync()

    def attach(self, address: str) -> None:
        """Follow the run at this address."""
        self.stage.name_run(address)
        self._run = Run(Chain(self.node.url), Address(bytes.fromhex(address[2:])))
        self._money = Money(self._run)
        self.names.update({address: name for name, address in self.addresses.items()})
        lines = RunLines(self.names, self._run.currency_of, self._run.charter.token)

        def book(_contract: str, found: Logged[Event]) -> None:
            self.money.on_event(found.event)

        def tell(_contract: str, found: Logged[Event]) -> None:
            self.say(lines.line(found.event, self.index.state))

        def start_again() -> None:
            self._money = Money(self.run)

        self._index = RunIndex(self._run, [book, Once(tell)], self._run.all_contracts(), start_again)

    def say(self, text: str | None) -> None:
        """Something that happened now."""
        if text is not None:
            self.talk(f"[{time.monotonic() - self.started:6.1f} s] {text}")


@contextmanager
def open_node(folder: Path | None, talk: Callable[[str], None] | None) -> Iterator[tuple[Anvil, DemoStage, Processes]]:
    """A node and a stage in a folder, a private one that vanishes unless given; all that was started ends with it."""
    scratch = ScratchDir("demo") if folder is None else None
    place = scratch.path if scratch is not None else (folder or Path()).resolve()
    processes: Processes = {}
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        with Anvil(data_dir=place / "chain", accounts=1) as node:
            try:
                yield node, DemoStage(place, node.url, talk), processes
            finally:
                if scratch is None:
                    stop(list(processes.values()), grace_s=ACTOR_GRACE_S)
                else:
                    # Nobody reads what vanishes: no actor need end its start, nor the node write its state.
                    stop([*processes.values(), node.process], grace_s=0.0)
    finally:
        if scratch is not None:
            scratch.remove()


Processes = dict[str, subprocess.Popen[bytes]]
"""Actors' processes by name."""


def make_keys(scene: DemoScene) -> None:
    """Keys for the faucet, the sponsor, every player and who uses the model, and coins for the sponsor's gas."""
    faucet: LocalAccount = Account.from_key(scene.node.dev_keys[0])
    secret = scene.stage.folder / "faucet.hex"
    secret.write_text(scene.node.dev_keys[0].hex())
    secret.chmod(0o600)
    everybody = ["sponsor", *OTHERS, *(player.name for player in scene.cast.players)]
    made = scene.stage.run_all(
        [
            ["key", "import", "faucet", str(secret), "--kdf", "pbkdf2"],
            ["key", "new", *everybody, "--kdf", "pbkdf2"],
        ]
    )
    secret.unlink()
    for entry in (key for answer in made for key in (answer if isinstance(answer, list) else [answer])):
        scene.addresses[entry["name"]] = Address(bytes.fromhex(str(entry["address"])[2:]))
    Chain(scene.node.url).transfer(faucet, scene.addresses["sponsor"], COIN.parse("100"))


def watch(
    scene: DemoScene, is_enough: Callable[[dict[Address, Heartbeat]], bool], *, waits_for_strangers: bool = False
) -> None:
    """Moves time until it is enough and, where asked, no stranger that took part has anything left to do.

    Raises UnavailableError (ActorDied), DeadlineError (DemoStuck).
    """
    keeper = Timekeeper(
        *(scene.chain, scene.store, scene.run.address, scene.own),
        participants=lambda: scene.sync().participants(),
    )
    last_head, last_change = -1, time.monotonic()
    looked = weighed = 0.0
    rested: float | None = None
    while True:
        now = time.monotonic()
        state = scene.sync()
        if state.head.number != last_head:
            last_head, last_change = state.head.number, now
        if now - looked >= LOOK_EVERY_S:
            looked, beats = now, keeper.beats
            book(scene, beats)
            check_alive(scene)
            rested = (rested or now) if is_enough(beats) else None
            is_waiting = waits_for_strangers and keeper.strangers_work
            # Strangers end what they began, if they do not take forever over it.
            if rested is not None and (not is_waiting or now - rested > STRANGER_LIMIT_S):
                return
        if scene.options.weighs and now - weighed >= max(WEIGH_EVERY_S, (now - scene.started) / WEIGH_SHARE):
            weighed = now
            scene.meter.weigh(pids(scene))
        if keeper.tick() is None:
            time.sleep(max(POLL_S, scene.chain.pace.period))
        if keeper.is_anyone_busy:
            last_change = now
        if now - last_change > STUCK_AFTER_S:
            raise DeadlineError(
                f"Nothing has happened for {STUCK_AFTER_S:g} s.",
                code="DemoStuck",
                remedy="Run it again with -v --keep DIR and look at the logs there.",
            )


def all_rest(scene: DemoScene, beats: dict[Address, Heartbeat], head: int) -> bool:
    """Whether no actor of the demo does, or waits for, anything."""
    own = [beats.get(address) for address in scene.own]
    return all(beat is not None and is_at_rest(beat, head) for beat in own)


def pids(scene: DemoScene) -> dict[str, int]:
    """Processes of the demo that live."""
    running = {name: p.pid for name, p in scene.processes.items() if p.poll() is None}
    return running | {"node": scene.node.process.pid, "runner": os.getpid()}


def book(scene: DemoScene, beats: dict[Address, Heartbeat]) -> None:
    """Books everybody's CPU time since the last look."""
    doing = {name: beats[address].doing or "idle" for name, address in scene.addresses.items() if address in beats}
    scene.meter.book(pids(scene), doing, {"node": "chain", "runner": "chain"})


def check_alive(scene: DemoScene) -> None:
    """Raises UnavailableError (ActorDied)."""
    for player in scene.cast.players:
        process = scene.processes[player.name]
        if process.poll() not in (None, 0):
            raise UnavailableError(
                f"{player.name} ended with exit code {process.returncode}: {scene.stage.log_tail(player)}",
                code="ActorDied",
                remedy="Run it again with -v; if it ends so again, that is a defect to report.",
            )
