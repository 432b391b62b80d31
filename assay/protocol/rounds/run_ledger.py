"""All books of a run, wired: stakes, rounds, audits, money."""

from __future__ import annotations

from assay.protocol.rounds.audited_books import AuditedBooks
from assay.protocol.rounds.books import BeaconBook
from assay.protocol.rounds.bounties import Bounties
from assay.protocol.rounds.clock import commit_until
from assay.protocol.rounds.duties import Duties
from assay.protocol.rounds.escrow import Escrow
from assay.protocol.rounds.governor import Governor
from assay.protocol.rounds.grants import Grants
from assay.protocol.rounds.ledger import GroupedLedger, RoundLedger
from assay.protocol.rounds.payments import Payments
from assay.protocol.rounds.run_terms import duty_terms, round_terms, ticket_terms
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.rounds.vault import Vault
from assay.protocol.run.run_charter import RunCharter, RunModules
from assay.protocol.types import Round


class RunLedger:
    """The books of one run; chain time, in seconds, is an argument of every method that depends on it."""

    def __init__(self, charter: RunCharter, modules: RunModules, beacon: BeaconBook) -> None:
        self.charter = charter
        self.vault = Vault(charter.timing.exit)
        self.tickets = Tickets(self.vault, self, ticket_terms(charter))
        self.escrow = Escrow(charter, modules.escrow, self.vault, self.tickets, self)
        self.tickets.state = self.escrow
        ledger = RoundLedger if charter.by_seats else GroupedLedger
        self.rounds: RoundLedger | GroupedLedger = ledger(
            round_terms(charter), self.vault, beacon, self.tickets, self.escrow, self
        )
        self.escrow.rounds = _Launched(self.rounds)
        self.duties = Duties(self.tickets, beacon, AuditedBooks(self.rounds), duty_terms(charter))
        self.grants = Grants(charter.timing.vesting, self._convicted_at, self.vault.payee_of)
        self.payments = Payments(self.escrow, self.rounds, self.duties, self.grants)
        self.governor: Governor | None = None
        if charter.governance.is_named:
            self.governor = Governor(charter, modules.governor, self.grants.token, self.escrow, self._is_final)
            self.escrow.governor = self.rounds.governor = self.governor
        self.bounties = Bounties(charter.timing, modules.bounties, self.vault, self.duties, self.rounds.tenures)

    # --- what tickets and the escrow ask of audits

    def calls_at(self, shift: int, time: int) -> int:
        """See Calls."""
        return self.duties.calls_at(shift, time)

    def newest(self) -> tuple[int, int]:
        """See Calls."""
        return self.duties.newest()

    def over_since(self, epoch: int) -> int:
        """See Calls."""
        return self.duties.over_since(epoch)

    def over_after(self, time: int) -> int:
        """See EpochEnds."""
        return self.duties.over_after(time)

    @property
    def last_epoch(self) -> int:
        """See EscrowedAudits."""
        return self.duties.last_epoch

    def unpaid_findings(self) -> int:
        """See EscrowedAudits."""
        return len(self.duties.attestations.attestations) - len(self.payments.findings)

    def _is_final(self, generation: int) -> bool:
        return self.rounds.generations.status_of(generation) is GenerationStatus.FINAL

    def _convicted_at(self, tenure: int, ticket: int) -> int:
        if tenure:
            return self.rounds.tenures.existing(tenure).convicted_at
        held = self.tickets.tickets.get(TicketId(ticket))
        return held.convicted_at if held else 0


class _Launched:
    """See LaunchedRounds."""

    def __init__(self, rounds: RoundLedger | GroupedLedger) -> None:
        self._rounds = rounds

    def begin(self, now: int) -> None:
        self._rounds.generations.begin(now)

    def opened(self) -> int:
        return len(self._rounds.commitments.rounds)

    def opened_at(self) -> int:
        return self._rounds.commitments.rounds[-1].t0

    def commit_until(self, round_: Round) -> int:
        return commit_until(self._rounds.terms, self._rounds.commitments.round_of(round_))

    def seated_at(self, round_: Round) -> int:
        return self._rounds.tenures.seated_at(round_)

    def is_over(self, now: int) -> bool:
        return self._rounds.commitments.is_over(now)

    def final_at(self) -> int:
        return self._rounds.generations.final_at

    def is_decided(self) -> bool:
        books = self._rounds.generations
        if books.status_of(len(self._rounds.commitments.rounds)) is GenerationStatus.OPEN:
            return False
        return books.status_of(books.newest()) is GenerationStatus.FINAL
