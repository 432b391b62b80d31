"""The index of a run, and what follows it, when the chain takes blocks back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.demo.cast import choose_cast
from assay.demo.scene import DemoOptions, DemoScene
from assay.demo.stage import DemoStage
from assay.explorer.reader import RunReader
from assay.protocol.digests import keccak
from assay.protocol.types import Wei
from assay.sponsor.launching import deposit, fund_run, stake_of
from assay_ledger.chain.client import address_of
from assay_ledger.contract import Event, Logged
from assay_ledger.rounds.index import RunIndex
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import ETHER, SharedChain, actors_artifacts


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedChain]:
    with actors_artifacts(tmp_path_factory.mktemp("artifacts")):
        stage = SharedChain()
        yield stage
        stage.close()


class FollowedRun:
    """A run that one index and one reader follow through everything."""

    def __init__(self, made: WholeRun) -> None:
        self.made, self.chain, self.run = made, made.chain, made.run
        self.index, self.reader = RunIndex(made.run), RunReader(made.run, clock=_ticking())

    def person(self) -> LocalAccount:
        """Somebody with stake for a seat and a ticket."""
        account, stake = Account.create(), stake_of(self.run.charter, seats=1, tickets=1)
        self.chain.transfer(self.made.stage.sponsor, account.address, 10 * ETHER)
        self.chain.send(account, self.run.token.mint(address_of(account), stake))
        deposit(self.chain, account, self.run, stake)
        return account

    def enrol(self, account: LocalAccount) -> None:
        """Takes a seat and registers a ticket."""
        self.chain.send(account, self.run.tenures.join())
        self.chain.send(account, self.run.tickets.register(keccak(account.key)))

    def fund(self, amount: Wei) -> None:
        """The sponsor pays into the escrow."""
        sponsor = self.made.stage.sponsor
        self.chain.send(sponsor, self.run.token.mint(address_of(sponsor), amount))
        fund_run(self.chain, sponsor, self.run, amount)

    def check(self) -> None:
        """What was followed is what somebody reads who begins now."""
        fresh = RunReader(self.run)
        with self.reader.reading(), fresh.reading():
            assert self.reader.events == fresh.events
            assert self.reader.money.accounts == fresh.money.accounts
            for state in (self.index.sync(), self.reader.state):
                assert state.head == fresh.state.head
                assert told(state) == told(fresh.state)


def told(state: Any) -> tuple[Any, ...]:
    """What the events of launches, seats and tickets say."""
    books = state.books
    seats = books.tenures.tenures, sorted(books.tenures.free), books.tenures.fresh
    return *seats, books.registry.tickets, books.registry.anchors, state.money, books.commitments.rounds


def _ticking() -> Any:
    """A clock by which every look is a new one."""
    times = iter(range(0, 10**6, 10))
    return lambda: next(times)


@pytest.fixture
def followed(stage: SharedChain, tmp_path: Path) -> FollowedRun:
    return FollowedRun(new_whole_run(stage, tmp_path))


def test_what_a_reorganization_takes_back_is_forgotten_everywhere(followed: FollowedRun) -> None:
    first, second = followed.person(), followed.person()
    followed.enrol(first)
    followed.check()
    snapshot = followed.chain.rpc("evm_snapshot")
    followed.enrol(second)
    followed.fund(Wei(5 * ETHER))
    followed.check()
    assert len(followed.index.state.books.tenures.tenures) == 2
    gone = followed.chain.head().number
    assert followed.chain.rpc("evm_revert", snapshot)
    followed.fund(Wei(7 * ETHER))
    followed.check()
    assert len(followed.index.state.books.tenures.tenures) == 1
    assert followed.index.state.money.balance == 7 * ETHER
    # The other chain grows beyond the one that was read: nothing of that one comes back.
    while followed.chain.head().number <= gone:
        followed.chain.rpc("evm_mine")
    followed.enrol(second)
    followed.check()
    assert sorted(followed.index.state.books.registry.tickets) == [1, 2]


def test_a_run_whose_every_event_was_taken_back_is_empty(followed: FollowedRun) -> None:
    followed.check()
    assert followed.reader.events == []
    snapshot = followed.chain.rpc("evm_snapshot")
    followed.enrol(followed.person())
    followed.check()
    assert len(followed.reader.events) > 3
    assert followed.chain.rpc("evm_revert", snapshot)
    followed.chain.rpc("evm_mine")
    followed.check()
    assert followed.reader.events == [] and followed.reader.money.accounts == {}
    assert followed.index.state.books.tenures.tenures == {}


def test_blocks_replaced_by_a_node_at_the_same_height_are_read_again(followed: FollowedRun) -> None:
    person = followed.person()
    followed.enrol(person)
    followed.check()
    height = followed.chain.head().number
    # The last two blocks held the seat and the ticket; empty ones take their place.
    followed.chain.rpc("anvil_reorg", 2, [])
    assert followed.chain.head().number == height
    followed.check()
    assert followed.index.state.books.tenures.tenures == {} and followed.index.state.books.registry.tickets == {}


def test_an_error_of_a_listener_is_its_own_and_leaves_nothing_half_read(followed: FollowedRun) -> None:
    followed.enrol(followed.person())
    fails = [True]

    def listen(contract: str, found: Logged[Event]) -> None:
        if contract == "tickets" and fails:
            raise KeyError(fails.pop())

    index = RunIndex(followed.run, [listen])
    # A node that talks nonsense is asked again; a listener of ours that stumbles must be seen.
    with pytest.raises(KeyError):
        index.sync()
    assert index.state.books.tenures.tenures == {}
    assert told(index.sync()) == told(followed.index.sync())
    assert len(index.state.books.tenures.tenures) == 1


def test_a_demo_says_every_event_once_and_books_no_block_that_is_gone(followed: FollowedRun, tmp_path: Path) -> None:
    said: list[str] = []
    node = followed.made.stage.node
    scene = DemoScene(DemoOptions(), choose_cast(()), node, DemoStage(tmp_path, node.url, None), said.append, {})
    scene.attach("0x" + followed.run.address.hex())
    first, second = followed.person(), followed.person()
    followed.enrol(first)
    scene.sync()
    before = list(said)
    assert len(before) > 1
    snapshot = followed.chain.rpc("evm_snapshot")
    followed.fund(Wei(ETHER))
    scene.sync()
    assert followed.chain.rpc("evm_revert", snapshot)
    followed.enrol(second)
    scene.sync()
    fresh = RunReader(followed.run)
    with fresh.reading():
        assert scene.money.accounts == fresh.money.accounts
    assert said[: len(before)] == before and len(said) == len(before) + 3


def test_an_actors_listener_is_told_every_event_once_whatever_blocks_are_replaced(followed: FollowedRun) -> None:
    heard: list[tuple[str, bytes, str]] = []

    def listen(contract: str, found: Logged[Event]) -> None:
        heard.append((contract, found.transaction, type(found.event).__name__))

    agent = followed.made.solver("ada", listeners=[listen])
    first, second = followed.person(), followed.person()
    followed.enrol(first)
    agent.see()
    before = list(heard)
    assert [name for _, _, name in before] == ["TenureBegan", "TicketRegistered"]
    snapshot = followed.chain.rpc("evm_snapshot")
    followed.fund(Wei(ETHER))
    agent.see()
    assert followed.chain.rpc("evm_revert", snapshot)
    followed.enrol(second)
    agent.see()
    news = heard[len(before) :]
    assert [name for _, _, name in news] == ["Funded", "TenureBegan", "TicketRegistered"]
    assert len(agent.state.books.tenures.tenures) == 2
