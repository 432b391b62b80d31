"""An actor that waits for blocks and is told of them by a node's WebSocket."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from assay_ledger.chain.announced import announced
from assay_ledger.chain.pace import PollPace
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.browser import wait_for


def test_an_actor_at_rest_looks_at_a_block_that_is_announced(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_whole_run(stage, tmp_path)
    agent = made.solver("ada")
    # It would look no more by itself.
    monkeypatch.setattr(PollPace, "period", 600.0)
    stop, seen = threading.Event(), list[int]()
    agent.on_rest = lambda view: seen.append(view.head.number)
    running = threading.Thread(target=agent.run, args=(stop,), daemon=True)
    with announced(made.chain, made.chain.url.replace("http", "ws")):
        running.start()
        wait_for(lambda: bool(seen), 60, "it is at rest")
        first = seen[-1]

        def is_seen() -> bool:
            made.chain.rpc("evm_mine")
            return seen[-1] > first

        wait_for(is_seen, 60, "it looks")
        stop.set()
        running.join(60)
    assert not running.is_alive()
