"""Calls, queries and events of contracts/money/Gateways.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.payments.gateway_books import GatewayBond
from assay.protocol.run.answers import SaidAnswer
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.bindings.structs import ClaimViewFields
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


def as_gateway_bond(v: Decoded) -> GatewayBond:
    """A `GatewayBond` as a contract gives it."""
    return GatewayBond(v[0], v[1], v[2], v[3])


def as_said_answer(v: Decoded) -> SaidAnswer:
    """A `SaidAnswer` as a contract gives it."""
    return SaidAnswer(Digest(v[0]), Digest(v[1]), tuple(v[2]), v[3], v[4], v[5], v[6], v[7], tuple(v[8]))


@dataclass(frozen=True, slots=True)
class AnswerAccused(Event):
    """A statement was presented: one token of it is a claim, on which whoever committed to a challenge opens a game."""

    ABI: ClassVar = (
        "AnswerAccused(bytes32 indexed claim, address indexed gateway, uint256 place, bytes32 x, bytes32 y, "
        "(bytes32,bytes32,uint32[],uint64,uint32,uint32,uint32,uint32,uint32[]) said)"
    )
    claim: Digest
    gateway: Address
    place: int
    x: Digest
    y: Digest
    said: SaidAnswer

    @classmethod
    def _of(cls, v: Decoded) -> AnswerAccused:
        return cls(Digest(v[0]), address(v[1]), v[2], Digest(v[3]), Digest(v[4]), as_said_answer(v[5]))


@dataclass(frozen=True, slots=True)
class AnswerRefuted(Event):
    """A gateway lost a game on a statement, and its bond."""

    ABI: ClassVar = "AnswerRefuted(address indexed gateway, bytes32 indexed claim)"
    gateway: Address
    claim: Digest

    @classmethod
    def _of(cls, v: Decoded) -> AnswerRefuted:
        return cls(address(v[0]), Digest(v[1]))


@dataclass(frozen=True, slots=True)
class GatewayBonded(Event):
    """A gateway bonded itself."""

    ABI: ClassVar = "GatewayBonded(address indexed gateway, uint256 amount)"
    gateway: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> GatewayBonded:
        return cls(address(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class GatewayUnbonded(Event):
    """A gateway took its bond back."""

    ABI: ClassVar = "GatewayUnbonded(address indexed gateway, uint256 amount)"
    gateway: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> GatewayUnbonded:
        return cls(address(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class ModelPledged(Event):
    """A gateway pledged itself: until then its statements of the model are claims."""

    ABI: ClassVar = "ModelPledged(address indexed gateway, bytes32 indexed model, uint256 until)"
    gateway: Address
    model: Digest
    until: int

    @classmethod
    def _of(cls, v: Decoded) -> ModelPledged:
        return cls(address(v[0]), Digest(v[1]), v[2])


class GatewaysContract(Contract):
    """`contracts/money/Gateways.sol` at an address."""

    EVENTS = (
        AnswerAccused,
        AnswerRefuted,
        GatewayBonded,
        GatewayUnbonded,
        ModelPledged,
    )

    CALLS = (
        "accuse((bytes32,bytes32,uint32[],uint64,uint32,uint32,uint32,uint32,uint32[]),uint32,bytes)",
        "bond()",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "pledge(bytes32,uint48)",
        "unbond()",
    )

    def answer_type(self) -> Query[Digest]:
        """`ANSWER_TYPE`."""
        return self._query("ANSWER_TYPE()", "(bytes32)", lambda v: Digest(v[0]))

    def domain_type(self) -> Query[Digest]:
        """`DOMAIN_TYPE`."""
        return self._query("DOMAIN_TYPE()", "(bytes32)", lambda v: Digest(v[0]))

    def max_pledge(self) -> Query[int]:
        """Seconds from now until a pledge ends, at most."""
        return self._query("MAX_PLEDGE()", "(uint256)", lambda v: v[0])

    def max_tokens(self) -> Query[int]:
        """Tokens of prompt and answer together of which a claim is built: 32 bytes each, so that an accusation fits
        into what nodes take into their pools (128 KiB) and into a transaction's gas (2^24).
        """
        return self._query("MAX_TOKENS()", "(uint256)", lambda v: v[0])

    def accuse(self, said: SaidAnswer, place: int, signature: bytes) -> Call:
        """Presents a statement as a claim of its token number `place`; known claims stay as they are."""
        return self._call(
            "accuse((bytes32,bytes32,uint32[],uint64,uint32,uint32,uint32,uint32,uint32[]),uint32,bytes)",
            said,
            place,
            signature,
        )

    def bond(self) -> Call:
        """Locks the caller's bond, from its free balance in the vault."""
        return self._call("bond()")

    def bond_of(self, gateway: Address) -> Query[GatewayBond]:
        """`bondOf`."""
        return self._query("bondOf(address)", "((bool,bool,uint32,uint48))", lambda v: as_gateway_bond(v[0]), gateway)

    def bond_size(self) -> Query[Wei]:
        """The bond of a gateway, in wei."""
        return self._query("bondSize()", "(uint256)", lambda v: Wei(v[0]))

    def challenge_window(self) -> Query[int]:
        """Seconds beyond the end of a pledge in which games open on what was presented in it."""
        return self._query("challengeWindow()", "(uint256)", lambda v: v[0])

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def claim_of(self, ref: ClaimRef) -> Query[ClaimViewFields]:
        """Resolves a reference; a claim that does not exist, or that nobody prepared, has challengeableUntil = 0."""
        return self._query(
            "claimOf((uint8,uint64,uint32,uint32,address,bytes32))",
            "((bytes32,address,bytes32,bytes32,bytes32,uint32,uint64,uint64,bytes32,uint256,bool,uint256,address))",
            lambda v: ClaimViewFields.of(v[0]),
            ref,
        )

    def digest_of(self, said: SaidAnswer) -> Query[Digest]:
        """What EIP-712 signs under a statement of this run and program."""
        return self._query(
            "digestOf((bytes32,bytes32,uint32[],uint64,uint32,uint32,uint32,uint32,uint32[]))",
            "(bytes32)",
            lambda v: Digest(v[0]),
            said,
        )

    def lock_of(self, gateway: Address) -> Query[Digest]:
        """The lock of a gateway's bond in the vault: K("gateway", account)."""
        return self._query("lockOf(address)", "(bytes32)", lambda v: Digest(v[0]), gateway)

    def may_challenge_directly(self, argument_0: ClaimRef, argument_1: Address) -> Query[bool]:
        """May `who` open a game without commit-reveal?"""
        return self._query(
            "mayChallengeDirectly((uint8,uint64,uint32,uint32,address,bytes32),address)",
            "(bool)",
            lambda v: v[0],
            argument_0,
            argument_1,
        )

    def on_closed(self, ref: ClaimRef, convicted: bool) -> Call:
        """Game only: a game ended."""
        return self._call("onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)", ref, convicted)

    def on_opened(self, ref: ClaimRef, argument_1: Address) -> Call:
        """Game only: `challenger` opened a game on the claim (delays finality)."""
        return self._call("onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)", ref, argument_1)

    def pledge(self, model: Digest, until: int) -> Call:
        """Pledges the caller to serve a model until a time, inclusive; a pledge only grows."""
        return self._call("pledge(bytes32,uint48)", model, until)

    def pledge_of(self, gateway: Address, model: Digest) -> Query[int]:
        """End of a gateway's pledge of a model, in seconds of chain time, inclusive; 0 where there is none."""
        return self._query("pledgeOf(address,bytes32)", "(uint48)", lambda v: v[0], gateway, model)

    def unbond(self) -> Call:
        """Releases the caller's bond once nothing that it signed can be presented or disputed any more."""
        return self._call("unbond()")
