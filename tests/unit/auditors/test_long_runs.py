"""What an actor looks at on each step does not grow with all that a run ever did: it would be slower by the day."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from assay.bench import imagined_run
from assay.protocol.types import Round
from assay_ledger.agents import keeper
from assay_ledger.agents.keeping import participants
from assay_ledger.chain.client import Head
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.view import RunView
from assay_solver import strategy
from assay_solver.pace import OwnPace
from assay_verifier.calling import own_calls
from assay_verifier.secret_chains import TicketChains
from assay_verifier.view_records import ViewRecords
from assay_whistleblower.reporting import MissesDrawn, reports

SEATS = 8
ROUNDS = (40, 160)
LOOPS = 60
"""Lines a round that a look may grow by: it walks over rounds and epochs, not over what each seat did in them."""


@dataclass
class Lines:
    """Of Python, and how often each was gone through."""

    count: int = 0


@contextmanager
def counted() -> Iterator[Lines]:
    made = Lines()

    def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
        made.count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield made
    finally:
        sys.settrace(before)


def solver(view: RunView) -> None:
    own = strategy.OwnRounds(OwnPace(1.0), lead=5)
    list(strategy.candidates(view, own, keeper.due(view)))
    list(keeper.times(view))


def auditor(view: RunView) -> None:
    records = ViewRecords(view)
    list(keeper.due(view))
    for epoch in range(len(view.epochs) - 2, len(view.epochs)):
        records.works_of(epoch)
    own_calls(records, records.held_tickets(), TicketChains(bytes(32), view.facts.run_id, 256, 16))


def whistleblower(view: RunView) -> None:
    list(reports(ViewRecords(view), participants(view), view.me, MissesDrawn()))


@pytest.mark.parametrize("look", [solver, auditor, whistleblower])
def test_a_step_of_a_long_run_takes_little_more_than_one_of_a_short_run(
    monkeypatch: pytest.MonkeyPatch, look: Callable[[RunView], None]
) -> None:
    monkeypatch.setattr(imagined_run, "ROUNDS", max(ROUNDS))
    run = imagined_run.ImaginedRun(SEATS)
    state, story, found = RunState.of(run.facts), imagined_run._Story(run), {}
    for number in range(max(ROUNDS) + 1):
        for _, logged, at in story.round(Round(number - 1)) if number else story.begin():
            fold(state, logged.event, at, logged.transaction)
        if number in ROUNDS:
            state.money.vesting.clear()
            state.head = Head(logged.block, at)
            state.books.now = at
            who = story._holders[0] if look is solver else story._owners[0]
            with counted() as lines:
                look(RunView(run.charter, run.facts, who, state))
            found[number] = lines.count
    print(found)
    few, many = (found[rounds] for rounds in ROUNDS)
    assert many - few < LOOPS * (max(ROUNDS) - min(ROUNDS))
