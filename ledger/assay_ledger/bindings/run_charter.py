"""Calls, queries and events of contracts/run/RunCharter.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.run_charter import RUN_TERMS_TYPE, RunCharter, RunModules
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.structs import (
    AdmittedFields,
    DutyTermsFields,
    TicketTermsFields,
    as_round_terms,
    as_run_modules,
)
from assay_ledger.contract import Contract, Query, address


class RunCharterContract(Contract):
    """`contracts/run/RunCharter.sol` at an address."""

    EVENTS = ()

    CALLS = ()

    def book_of(self, kind: ClaimKind) -> Query[Address]:
        """The book in which claims of a kind stand."""
        return self._query("bookOf(uint8)", "(address)", lambda v: address(v[0]), kind)

    def duty_terms(self) -> Query[DutyTermsFields]:
        """The terms of epochs and duties."""
        return self._query(
            "dutyTerms()", "((uint48,uint48,uint48,uint8,uint32,uint32,uint128))", lambda v: DutyTermsFields.of(v[0])
        )

    def lockers(self) -> Query[tuple[Address, ...]]:
        """The contracts that move locks of the vault; at most eight."""
        return self._query("lockers()", "(address[])", lambda v: tuple(address(x) for x in v[0]))

    def program_of(self, root: Digest) -> Query[tuple[bytes, Digest]]:
        """Header and descriptor tree of one of the run's programs."""
        return self._query("programOf(bytes32)", "(bytes,bytes32)", lambda v: (v[0], Digest(v[1])), root)

    def programs(self) -> Query[tuple[AdmittedFields, ...]]:
        """The programs that games are played on."""
        return self._query(
            "programs()", "(((bytes32,bytes32,bytes),uint256)[])", lambda v: tuple(AdmittedFields.of(x) for x in v[0])
        )

    def round_modules(self) -> Query[RunModules]:
        """The contracts of the run."""
        return self._query(
            "roundModules()",
            "((address,address,address,address,address,address,address,address,address,address,address,address,address,address,address,address,address,address))",
            lambda v: as_run_modules(v[0]),
        )

    def round_terms(self) -> Query[RoundTerms]:
        """The terms of tenures, commitments and generations."""
        return self._query(
            "roundTerms()",
            "((uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint48,uint48,uint48,uint48,uint48,uint48,uint48,uint48,uint48,uint48,uint48,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint32,uint32))",
            lambda v: as_round_terms(v[0]),
        )

    def run(self) -> Query[Digest]:
        """The identity of the run: keccak256(abi.encode(terms))."""
        return self._query("run()", "(bytes32)", lambda v: Digest(v[0]))

    def run_terms(self) -> Query[RunCharter]:
        """`runTerms`."""
        return self._query("runTerms()", f"({RUN_TERMS_TYPE})", lambda v: RunCharter.from_tuple(v[0]))

    def ticket_terms(self) -> Query[TicketTermsFields]:
        """The terms of tickets."""
        return self._query("ticketTerms()", "((uint128,uint48,uint32))", lambda v: TicketTermsFields.of(v[0]))
