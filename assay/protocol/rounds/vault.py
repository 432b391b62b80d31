"""Every token of a run (Vault.sol): free balances, locks, exits, and what is burned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from assay.protocol.errors import refuse
from assay.protocol.types import Address, Digest, Wei

NOBODY: Final = (Address(bytes(20)), Address(bytes(18) + b"\xde\xad"))
"""Zero, and where burned tokens go: whom no exit is paid to."""

MAX_TOTAL: Final = 1 << 127
"""Wei that a vault ever holds at a time: below the 128 bits in which draws count stakes."""


@dataclass(frozen=True, slots=True)
class Lock:
    """An amount that its owner cannot touch."""

    owner: Address
    amount: Wei


@dataclass
class Vault:
    """The vault's books. Methods raise before they change anything; `now` is chain time in seconds."""

    exit_delay: int
    nobody: tuple[Address, ...] = NOBODY
    """Whom no exit is paid to; a vault on a chain adds itself and its token."""
    free: dict[Address, int] = field(default_factory=dict)
    locks: dict[Digest, Lock] = field(default_factory=dict)
    exits: dict[Address, tuple[int, int]] = field(default_factory=dict)
    """Amount and the chain time after which it may be withdrawn."""
    payees: dict[Address, Address] = field(default_factory=dict)
    """Who was named to be paid for an owner; whoever named nobody is paid itself."""
    paid: Counter[Address] = field(default_factory=Counter)
    """Wei that left the vault, by whom they were paid to."""
    burned: int = 0
    flushed: int = 0
    deposited: int = 0
    withdrawn: int = 0

    def deposit(self, who: Address, amount: int) -> None:
        """Raises AmountZero, VaultFull."""
        _check_amount(amount)
        if amount > (room := MAX_TOTAL - (self.deposited - self.withdrawn - self.flushed)):
            raise refuse("VaultFull", amount=amount, room=room)
        self._credit(who, amount)
        self.deposited += amount

    def set_payee(self, owner: Address, payee: Address, by: Address) -> None:
        """First by the owner, from then on only by whoever was named. Raises NotThePayee, PayeeRefused."""
        # Attack: a thief of the owner's key names itself.
        self._check_payee(owner, by)
        if payee in self.nobody:
            raise refuse("PayeeRefused", payee=payee)
        self.payees[owner] = payee

    def request_exit(self, who: Address, amount: int, now: int) -> None:
        """Raises AmountZero, NotThePayee, InsufficientFree."""
        self._request_exit(who, amount, who, now)

    def request_exit_for(self, owner: Address, amount: int, by: Address, now: int) -> None:
        """The same by an owner's payee. Raises NotThePayee, AmountZero, InsufficientFree."""
        self._check_payee(owner, by)
        self._request_exit(owner, amount, by, now)

    def withdraw(self, owner: Address, now: int) -> int:
        """Anybody may call: pays what is exiting to the owner's payee. Raises NothingExiting, ExitTooEarly."""
        amount, after = self.exits.get(owner, (0, 0))
        if amount == 0:
            raise refuse("NothingExiting", owner=owner)
        if now <= after:
            raise refuse("ExitTooEarly", now=now, not_before=after + 1)
        del self.exits[owner]
        self.withdrawn += amount
        self.paid[self.payee_of(owner)] += amount
        return amount

    def flush(self) -> int:
        """Raises AmountZero."""
        _check_amount(self.burned)
        amount, self.burned = self.burned, 0
        self.flushed += amount
        return amount

    # --- modules

    def lock(self, lock_id: Digest, owner: Address, amount: Wei) -> None:
        """Raises AmountZero, NotTheOwner, InsufficientFree."""
        _check_amount(amount)
        held = self.locks.get(lock_id)
        if held is not None and held.owner != owner:
            raise refuse("NotTheOwner", id=lock_id, owner=held.owner, caller=owner)
        self._debit(owner, amount)
        self.locks[lock_id] = Lock(owner, Wei(amount + (held.amount if held else 0)))

    def release(self, lock_id: Digest) -> None:
        """Raises LockNotFound."""
        held = self.locks.get(lock_id)
        if held is None:
            raise refuse("LockNotFound", id=lock_id)
        del self.locks[lock_id]
        self._credit(held.owner, held.amount)

    def seize(self, lock_id: Digest, to: Address, amount: Wei) -> None:
        """Raises LockTooSmall."""
        self._take(lock_id, amount)
        self._credit(to, amount)

    def burn(self, lock_id: Digest, amount: Wei) -> None:
        """Raises LockTooSmall."""
        self._take(lock_id, amount)
        self.burned += amount

    # --- views

    def payee_of(self, owner: Address) -> Address:
        """Who is paid when stake of an account leaves."""
        return self.payees.get(owner, owner)

    def free_of(self, who: Address) -> int:
        """Free balance in wei."""
        return self.free.get(who, 0)

    def lock_amount(self, lock_id: Digest) -> Wei:
        """Amount of a lock, 0 if there is none."""
        held = self.locks.get(lock_id)
        return held.amount if held else Wei(0)

    def totals(self) -> tuple[int, int, int, int]:
        """Sums of free balances, locks and exits, and what is burned but not flushed."""
        return (
            sum(self.free.values()),
            sum(lock.amount for lock in self.locks.values()),
            sum(amount for amount, _ in self.exits.values()),
            self.burned,
        )

    def is_conserved(self) -> bool:
        """Whether what is held equals what came in less what went out."""
        return sum(self.totals()) == self.deposited - self.withdrawn - self.flushed

    def _check_payee(self, owner: Address, by: Address) -> None:
        if by != (payee := self.payee_of(owner)):
            raise refuse("NotThePayee", owner=owner, payee=payee, caller=by)

    def _request_exit(self, owner: Address, amount: int, by: Address, now: int) -> None:
        _check_amount(amount)
        waiting = self.exits.get(owner, (0, 0))[0]
        if waiting:
            # Attack: a thief of the owner's key asks for a wei more, again and again, so that the delay never ends.
            self._check_payee(owner, by)
        self._debit(owner, amount)
        self.exits[owner] = (waiting + amount, now + self.exit_delay)

    def _take(self, lock_id: Digest, amount: int) -> None:
        held = self.locks.get(lock_id, Lock(Address(bytes(20)), Wei(0)))
        if amount > held.amount:
            raise refuse("LockTooSmall", id=lock_id, locked=held.amount, wanted=amount)
        if amount == held.amount:
            self.locks.pop(lock_id, None)
        else:
            self.locks[lock_id] = Lock(held.owner, Wei(held.amount - amount))

    def _credit(self, who: Address, amount: int) -> None:
        self.free[who] = self.free.get(who, 0) + amount

    def _debit(self, who: Address, amount: int) -> None:
        available = self.free.get(who, 0)
        if amount > available:
            raise refuse("InsufficientFree", owner=who, free=available, wanted=amount)
        self.free[who] = available - amount


def _check_amount(amount: int) -> None:
    if amount == 0:
        raise refuse("AmountZero")
