"""Calls, queries and events of contracts/ModelShares.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import Address, Digest, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Checkpoint208Fields:
    """The struct `Checkpoint208`, as contracts give it."""

    key: int
    value: Wei

    @staticmethod
    def of(v: Decoded) -> Checkpoint208Fields:
        """Of its fields in order."""
        return Checkpoint208Fields(v[0], Wei(v[1]))


@dataclass(frozen=True, slots=True)
class Approval(Event):
    """`Approval` of ModelShares."""

    ABI: ClassVar = "Approval(address indexed owner, address indexed spender, uint256 value)"
    owner: Address
    spender: Address
    value: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Approval:
        return cls(address(v[0]), address(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class DelegateChanged(Event):
    """`DelegateChanged` of ModelShares."""

    ABI: ClassVar = (
        "DelegateChanged(address indexed delegator, address indexed fromDelegate, address indexed toDelegate)"
    )
    delegator: Address
    from_delegate: Address
    to_delegate: Address

    @classmethod
    def _of(cls, v: Decoded) -> DelegateChanged:
        return cls(address(v[0]), address(v[1]), address(v[2]))


@dataclass(frozen=True, slots=True)
class DelegateVotesChanged(Event):
    """`DelegateVotesChanged` of ModelShares."""

    ABI: ClassVar = "DelegateVotesChanged(address indexed delegate, uint256 previousVotes, uint256 newVotes)"
    delegate: Address
    previous_votes: int
    new_votes: int

    @classmethod
    def _of(cls, v: Decoded) -> DelegateVotesChanged:
        return cls(address(v[0]), v[1], v[2])


@dataclass(frozen=True, slots=True)
class EIP712DomainChanged(Event):
    """`EIP712DomainChanged` of ModelShares."""

    ABI: ClassVar = "EIP712DomainChanged()"

    @classmethod
    def _of(cls, v: Decoded) -> EIP712DomainChanged:
        return cls()


@dataclass(frozen=True, slots=True)
class Transfer(Event):
    """`Transfer` of ModelShares."""

    ABI: ClassVar = "Transfer(address indexed from, address indexed to, uint256 value)"
    from_: Address
    to: Address
    value: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Transfer:
        return cls(address(v[0]), address(v[1]), Wei(v[2]))


class ModelSharesContract(Contract):
    """`contracts/ModelShares.sol` at an address."""

    EVENTS = (
        Approval,
        DelegateChanged,
        DelegateVotesChanged,
        EIP712DomainChanged,
        Transfer,
    )

    CALLS = (
        "approve(address,uint256)",
        "delegate(address)",
        "delegateBySig(address,uint256,uint256,uint8,bytes32,bytes32)",
        "mint(address,uint256)",
        "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
        "transfer(address,uint256)",
        "transferFrom(address,address,uint256)",
    )

    def clock_mode(self) -> Query[str]:
        """`CLOCK_MODE`."""
        return self._query("CLOCK_MODE()", "(string)", lambda v: v[0])

    def domain_separator(self) -> Query[Digest]:
        """`DOMAIN_SEPARATOR`."""
        return self._query("DOMAIN_SEPARATOR()", "(bytes32)", lambda v: Digest(v[0]))

    def allowance(self, owner: Address, spender: Address) -> Query[Wei]:
        """`allowance`."""
        return self._query("allowance(address,address)", "(uint256)", lambda v: Wei(v[0]), owner, spender)

    def approve(self, spender: Address, value: Wei) -> Call:
        """`approve`."""
        return self._call("approve(address,uint256)", spender, value)

    def balance_of(self, account: Address) -> Query[Wei]:
        """`balanceOf`."""
        return self._query("balanceOf(address)", "(uint256)", lambda v: Wei(v[0]), account)

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def checkpoints(self, account: Address, pos: int) -> Query[Checkpoint208Fields]:
        """`checkpoints`."""
        return self._query(
            "checkpoints(address,uint32)", "((uint48,uint208))", lambda v: Checkpoint208Fields.of(v[0]), account, pos
        )

    def clock(self) -> Query[int]:
        """Votes are counted by chain time (ERC-6372)."""
        return self._query("clock()", "(uint48)", lambda v: v[0])

    def decimals(self) -> Query[int]:
        """`decimals`."""
        return self._query("decimals()", "(uint8)", lambda v: v[0])

    def delegate(self, delegatee: Address) -> Call:
        """`delegate`."""
        return self._call("delegate(address)", delegatee)

    def delegate_by_sig(self, delegatee: Address, nonce: int, expiry: int, v: int, r: Digest, s: Digest) -> Call:
        """`delegateBySig`."""
        return self._call(
            "delegateBySig(address,uint256,uint256,uint8,bytes32,bytes32)", delegatee, nonce, expiry, v, r, s
        )

    def delegates(self, account: Address) -> Query[Address]:
        """`delegates`."""
        return self._query("delegates(address)", "(address)", lambda v: address(v[0]), account)

    def eip712_domain(self) -> Query[tuple[bytes, str, str, int, Address, Digest, tuple[int, ...]]]:
        """`eip712Domain`."""
        return self._query(
            "eip712Domain()",
            "(bytes1,string,string,uint256,address,bytes32,uint256[])",
            lambda v: (v[0], v[1], v[2], v[3], address(v[4]), Digest(v[5]), tuple(v[6])),
        )

    def get_past_total_supply(self, timepoint: int) -> Query[Wei]:
        """`getPastTotalSupply`."""
        return self._query("getPastTotalSupply(uint256)", "(uint256)", lambda v: Wei(v[0]), timepoint)

    def get_past_votes(self, account: Address, timepoint: int) -> Query[Wei]:
        """`getPastVotes`."""
        return self._query("getPastVotes(address,uint256)", "(uint256)", lambda v: Wei(v[0]), account, timepoint)

    def get_votes(self, account: Address) -> Query[Wei]:
        """`getVotes`."""
        return self._query("getVotes(address)", "(uint256)", lambda v: Wei(v[0]), account)

    def mint(self, owner: Address, amount: Wei) -> Call:
        """Grants only: turns pending shares into tokens."""
        return self._call("mint(address,uint256)", owner, amount)

    def name(self) -> Query[str]:
        """`name`."""
        return self._query("name()", "(string)", lambda v: v[0])

    def nonces(self, owner: Address) -> Query[int]:
        """`nonces`."""
        return self._query("nonces(address)", "(uint256)", lambda v: v[0], owner)

    def num_checkpoints(self, account: Address) -> Query[int]:
        """`numCheckpoints`."""
        return self._query("numCheckpoints(address)", "(uint32)", lambda v: v[0], account)

    def permit(self, owner: Address, spender: Address, value: Wei, deadline: int, v: int, r: Digest, s: Digest) -> Call:
        """`permit`."""
        return self._call(
            "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", owner, spender, value, deadline, v, r, s
        )

    def symbol(self) -> Query[str]:
        """`symbol`."""
        return self._query("symbol()", "(string)", lambda v: v[0])

    def total_supply(self) -> Query[Wei]:
        """`totalSupply`."""
        return self._query("totalSupply()", "(uint256)", lambda v: Wei(v[0]))

    def transfer(self, to: Address, value: Wei) -> Call:
        """`transfer`."""
        return self._call("transfer(address,uint256)", to, value)

    def transfer_from(self, from_: Address, to: Address, value: Wei) -> Call:
        """`transferFrom`."""
        return self._call("transferFrom(address,address,uint256)", from_, to, value)
