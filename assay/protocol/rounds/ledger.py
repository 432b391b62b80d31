"""The books of a run's rounds, wired."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from assay.protocol.rounds.books import BeaconBook, EpochEnds, Rights, TicketBook
from assay.protocol.rounds.commitments import Commitments
from assay.protocol.rounds.generations import Generations
from assay.protocol.rounds.grouped_generations import GroupedGenerations
from assay.protocol.rounds.tenures import Tenures
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.vault import Vault


class SunsetBook(Protocol):
    """What rounds ask of the run's governor."""

    is_sunset: bool


G = TypeVar("G", bound=Generations | GroupedGenerations)


class _Ledger(ABC, Generic[G]):
    """Tenures, commitments and generations of one run over a vault, with their neighbours."""

    def __init__(
        self,
        terms: RoundTerms,
        vault: Vault,
        beacon: BeaconBook,
        tickets: TicketBook,
        rights: Rights,
        audits: EpochEnds,
    ) -> None:
        self.terms, self.vault = terms, vault
        self.beacon, self.tickets, self.rights, self.audits = beacon, tickets, rights, audits
        self.governor: SunsetBook | None = None
        """Set where the charter names governance."""
        self.tenures = Tenures(self)
        self.commitments = Commitments(self)
        self.generations = self._made()

    def is_sunset(self) -> bool:
        """See RoundBooks."""
        return self.governor is not None and self.governor.is_sunset

    @abstractmethod
    def _made(self) -> G:
        """The generations of this kind of run."""


class RoundLedger(_Ledger[Generations]):
    """Of at most 64 seats."""

    def _made(self) -> Generations:
        return Generations(self)


class GroupedLedger(_Ledger[GroupedGenerations]):
    """Of more seats, which are merged by groups."""

    def _made(self) -> GroupedGenerations:
        return GroupedGenerations(self)
