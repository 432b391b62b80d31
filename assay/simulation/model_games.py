"""Games of a run on the executable model: only their verdicts, which whoever plays knows; no move is made.

The books are told as a game tells them. What a conviction takes burns: who gets how much of it, populations count.
"""

from __future__ import annotations

from collections.abc import Callable

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import Accusation, AccusationStatus
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.types import Digest, Round, Seat
from assay.simulation.model_run import KEEPER, ModelRun


class ModelGames:
    """Verdicts on commitments and attestations, by an accuser where one is recorded, else by a third party."""

    def __init__(self, run: ModelRun) -> None:
        self._run = run

    def convict_seat(self, round_: Round, seat: Seat) -> bool:
        """A commitment is refuted; whether that took a lock. No game opens on what is settled or convicted."""
        run = self._run
        work = run.books.commitments.works[round_, seat]
        is_open = not work.settled and not run.audited.is_convicted(work.tenure)
        if is_open:
            accusations = self._recorded(lambda made: made.against == work.digest)
            self._play_seat(round_, seat, accusations[0] if accusations else ZERO, right=True)
            run.vault.burn(lock := ids.tenure_lock(work.tenure), run.vault.lock_amount(lock))
        self._excuse(lambda made: made.is_work and made.accused == work.tenure)
        return is_open

    def convict_attestation(self, name: Digest) -> bool:
        """An attestation is refuted; whether that took a stake. No game opens once its window or its stake is gone."""
        run, book = self._run, self._run.attestations
        ticket = book.attestations[name].ticket
        is_open = not book.window_of(name) and not run.tickets.tickets[ticket].convicted_at
        if is_open:
            accusations = self._recorded(lambda made: made.against == name)
            self._play_attestation(accusations[0] if accusations else name, right=True)
            run.vault.burn(lock := ticket_lock(ticket), run.vault.lock_amount(lock))
        self._excuse(lambda made: not made.is_work and made.accused == ticket)
        return is_open

    def lose_all(self, accuser: TicketId) -> None:
        """A ticket loses the game of every accusation that it made."""
        book = self._run.attestations
        for name in self._recorded(lambda made: made.ticket == accuser):
            made = book.accusations[name]
            if made.is_work:
                by = book.attestations[made.by]
                self._play_seat(Round(by.round), by.seat, name, right=False)
            else:
                self._play_attestation(name, right=False)

    # --- inside

    def _play_seat(self, round_: Round, seat: Seat, accusation: Digest, right: bool) -> None:
        run, book = self._run, self._run.attestations
        if accusation != ZERO:
            made = book.accusations[accusation]
            book.on_tried(accusation, made.against, run.tickets.owner_of(made.ticket))
        run.books.commitments.on_opened(round_, seat)
        run.books.commitments.on_closed(round_, seat, right, run.now)
        if accusation != ZERO:
            book.on_judged(accusation, right, run.now)

    def _play_attestation(self, name: Digest, right: bool) -> None:
        """By the accuser where `name` is an accusation, by anybody where it is the attestation."""
        run, book = self._run, self._run.attestations
        made, attestation = book.accusations.get(name), book.named(name)
        book.prepare(attestation, book.findings[attestation], 0)
        book.on_opened(name, 0, KEEPER if made is None else run.tickets.owner_of(made.ticket))
        book.on_closed(name, right, run.now)

    def _excuse(self, which: Callable[[Accusation], bool]) -> None:
        """Accusations of who is convicted end without a game, and without a fine."""
        for name in self._recorded(which):
            self._run.attestations.lapse(KEEPER, name, self._run.now)

    def _recorded(self, which: Callable[[Accusation], bool]) -> list[Digest]:
        made = self._run.attestations.accusations.items()
        return [name for name, a in made if a.status is AccusationStatus.RECORDED and which(a)]
