"""The chain takes back what everybody saw: each stretch of a round and of a game is mined, undone, and mined again.

The actors live on through it with all that they remember of blocks that are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from assay.protocol.types import Digest, Round
from assay_ledger.rounds.view import RunView
from tests.harness.actors.disputed import aside, check_judged, is_judged, launched_run, verdicts
from tests.harness.actors.whole_run import WholeRun
from tests.harness.actors.world import SharedChain

Milestone = Callable[[RunView], bool]

MILESTONES: dict[str, Milestone] = {
    "a solver committed": lambda v: bool(v.works(Round(0))),
    "both solvers committed": lambda v: len(v.works(Round(0))) == 2,
    "the mask closed": lambda v: v.counted(Round(0))[1],
    "a root was opened": lambda v: bool(v.openings(1)),
    "the next epoch was seeded": lambda v: called(v) is not None,
    "the call was opened": lambda v: len(v.state.attestations) == 2,
    "a game was opened": lambda v: bool(v.games),
    "a digest was selected": lambda v: any(len(g.moves) > 2 for g in v.games.values()),
    "a node was opened": lambda v: any(len(g.moves) > 5 for g in v.games.values()),
    "there was a verdict": lambda v: bool(verdicts(v)),
}
"""Each is reached twice: what happened since the one before it is undone in between."""


def called(view: RunView) -> int | None:
    """The epoch whose call answers for round 0, once it has its seed."""
    homes = (k for k, epoch in enumerate(view.epochs) if view.works_of(k) and epoch.seed is not None)
    return next(homes, None)


@pytest.fixture(scope="module")
def launched(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return launched_run(stage, tmp_path_factory.mktemp("launched"))


@pytest.fixture
def made(launched: WholeRun) -> Iterator[WholeRun]:
    with aside(launched):
        yield launched


def reorganize(made: WholeRun, snapshot: object) -> int:
    """The chain goes back to the snapshot and on by a block of its own; returns how many blocks are gone."""
    chain = made.chain
    gone = chain.rpc("eth_getBlockByNumber", "latest", False)
    assert chain.rpc("evm_revert", snapshot)
    kept = chain.head()
    chain.rpc("evm_mine", hex(kept.timestamp + 1))
    assert gone["hash"] != chain.rpc("eth_getBlockByNumber", "latest", False)["hash"]
    return int(gone["number"], 16) - kept.number


def test_a_reorganization_at_any_point_of_round_and_game_changes_no_outcome(made: WholeRun) -> None:
    undone, snapshot = 0, made.chain.rpc("evm_snapshot")
    for milestone in MILESTONES.values():
        made.settle(milestone)
        undone += reorganize(made, snapshot)
        made.settle(milestone)
        snapshot = made.chain.rpc("evm_snapshot")
    check_judged(made, made.settle(is_judged))
    assert undone > 30


@pytest.mark.long
@pytest.mark.parametrize("milestone", ["a game was opened", "a node was opened"])
def test_killed_in_the_reorganization_everybody_finishes_the_game_that_is_left(made: WholeRun, milestone: str) -> None:
    made.settle(MILESTONES["the call was opened"])
    snapshot = made.chain.rpc("evm_snapshot")
    made.settle(MILESTONES[milestone])
    reorganize(made, snapshot)
    for name in made.players:
        made.restart(name)
    check_judged(made, made.settle(is_judged))


@pytest.mark.long
def test_a_seed_that_is_drawn_again_is_another_draw_and_nobody_holds_on_to_the_first(made: WholeRun) -> None:
    made.settle(lambda view: view.votes(1).root is not None)
    assert called(made.view) is None
    snapshot, kept = made.chain.rpc("evm_snapshot"), made.chain.head().number
    view = made.settle(MILESTONES["the call was opened"])
    first = seed_of(view)
    # The opening was drawn under a seed that is gone: it is refused, and made anew.
    mine_again_by_another_draw(made, snapshot, kept)
    assert not made.view.state.attestations
    view = made.settle(MILESTONES["the call was opened"])
    assert seed_of(view) not in (first, None)
    check_judged(made, made.settle(is_judged))


def seed_of(view: RunView) -> Digest | None:
    """What the call of round 0 was drawn from."""
    epoch = called(view)
    assert epoch is not None and all(made.epoch == epoch for made in view.state.attestations.values())
    return view.epochs[epoch].seed


def mine_again_by_another_draw(made: WholeRun, snapshot: object, first: int) -> None:
    """The chain goes back, and every transaction since block `first` is mined once more, in its order and time.

    A node's randomness follows from a block's number: one block more makes another draw. Whoever it calls, what was
    opened by the first one is refused.
    """
    chain = made.chain
    blocks = [chain.rpc("eth_getBlockByNumber", hex(n), False) for n in range(first + 1, chain.head().number + 1)]
    raw = {b["number"]: [chain.rpc("eth_getRawTransactionByHash", h) for h in b["transactions"]] for b in blocks}
    assert chain.rpc("evm_revert", snapshot)
    chain.rpc("evm_mine")
    statuses = []
    for block in blocks:
        at = hex(max(int(block["timestamp"], 16), chain.head().timestamp + 1))
        if not raw[block["number"]]:
            chain.rpc("evm_mine", at)
        for one in raw[block["number"]]:
            chain.rpc("evm_setNextBlockTimestamp", hex(max(int(at, 16), chain.head().timestamp + 1)))
            sent = chain.rpc("eth_sendRawTransaction", one)
            statuses.append(chain.w3.eth.wait_for_transaction_receipt(sent, timeout=30)["status"])
    assert statuses.count(0) == 1
