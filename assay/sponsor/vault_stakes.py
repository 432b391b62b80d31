"""What somebody has at stake in a run's vault, as the run's contracts have it now.

A node that has removed old blocks finds no old event, without a word, and of the newest block it has everything. An
actor that believed its events would bring its whole stake again at every start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.protocol.errors import UnavailableError
from assay.protocol.game.book import game_lock
from assay.protocol.rounds.ids import fee_lock, tenure_lock
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.types import Address, Digest

if TYPE_CHECKING:
    from assay_ledger.rounds.run import Run


@dataclass(frozen=True, slots=True)
class VaultStake:
    """What somebody has in a run's vault, in wei: free, and in locks of its own, with the names of these locks."""

    free: int
    locked: int
    names: frozenset[Digest] = field(default=frozenset(), compare=False)

    @property
    def total(self) -> int:
        """Both."""
        return self.free + self.locked


def stake_in_vault(run: Run, who: Address) -> VaultStake:
    """What an account has in the vault of a run, by its contracts: free, and locked for tickets, seats and games.

    A view call for each of these that the run ever had. What is locked for other things `with_unlisted` adds.
    """
    ask, locked, names = run.chain.ask, 0, set[Digest]()
    for name in _listed(run, who):
        owner, amount = ask(run.vault.lock_of(name))
        if owner == who:
            locked += amount
            names.add(name)
    # Last: what is released meanwhile is counted twice, and never not at all.
    return VaultStake(ask(run.vault.free(who)), locked, frozenset(names))


def with_unlisted(run: Run, who: Address, has: VaultStake) -> VaultStake | None:
    """The same with what is locked for challenges that wait and for roots that it backs: only events tell their names.

    None where the node does not find the events of the locks that the contracts list: what else it leaves out nobody
    knows.
    """
    from assay_ledger.bindings.vault import Locked

    try:
        made = run.chain.events(Locked.search(run.vault.address, owner=who), run.first_block)
    except UnavailableError:
        return None
    told = {log.event.id for log in made}
    if not has.names <= told:
        return None
    locks = {name: run.chain.ask(run.vault.lock_of(name)) for name in sorted(told - has.names)}
    own = {name: amount for name, (owner, amount) in locks.items() if owner == who}
    return VaultStake(has.free, has.locked + sum(own.values()), has.names | own.keys())


def _listed(run: Run, who: Address) -> Iterator[Digest]:
    """The locks of an account's seats, and those of all tickets and games."""
    ask = run.chain.ask
    yield from (ticket_lock(TicketId(number)) for number in range(1, _newest_ticket(run) + 1))
    for tenure in range(1, ask(run.tenures.tenures()) + 1):
        if ask(run.tenures.holder_of(tenure)) == who:
            yield from (tenure_lock(tenure), fee_lock(tenure))
    yield from (game_lock(game) for game in range(1, ask(run.game.games()) + 1))


def _newest_ticket(run: Run) -> int:
    """The number of the newest ticket, which no contract tells: 0 where there was none."""

    ask = run.chain.ask

    def is_known(number: int) -> bool:
        # Whose stake was taken back has left its payee; one that was convicted is not taken back.
        named = ask(run.tickets.ticket_of(TicketId(number))).owner, ask(run.tickets.payee_of(TicketId(number)))
        return any(map(any, named))

    low, high = 0, 1
    while is_known(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_known(middle) else (low, middle)
    return low
