"""Random play on the second round's contracts and their model at once: every call ends alike, and so does the money."""

from __future__ import annotations

from collections import Counter

import pytest

from assay.protocol.rounds.round_terms import GenerationStatus
from tests.harness.rounds.round_chain import RoundChain
from tests.harness.rounds.round_player import TERMS, RoundPlayer
from tests.harness.rounds.told_world import ToldWorld

SEEDS = 16
STEPS = 200


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


def test_contracts_model_and_index_end_every_call_alike(chain: RoundChain) -> None:
    ended: Counter[tuple[str, str]] = Counter()
    statuses: Counter[GenerationStatus] = Counter()
    for seed in range(SEEDS):
        kept = chain.evm.evm.snapshot()
        player = RoundPlayer(ToldWorld(chain), seed)
        for step in range(STEPS):
            player.step()
            if step % 20 == 0:
                player.w.check()
        player.w.check()
        chain.evm.evm.revert(kept)
        ended.update(player.w.ended)
        statuses.update(player.w.model.generations.status_of(g) for g in range(player.w.round + 2))
    calls = (
        "join", "leave", "evict", "release", "commit", "hold", "prepare", "settle", "seal", "abstain", "open",
        "restart", "drop", "back", "finalize", "close", "fall",
    )  # fmt: skip
    assert {call: ended[call, ""] for call in calls if not ended[call, ""]} == {}
    assert len([refusal for _, refusal in ended if refusal]) >= 30
    assert min(statuses[status] for status in GenerationStatus) >= 5
