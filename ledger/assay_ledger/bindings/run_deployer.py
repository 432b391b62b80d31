"""Calls, queries and events of contracts/run/RunDeployer.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.run.run_charter import RUN_TERMS_TYPE, RunCharter
from assay.protocol.types import Address, Digest
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Created(Event):
    """A contract of the run was created."""

    ABI: ClassVar = "Created(uint256 indexed index, address at)"
    index: int
    at: Address

    @classmethod
    def _of(cls, v: Decoded) -> Created:
        return cls(v[0], address(v[1]))


class RunDeployerContract(Contract):
    """`contracts/run/RunDeployer.sol` at an address."""

    EVENTS = (Created,)

    CALLS = (
        "create(bytes)",
        f"createCharter(bytes,{RUN_TERMS_TYPE})",
    )

    def count(self) -> Query[int]:
        """The charter (0), and the modules in the order of `RunModules`."""
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

    def create_charter(self, code: bytes, terms: RunCharter) -> Call:
        """Creates the charter."""
        return self._call(f"createCharter(bytes,{RUN_TERMS_TYPE})", code, terms)

    def created(self) -> Query[int]:
        """How many contracts exist; the next one has this index."""
        return self._query("created()", "(uint256)", lambda v: v[0])

    def is_governed(self) -> Query[bool]:
        """Whether the charter names governance: a run of any other has no governor."""
        return self._query("isGoverned()", "(bool)", lambda v: v[0])

    def run(self) -> Query[Digest]:
        """`run`."""
        return self._query("run()", "(bytes32)", lambda v: Digest(v[0]))
