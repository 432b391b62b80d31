"""A vault and a book of claims for dispute games in tests: the money and the claims that the games are about."""

from __future__ import annotations

from dataclasses import replace

from assay.protocol.game.book import ClaimBook, ClaimView
from assay.protocol.game.state import DisputedClaim
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Wei

WINDOW = 100_000


class MoneyError(Exception):
    """A vault operation without the money for it."""


class BenchVault:
    """Free balances and locks; like Vault.sol it refuses amounts of zero and closes a lock that reaches zero."""

    def __init__(self) -> None:
        self.free: dict[Address, int] = {}
        self.locks: dict[Digest, tuple[Address, int]] = {}
        self.burned = 0

    def deposit(self, owner: Address, amount: int) -> None:
        """Money from outside."""
        self.free[owner] = self.free.get(owner, 0) + amount

    def total(self) -> int:
        """All tokens, wherever they are."""
        return sum(self.free.values()) + sum(amount for _, amount in self.locks.values()) + self.burned

    def wealth(self, owner: Address) -> int:
        """What a party has, free or locked."""
        return self.free.get(owner, 0) + sum(a for who, a in self.locks.values() if who == owner)

    def lock_amount(self, lock_id: Digest) -> Wei:
        return Wei(self.locks.get(lock_id, (b"", 0))[1])

    def lock(self, lock_id: Digest, owner: Address, amount: Wei) -> None:
        if amount <= 0 or self.free.get(owner, 0) < amount:
            raise MoneyError(f"{owner!r} has no {amount} to lock")
        held, before = self.locks.get(lock_id, (owner, 0))
        if held != owner:
            raise MoneyError("the lock is another's")
        self.free[owner] -= amount
        self.locks[lock_id] = (owner, before + amount)

    def release(self, lock_id: Digest) -> None:
        owner, amount = self.locks[lock_id]
        self._take(lock_id, amount)
        self.deposit(owner, amount)

    def seize(self, lock_id: Digest, to: Address, amount: Wei) -> None:
        self._take(lock_id, amount)
        self.deposit(to, amount)

    def burn(self, lock_id: Digest, amount: Wei) -> None:
        self._take(lock_id, amount)
        self.burned += amount

    def _take(self, lock_id: Digest, amount: int) -> None:
        owner, held = self.locks.get(lock_id, (b"", 0))
        if not 0 < amount <= held:
            raise MoneyError(f"{amount} of {held}")
        self.locks[lock_id] = (Address(owner), held - amount)
        if held == amount:
            del self.locks[lock_id]


class BenchClaims(ClaimBook):
    """A book in which tests write claims; a conviction takes a lock once."""

    def __init__(self, vault: BenchVault, bounty_ppm: int) -> None:
        self.vault, self.bounty_ppm = vault, bounty_ppm
        self.views: dict[ClaimRef, ClaimView] = {}
        self.fallen: set[Digest] = set()
        self.open: dict[ClaimRef, int] = {}
        self.direct: set[tuple[ClaimRef, Address]] = set()

    def add(self, ref: ClaimRef, claim: DisputedClaim, opened: int) -> None:
        """Write a claim; its lock is what the vault holds now."""
        amount = self.vault.lock_amount(claim.lock_id)
        self.views[ref] = ClaimView(claim, opened, opened + WINDOW, amount, False, self.bounty_ppm)

    def claim_of(self, ref: ClaimRef) -> ClaimView:
        view = self.views[ref]
        return replace(view, fallen=view.claim.lock_id in self.fallen)

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> bool:
        return (ref, who) in self.direct

    def on_opened(self, ref: ClaimRef, challenger: Address) -> None:
        self.open[ref] = self.open.get(ref, 0) + 1

    def on_closed(self, ref: ClaimRef, convicted: bool) -> bool:
        self.open[ref] -= 1
        lock_id = self.views[ref].claim.lock_id
        first = convicted and lock_id not in self.fallen
        if first:
            self.fallen.add(lock_id)
        return first
