"""Every action has one method per role that carries it out, and the table says which."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from assay.protocol.errors import InvariantError
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.game_actions import Defer, EndOverdue
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.round_actions import CloseEpoch, RoundAction, SubmitBeacon, TakesOn, WithoutClock
from assay_ledger.rounds.view import RunView
from assay_solver.actions import CommitWork, TakeSeat, TrainUnit
from assay_solver.agent import Solver
from assay_solver.cheats import CheatingSolver
from assay_solver.merging import SealRoot
from assay_verifier.answering import OpenCall, ReplayUnit
from assay_whistleblower.agent import AuditorAgent
from assay_whistleblower.cheating import CheatingAuditor
from assay_whistleblower.pursuing import TryAccusation

ROLES = (Solver, AuditorAgent)


def table_of(kind: type[Agent]) -> Handlers[RunView]:
    """A role's table; it needs no run."""
    made: Any = kind.__new__(kind)
    return made.handlers()  # type: ignore[no-any-return]


def names_below(kind: type[RoundAction]) -> set[str]:
    """The names of all classes below a class of actions, but for those of other tests."""
    own = [below for below in kind.__subclasses__() if below.__module__.startswith("assay")]
    return {name for below in own for name in ({below.__name__} | names_below(below))}


def test_every_action_is_some_roles() -> None:
    # Moves are carried out several at once, not by a table.
    mine = {action.__name__ for kind in ROLES for action in table_of(kind)}
    assert mine == (names_below(RoundAction) - {WithoutClock.__name__, TakesOn.__name__}) | {
        Defer.__name__,
        EndOverdue.__name__,
    }


def test_each_role_has_what_is_its_own_and_what_everybody_does() -> None:
    solver, auditor = (set(table_of(kind)) for kind in ROLES)
    assert {SubmitBeacon, CloseEpoch, Defer} <= solver & auditor
    assert {TakeSeat, TrainUnit, CommitWork, SealRoot} <= solver - auditor
    assert {ReplayUnit, OpenCall, TryAccusation} <= auditor - solver
    assert set(table_of(CheatingSolver)) == solver and set(table_of(CheatingAuditor)) == auditor


@pytest.mark.parametrize("kind", [*ROLES, CheatingSolver, CheatingAuditor])
def test_a_method_takes_the_actions_that_it_stands_for(kind: type[Agent]) -> None:
    table = table_of(kind)
    for action in table:
        method = table.method_of(action)
        assert method is not None and get_type_hints(method)["action"] is action


def test_what_is_not_a_roles_is_not_carried_out() -> None:
    view: Any = None
    with pytest.raises(InvariantError) as refused:
        table_of(AuditorAgent).carry_out(TrainUnit(Round(0), Seat(0), Digest(bytes(32)), 0), view)
    assert refused.value.code == "NoSuchAction" and "verifier" in refused.value.message


def test_a_role_may_carry_an_action_out_in_its_own_way() -> None:
    done: list[tuple[str, object]] = []
    table = Handlers[RunView]("solver").add(TakeSeat, lambda action, _: done.append(("first", action)))
    table.add(TakeSeat, lambda action, _: done.append(("second", action)))
    view: Any = None
    table.carry_out(TakeSeat(), view)
    assert done == [("second", TakeSeat())]
