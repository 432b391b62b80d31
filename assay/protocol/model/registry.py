"""Verifiers and whistleblowers: keys, and stakes by round (Registry.sol)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from assay.protocol.model import ids
from assay.protocol.model.books import RunBooks
from assay.protocol.model.errors import not_before, refuse
from assay.protocol.model.types import Attester
from assay.protocol.types import Address, Role, Round, Wei

Checkpoints = list[tuple[int, int]]
"""Checkpoints (round from which it counts, value), ascending."""


def value_at(trace: Checkpoints, round_: int) -> int:
    """The value that counts in a round; 0 before the first checkpoint."""
    position = bisect_right(trace, round_, key=lambda point: point[0])
    return trace[position - 1][1] if position else 0


def push(trace: Checkpoints, round_: int, change: int) -> None:
    """Change the latest value from a round on."""
    value = (trace[-1][1] if trace else 0) + change
    if trace and trace[-1][0] == round_:
        trace.pop()
    trace.append((round_, value))


class Registry:
    """Members with a drawing key and a bond; every change counts from the second T0 after it."""

    def __init__(self, ledger: RunBooks) -> None:
        self.ledger = ledger
        self.attesters: dict[Address, Attester] = {}
        self.stakes: dict[Address, Checkpoints] = {}
        self.totals: dict[Role, Checkpoints] = {role: [] for role in Role}
        self.members: dict[Role, int] = dict.fromkeys(Role, 0)

    def register(
        self, who: Address, role: Role, public_key: bytes, stake: Wei, possession: Callable[[bytes, Address], bool]
    ) -> None:
        """`possession(key, owner)` says whether the proof shown is good.

        Raises WrongRole, AlreadyRegistered, StakeBelowBond, KeyTaken, BadPossession, InsufficientFree.
        """
        if role is Role.NONE:
            raise refuse("WrongRole", who=who, role=role)
        if who in self.attesters:
            raise refuse("AlreadyRegistered", who=who)
        bond = self.ledger.charter.economics.verifier_bond
        if stake < bond:
            raise refuse("StakeBelowBond", stake=stake, bond=bond)
        if any(attester.public_key == public_key for attester in self.attesters.values()):
            raise refuse("KeyTaken", key=public_key)
        if not possession(public_key, who):
            raise refuse("BadPossession", who=who)
        self.ledger.vault.lock(ids.attester_lock(who), who, stake)
        self.attesters[who] = Attester(role, stake, public_key)
        self.members[role] += 1
        self._change(who, role, self._counts_from(), stake)

    def retire(self, who: Address) -> None:
        """Raises NotRegistered, AlreadyRetired."""
        attester = self.attesters.get(who)
        if attester is None:
            raise refuse("NotRegistered", who=who)
        if attester.retires_with is not None:
            raise refuse("AlreadyRetired", retires_with=attester.retires_with)
        self._retire(who, attester)

    def reclaim(self, who: Address, now: int) -> int:
        """The amount released. Raises NotRegistered, GamesOpen, NotRetired, TooEarly."""
        attester = self.attesters.get(who)
        if attester is None or not attester.stake:
            raise refuse("NotRegistered", who=who)
        if attester.open_games:
            raise refuse("GamesOpen", count=attester.open_games)
        rounds = self.ledger.rounds
        count = len(rounds.opened_at)
        serves = attester.retires_with is None or attester.retires_with > count
        if serves and not rounds.is_over(now):
            raise refuse("NotRetired", round=attester.retires_with)
        end = count if attester.retires_with is None else min(attester.retires_with, count)
        if end:
            not_before(now, rounds.times(Round(end - 1)).challenge_until + 1)
        if attester.retires_with is None:
            self._retire(who, attester)
        attester.stake = Wei(0)
        self.members[attester.role] -= 1
        left = self.ledger.vault.lock_amount(ids.attester_lock(who))
        if left:
            self.ledger.vault.release(ids.attester_lock(who))
        return left

    def stake_at(self, who: Address, round_: Round) -> int:
        """Stake that counts in a round."""
        return value_at(self.stakes.get(who, []), round_)

    def total_at(self, role: Role, round_: Round) -> int:
        """Total stake of a role that counts in a round."""
        return value_at(self.totals[role], round_)

    def convict(self, who: Address, now: int) -> None:
        """The first conviction's consequences beside the bond: never drawn again."""
        attester = self.attesters[who]
        attester.convicted_at = now
        if attester.retires_with is None:
            self._retire(who, attester)

    def _retire(self, who: Address, attester: Attester) -> None:
        attester.retires_with = self._counts_from()
        self._change(who, attester.role, attester.retires_with, -attester.stake)

    def _counts_from(self) -> int:
        # Before the first round opens no seed can be known, so founders count at once.
        count = len(self.ledger.rounds.opened_at)
        return count + 1 if count else 0

    def _change(self, who: Address, role: Role, round_: int, change: int) -> None:
        push(self.stakes.setdefault(who, []), round_, change)
        push(self.totals[role], round_, change)
