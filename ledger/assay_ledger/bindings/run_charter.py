"""Calls, queries and events of contracts/run/RunCharter.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.run_charter import RUN_TERMS_TYPE, RunCharter, RunModules
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.bindings.structs import as_round_terms
from assay_ledger.contract import Contract, Decoded, Query, address


@dataclass(frozen=True, slots=True)
class AdmittedFields:
    """The struct `Admitted`, as contracts give it."""

    program: ProgramFields
    steps: int

    @staticmethod
    def of(v: Decoded) -> AdmittedFields:
        """Of its fields in order."""
        return AdmittedFields(ProgramFields.of(v[0]), v[1])


@dataclass(frozen=True, slots=True)
class DutyTermsFields:
    """The struct `DutyTerms`, as contracts give it."""

    start: int
    length: int
    delay: int
    capacity: int
    audit_ppm: int
    reaudit_ppm: int
    wage: Wei

    @staticmethod
    def of(v: Decoded) -> DutyTermsFields:
        """Of its fields in order."""
        return DutyTermsFields(v[0], v[1], v[2], v[3], v[4], v[5], Wei(v[6]))


@dataclass(frozen=True, slots=True)
class ProgramFields:
    """The struct `Program`, as contracts give it."""

    root: Digest
    tree: Digest
    header: bytes

    @staticmethod
    def of(v: Decoded) -> ProgramFields:
        """Of its fields in order."""
        return ProgramFields(Digest(v[0]), Digest(v[1]), v[2])


def as_run_modules(v: Decoded) -> RunModules:
    """A `RunModules` as a contract gives it."""
    return RunModules(
        address(v[0]),
        address(v[1]),
        address(v[2]),
        address(v[3]),
        address(v[4]),
        address(v[5]),
        address(v[6]),
        address(v[7]),
        address(v[8]),
        address(v[9]),
        address(v[10]),
        address(v[11]),
        address(v[12]),
        address(v[13]),
        address(v[14]),
        address(v[15]),
        address(v[16]),
        address(v[17]),
    )


@dataclass(frozen=True, slots=True)
class TicketTermsFields:
    """The struct `TicketTerms`, as contracts give it."""

    bond: Wei
    seasoning: int
    shifts: int

    @staticmethod
    def of(v: Decoded) -> TicketTermsFields:
        """Of its fields in order."""
        return TicketTermsFields(Wei(v[0]), v[1], v[2])


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
            "((uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint32,uint48,uint48,uint48,uint48,uint48,uint48,uint48,uint48,uint48,uint48,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint32,uint32))",
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
