"""Random play on the contracts of rounds and their model at once: every call ends alike, and so does the money."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from assay.protocol.rounds.terms import GenerationStatus
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.player import TERMS, RoundPlayer
from tests.harness.rounds.told_world import ToldWorld

SEEDS = 16
FEW_ROUNDS_SEEDS = 4
STEPS = 200


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


def play(chain: RoundChain, seeds: int) -> tuple[Counter[tuple[str, str]], list[list[GenerationStatus]]]:
    """How often calls ended how, and what became of the generations of each run."""
    ended: Counter[tuple[str, str]] = Counter()
    statuses: list[list[GenerationStatus]] = []
    for seed in range(seeds):
        kept = chain.evm.evm.snapshot()
        player = RoundPlayer(ToldWorld(chain), seed)
        for step in range(STEPS):
            player.step()
            if step % 20 == 0:
                player.w.check()
        player.w.check()
        chain.evm.evm.revert(kept)
        ended.update(player.w.ended)
        statuses.append([player.w.model.generations.status_of(g) for g in range(player.w.round + 2)])
    return ended, statuses


def test_contracts_model_and_index_end_every_call_alike(chain: RoundChain) -> None:
    ended, runs = play(chain, SEEDS)
    statuses = Counter(status for run in runs for status in run)
    calls = (
        "join", "leave", "evict", "release", "commit", "hold", "prepare", "settle", "seal", "abstain", "open",
        "restart", "drop", "back", "finalize", "close", "fall",
    )  # fmt: skip
    assert {call: ended[call, ""] for call in calls if not ended[call, ""]} == {}
    assert len([refusal for _, refusal in ended if refusal]) >= 30
    assert min(statuses[status] for status in GenerationStatus) >= 5


def test_they_do_so_in_a_run_that_ends_whose_last_round_is_given_up_too() -> None:
    few = replace(TERMS, rounds=3)
    ended, runs = play(RoundChain(few), FEW_ROUNDS_SEEDS)
    assert ended["restart", "Paused"]
    assert any(len(run) == few.rounds + 1 and run[-1] is GenerationStatus.CUT for run in runs)
