"""From which block on a chain is searched for a run's events: found once, noted, and never believed blindly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.common import open_round_run
from assay.cli.first_blocks import FILE
from assay.settings import Settings
from assay_ledger.bindings.vault import Deposited
from assay_ledger.chain.client import Chain
from assay_ledger.rounds.run import Run
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.providers import ProviderNode, Reply, refused, said

MARGIN = 20
NO_STATE = refused(-32000, "missing trie node 00 (path ) state 0x00 is not available")
"""As nodes say it that keep the state of the newest blocks alone."""


@pytest.fixture
def made(stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WholeRun:
    """A run with a solver's stake, deep in its chain and long before the head."""
    monkeypatch.setattr("assay_ledger.rounds.first_block.MARGIN", MARGIN)
    stage.chain.rpc("anvil_mine", hex(200))
    found = new_whole_run(stage, tmp_path, seats=1, rounds=3)
    found.solver("ada")
    stage.chain.rpc("anvil_mine", hex(200))
    return found


@pytest.fixture
def node(made: WholeRun) -> Iterator[ProviderNode]:
    with ProviderNode(made.chain.url) as found:
        yield found


def opened(made: WholeRun, node: ProviderNode, folder: Path) -> Run:
    """As commands open it, of an actor with this folder."""
    settings = Settings(rpc_url=node.url, run="0x" + made.run.address.hex(), data_dir=folder)
    run = open_round_run(settings, Chain(node.url, retry_for_s=0.1))
    node.asked.clear()
    return run


def asked_for_code(node: ProviderNode) -> int:
    return sum(method == "eth_getCode" for method, _ in node.asked)


def old_code(horizon: int, reply: Reply) -> Callable[[list[Any], Callable[..., Any]], Reply | None]:
    """What is asked of blocks before a horizon is answered so."""
    return lambda params, ask: reply if params[1] != "latest" and int(params[1], 16) < horizon else None


def charter_block(made: WholeRun) -> int:
    blocks = range(made.run.first_block, made.chain.head().number)
    return next(block for block in blocks if made.chain.code_at(made.run.address, block))


def test_a_runs_first_block_is_found_once_and_no_search_goes_below_it(
    made: WholeRun, node: ProviderNode, tmp_path: Path
) -> None:
    run, began = opened(made, node, tmp_path), charter_block(made)
    assert asked_for_code(node) == 0, "who searches nothing asks for nothing"
    assert run.first_block == run.games._first_block == began - MARGIN
    assert 5 < asked_for_code(node) <= made.chain.head().number.bit_length() + 1
    search = Deposited.search(run.vault.address)
    assert run.chain.events(search, run.first_block) == made.chain.events(search, 0) != []
    assert run.kept_from == 0, "events that were kept before are kept still"
    again = opened(made, node, tmp_path)
    assert again.first_block == began - MARGIN and asked_for_code(node) == 1
    # Another chain of the same number, or a reorganization: what was noted is of no block of this one.
    (tmp_path / FILE).write_text((tmp_path / FILE).read_text().replace('"0x', '"0xff'))
    assert opened(made, node, tmp_path).first_block == began - MARGIN and asked_for_code(node) > 5
    (tmp_path / FILE).write_text('{"a": 3')
    assert opened(made, node, tmp_path).first_block == began - MARGIN and asked_for_code(node) > 5


@pytest.mark.parametrize("reply", [NO_STATE, said("0x")], ids=["said", "silent"])
def test_a_node_without_old_state_has_its_whole_chain_searched(
    made: WholeRun, node: ProviderNode, tmp_path: Path, reply: Reply
) -> None:
    """Attack: it says that no charter was there yet, when stakes had been brought."""
    run = opened(made, node, tmp_path)
    node.turn(old_code(made.chain.head().number - 50, reply), methods=["eth_getCode"])
    assert run.first_block == 0 and not (tmp_path / FILE).exists()


def test_what_a_lying_node_had_noted_is_looked_for_again_with_another_one(
    made: WholeRun, node: ProviderNode, tmp_path: Path
) -> None:
    """Attack: it says that the charter came late, and that nothing was staked; later searches would begin behind it."""
    began, late = charter_block(made), made.chain.head().number - 30
    block = made.chain.w3.eth.get_block(late)
    name = f"{made.chain.chain_id} 0x{made.run.address.hex()}"
    (tmp_path / FILE).write_text(json.dumps({name: (late, "0x" + bytes(block["hash"]).hex())}))
    # One that has no old state can tell nothing of it, and goes on with what was noted.
    node.turn(old_code(made.chain.head().number, NO_STATE), methods=["eth_getCode"])
    assert opened(made, node, tmp_path).first_block == late - MARGIN
    node.turn(lambda params, ask: None, methods=["eth_getCode"])
    assert opened(made, node, tmp_path).first_block == began - MARGIN
    assert json.loads((tmp_path / FILE).read_text())[name][0] == began


def test_a_short_chain_is_searched_from_its_beginning(
    made: WholeRun, node: ProviderNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_ledger.rounds.first_block.MARGIN", made.chain.head().number + 1)
    assert opened(made, node, tmp_path).first_block == 0
    assert asked_for_code(node) == 0 and not (tmp_path / FILE).exists()


def test_what_is_noted_of_one_run_stays_beside_that_of_another(
    stage: SharedChain, made: WholeRun, node: ProviderNode, tmp_path: Path
) -> None:
    other = new_whole_run(stage, tmp_path / "other", seats=1, rounds=3)
    stage.chain.rpc("anvil_mine", hex(50))
    for run in (made, other):
        assert opened(run, node, tmp_path).first_block == charter_block(run) - MARGIN
    assert len(json.loads((tmp_path / FILE).read_text())) == 2
