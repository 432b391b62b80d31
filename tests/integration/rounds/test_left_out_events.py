"""A node that has removed old blocks finds no events in them and says no word: real nodes, real proxies before them."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from assay.protocol.errors import UnavailableError
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Query
from assay_ledger.index.history import REFUSED_S, HistoryMissing
from assay_ledger.index.kept_events import SETTLED
from assay_ledger.rounds.index import KeepsEvents, RunIndex
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run
from tests.harness.actors.kept_run import KeptRun
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain, actors_artifacts
from tests.harness.providers import ProviderNode, Reply, Twist, changed, said

SEARCH = "eth_getLogs"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptRun]:
    """Two people with seats and tickets, deep below the head."""
    with actors_artifacts(tmp_path_factory.mktemp("artifacts")):
        stage = SharedChain()
        folder = tmp_path_factory.mktemp("run")
        made = KeptRun(new_whole_run(stage, folder), folder)
        made.enrol()
        made.enrol()
        made.settle()
        yield made
        stage.close()


@pytest.fixture
def keeps(tmp_path: Path) -> KeepsEvents:
    return KeepsEvents(f"sqlite:///{tmp_path / 'events.sqlite'}", "tests")


def prune(node: ProviderNode, upto: int) -> None:
    """From now on a node has no logs of blocks up to a number, and answers as if there had been none."""
    node.turn(changed(lambda logs: [log for log in logs if int(log["blockNumber"], 16) > upto]), methods=[SEARCH])


def index_of(made: KeptRun, *nodes: ProviderNode, keeps: KeepsEvents | None = None, clock: object = None) -> RunIndex:
    chain = Chain(",".join(node.url for node in nodes))
    options = {} if clock is None else {"clock": clock}
    return RunIndex(Run(chain, made.run.address, made.run.first_block), keeps=keeps, **options)  # type: ignore[arg-type]


def check_whole(state: RunState) -> None:
    assert sorted(state.books.tenures.tenures) == [1, 2] and sorted(state.books.registry.tickets) == [1, 2]


def newest_of(made: KeptRun) -> list[int]:
    """The blocks of the newest seats and tickets, the newest first."""
    events = made.chain.logs(
        [to_checksum_address(c.address) for c in (made.run.tenures, made.run.tickets)], 0, made.last
    )
    return sorted({int(log["blockNumber"]) for log in events}, reverse=True)


def searched(node: ProviderNode, upto: int) -> bool:
    """Was it asked for logs of blocks up to a number?"""
    asked = [params[0] for method, params in node.asked if method == SEARCH and "fromBlock" in params[0]]
    return any(int(search["fromBlock"], 16) <= upto for search in asked)


@pytest.mark.parametrize("kept", [0, 1, 2, 3], ids=["nothing", "a ticket", "a seat and a ticket", "all but a seat"])
def test_a_node_without_old_logs_is_named_and_another_tells_the_run(
    made: KeptRun, keeps: KeepsEvents, caplog: pytest.LogCaptureFixture, kept: int
) -> None:
    with ProviderNode(made.chain.url) as first, ProviderNode(made.chain.url) as second:
        index = index_of(made, first, second, keeps=keeps)
        # What follows may make no sense without what is left out.
        prune(first, newest_of(made)[kept])
        with caplog.at_level(logging.WARNING):
            check_whole(index.sync())
        assert f"{first.url} is set aside" in caplog.text and "tenures" in caplog.text
        assert f"{second.url} is set aside" not in caplog.text
        index.close()
        # What is kept is all of it: the next start asks for no history.
        second.turn()
        again = index_of(made, second, keeps=keeps)
        check_whole(again.sync())
        assert not searched(second, made.last)
        again.close()


def test_the_only_node_is_refused_by_name_and_asked_again_later(made: KeptRun, keeps: KeepsEvents) -> None:
    now = [0.0]
    with ProviderNode(made.chain.url) as node:
        index = index_of(made, node, keeps=keeps, clock=lambda: now[0])
        prune(node, made.last)
        with pytest.raises(HistoryMissing, match=r"0 of 2 tenures") as said:
            index.sync()
        assert node.url in said.value.message and "Name a node" in said.value.remedy
        node.asked.clear()
        for _ in range(20):
            with pytest.raises(HistoryMissing):
                index.sync()
        assert not node.asked, "a look costs nothing while it is refused"
        node.turn()
        now[0] += REFUSED_S
        check_whole(index.sync())
        index.close()
        check_whole(index_of(made, node, keeps=keeps).sync())


@pytest.mark.parametrize("mended", [0, 1], ids=["the first", "the second"])
def test_of_two_nodes_without_old_logs_the_one_that_has_them_again_is_read(made: KeptRun, mended: int) -> None:
    now = [0.0]
    with ProviderNode(made.chain.url) as first, ProviderNode(made.chain.url) as second:
        nodes = [first, second]
        index = index_of(made, *nodes, clock=lambda: now[0])
        for node in nodes:
            prune(node, made.last)
        with pytest.raises(HistoryMissing, match=r"0 of 2 tenures"):
            index.sync()
        nodes[mended].turn()
        now[0] += REFUSED_S
        check_whole(index.sync())


def test_rows_that_were_kept_from_such_a_node_are_read_again(
    made: KeptRun, keeps: KeepsEvents, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with ProviderNode(made.chain.url) as pruned, ProviderNode(made.chain.url) as whole:
        prune(pruned, newest_of(made)[3])
        with monkeypatch.context() as before:
            # As releases did that compared nothing.
            before.setattr(RunIndex, "left_out", lambda _self: "")
            poisoned = index_of(made, pruned, keeps=keeps)
            assert sorted(poisoned.sync().books.tenures.tenures) == [2]
            poisoned.close()
        index = index_of(made, whole, keeps=keeps)
        with caplog.at_level(logging.WARNING):
            check_whole(index.sync())
        assert "not all that the run's contracts count" in caplog.text and "set aside" not in caplog.text
        index.close()
        whole.turn()
        again = index_of(made, whole, keeps=keeps)
        check_whole(again.sync())
        assert not searched(whole, made.last)
        again.close()


def test_a_node_without_old_logs_serves_whoever_needs_none(made: KeptRun, caplog: pytest.LogCaptureFixture) -> None:
    """The first node goes down for a while; the second has nothing old, and is asked for nothing old."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(ProviderNode(made.chain.url)) for _ in range(2))
        index = index_of(made, first, second)
        check_whole(index.sync())
        prune(second, made.last)
        first.turn(Reply(b"", 503))
        made.chain.rpc("anvil_mine", hex(2))
        with caplog.at_level(logging.ERROR):
            check_whole(index.sync())
        assert "eth_call" in {method for method, _ in second.asked}, "what it counts is compared"
        assert "set aside" not in caplog.text and not searched(second, made.last)
        assert index.state.head.number > made.last + SETTLED


def counting(query: Query[int], count: int) -> Twist:
    """A view call is answered by a number of the node's own."""

    def answer(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
        return said("0x" + count.to_bytes(32).hex()) if params[0]["data"] == "0x" + query.data.hex() else None

    return answer


def test_what_one_call_did_not_answer_is_compared_before_anybody_acts(made: KeptRun) -> None:
    """Attack: a node without old logs, and a hiccup at the start: the next look finds the same head."""
    is_down = True

    def answer(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
        if "data" in params[0]:
            return Reply(b"{}") if is_down else None
        return said([log for log in ask(*params) if int(log["blockNumber"], 16) > made.last])

    with ProviderNode(made.chain.url) as node:
        index = index_of(made, node)
        node.turn(answer, methods=[SEARCH, "eth_call"])
        for _ in range(2):
            with pytest.raises(UnavailableError) as caught:
                index.sync()
            assert not isinstance(caught.value, HistoryMissing)
        is_down = False
        with pytest.raises(HistoryMissing):
            index.sync()


def test_a_node_that_counts_too_much_costs_nobody_the_rows_it_has(made: KeptRun, keeps: KeepsEvents) -> None:
    with ProviderNode(made.chain.url) as node:
        first = index_of(made, node, keeps=keeps)
        check_whole(first.sync())
        first.close()
        now = [0.0]
        lying = index_of(made, node, keeps=keeps, clock=lambda: now[0])
        node.turn(counting(made.run.tenures.tenures(), 7), methods=["eth_call"])
        for _ in range(3):
            with pytest.raises(HistoryMissing, match="2 of 7 tenures"):
                lying.sync()
            now[0] += REFUSED_S
        lying.close()
        node.turn()
        again = index_of(made, node, keeps=keeps)
        check_whole(again.sync())
        assert not searched(node, made.last)
        again.close()


def test_nodes_that_take_turns_in_every_reading_are_waited_for_at_last(
    made: KeptRun, keeps: KeepsEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is passed from one node that hides something to another in every reading does not read for ever."""
    turns = itertools.count()
    with ProviderNode(made.chain.url) as node:
        index = index_of(made, node, keeps=keeps)
        prune(node, made.last)
        asked = index.chain.logs

        def passed_on(*words: Any) -> Any:
            turn = next(turns)
            assert turn < 200, "it is read without end"
            monkeypatch.setattr(Chain, "turn", turn)
            return asked(*words)

        monkeypatch.setattr(index.chain, "logs", passed_on)
        with pytest.raises(HistoryMissing, match="0 of 2 tenures"):
            index.sync()
        index.close()
