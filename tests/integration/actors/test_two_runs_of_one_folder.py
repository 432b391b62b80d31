"""One actor's key in two runs: with one data folder, one after the other, or in the same terms on two chains."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.rounds.ids import Node
from assay.protocol.types import Digest, Round
from assay_ledger.agents.journal import FolderOfAnotherRun
from assay_solver.agent import Solver
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain


@pytest.mark.parametrize("kind", [Solver, AuditorAgent])
def test_what_was_done_in_one_run_is_taken_for_nothing_in_another(
    stage: SharedChain, tmp_path: Path, kind: type[Solver] | type[AuditorAgent]
) -> None:
    """Attack on oneself: the next run starts from the same model, by other data, and the work of round 0 is at hand:
    a solver committed to it, and was convicted."""
    first, second = (new_whole_run(stage, tmp_path / name, seats=1, rounds=1) for name in ("first", "second"))
    agent = first.solver("ada") if kind is Solver else first.auditor("ada")
    agent.close()
    for _ in range(2):  # it holds nothing
        with pytest.raises(FolderOfAnotherRun, match=first.run.address.hex()):
            kind(second.run, agent.keys, second.store, first.folder / "ada", compute=COMPUTE)
    assert first.restart("ada").me == agent.me


@pytest.mark.parametrize("kind", [Solver, AuditorAgent])
def test_what_is_shown_on_one_chain_tells_nothing_of_the_same_terms_on_another(
    stage: SharedChain, tmp_path: Path, kind: type[Solver] | type[AuditorAgent]
) -> None:
    """Attack: a run posted once more, term by term, where an auditor shows the secrets of its draws an epoch earlier,
    and a solver opens what it has sealed here."""
    made = new_whole_run(stage, tmp_path, seats=1, rounds=1)
    here = made.solver("ada") if kind is Solver else made.auditor("ada")
    elsewhere = copy(made.run)
    elsewhere.facts = replace(made.run.facts, chain_id=made.chain.chain_id + 1)
    there = kind(elsewhere, here.keys, made.store, tmp_path / "there", compute=COMPUTE)
    root = Digest(bytes(32))
    if isinstance(here, Solver) and isinstance(there, Solver):
        assert here._salt(Round(0), root) != there._salt(Round(0), root)
    if isinstance(here, AuditorAgent) and isinstance(there, AuditorAgent):
        assert here.chains.anchor(0) != there.chains.anchor(0)
        assert here._salt(Node(0), root) != there._salt(Node(0), root)
    assert replace(elsewhere.facts, address=made.address("ada")).identity != elsewhere.facts.identity
    assert made.restart("ada").me == there.me
    there.close()
