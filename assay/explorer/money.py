"""Who has, earned, lost and owns what: the money of a run folded from its events. Amounts are wei."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.types import Address
from assay_ledger.bindings import game, revenue, settlement, shares, vault, vesting
from assay_ledger.contract import Event
from assay_ledger.index.run import Run


@dataclass(slots=True)
class Account:
    """The figures of one address."""

    free: int = 0
    locked: int = 0
    leaving: int = 0
    deposited: int = 0
    withdrawn: int = 0
    pay: int = 0
    wages: int = 0
    bounties: int = 0
    """Of convicted locks, to the winners."""
    slashed: int = 0
    """Of its own locks, by convictions."""
    duties: int = 0
    pending: int = 0
    shares: int = 0
    claimed: int = 0

    @property
    def earned(self) -> int:
        """Pay and wages."""
        return self.pay + self.wages


class Money:
    """Books of the run. `on_event` is told every event in order."""

    def __init__(self, run: Run) -> None:
        self.accounts: dict[Address, Account] = {}
        self.burned = 0
        self.flushed = 0
        self.revenue = 0
        self._locks: dict[bytes, tuple[Address, int]] = {}
        self._parties: dict[int, tuple[Address, Address]] = {}
        self._modules = {contract.address for contract in run.contracts().values()}

    @property
    def people(self) -> list[Address]:
        """Addresses that are no contracts of the run, sorted."""
        return sorted(who for who in self.accounts if who not in self._modules)

    def of(self, who: Address) -> Account:
        """The figures of an address; zeros for a stranger."""
        return self.accounts.get(who, Account())

    def on_event(self, event: Event) -> None:
        """Books one event."""
        match event:
            case vault.Deposited():
                account = self._at(event.owner)
                account.free += event.amount
                account.deposited += event.amount
            case vault.ExitRequested():
                account = self._at(event.owner)
                account.free -= event.amount
                account.leaving += event.amount
            case vault.Withdrawn():
                account = self._at(event.owner)
                account.leaving -= event.amount
                account.withdrawn += event.amount
            case vault.Locked():
                self._locked(event)
            case vault.Released():
                account = self._at(event.owner)
                account.free += event.amount
                account.locked -= event.amount
                self._locks.pop(event.id, None)
            case vault.Seized():
                self._take(event.id, event.amount)
                self._at(event.to).free += event.amount
            case vault.Burned():
                self._take(event.id, event.amount)
                self.burned += event.amount
            case vault.Flushed():
                self.burned -= event.amount
                self.flushed += event.amount
            case game.GameOpened():
                self._parties[event.game_id] = event.defender, event.challenger
            case game.LockTaken():
                self._lock_taken(event)
            case settlement.WorkSettled():
                self._at(event.solver).pay += event.pay
            case settlement.DutiesSettled():
                account = self._at(event.attester)
                account.wages += event.wages
                account.duties += event.duties
            case vesting.Credited():
                self._at(event.owner).pending += event.amount
            case vesting.Vested() | vesting.Cancelled():
                self._at(event.owner).pending -= event.amount
            case shares.Transfer():
                self._transferred(event)
            case revenue.Deposited():
                self.revenue += event.amount
            case revenue.Claimed():
                self._at(event.owner).claimed += event.amount

    def _at(self, who: Address) -> Account:
        return self.accounts.setdefault(who, Account())

    def _locked(self, event: vault.Locked) -> None:
        account = self._at(event.owner)
        account.free -= event.amount
        account.locked += event.amount
        self._locks[event.id] = event.owner, self._locks.get(event.id, (event.owner, 0))[1] + event.amount

    def _take(self, lock_id: bytes, amount: int) -> None:
        owner, held = self._locks[lock_id]
        self.accounts[owner].locked -= amount
        self._locks[lock_id] = owner, held - amount

    def _lock_taken(self, event: game.LockTaken) -> None:
        defender, challenger = self._parties[event.game_id]
        self._at(defender).slashed += event.bounty + event.burned + event.reserved
        self._at(challenger).bounties += event.bounty

    def _transferred(self, event: shares.Transfer) -> None:
        # Minting comes from the zero address, which owns nothing.
        if any(event.from_):
            self._at(event.from_).shares -= event.value
        if any(event.to):
            self._at(event.to).shares += event.value
