"""Shares that are credited and not yet anybody's tokens (contracts/money/Grants.sol)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from assay.protocol.errors import refuse
from assay.protocol.rounds.shares import Shares
from assay.protocol.types import Address, Digest


@dataclass(slots=True)
class PendingShares:
    """Shares for final work of a tenure, or for a finding of a ticket; the other is 0. `vests_at` in seconds."""

    owner: Address
    vests_at: int
    tenure: int
    ticket: int
    amount: int
    done: bool = False


class Grants:
    """The books of grants. `convicted_at`: when a tenure, or a ticket, was convicted; 0: never. `payee_of`: who is paid
    for an owner, as in the vault."""

    def __init__(
        self, vesting: int, convicted_at: Callable[[int, int], int], payee_of: Callable[[Address], Address]
    ) -> None:
        self.vesting, self.convicted_at, self.payee_of = vesting, convicted_at, payee_of
        self.grants: dict[Digest, PendingShares] = {}
        self.pending: Counter[Address] = Counter()
        self.token = Shares()

    def credit(self, name: Digest, owner: Address, amount: int, tenure: int, ticket: int, now: int) -> None:
        """Payments only, once per name."""
        self.grants[name] = PendingShares(owner, now + self.vesting, tenure, ticket, amount)
        self.pending[owner] += amount

    def release(self, name: Digest, now: int) -> None:
        """Mint a vested grant, or strike out one that a conviction cancelled. Raises GrantNotFound, NotVested."""
        grant = self.grants.get(name)
        if grant is None or grant.done:
            raise refuse("GrantNotFound", id=name)
        convicted_at = self.convicted_at(grant.tenure, grant.ticket)
        # Attack: lie in one round and keep the shares of the others.
        cancelled = 0 < convicted_at < grant.vests_at
        if not cancelled and now < grant.vests_at:
            raise refuse("NotVested", id=name, vests_at=grant.vests_at)
        grant.done = True
        self.pending[grant.owner] -= grant.amount
        if not cancelled:
            # Attack: a thief of the key that earned the shares waits until they vest, and takes them.
            self.token.mint(self.payee_of(grant.owner), grant.amount, now)

    @property
    def shares(self) -> Counter[Address]:
        """Vested shares by owner, in wei of shares."""
        return self.token.balances
