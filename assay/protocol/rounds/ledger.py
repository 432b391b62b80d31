"""The books of a run's rounds, wired."""

from __future__ import annotations

from assay.protocol.rounds.books import BeaconBook, EpochEnds, Rights, TicketBook
from assay.protocol.rounds.commitments import Commitments
from assay.protocol.rounds.generations import Generations
from assay.protocol.rounds.grouped_generations import GroupedGenerations
from assay.protocol.rounds.tenures import Tenures
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.vault import Vault


class RoundLedger:
    """Tenures, commitments and generations of one run of at most 64 seats over a vault, with their neighbours."""

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
        self.tenures = Tenures(self)
        self.commitments = Commitments(self)
        self.generations = Generations(self)


class GroupedLedger:
    """The same of a run of more seats, which are merged by groups."""

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
        self.tenures = Tenures(self)
        self.commitments = Commitments(self)
        self.generations = GroupedGenerations(self)
