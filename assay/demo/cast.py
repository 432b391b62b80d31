"""Who plays in a demo, and the terms under which its cheater is caught in every run.

Where solvers cheat, one ticket of five is on call at a time, and every commitment of its epoch is drawn for it for
certain: p = 1, a shift for each ticket. With p = 10 % and all tickets on call, as runs have them, a lie is found in one
round of ten.

Where an auditor cheats, all tickets are on call, four of nine are its own, and every finding is replayed again with
q = 85 %. In eight rounds some 74 findings can be replayed again, 33 of them its own, and each of these is drawn by one
of the five honest tickets with chance 1 - (1 - q / 9)^5 = 39 %: of 40,000 draws by lot one showed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assay.demo.stage import DemoActor
from assay.protocol.errors import UsageError

HONEST_SOLVERS: Final = 3
LEAST_SOLVERS: Final = 4
TICKETS: Final = {"verifier-1": 2, "verifier-2": 2, "whistleblower-1": 1}
"""Of each honest auditor: five in all, the least that a charter admits."""

FALSE_TICKETS: Final = 4
"""Of an auditor that cheats: with half of all tickets or more, an epoch that it stays away from would fine nobody."""

REAUDIT_PERCENT: Final = 10
"""q where every auditor is honest."""

FALSE_REAUDIT_PERCENT: Final = 85
"""q where one is not."""

ROUNDS: Final = 3
FALSE_AUDIT_ROUNDS: Final = 8
"""Where an auditor cheats: what it draws is chance, so it is given more to draw."""

MOST_DUTIES: Final = 14
"""Of a ticket at a call: with more an epoch would be so long that too many rounds were unsettled at once."""

BOUNTY_PERCENT: Final = 100
"""beta_d: with so many duties at once less would make it cheaper to bribe re-auditors than to be caught."""


class DemoCheat(StrEnum):
    """Ways of cheating that can be shown: solvers', then auditors'.

    An auditor that agrees with whatever it re-audits (`assay verifier start --cheat silent`) is not among them: it lies
    only about another's lie, and three tickets in a row are seldom drawn for one commitment.
    """

    FALSE_STEP = "false-step"
    FALSE_UPDATE = "false-update"
    COPIED_UPDATE = "copied-update"
    HIDDEN_UPDATE = "hidden-update"
    SQUATTER = "squatter"
    ABSENT = "absent"
    LATE_COMMITMENT = "late-commitment"
    FALSE_ROOT = "false-root"
    BLIND_AUDITOR = "blind-auditor"
    COPYING_AUDITOR = "copying-auditor"
    ABSENT_AUDITOR = "absent-auditor"
    DROPPING_AUDITOR = "dropping-auditor"
    FALSE_ACCUSER_AUDITOR = "false-accuser-auditor"
    NONE = "none"

    @property
    def auditors(self) -> str | None:
        """The auditor's cheat that it is, by the name that `assay verifier start --cheat` knows."""
        return self.removesuffix("-auditor") if self.endswith("-auditor") else None


@dataclass(frozen=True, slots=True)
class Cast:
    """The actors of a demo, and what its charter asks for."""

    solvers: tuple[DemoActor, ...]
    auditors: tuple[DemoActor, ...]
    capacity: int
    """Duties that a ticket answers at a call."""
    reaudit_percent: int
    audit_percent: int = 100
    """p: replays expected of a commitment."""
    shifts: int = sum(TICKETS.values())
    """As many as the honest tickets, so that one of them is on call at a time, unless told."""
    strangers: int = 1
    """Seats that are left for them."""
    rounds: int = ROUNDS
    """Of the run, unless told."""

    @property
    def players(self) -> tuple[DemoActor, ...]:
        """Everybody."""
        return self.solvers + self.auditors

    @property
    def seats(self) -> int:
        """Of the run."""
        return len(self.solvers) + self.strangers

    @property
    def is_certain(self) -> bool:
        """Whether every lie of a solver is drawn for an honest auditor: no tickets share a shift."""
        return self.audit_percent >= 100 and sum(a.tickets for a in self.auditors) == self.shifts


def choose_cast(cheats: Sequence[DemoCheat]) -> Cast:
    """Three honest solvers, four where no solver cheats, and one per cheat; three honest auditors, and one that cheats.

    Raises UsageError (CheatTwice, CheatNone, CheatsMixed, TooManySolvers).
    """
    if len(set(cheats)) != len(cheats):
        raise UsageError("A cheat is named twice.", code="CheatTwice", remedy="Name each --cheat once.")
    if DemoCheat.NONE in cheats and len(cheats) > 1:
        raise UsageError("`none` stands beside another cheat.", code="CheatNone", remedy="Leave out --cheat none.")
    audits = [c for c in cheats if c.auditors is not None]
    if audits and len(cheats) > 1:
        raise UsageError(
            f"`{audits[0]}` stands beside another cheat.",
            code="CheatsMixed",
            remedy="Show an auditor that cheats in a demo of its own: it takes other rates to catch it in every run.",
        )
    lying = [c for c in cheats if c.auditors is None and c is not DemoCheat.NONE]
    honest = max(HONEST_SOLVERS, LEAST_SOLVERS - len(lying))
    solvers = [DemoActor("solver", f"solver-{i + 1}") for i in range(honest)]
    solvers += [DemoActor("solver", f"solver-{cheat}", cheat=cheat) for cheat in lying]
    auditors = [DemoActor(n.partition("-")[0], n, tickets=count) for n, count in TICKETS.items()]
    auditors += [DemoActor("verifier", f"verifier-{c.auditors}", str(c.auditors), FALSE_TICKETS) for c in audits]
    if audits:
        # Chance draws each ticket's duties, so the least that a charter admits would be too few at some calls.
        return Cast(
            *(tuple(solvers), tuple(auditors), MOST_DUTIES, FALSE_REAUDIT_PERCENT),
            shifts=1,
            rounds=FALSE_AUDIT_ROUNDS,
        )
    # A round opens while the tickets on call answer for twice what is expected of them.
    capacity = -(-200 * (len(solvers) + 1) // (100 - REAUDIT_PERCENT))
    if capacity > MOST_DUTIES:
        raise UsageError(
            f"{len(solvers)} solvers make more work than a ticket on call can replay.",
            code="TooManySolvers",
            remedy="Name fewer cheats of solvers at once.",
        )
    return Cast(tuple(solvers), tuple(auditors), capacity, REAUDIT_PERCENT)
