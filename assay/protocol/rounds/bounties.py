"""What a conviction gives the drawn accusers, in equal parts (contracts/money/Bounties.sol).

A pot is named after the lock that was taken. An accusation that was recorded before the conviction, and neither lapsed
nor was rejected, enters once its own attestation stands. The pot belongs to the lowest epoch of one that entered.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.errors import refuse
from assay.protocol.rounds.attestations import Attestations
from assay.protocol.rounds.duties import Duties
from assay.protocol.rounds.duty_types import Accusation, AccusationStatus
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.tenures import Tenures
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.rounds.vault import Vault
from assay.protocol.run.run_charter import RunTiming
from assay.protocol.types import Address, Digest, Wei


@dataclass(slots=True)
class Pot:
    """Accusations of the lowest epoch that entered, and how many of them took their part."""

    epoch: int = 0
    entered: int = 0
    taken: int = 0
    closed: bool = False


def pot_lock(lock: Digest) -> Digest:
    """The name of the pot of a lock in the vault."""
    return keccak(abi.encode(["string", "bytes32"], ["assay.pot", lock]))


class Bounties:
    """The books of bounties; `now` is chain time in seconds."""

    def __init__(self, timing: RunTiming, address: Address, vault: Vault, duties: Duties, tenures: Tenures) -> None:
        self.address, self.vault, self.duties, self.tenures = address, vault, duties, tenures
        self.attestations: Attestations = duties.attestations
        self.time = timing.longest_dispute + timing.epoch
        """To enter, after the windows of all who accused before the conviction: games about them may last so long."""
        self.pots: dict[Digest, Pot] = {}
        self.entered: set[Digest] = set()
        self.paid: set[Digest] = set()

    def on_bounty(self, lock_id: Digest, amount: Wei) -> None:
        """Game only: a conviction's bounty, which is in the free balance of these books."""
        self.vault.lock(pot_lock(lock_id), self.address, amount)

    def enter(self, accusation: Digest) -> None:
        """Raises PotClosed, NotRight, AttestationOpen, AlreadyEntered, LaterAccusation."""
        made, lock, convicted_at = self._accused(accusation)
        pot = self.pots.get(lock, Pot())
        if made is None or pot.closed or not self.left(lock):
            raise refuse("PotClosed", lock=lock)
        # Attack: see a conviction, and accuse.
        if made.status not in (AccusationStatus.UPHELD, AccusationStatus.EXCUSED) or made.at >= convicted_at:
            raise refuse("NotRight", accusation=accusation)
        # Attack: accuse everybody with results of one's own invention; some are right by chance. A stop tests nothing.
        is_tested = made.status is AccusationStatus.UPHELD or self.duties.over_since(made.epoch + 1)
        if not is_tested or not self.attestations.window_of(made.by) or self._owner(made) is None:
            raise refuse("AttestationOpen", attestation=made.by)
        if accusation in self.entered:
            raise refuse("AlreadyEntered", accusation=accusation)
        # Attack: a liar that sees itself caught accuses itself, and shares what it loses.
        if pot.entered and made.epoch > pot.epoch:
            raise refuse("LaterAccusation", epoch=made.epoch, lowest=pot.epoch)
        if not pot.entered or made.epoch < pot.epoch:
            pot.epoch, pot.entered = made.epoch, 0
        pot.entered += 1
        self.pots[lock] = pot
        self.entered.add(accusation)

    def close(self, accusation: Digest, epoch: int, now: int) -> None:
        """No accusation enters any more; a pot that none has entered burns. Raises PotClosed, PotOpen."""
        _, lock, convicted_at = self._accused(accusation)
        pot, left = self.pots.setdefault(lock, Pot()), self.left(lock)
        if pot.closed or not left:
            raise refuse("PotClosed", lock=lock)
        is_later = epoch < len(self.duties.epochs) and self.duties.epochs[epoch].start > convicted_at
        # What was accused in the last of these epochs has the next one to open its game.
        over = self.duties.over_since(epoch + 2) if is_later else 0
        # No epoch ends after a stop, and no game opens.
        over = over or self.attestations.tickets.state.stopped_at()
        if not over or now <= over + self.time:
            raise refuse("PotOpen", lock=lock, not_before=over and over + self.time + 1)
        pot.closed = True
        if not pot.entered:
            self.vault.burn(pot_lock(lock), Wei(left))

    def take(self, accusation: Digest) -> int:
        """An accusation's part, which burns where its accuser was convicted since. Raises NoPart, PotOpen."""
        made, lock, _ = self._accused(accusation)
        pot = self.pots.get(lock, Pot())
        if made is None or accusation not in self.entered or accusation in self.paid or made.epoch != pot.epoch:
            raise refuse("NoPart", accusation=accusation)
        if not pot.closed:
            raise refuse("PotOpen", lock=lock)
        self.paid.add(accusation)
        amount = self.left(lock) // (pot.entered - pot.taken)
        pot.taken += 1
        owner = self._owner(made)
        if not amount:
            return 0
        # Attack: be convicted of another lie after one has entered, and be paid all the same.
        if owner is None:
            self.vault.burn(pot_lock(lock), Wei(amount))
        else:
            self.vault.seize(pot_lock(lock), owner, Wei(amount))
        return amount

    def left(self, lock: Digest) -> int:
        """What is in the pot of a lock, in wei."""
        return self.vault.lock_amount(pot_lock(lock))

    # --- inside

    def _accused(self, accusation: Digest) -> tuple[Accusation | None, Digest, int]:
        """The accusation, the lock of the accused, and when it was convicted."""
        made = self.attestations.accusations.get(accusation)
        if made is None:
            return None, ticket_lock(TicketId(0)), 0
        if made.is_work:
            return made, tenure_lock(made.accused), self.tenures.existing(made.accused).convicted_at
        ticket = self.attestations.tickets.tickets.get(TicketId(made.accused))
        return made, ticket_lock(TicketId(made.accused)), ticket.convicted_at if ticket else 0

    def _owner(self, made: Accusation) -> Address | None:
        """Who gets the part of an accusation: nobody whose ticket was convicted."""
        return self.attestations.tickets.payee_of(made.ticket)
