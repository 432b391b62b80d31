"""Faults of membership, by the description of `membership`, of real processes: killed, stopped, cut off, begun again.

Chain time moves when all rest that are there, so what a fault costs is the run's to say and not this machine's.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlparse

from assay.demo.timekeeper import Timekeeper
from assay.protocol.errors import ExitCode, UnavailableError
from assay.protocol.types import Round
from assay.sponsor.launching import stake_of
from assay_ledger.rounds.view import RunView
from assay_solver.cheats import Squatter
from tests.harness.actors.membership import FaultKind, MemberFault
from tests.harness.actors.shells import ActorShells
from tests.harness.actors.world import ETHER
from tests.harness.tcp_relay import TcpRelay

LIMIT_S = 600.0
"""For one wait; whatever is slower hangs."""


@dataclass
class FaultyShells(ActorShells):
    """Actors at shells of their own to whom these faults happen, each when its round begins."""

    faults: list[MemberFault] = field(default_factory=list)
    happened: list[MemberFault] = field(default_factory=list)
    out: dict[str, int] = field(default_factory=dict)
    """Who does not take part, and the round in which it does again."""
    wires: dict[str, TcpRelay] = field(default_factory=dict)
    """Between those that are cut off and the node."""
    _keeper: tuple[frozenset[str], Timekeeper] | None = None

    def solver(self, name: str) -> None:
        """A solver, with a key of its own; a slow one trains the least of a round, in that one."""
        slow = [f.round for f in self.faults if (f.actor, f.kind) == (name, FaultKind.SLOW)]
        assert slow in ([], [Squatter.default_round]), "the command knows no other round"
        self._known(name)
        deposit = str(stake_of(self.made.run.charter, seats=1) // ETHER + 100)
        self.start(name, "solver", "start", "--deposit", deposit, *(["--cheat", Squatter.name] if slow else []))

    def auditor(self, name: str, tickets: int) -> None:
        """An auditor with so many tickets."""
        self._known(name)
        deposit = str(stake_of(self.made.run.charter, tickets=tickets) // ETHER + 100)
        self.start(name, "verifier", "start", "--tickets", str(tickets), "--deposit", deposit)

    def wait(self, until: Callable[[RunView], bool]) -> RunView:
        """See ActorShells; faults happen meanwhile."""
        end = time.monotonic() + LIMIT_S
        while True:
            view = self.made.view
            if view.round is not None:
                self._turn(view.round)
            if until(view):
                return view
            failed = [name for name, process in self.running.items() if process.poll() not in (None, 0)]
            assert time.monotonic() < end and not failed, (failed, view.round, self.end())
            self.keeper.tick()
            time.sleep(0.05)

    @property
    def keeper(self) -> Timekeeper:
        """Moves time when all rest that are there."""
        there = frozenset(self.running) - self.out.keys()
        if self._keeper is None or self._keeper[0] != there:
            addresses = frozenset(self.people[name] for name in there)
            self._keeper = there, Timekeeper(self.made.chain, self.made.store, self.made.run.address, addresses)
        return self._keeper[1]

    def close(self) -> None:
        """Ends everything that still runs."""
        for name in self.out.keys() & self.running.keys():
            self._send(name, signal.SIGCONT)
        self.end()
        for wire in self.wires.values():
            wire.__exit__(None, None, None)

    # --- inside

    def _known(self, name: str) -> None:
        """Somebody with a key, behind a wire of its own where it is to be cut off."""
        self.add(name)
        if any((f.actor, f.kind) == (name, FaultKind.AWAY) for f in self.faults):
            port = urlparse(self.made.chain.url).port
            assert port is not None
            self.wires[name] = TcpRelay(port)
            self.nodes[name] = f"http://127.0.0.1:{self.wires[name].port}"

    def _turn(self, now: Round) -> None:
        """What ends and what begins with a round."""
        for name in [name for name, until in self.out.items() if now >= until]:
            del self.out[name]
            self._unheard(name)
            if name in self.wires:
                self.wires[name].join()
            self._send(name, signal.SIGCONT)
        for fault in [f for f in self.faults if now >= f.round and f not in self.happened]:
            self.happened.append(fault)
            self._happen(fault)

    def _happen(self, fault: MemberFault) -> None:
        name = fault.actor
        match fault.kind:
            case FaultKind.JOIN:
                self.solver(name)
            case FaultKind.LEAVE:
                self._send(name, signal.SIGINT)
                code, _, said = self.ended(name)
                assert code == ExitCode.INTERRUPTED, said
                self._unheard(name)
                self.start(name, "solver", "leave")
            case FaultKind.GONE:
                self._kill(name)
            case FaultKind.AWAY:
                self.wires[name].part()
                self.out[name] = fault.round + fault.rounds
            case FaultKind.FROZEN:
                self._send(name, signal.SIGSTOP)
                self.out[name] = fault.round + fault.rounds
            case FaultKind.RESTART:
                self._kill(name)
                self._unheard(name)
                self.start(name, "solver", "start")
            case FaultKind.SLOW:
                pass  # it was started so

    def _kill(self, name: str) -> None:
        self._send(name, signal.SIGKILL)
        self.ended(name)

    def _send(self, name: str, number: signal.Signals) -> None:
        """To the process and all that it started: it leads a session of its own."""
        os.killpg(self.running[name].pid, number)

    def _unheard(self, name: str) -> None:
        """Its last heartbeat goes, so that the chain stands still until it speaks again."""
        with suppress(UnavailableError):
            self.made.store.delete(f"slots/actors/{self.people[name].hex()}")
