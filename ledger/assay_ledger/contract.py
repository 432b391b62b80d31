"""What the typed bindings of contracts are made of: calls, queries and events as values, and the ABI's coding of them.

`assay_ledger.bindings` has a class per contract, written by `tools/bindings.py` from what forge compiled. A method
of it that
changes the chain gives a `Call`, which `Chain.send` takes; one that reads gives a `Query`, which `Chain.ask` takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from keyword import iskeyword
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from eth_abi.grammar import TupleType, parse
from web3.types import LogReceipt

from assay.protocol.digests import keccak
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.event_forms import CODEC, form_of

Decoded = Sequence[Any]
"""What an ABI decoder gives: integers, bytes, text for addresses, and tuples of them."""

T = TypeVar("T")
E = TypeVar("E", bound="Event")


@dataclass(frozen=True, slots=True)
class Call:
    """What a transaction asks of a contract: `name` as "Rounds.commit", `arguments` as the binding was given them."""

    to: Address
    data: bytes
    name: str
    arguments: tuple[object, ...]
    value: Wei = Wei(0)  # noqa: RUF009 - an immutable amount


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """A view function with its arguments; `decode` makes its result of the bytes that the chain returns."""

    to: Address
    data: bytes
    name: str
    decode: Callable[[bytes], T]


class Contract:
    """A contract of ours at an address."""

    EVENTS: ClassVar[tuple[type[Event], ...]] = ()
    CALLS: ClassVar[tuple[str, ...]] = ()
    """The signatures of the functions that change the chain."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def _call(self, signature: str, *arguments: object) -> Call:
        """A call that changes the chain. Raises EncodingError for a value that does not fit its Solidity type."""
        return Call(self.address, _encoded(signature, arguments), self._name(signature), arguments)

    def _query(self, signature: str, results: str, decode: Callable[[Decoded], T], *arguments: object) -> Query[T]:
        """A call that reads; `results` is the ABI type of the tuple that it returns. Raises EncodingError."""

        def read(data: bytes) -> T:
            return decode(CODEC.decode(types_of(results), data))

        return Query(self.address, _encoded(signature, arguments), self._name(signature), read)

    def _name(self, signature: str) -> str:
        return f"{type(self).__name__.removesuffix('Contract')}.{signature.partition('(')[0]}"


class Event:
    """An event of a contract. Subclasses are frozen dataclasses whose fields are the event's arguments in order."""

    ABI: ClassVar[str]
    """Its declaration: "Joined(address indexed solver, uint32 indexed seat)"."""

    __slots__ = ()

    @classmethod
    def _of(cls, v: Decoded) -> Self:
        """The event with these arguments."""
        raise NotImplementedError

    @classmethod
    def topic(cls) -> Digest:
        """The first topic of its logs."""
        return form_of(cls.ABI).topic

    @classmethod
    def decode(cls, log: LogReceipt) -> Self:
        """The event that a log with this topic is.

        Raises DecodingError, ValueError, LookupError or TypeError for a log of no such form.
        """
        return cls._of(form_of(cls.ABI).decode(log["topics"][1:], log["data"]))

    @classmethod
    def search(cls, contract: Address, **wanted: object) -> Search[Self]:
        """Those from one contract whose indexed arguments, named as fields are, have these values."""
        form = form_of(cls.ABI)
        names = {_field(name): name for name in form.indexed}
        if unknown := wanted.keys() - names.keys():
            raise TypeError(f"{cls.__name__} has no indexed {', '.join(sorted(unknown))}.")
        words = {names[f]: Digest(CODEC.encode([form.types[names[f]]], [v])) for f, v in wanted.items()}
        return Search(contract, cls, (form.topic, *(words.get(name) for name in form.indexed)))

    def arguments(self) -> Mapping[str, object]:
        """Its arguments, and in them the fields of structs, by the names that Solidity gives them."""
        values = (_named(getattr(self, f.name)) for f in fields(cast(Any, self)))
        return dict(zip(form_of(self.ABI).types, values, strict=True))


@dataclass(frozen=True, slots=True)
class Search(Generic[E]):
    """Events of one kind from one contract; `topics` as a node's filter takes them, None for any."""

    contract: Address
    kind: type[E]
    topics: tuple[Digest | None, ...]


@dataclass(frozen=True, slots=True)
class Logged(Generic[E]):
    """An event and where the chain has it: number of the block, index of the log in it, hash of the transaction."""

    event: E
    block: int
    log_index: int
    transaction: bytes

    @staticmethod
    def of(kind: type[E], log: LogReceipt) -> Logged[E]:
        """A log of this kind. Raises what `Event.decode` raises."""
        return Logged(kind.decode(log), int(log["blockNumber"]), int(log["logIndex"]), bytes(log["transactionHash"]))


def address(value: Any) -> Address:
    """The 20 bytes of an address as an ABI decoder gives it, in bytes or as text."""
    return Address(value if isinstance(value, bytes) else bytes.fromhex(str(value)[2:]))


def abi_value(value: object) -> Any:
    """A value as an ABI encoder takes it: structs are tuples of their fields in order."""
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(abi_value(getattr(value, f.name)) for f in fields(value))
    if isinstance(value, list | tuple):
        return [abi_value(v) for v in value]
    return value


def _named(value: Any) -> Any:
    """A value whose structs are mappings; as far as events have them, there is no struct in a struct."""
    if not is_dataclass(value):
        return value
    words = {f.name: f.name.split("_") for f in fields(value)}
    return {w[0] + "".join(map(str.capitalize, w[1:])): getattr(value, name) for name, w in words.items()}


@cache
def selector(signature: str) -> bytes:
    """The four bytes by which calldata names a function."""
    return keccak(signature.encode())[:4]


@cache
def types_of(signature: str) -> list[str]:
    """The ABI types between the outer brackets of a signature: "f(uint64,bytes)" and "(uint64,bytes)" have two."""
    within = signature[signature.index("(") :]
    if within == "()":
        return []
    parsed = parse(within)
    assert isinstance(parsed, TupleType)
    return [component.to_type_str() for component in parsed.components]


def _field(name: str) -> str:
    """The field that an argument of an event is kept in: gameId in game_id, from in from_."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{words}_" if iskeyword(words) else words


def _encoded(signature: str, arguments: Sequence[object]) -> bytes:
    return selector(signature) + CODEC.encode(types_of(signature), [abi_value(a) for a in arguments])
