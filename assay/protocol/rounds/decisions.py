"""What a vote can decide, as the governor is called with it (contracts/interfaces/IGovernance.sol)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.errors import InvariantError
from assay.protocol.types import Address, Digest

VOTED: Final = ("against", "for", "abstain")
"""What a vote says, by the number that the governor counts it under."""

MARK: Final = "#proposer=0x"
"""A description that ends with it and an address is taken from that address alone (OpenZeppelin's Governor)."""


class ProposalState(IntEnum):
    """How far a proposal is; equal to OpenZeppelin's `ProposalState`."""

    PENDING = 0
    ACTIVE = 1
    CANCELLED = 2
    DEFEATED = 3
    SUCCEEDED = 4
    QUEUED = 5
    EXPIRED = 6
    EXECUTED = 7


class Verb(Enum):
    """The functions that a proposal may call, by their ABI signatures: everything that a vote can reach."""

    PAUSE = "pause(uint48)"
    RESUME = "resume()"
    SUNSET = "sunset()"
    PRICE = "setPrice(uint32)"
    LIST = "list(address,bool)"
    DISMISS = "dismissGuardian()"
    SUCCESSOR = "nameSuccessor(address)"

    @property
    def types(self) -> list[str]:
        """ABI types of its arguments."""
        return [t for t in self.value[self.value.index("(") + 1 : -1].split(",") if t]

    @property
    def selector(self) -> bytes:
        """The first four bytes of a call."""
        return keccak(self.value.encode())[:4]


@dataclass(frozen=True, slots=True)
class Decision:
    """A verb with its arguments: seconds of a pause, ppm of a price, a gateway and whether it goes, a charter."""

    verb: Verb
    arguments: tuple[int | bool | Address, ...] = ()

    @property
    def calldata(self) -> bytes:
        """What the governor calls itself with."""
        return self.verb.selector + abi.encode(self.verb.types, list(self.arguments))

    @property
    def words(self) -> str:
        """What it does, for people."""
        values = self.arguments
        match self.verb:
            case Verb.PAUSE:
                return f"pause new rounds for {_number(values[0])} s"
            case Verb.RESUME:
                return "end the pause of new rounds"
            case Verb.SUNSET:
                return "end the run: no new rounds and fees, for good"
            case Verb.PRICE:
                return f"pay {_number(values[0]) / 10_000:g} % of the charter's price of a unit in later rounds"
            case Verb.LIST:
                verb = "take no deposits for" if values[1] else "take deposits again for"
                return f"{verb} the gateway 0x{_hexed(values[0])}"
            case Verb.DISMISS:
                return "dismiss the guardian, for good"
            case Verb.SUCCESSOR:
                return f"name 0x{_hexed(values[0])} as the run that follows"


def proposed(governor: Address, decision: Decision) -> tuple[list[Address], list[int], list[bytes]]:
    """Targets, values and calls of a proposal: one call of the governor to itself."""
    return [governor], [0], [decision.calldata]


def proposal_id(governor: Address, decision: Decision, description: str) -> int:
    """The name under which the governor knows a proposal."""
    types = ["address[]", "uint256[]", "bytes[]", "bytes32"]
    digest = Digest(keccak(description.encode()))
    return int.from_bytes(keccak(abi.encode(types, [*proposed(governor, decision), digest])), "big")


def described(why: str, proposer: Address) -> str:
    """What a proposal is described with: the reason, and whose it is.

    Attack: whoever sees it in the pool makes it first, and takes it back, so that nobody can ever make it again.
    """
    return f"{why}{MARK}{proposer.hex()}"


def named_proposer(description: str) -> Address | None:
    """Who alone may propose with this description; None: anybody."""
    found = _MARKED.search(description)
    return None if found is None else Address(bytes.fromhex(found[1]))


def reason_of(description: str) -> str:
    """The reason in a description, for people."""
    return _MARKED.sub("", description)


def proposal_name(number: int) -> str:
    """A proposal's number as people type it."""
    return f"0x{number:064x}"


def decoded(calldata: bytes) -> Decision:
    """The decision that a call is. Raises InvariantError (NotADecision): no governor takes a proposal of another."""
    verb = next((v for v in Verb if v.selector == calldata[:4]), None)
    words = [calldata[k : k + 32] for k in range(4, len(calldata), 32)]
    if verb is None or len(words) != len(verb.types):
        raise InvariantError(f"0x{calldata.hex()} is no decision.", code="NotADecision")
    arguments: list[int | bool | Address] = []
    for kind, word in zip(verb.types, words, strict=True):
        number = int.from_bytes(word, "big")
        arguments.append(Address(word[12:]) if kind == "address" else bool(number) if kind == "bool" else number)
    return Decision(verb, tuple(arguments))


_MARKED: Final = re.compile(MARK + r"([0-9a-fA-F]{40})\Z")


def _hexed(value: int | bool | Address) -> str:
    assert isinstance(value, bytes)
    return value.hex()


def _number(value: int | bool | Address) -> int:
    assert isinstance(value, int)
    return value
