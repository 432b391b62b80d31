"""Who owns the shares of a run, and who votes with them (contracts/ModelShares.sol, without what they earn)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from assay.protocol.errors import refuse
from assay.protocol.types import Address, Wei

NOBODY = Address(bytes(20))


class _Trace:
    """What a number was at each second, in wei of shares."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._values: list[int] = []

    def add(self, amount: int, now: int) -> None:
        """Change it by an amount from this second on."""
        value = (self._values[-1] if self._values else 0) + amount
        if self._times and self._times[-1] == now:
            self._values[-1] = value
        else:
            self._times.append(now)
            self._values.append(value)

    def at(self, time: int) -> Wei:
        """What it was at the end of a second."""
        place = bisect_right(self._times, time)
        return Wei(self._values[place - 1] if place else 0)


class Shares:
    """The books of shares; `now` is chain time in seconds. Only what is delegated votes, to oneself too."""

    def __init__(self) -> None:
        self.balances: Counter[Address] = Counter()
        self.delegates: dict[Address, Address] = {}
        self._votes: dict[Address, _Trace] = {}
        self._supply = _Trace()

    def mint(self, owner: Address, amount: int, now: int) -> None:
        """Grants only."""
        self.balances[owner] += amount
        self._supply.add(amount, now)
        self._move(NOBODY, self.delegates.get(owner, NOBODY), amount, now)

    def transfer(self, who: Address, to: Address, amount: int, now: int) -> None:
        """Raises ERC20InvalidReceiver, ERC20InsufficientBalance."""
        if to == NOBODY:
            raise refuse("ERC20InvalidReceiver", receiver=to)
        if self.balances[who] < amount:
            raise refuse("ERC20InsufficientBalance", sender=who, balance=self.balances[who], needed=amount)
        self.balances[who] -= amount
        self.balances[to] += amount
        self._move(self.delegates.get(who, NOBODY), self.delegates.get(to, NOBODY), amount, now)

    def delegate(self, who: Address, to: Address, now: int) -> None:
        """From now on `to` votes with the shares of `who`; the zero address: nobody does."""
        before, self.delegates[who] = self.delegates.get(who, NOBODY), to
        self._move(before, to, self.balances[who], now)

    def past_votes(self, account: Address, time: int) -> Wei:
        """What an account voted with at a second that is over."""
        return self._votes[account].at(time) if account in self._votes else Wei(0)

    def past_supply(self, time: int) -> Wei:
        """How many shares there were at a second that is over."""
        return self._supply.at(time)

    def _move(self, before: Address, after: Address, amount: int, now: int) -> None:
        if before == after or not amount:
            return
        for account, change in ((before, -amount), (after, amount)):
            if account != NOBODY:
                self._votes.setdefault(account, _Trace()).add(change, now)
