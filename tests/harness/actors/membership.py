"""Who is there in which round: faults of membership of a whole run, from one description of (actor, round, kind)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from assay.protocol.types import Round
from assay_solver.cheats import Squatter
from tests.harness.actors.whole_run import WholeActor, WholeRun


class FaultKind(StrEnum):
    """What an actor does from the beginning of a round on."""

    JOIN = "join"
    """A solver that was not there takes a seat, from what chain and store have."""
    LEAVE = "leave"
    """Says that it leaves, and ends what it began."""
    GONE = "gone"
    """Is not heard of again."""
    AWAY = "away"
    """Is cut off for some rounds, and comes back as it was."""
    FROZEN = "frozen"
    """Stands still for some rounds, as a machine does that sleeps, and goes on as it was."""
    SLOW = "slow"
    """Trains the least of a round, in that one."""
    RESTART = "restart"
    """Its process dies, and another goes on over its folder."""


@dataclass(frozen=True, slots=True)
class MemberFault:
    """rounds: how long, of AWAY and FROZEN."""

    actor: str
    round: Round
    kind: FaultKind
    rounds: int = 1


def faults_of(text: str) -> list[MemberFault]:
    """The faults of a description, one a line: actor, round, kind, and for how many rounds, where that ends."""
    found = []
    for line in text.strip().splitlines():
        actor, round_, kind, *rounds = line.split()
        found.append(MemberFault(actor, Round(int(round_)), FaultKind(kind), *map(int, rounds)))
    return sorted(found, key=lambda f: (f.round, f.actor))


NEVER: Final = 1 << 30


@dataclass
class FaultyRun(WholeRun):
    """A whole run in which these faults happen, each when its round begins."""

    faults: list[MemberFault] = field(default_factory=list)
    happened: list[MemberFault] = field(default_factory=list)
    out: dict[str, tuple[int, WholeActor]] = field(default_factory=dict)
    """Who is not stepped, and the round in which it is again."""

    def first_solver(self, name: str) -> None:
        """A solver that is there from the beginning."""
        slow = [f.round for f in self.faults if (f.actor, f.kind) == (name, FaultKind.SLOW)]
        self.solver(name, Squatter(slow[0]) if slow else None)

    def sweep(self) -> bool:
        """See WholeRun."""
        now = self.view.round
        if now is not None:
            for name in [name for name, (until, _) in self.out.items() if now >= until]:
                self.players[name] = self.out.pop(name)[1]
            for fault in [f for f in self.faults if now >= f.round and f not in self.happened]:
                self.happened.append(fault)
                self._happen(fault)
        return super().sweep()

    def _happen(self, fault: MemberFault) -> None:
        match fault.kind:
            case FaultKind.JOIN:
                self.solver(fault.actor)
            case FaultKind.LEAVE:
                self.players[fault.actor].agent.leaving = True
            case FaultKind.GONE:
                self.out[fault.actor] = NEVER, self.players.pop(fault.actor)
            case FaultKind.AWAY | FaultKind.FROZEN:  # here nobody does anything unless it is stepped
                self.out[fault.actor] = fault.round + fault.rounds, self.players.pop(fault.actor)
            case FaultKind.RESTART:
                self.restart(fault.actor)
            case FaultKind.SLOW:
                pass  # it was made so


def faulty(made: WholeRun, faults: list[MemberFault]) -> FaultyRun:
    """The same run, in which these happen."""
    return FaultyRun(made.stage, made.folder, made.run, made.store, faults=faults)
