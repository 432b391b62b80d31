"""A run of seats and tickets on a real node, and indexes of it that keep what they read."""

from __future__ import annotations

from pathlib import Path

from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.digests import keccak
from assay.sponsor.launching import deposit, stake_of
from assay_ledger.chain.client import address_of
from assay_ledger.index.event_rows import EventRows
from assay_ledger.index.kept_blocks import KeptName
from assay_ledger.index.kept_events import SETTLED
from assay_ledger.rounds.index import KeepsEvents, RunIndex
from tests.harness.actors.whole_run import WholeRun
from tests.harness.actors.world import ETHER

DEEP = hex(3 * SETTLED)


class KeptRun:
    """A run, and indexes of it that keep what they read."""

    def __init__(self, made: WholeRun, folder: Path) -> None:
        self.made, self.chain, self.run = made, made.chain, made.run
        self.last = 0
        """The block of the newest ticket."""
        self.keeps = KeepsEvents(f"sqlite:///{folder / 'events.sqlite'}", "tests")

    def enrol(self) -> LocalAccount:
        """Somebody takes a seat and registers a ticket."""
        account, stake = Account.create(), stake_of(self.run.charter, seats=1, tickets=1)
        self.chain.transfer(self.made.stage.sponsor, account.address, 10 * ETHER)
        self.chain.send(account, self.run.token.mint(address_of(account), stake))
        deposit(self.chain, account, self.run, stake)
        self.chain.send(account, self.run.tenures.join())
        receipt = self.chain.send(account, self.run.tickets.register(keccak(account.key)))
        self.last = int(receipt["blockNumber"])
        return account

    def settle(self) -> None:
        """What happened lies deep now."""
        self.chain.rpc("anvil_mine", DEEP)

    def start(self) -> RunIndex:
        """An index that starts, whose state must be that of one that reads the chain alone."""
        index, fresh = RunIndex(self.run, keeps=self.keeps), RunIndex(self.run)
        same = told(index), told(fresh)
        assert same[0] == same[1]
        return index

    def rows(self) -> int:
        """The newest block that is kept."""
        run = self.run
        rows = EventRows(
            self.keeps.url, KeptName.of(run.chain.chain_id, run.address, run.first_block, run.contracts(), "tests")
        )
        try:
            return rows.top
        finally:
            rows.close()


def told(index: RunIndex) -> tuple[object, ...]:
    """What the events of seats, tickets and money say at the newest head."""
    state = index.sync()
    books = state.books
    seats = books.tenures.tenures, sorted(books.tenures.free), books.tenures.fresh
    return *seats, books.registry.tickets, books.registry.anchors, state.money, state.head, books.now
