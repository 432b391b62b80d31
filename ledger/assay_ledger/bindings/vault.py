"""Calls, queries and events of contracts/Vault.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import Address, Digest, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Burned(Event):
    """A part of a lock was burned."""

    ABI: ClassVar = "Burned(bytes32 indexed id, uint256 amount)"
    id: Digest
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Burned:
        return cls(Digest(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class Deposited(Event):
    """An account paid stake into the vault."""

    ABI: ClassVar = "Deposited(address indexed owner, uint256 amount)"
    owner: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Deposited:
        return cls(address(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class ExitRequested(Event):
    """Stake of an account was moved out of the reach of every lock, to be withdrawn later."""

    ABI: ClassVar = "ExitRequested(address indexed owner, uint256 amount, uint64 notBefore)"
    owner: Address
    amount: Wei
    not_before: int

    @classmethod
    def _of(cls, v: Decoded) -> ExitRequested:
        return cls(address(v[0]), Wei(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class Flushed(Event):
    """What was burned left the vault, for an address without a key."""

    ABI: ClassVar = "Flushed(uint256 amount)"
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Flushed:
        return cls(Wei(v[0]))


@dataclass(frozen=True, slots=True)
class Locked(Event):
    """Free stake was put into a lock."""

    ABI: ClassVar = "Locked(bytes32 indexed id, address indexed owner, uint256 amount)"
    id: Digest
    owner: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Locked:
        return cls(Digest(v[0]), address(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class PayeeSet(Event):
    """Somebody else is paid from now on when stake of an account leaves, its vested shares and its revenue included."""

    ABI: ClassVar = "PayeeSet(address indexed owner, address indexed payee)"
    owner: Address
    payee: Address

    @classmethod
    def _of(cls, v: Decoded) -> PayeeSet:
        return cls(address(v[0]), address(v[1]))


@dataclass(frozen=True, slots=True)
class Released(Event):
    """The rest of a lock went back to its owner's free stake."""

    ABI: ClassVar = "Released(bytes32 indexed id, address indexed owner, uint256 amount)"
    id: Digest
    owner: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Released:
        return cls(Digest(v[0]), address(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class Seized(Event):
    """A part of a lock was paid to another account's free stake."""

    ABI: ClassVar = "Seized(bytes32 indexed id, address indexed to, uint256 amount)"
    id: Digest
    to: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Seized:
        return cls(Digest(v[0]), address(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class Withdrawn(Event):
    """Stake left the vault."""

    ABI: ClassVar = "Withdrawn(address indexed owner, address indexed to, uint256 amount)"
    owner: Address
    to: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Withdrawn:
        return cls(address(v[0]), address(v[1]), Wei(v[2]))


class VaultContract(Contract):
    """`contracts/Vault.sol` at an address."""

    EVENTS = (
        Burned,
        Deposited,
        ExitRequested,
        Flushed,
        Locked,
        PayeeSet,
        Released,
        Seized,
        Withdrawn,
    )

    CALLS = (
        "burn(bytes32,uint256)",
        "deposit(uint256)",
        "flush()",
        "lock(bytes32,address,uint256)",
        "release(bytes32)",
        "requestExit(uint256)",
        "requestExitFor(address,uint256)",
        "seize(bytes32,address,uint256)",
        "setPayee(address,address)",
        "withdraw()",
        "withdrawFor(address)",
    )

    def max_total(self) -> Query[int]:
        """Wei that a vault ever holds at a time: below the 128 bits in which the contracts of a run keep amounts."""
        return self._query("MAX_TOTAL()", "(uint256)", lambda v: v[0])

    def sink(self) -> Query[Address]:
        """Where burned tokens go: an address whose key cannot be known."""
        return self._query("SINK()", "(address)", lambda v: address(v[0]))

    def burn(self, id: Digest, amount: Wei) -> Call:
        """Module: moves part of a lock to the sink without a key."""
        return self._call("burn(bytes32,uint256)", id, amount)

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def deposit(self, amount: Wei) -> Call:
        """Takes `amount` tokens from the caller into its free balance (stake)."""
        return self._call("deposit(uint256)", amount)

    def exit_delay(self) -> Query[int]:
        """`exitDelay`."""
        return self._query("exitDelay()", "(uint64)", lambda v: v[0])

    def exiting(self, owner: Address) -> Query[tuple[Wei, int]]:
        """What an owner has requested to withdraw, and the chain time after which it may."""
        return self._query("exiting(address)", "(uint256,uint64)", lambda v: (Wei(v[0]), v[1]), owner)

    def flush(self) -> Call:
        """Sends what was burned so far to the sink without a key."""
        return self._call("flush()")

    def free(self, owner: Address) -> Query[Wei]:
        """Free balance of an owner, in wei."""
        return self._query("free(address)", "(uint256)", lambda v: Wei(v[0]), owner)

    def lock(self, id: Digest, owner: Address, amount: Wei) -> Call:
        """Module: moves free balance into a new lock, or adds to a lock of the same owner."""
        return self._call("lock(bytes32,address,uint256)", id, owner, amount)

    def lock_of(self, id: Digest) -> Query[tuple[Address, Wei]]:
        """Owner and amount of a lock; both zero when there is none."""
        return self._query("lockOf(bytes32)", "(address,uint256)", lambda v: (address(v[0]), Wei(v[1])), id)

    def payee_of(self, owner: Address) -> Query[Address]:
        """Who is paid when stake of an account leaves: the account itself until it named an address."""
        return self._query("payeeOf(address)", "(address)", lambda v: address(v[0]), owner)

    def release(self, id: Digest) -> Call:
        """Module: gives the rest of a lock back to its owner's free balance and closes it."""
        return self._call("release(bytes32)", id)

    def request_exit(self, amount: Wei) -> Call:
        """Moves the caller's free balance out of reach of every lock; it can be withdrawn after the exit delay."""
        return self._call("requestExit(uint256)", amount)

    def request_exit_for(self, owner: Address, amount: Wei) -> Call:
        """The same for an account whose payee calls: a key that is lost keeps no free stake."""
        return self._call("requestExitFor(address,uint256)", owner, amount)

    def seize(self, id: Digest, to: Address, amount: Wei) -> Call:
        """Module: moves part of a lock to another party's free balance."""
        return self._call("seize(bytes32,address,uint256)", id, to, amount)

    def set_payee(self, owner: Address, payee: Address) -> Call:
        """Names who is paid when stake of an account leaves: first by the account, from then on only by whoever is
        named.
        """
        return self._call("setPayee(address,address)", owner, payee)

    def token(self) -> Query[Address]:
        """`token`."""
        return self._query("token()", "(address)", lambda v: address(v[0]))

    def totals(self) -> Query[tuple[Wei, Wei, Wei, Wei]]:
        """The sum of all free balances, of all locks, of all exits, and what is burned but not flushed, in wei."""
        return self._query(
            "totals()", "(uint256,uint256,uint256,uint256)", lambda v: (Wei(v[0]), Wei(v[1]), Wei(v[2]), Wei(v[3]))
        )

    def withdraw(self) -> Call:
        """Pays everything of the caller that is exiting to its payee, strictly after the delay."""
        return self._call("withdraw()")

    def withdraw_for(self, owner: Address) -> Call:
        """Pays what is exiting of an account to the account's payee."""
        return self._call("withdrawFor(address)", owner)
