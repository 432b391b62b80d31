"""`--wait` of `assay run open` and `assay run show`: looks again until a run is as far, or never will be.

A loop of a shell around a command goes on for ever where the command is refused for good: a run that was cancelled, a
node that is gone. These waits end with what cannot pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from assay.cli.common import open_chain, open_round_run, talk
from assay.protocol.errors import AssayError
from assay.settings import Settings

if TYPE_CHECKING:
    from assay_ledger.rounds.run import Run

LOOK_S: Final = 2.0

PASSING: Final = frozenset({"RunLacks", "LaunchTooEarly", "TooFewToLaunch", "StakesBelowEscrow", "Paused"})
"""Refusals of a run's opening that time, or others, bring to an end."""

T = TypeVar("T")


def rest() -> None:
    """Until the next look."""
    time.sleep(LOOK_S)


def patient_run(settings: Settings) -> Run:
    """The run that the settings name, whose node may be silent for as long as an actor's. Raises as open_round_run."""
    from assay_ledger.chain.client import RETRY_FOR_S

    return open_round_run(settings, open_chain(settings, RETRY_FOR_S))


def patiently(attempt: Callable[[], T]) -> T:
    """What an attempt to open a run comes to, made again for as long as what refuses it passes, and said when it is
    something else. Raises what an attempt raises that does not pass."""
    said = ""
    while True:
        try:
            return attempt()
        except AssayError as error:
            if error.code not in PASSING:
                raise
            # What is lacking changes by what others do, numbers of other refusals with every second.
            reason = error.message if error.code == "RunLacks" else error.code
            if reason != said:
                talk.print(f"waits: {error.message}", markup=False)
                said = reason
        rest()


def until_ended(run: Run) -> None:
    """Returns once a run has ended in whatever way. Raises UnavailableError where its node stays silent."""
    said = None
    while not (phase := run.chain.ask(run.escrow.phase())).has_ended:
        if phase is not said:
            talk.print(f"waits until the run has ended: it is {phase.words}")
            said = phase
        rest()
