"""Calls, queries and events of contracts/run/AnswerDeployer.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.run.answers import AnswerTerms
from assay.protocol.types import Address, Digest
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class CreatedBeside(Event):
    """A contract was created."""

    ABI: ClassVar = "CreatedBeside(uint256 indexed index, address at)"
    index: int
    at: Address

    @classmethod
    def _of(cls, v: Decoded) -> CreatedBeside:
        return cls(v[0], address(v[1]))


class AnswerDeployerContract(Contract):
    """`contracts/run/AnswerDeployer.sol` at an address."""

    EVENTS = (CreatedBeside,)

    CALLS = (
        "create(bytes)",
        "createCharter(bytes,((bytes32,bytes32,bytes),bytes32,uint32,uint32,uint128))",
    )

    def count(self) -> Query[int]:
        """The charter (0), and the modules in the order of `AnswerModules`."""
        return self._query("COUNT()", "(uint256)", lambda v: v[0])

    def address_of(self, index: int) -> Query[Address]:
        """Where the contract of an index is, or will be: keccak256(rlp([this, index + 1]))."""
        return self._query("addressOf(uint256)", "(address)", lambda v: address(v[0]), index)

    def arbiter(self) -> Query[Address]:
        """`arbiter`."""
        return self._query("arbiter()", "(address)", lambda v: address(v[0]))

    def create(self, code: bytes) -> Call:
        """Creates the next module."""
        return self._call("create(bytes)", code)

    def create_charter(self, code: bytes, terms: AnswerTerms) -> Call:
        """Creates the charter."""
        return self._call("createCharter(bytes,((bytes32,bytes32,bytes),bytes32,uint32,uint32,uint128))", code, terms)

    def created(self) -> Query[int]:
        """How many contracts exist; the next one has this index."""
        return self._query("created()", "(uint256)", lambda v: v[0])

    def run_charter(self) -> Query[Address]:
        """`runCharter`."""
        return self._query("runCharter()", "(address)", lambda v: address(v[0]))

    def terms(self) -> Query[Digest]:
        """`terms`."""
        return self._query("terms()", "(bytes32)", lambda v: Digest(v[0]))
