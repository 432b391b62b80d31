"""People at shells of their own: actors as real processes in one run, whose time passes while they wait."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.demo.timekeeper import Timekeeper
from assay.protocol.types import Address
from assay.sponsor.launching import mint_tokens
from assay_ledger.rounds.view import RunView
from tests.harness.actors.desk import Desk
from tests.harness.actors.whole_run import WholeRun
from tests.harness.actors.world import ETHER
from tools.house import PACKAGES

BROUGHT = 10**6 * ETHER
"""Tokens of each actor, in wei, more than it locks."""

SOURCE = os.pathsep.join(str(Path(__file__).parents[3] / where) for where in PACKAGES.values())
LIMIT_S = 400.0


@dataclass
class ActorShells:
    """People at shells of their own in one run, whose time passes while their actors wait."""

    desk: Desk
    made: WholeRun
    people: dict[str, Address] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    """Under which address somebody reaches the node, where that is not its own."""

    def add(self, name: str) -> None:
        """Somebody with a key, coins and tokens."""
        at = ("--keys-dir", str(self.desk.folder / "keys"), "--password-file", str(self.desk.folder / "password"))
        who = self.desk.json("key", "new", name, "--kdf", "pbkdf2", *at)["address"]
        self.people[name] = Address(bytes.fromhex(who[2:]))
        self.made.chain.transfer(self.made.stage.sponsor, who, 10 * ETHER)
        mint_tokens(self.made.chain, self.made.stage.sponsor, self.made.run.token, self.people[name], BROUGHT)

    def words(self, name: str) -> tuple[str, ...]:
        """Who acts, and in which run."""
        where = ("--rpc-url", self.nodes.get(name, self.made.chain.url), "--run", "0x" + self.made.run.address.hex())
        return (*where, *("--key", name, *self.desk.key_words[2:]))

    def start(self, name: str, *words: str, folder: str = "", key: str = "", through: Sequence[str] = ()) -> None:
        """A command of an actor as a process; under its own name, or with somebody else's key. `through`: a command
        that becomes it."""
        if key:
            self.people[name] = self.people[key]
        data, store = str(self.made.folder / (folder or name)), str(self.made.folder / "store")
        where = (*self.words(key or name), "--store", store, "--data-dir", data)
        self.running[name] = subprocess.Popen(
            [*through, sys.executable, "-m", "assay", *words, *where],
            env=os.environ | {"PYTHONPATH": SOURCE, "ASSAY_CONFIG": "/dev/null", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait(self, until: Callable[[RunView], bool]) -> RunView:
        """Time passes until the run is so far."""
        keeper = Timekeeper(
            *(self.made.chain, self.made.store, self.made.run.address),
            frozenset(self.people[name] for name in self.running),
        )
        end = time.monotonic() + LIMIT_S
        while not until(view := self.made.view):
            failed = [name for name, process in self.running.items() if process.poll() not in (None, 0)]
            assert time.monotonic() < end and not failed, self.end()
            keeper.tick()
            time.sleep(0.05)
        return view

    def ended(self, name: str) -> tuple[int, str, str]:
        """How a process ended, what it printed and what it said."""
        process = self.running.pop(name)
        output, said = process.communicate(timeout=60)
        return process.returncode, output, said

    def end(self) -> dict[str, str]:
        """Ends all that still run; what they said last."""
        said = {}
        for name in list(self.running):
            self.running[name].kill()
            said[name] = self.ended(name)[2][-3000:]
        return said

    def paid_out(self, name: str) -> int:
        """What somebody holds after unstaking what nothing locks, and the exit delay, in wei."""
        chain, at = self.made.chain, self.words(name)
        free = self.made.free(self.people[name])
        amount = f"{free // ETHER}.{free % ETHER:018d}"
        asked = self.desk.json("ledger", "unstake", amount, "--yes", *at)
        chain.rpc("evm_mine", hex(max(asked["not_before"], chain.head().timestamp) + 1))
        return int(self.desk.json("ledger", "withdraw", *at)["held"])
