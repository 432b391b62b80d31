"""Two processes of one key on two machines: each has a folder, a node connection and records of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Chain
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_solver.cheats import CheatingSolver
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.whole_run import WholeActor, WholeRun
from tests.harness.actors.world import COMPUTE

TWIN = "-elsewhere"


def add_twin(made: WholeRun, name: str) -> Agent:
    """A second process of an actor's key, as on another machine that shares nothing but the chain and the store."""
    player = made.players[name]
    first = player.agent
    options: dict[str, Any] = {"tickets": first.tickets_wanted} if isinstance(first, AuditorAgent) else {}
    if isinstance(first, CheatingSolver):
        options["cheat"] = first.cheat

    def make() -> Agent:
        run, folder = Run(Chain(made.chain.url), made.run.address), made.folder / (name + TWIN)
        return type(first)(run, first.keys, made.store, folder, compute=COMPUTE, **options)

    made.players[name + TWIN] = WholeActor(make, make(), player.brought)
    return made.players[name + TWIN].agent


def sweep_late(made: WholeRun) -> bool:
    """One step of everybody, in which twins decide by what they saw before anybody else acted.

    So does whoever is a block behind: what it sends is signed over a state that is gone.
    """
    head = made.chain.head()
    late = {name: player.agent.see() for name, player in made.players.items() if name.endswith(TWIN)}
    order = sorted(made.players, key=lambda name: name.endswith(TWIN))
    acted = [_step_seeing(made.players[name].agent, late.get(name)) for name in order]
    return any(acted) or made.chain.head() != head


def _step_seeing(agent: Agent, view: RunView | None) -> bool:
    if view is None:
        return agent.step()
    see: Callable[[], RunView] = agent.see
    agent.see = lambda: view  # type: ignore[method-assign]
    try:
        return agent.step()
    finally:
        agent.see = see  # type: ignore[method-assign]
