"""What solvers and auditors do in a round that a stop cut short: nothing that costs time or gas, and they leave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.escrow import cost_of
from assay.protocol.types import Address, Round
from assay_ledger.agents.round_actions import Choice
from assay_solver import strategy
from assay_solver.actions import LeaveTenure
from assay_solver.memory import FinishedWork
from assay_solver.merging import FetchUpdate
from assay_solver.pace import OwnPace
from assay_verifier.merging import HoldGroup, NodesKnown, merging, times
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_player import TERMS
from tests.harness.rounds.keeper_calls import view_of
from tests.harness.rounds.money_scenes import slow_epoch
from tests.harness.rounds.samples import mark, work_of
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.harness.rounds.told_world import ToldGroupedWorld
from tests.harness.rounds.world import played_on
from tests.integration.rounds.test_resumed_runs import stood_still


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.end()


def chosen(w: ToldMoneyWorld, who: Address) -> list[Choice]:
    """What a solver would do now that has trained the newest round."""
    view, round_ = w.view(who), Round(1)
    done = FinishedWork(w.seat(who), work_of((who, round_)), mark("manifest"))
    own = strategy.OwnRounds(OwnPace(0.0), lead=0, finished={(round_, view.round_of(round_).base): done})
    return list(strategy.candidates(view, own, []))


def test_a_stopped_run_is_neither_committed_to_nor_merged(world: ToldMoneyWorld) -> None:
    """What is opened after a stop never becomes final, and what is committed is never paid."""
    w = world
    (*people, late), ends = stood_still(w)
    last = ends + w.charter.timing.stall
    assert w.fund(w.sponsor, cost_of(w.charter, 4)) == ""
    slow_epoch(w, last - w.terms.commit - w.terms.grace - 60)
    assert w.restart() == "" and w.round == 1
    w.commit_all(people)
    w.at(w.told.books.commitments.rounds[1].mask_at + 1)
    assert w.now < last, "else nobody would merge any more"
    assert any(isinstance(action, FetchUpdate) for action in chosen(w, people[0]))
    w.at(last)
    assert w.wind_down() == ""
    assert [chosen(w, who) for who in (people[0], late)] == [
        [LeaveTenure(w.tenures[people[0]])],
        [LeaveTenure(w.tenures[late])],
    ]


def test_tickets_merge_nothing_after_a_stop() -> None:
    with played_on(RoundChain(TERMS), ToldGroupedWorld) as w:
        w.commit_some(w.start(auditors=(1,) * 24))
        node = w.node(0)
        w.at(max(w.now, w.model.commitments.hold_until(w.round, 0) - 1))
        who = w.owners[next(iter(w.committee(node)))]
        known = NodesKnown(frozenset(), frozenset(), {}, frozenset())
        assert any(isinstance(action, HoldGroup) for action in merging(view_of(w, who), known, 10))
        assert list(times(view_of(w, who), 10))
        w.told.money.stopped_at = w.now
        assert not list(merging(view_of(w, who), known, 10)) and not list(times(view_of(w, who), 10))
