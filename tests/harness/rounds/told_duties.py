"""Audits on the stage whose contracts' events are folded as an index folds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any

from assay.amounts import TEST_MONEY
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Address, Round, Seat
from assay_ledger.rounds.facts import BeaconTimes, RunFacts
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState, WorkRecord
from assay_ledger.rounds.told_audits import ToldDuties
from tests.harness.rounds.duties import DutyStage
from tests.harness.rounds.samples import TERMS as ROUND_TERMS
from tests.harness.rounds.told_world import TRANSACTION, events_of

NAMES = {"tickets": "Tickets", "duties": "Duties", "attestations": "Attestations"}


class ToldDutyStage(DutyStage):
    """The same stage; `told` is what an index has read of tickets and audits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        duties, tickets = self.duties.terms, self.tickets.terms
        terms, beacon = (ROUND_TERMS, duties, tickets), BeaconTimes(30, 30)
        facts = RunFacts(1, Address(bytes(20)), ROUND_TERMS.run, *terms, beacon, TEST_MONEY)
        self.told = RunState.of(facts)
        books, rounds = self.told.books, copy(self.rounds)
        # Commitments and tenures are the stage's; what freezes or suspends a tenure is counted apart.
        rounds.accusations, rounds.suspensions = Counter(), Counter()
        books.duties = ToldDuties(books.registry, rounds, rounds, duties)
        self.counted = rounds

    def commit(self, round_: int, seat: int, work: SeatWork | None = None) -> None:
        """See DutyStage."""
        super().commit(round_, seat, work)
        tenure, made = self.rounds.works[round_, seat]
        digest = self.rounds.digest_of(round_, Seat(seat), tenure, made)
        record = WorkRecord(Round(round_), Seat(seat), tenure, digest, made, False, self.now, TRANSACTION)
        self.told.works[Round(round_), Seat(seat)] = record

    def both(self, model: Callable[[], Any], name: str, function: str, *args: Any, caller: bytes | str) -> Any:
        """See ModelAndContracts."""
        answer = super().both(model, name, function, *args, caller=caller)
        assert self.evm is not None
        for event in events_of(self.evm, {NAMES[k]: found for k, found in self.contracts.items() if k in NAMES}):
            fold(self.told, event, self.now, TRANSACTION)
        return answer

    def compare(self) -> None:
        """Contracts, model, and what the events told are the same."""
        super().compare()
        told, duties = self.told.books.duties, self.duties
        assert self.told.books.registry.tickets == self.tickets.tickets
        assert self.told.books.registry.left == self.tickets.left
        assert self.told.books.registry.debts == self.tickets.debts
        assert told.epochs == duties.epochs
        assert told.last_epoch == duties.last_epoch
        assert told.answers == duties.answers
        assert told.attestations.attestations == duties.attestations.attestations
        assert told.attestations.findings == duties.attestations.findings
        assert told.attestations.accusations == duties.attestations.accusations
        assert told.attestations.against == duties.attestations.against
        assert told.attestations.doubted == duties.attestations.doubted
        assert told.attestations.claims == duties.attestations.claims
        # A forfeit is told by its ticket's conviction, and a lapsed accusation by its own event too.
        assert {name for name in duties._fined if isinstance(name, bytes)} == {
            name for name in told._fined if name not in told.attestations.accusations
        }
        assert (self.counted.accusations, self.counted.suspensions) == (
            self.rounds.accusations,
            self.rounds.suspensions,
        )
        for ticket in duties.tickets.tickets:
            for number in range(duties.number + 1):
                assert told._is_called(ticket, told.epochs[number], self.now) == duties._is_called(
                    ticket, duties.epochs[number], self.now
                )
