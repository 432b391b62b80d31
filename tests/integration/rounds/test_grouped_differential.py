"""Random play above 64 seats on contracts and model at once: every call ends alike, and an index reads all of it."""

from __future__ import annotations

from collections import Counter

import pytest

from assay.protocol.rounds.terms import GenerationStatus
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_player import TERMS, GroupedPlayer
from tests.harness.rounds.told_world import ToldGroupedWorld

SEEDS, STEPS = 7, 260


@pytest.mark.long
@pytest.mark.timeout(300)
def test_grouped_contracts_model_and_index_agree_after_every_call() -> None:
    chain = RoundChain(TERMS)
    ended: Counter[tuple[str, str]] = Counter()
    statuses: Counter[GenerationStatus] = Counter()
    abstained = 0
    for seed in range(SEEDS):
        kept = chain.evm.evm.snapshot()
        player = GroupedPlayer(ToldGroupedWorld(chain), seed)
        for step in range(STEPS):
            player.step()
            if step % 40 == 0:
                player.w.check()
        player.w.check()
        chain.evm.evm.revert(kept)
        ended.update(player.w.ended)
        statuses.update(player.w.generations.status_of(g) for g in range(player.w.round + 2))
        abstained += sum(seal is None for votes in player.w.generations.votes.values() for seal in votes.seals.values())
    calls = (
        "commit", "hold", "preparePartial", "prepareMerge", "settle", "seal", "open", "restart", "drop",
        "back", "finalize", "close", "fall", "retire",
    )  # fmt: skip
    assert {call: ended[call, ""] for call in calls if not ended[call, ""]} == {}
    assert abstained
    assert len([refusal for _, refusal in ended if refusal]) >= 30
    assert set(statuses) == set(GenerationStatus)
