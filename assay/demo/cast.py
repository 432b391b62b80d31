"""Who plays in a demo: honest actors, and one actor for every cheat that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from assay.demo.stage import DemoActor
from assay.protocol.errors import UsageError
from assay.protocol.types import SEATS


class DemoCheat(StrEnum):
    """Ways of cheating that can be shown."""

    SKIP_STEPS = "skip-steps"
    WRONG_DATA = "wrong-data"
    BIT_FLIP = "bit-flip"
    STALE_START = "stale-start"
    COPIED_UPDATE = "copied-update"
    SILENT = "silent"
    LAZY_VERIFIER = "lazy-verifier"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Cast:
    """The actors of a demo, and the whistleblowers' rate that it needs."""

    solvers: tuple[DemoActor, ...]
    verifiers: tuple[DemoActor, ...]
    whistleblowers: tuple[DemoActor, ...]
    whistle_rate: float

    @property
    def players(self) -> tuple[DemoActor, ...]:
        """Everybody."""
        return self.solvers + self.verifiers + self.whistleblowers


def choose_cast(cheats: Sequence[DemoCheat]) -> Cast:
    """Two honest solvers and one per solver cheat; two verifiers; one whistleblower.

    `lazy-verifier` needs something to overlook: alone it makes both verifiers lazy beside a bit-flip, so that the
    whistleblower alone can find it; with other cheats one lazy verifier joins two honest ones.

    Raises UsageError (TooManySolvers, CheatTwice, CheatNone).
    """
    if len(set(cheats)) != len(cheats):
        raise UsageError("A cheat is named twice.", code="CheatTwice", remedy="Name each --cheat once.")
    if DemoCheat.NONE in cheats and len(cheats) > 1:
        raise UsageError("`none` stands beside another cheat.", code="CheatNone", remedy="Leave out --cheat none.")
    wanted = [cheat for cheat in cheats if cheat not in (DemoCheat.NONE, DemoCheat.LAZY_VERIFIER)]
    is_lazy = DemoCheat.LAZY_VERIFIER in cheats
    only_lazy = is_lazy and not wanted
    if only_lazy:
        wanted = [DemoCheat.BIT_FLIP]
    solvers = [DemoActor("solver", "solver-1"), DemoActor("solver", "solver-2")]
    solvers += [DemoActor("solver", f"solver-{cheat}", cheat=cheat) for cheat in wanted]
    if len(solvers) > SEATS:
        raise UsageError(
            f"{len(solvers)} solvers for {SEATS} seats.", code="TooManySolvers", remedy="Name fewer cheats at once."
        )
    verifiers = [DemoActor("verifier", f"verifier-{i}", lazy=only_lazy) for i in (1, 2)]
    if is_lazy and not only_lazy:
        verifiers.append(DemoActor("verifier", "verifier-lazy", lazy=True))
    return Cast(
        tuple(solvers), tuple(verifiers), (DemoActor("whistleblower", "whistleblower-1"),), 1.0 if is_lazy else 0.2
    )
