"""Terms of a run in which tests play games of one program."""

from __future__ import annotations

from dataclasses import replace

from assay.protocol.economics.limits import MAX_DELAY, MAX_WINDOW
from assay.protocol.game.state import GameConfig
from assay.protocol.program.program import Program
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import ClockTerms, RunCharter
from assay.protocol.types import Wei
from tests.harness.rounds.charters import RUN, changed
from tests.harness.rounds.run_limits import staked

DAY = 86_400


def arena_charter(program: Program, other: Program, settings: GameConfig, steps: int) -> RunCharter:
    """Terms of a run in which such games can be played: rounds long enough for any clock, so that it is the game that
    refuses too long ones.
    """
    clocks = settings.clocks
    bond = max(Wei(10**24), settings.bond, settings.commit_deposit)
    c = replace(
        RUN,
        step=ProgramRef.of(program),
        update=ProgramRef.of(other),
        merge=ProgramRef.of(program),
        witness=ProgramRef.of(program),
        clocks=ClockTerms(clocks.budget, clocks.replay, clocks.move, settings.arity),
        chain=settings.chain,
    )
    c = changed(c, "training", min_units=1, max_units=1, steps_per_unit=steps)
    c = changed(
        c, "timing", commit=20 * DAY, grace=0, hold=100 * DAY, merge=100 * DAY, challenge=130 * DAY, rescue=100 * DAY,
        seed_delay=MAX_DELAY + 1, epoch=MAX_WINDOW, seasoning=4 * MAX_WINDOW, vesting=8 * MAX_WINDOW,
        stall=24 * MAX_WINDOW, longest_dispute=10**6,
    )  # fmt: skip
    return staked(
        changed(c, "economics", capacity=1, third_bounty_ppm=settings.bounty_ppm),
        ticket_bond=bond,
        challenge_bond=settings.bond,
        challenge_deposit=settings.commit_deposit,
    )
