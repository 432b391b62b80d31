"""Every action has one method per role that carries it out, and the table says which."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from assay.protocol.errors import InvariantError
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.actions import Action, Commit, DrawSeed, Join, Play, Receipt, Register, Train
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.participant import Participant
from assay_ledger.index.view import RunView
from assay_solver.agent import SolverAgent
from assay_solver.cheating import CheatingSolver
from assay_verifier.agent import VerifierAgent
from assay_verifier.cheats import LazyVerifier
from assay_whistleblower.agent import WhistleblowerAgent

ROLES = (SolverAgent, VerifierAgent, WhistleblowerAgent)


def table_of(kind: type[Participant]) -> Handlers[RunView]:
    """A role's table; it needs no run."""
    return kind.handlers(kind.__new__(kind))


def test_every_action_is_some_roles() -> None:
    # Moves are carried out several at once, not by a table.
    assert set().union(*map(table_of, ROLES)) == {*get_args(Action)} - {Play}


def test_each_role_has_what_is_its_own_and_what_every_member_does() -> None:
    solver, verifier, whistleblower = (set(table_of(kind)) for kind in ROLES)
    everybody = solver & verifier & whistleblower
    assert DrawSeed in everybody and {Join, Train, Commit} <= solver - verifier
    assert verifier - whistleblower == {Receipt} and Register in whistleblower - solver
    assert set(table_of(CheatingSolver)) == solver and set(table_of(LazyVerifier)) == verifier


@pytest.mark.parametrize("kind", [*ROLES, CheatingSolver, LazyVerifier])
def test_a_method_takes_the_actions_that_it_stands_for(kind: type[Participant]) -> None:
    table = table_of(kind)
    for action in table:
        method = table.method_of(action)
        assert method is not None and get_type_hints(method)["action"] is action


def test_what_is_not_a_roles_is_not_carried_out() -> None:
    view: Any = None
    with pytest.raises(InvariantError) as refused:
        table_of(VerifierAgent).carry_out(Train(Round(0), Seat(0), Digest(bytes(32))), view)
    assert refused.value.code == "NoSuchAction" and "verifier" in refused.value.message


def test_a_role_may_carry_an_action_out_in_its_own_way() -> None:
    done: list[tuple[str, Action]] = []
    table = Handlers[RunView]("solver").add(Join, lambda action, _: done.append(("first", action)))
    table.add(Join, lambda action, _: done.append(("second", action)))
    view: Any = None
    table.carry_out(Join(), view)
    assert done == [("second", Join())]
