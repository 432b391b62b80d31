"""Who has, earned, lost and owns what: the money of a run folded from its events. Amounts are wei."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from assay.protocol.types import Address
from assay_ledger.index.indexer import address
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
        self._modules = {bytes.fromhex(contract.address[2:]) for contract in run.contracts().values()}

    @property
    def people(self) -> list[Address]:
        """Addresses that are no contracts of the run, sorted."""
        return sorted(who for who in self.accounts if who not in self._modules)

    def of(self, who: Address) -> Account:
        """The figures of an address; zeros for a stranger."""
        return self.accounts.get(who, Account())

    def on_event(self, contract: str, name: str, args: Mapping[str, Any]) -> None:
        """Books one event."""
        handler = _HANDLERS.get((contract, name))
        if handler is not None:
            handler(self, args)

    def _at(self, value: Any) -> Account:
        return self.accounts.setdefault(address(value), Account())

    # --- vault

    def _deposited(self, args: Mapping[str, Any]) -> None:
        account = self._at(args["owner"])
        account.free += args["amount"]
        account.deposited += args["amount"]

    def _exit_requested(self, args: Mapping[str, Any]) -> None:
        account = self._at(args["owner"])
        account.free -= args["amount"]
        account.leaving += args["amount"]

    def _withdrawn(self, args: Mapping[str, Any]) -> None:
        account = self._at(args["owner"])
        account.leaving -= args["amount"]
        account.withdrawn += args["amount"]

    def _locked(self, args: Mapping[str, Any]) -> None:
        owner, amount = address(args["owner"]), int(args["amount"])
        account = self._at(args["owner"])
        account.free -= amount
        account.locked += amount
        self._locks[args["id"]] = owner, self._locks.get(args["id"], (owner, 0))[1] + amount

    def _released(self, args: Mapping[str, Any]) -> None:
        account = self._at(args["owner"])
        account.free += args["amount"]
        account.locked -= args["amount"]
        self._locks.pop(args["id"], None)

    def _seized(self, args: Mapping[str, Any]) -> None:
        self._take(args["id"], args["amount"])
        self._at(args["to"]).free += args["amount"]

    def _burned(self, args: Mapping[str, Any]) -> None:
        self._take(args["id"], args["amount"])
        self.burned += args["amount"]

    def _take(self, lock_id: bytes, amount: int) -> None:
        owner, held = self._locks[lock_id]
        self.accounts[owner].locked -= amount
        self._locks[lock_id] = owner, held - amount

    def _flushed(self, args: Mapping[str, Any]) -> None:
        self.burned -= args["amount"]
        self.flushed += args["amount"]

    # --- games

    def _game_opened(self, args: Mapping[str, Any]) -> None:
        self._parties[args["gameId"]] = address(args["defender"]), address(args["challenger"])

    def _lock_taken(self, args: Mapping[str, Any]) -> None:
        defender, challenger = self._parties[args["gameId"]]
        whole = args["bounty"] + args["burned"] + args["reserved"]
        self.accounts.setdefault(defender, Account()).slashed += whole
        self.accounts.setdefault(challenger, Account()).bounties += args["bounty"]

    # --- earnings

    def _work_settled(self, args: Mapping[str, Any]) -> None:
        self._at(args["solver"]).pay += args["pay"]

    def _duties_settled(self, args: Mapping[str, Any]) -> None:
        account = self._at(args["attester"])
        account.wages += args["wages"]
        account.duties += args["duties"]

    def _credited(self, args: Mapping[str, Any]) -> None:
        self._at(args["owner"]).pending += args["amount"]

    def _vested(self, args: Mapping[str, Any]) -> None:
        self._at(args["owner"]).pending -= args["amount"]

    def _cancelled(self, args: Mapping[str, Any]) -> None:
        self._at(args["owner"]).pending -= args["amount"]

    def _transfer(self, args: Mapping[str, Any]) -> None:
        # Minting comes from the zero address, which owns nothing.
        if int(args["from"], 16):
            self._at(args["from"]).shares -= args["value"]
        if int(args["to"], 16):
            self._at(args["to"]).shares += args["value"]

    def _revenue_deposited(self, args: Mapping[str, Any]) -> None:
        self.revenue += args["amount"]

    def _revenue_claimed(self, args: Mapping[str, Any]) -> None:
        self._at(args["owner"]).claimed += args["amount"]


_HANDLERS: Final[dict[tuple[str, str], Callable[[Money, Mapping[str, Any]], None]]] = {
    ("vault", "Deposited"): Money._deposited,
    ("vault", "ExitRequested"): Money._exit_requested,
    ("vault", "Withdrawn"): Money._withdrawn,
    ("vault", "Locked"): Money._locked,
    ("vault", "Released"): Money._released,
    ("vault", "Seized"): Money._seized,
    ("vault", "Burned"): Money._burned,
    ("vault", "Flushed"): Money._flushed,
    ("game", "GameOpened"): Money._game_opened,
    ("game", "LockTaken"): Money._lock_taken,
    ("settlement", "WorkSettled"): Money._work_settled,
    ("settlement", "DutiesSettled"): Money._duties_settled,
    ("vesting", "Credited"): Money._credited,
    ("vesting", "Vested"): Money._vested,
    ("vesting", "Cancelled"): Money._cancelled,
    ("shares", "Transfer"): Money._transfer,
    ("revenue", "Deposited"): Money._revenue_deposited,
    ("revenue", "Claimed"): Money._revenue_claimed,
}
