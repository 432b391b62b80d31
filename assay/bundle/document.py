"""The file format of evidence: canonical JSON (RFC 8785), so that one dispute has one byte string and one SHA-256.

Digests, addresses and bytes are `0x` and lower-case hex; 256-bit words are decimal strings; other numbers are integers.
Source: docs/bundle.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import rfc8785

from assay.bundle.errors import BundleMalformed, NumberTooLarge
from assay.bundle.signed import MAX_RAW
from assay.protocol.digests import ZERO
from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Side
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.json_input import JsonRefused, parse_json

FORMAT: Final = "assay-evidence-2"
MAX_BYTES: Final = 16 << 20
MAX_TRANSACTIONS: Final = 256
MAX_TERMS: Final = 1 << 20
MAX_SEATS: Final = 64

_HEX: Final = re.compile(r"0x(?:[0-9a-f]{2})*")
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]{0,79}")


@dataclass(frozen=True, slots=True)
class MinedTransaction:
    """A transaction as it was mined: signed bytes, and the block and chain time (seconds) that the chain gave it."""

    hash: Digest
    sender: Address
    block: int
    time: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Contracts:
    """Where the contracts of the run are: charter, game, and the books that the claim follows from.

    challenges: where the game was opened by revealing a challenge.
    """

    charter: Address
    game: Address
    challenges: Address | None = None
    commitments: Address | None = None
    generations: Address | None = None
    duties: Address | None = None

    def named(self) -> dict[str, Address]:
        """Those that are there, by name."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: address for name, address in found.items() if address is not None}


@dataclass(frozen=True, slots=True)
class ClaimOrigin:
    """What X and Y of the claim follow from.

    transactions: the commitment; for an attestation also the ticket's opening; for a root its opening, or its backing.
    base_parameters, base_momentum: list roots of the base that the round starts from. counted, updates: of a root, the
    seats whose updates count, in their order, and the list root of each; none otherwise. epoch: of an attestation, the
    one in which it was opened. seed: the epoch's, where the ticket's own key is disputed. accuser: the attestation
    whose accusation opened the game. Each is zero otherwise.
    """

    transactions: tuple[MinedTransaction, ...]
    base_parameters: Digest
    base_momentum: Digest
    counted: tuple[Seat, ...] = ()
    updates: tuple[Digest, ...] = ()
    epoch: int = 0
    seed: Digest = ZERO
    accuser: Digest = ZERO


@dataclass(frozen=True, slots=True)
class Reused:
    """The claimant's posting of a list in another game, which counted as posted in this one after a transaction.

    after: the transaction's number in the game, 0 the opening.
    """

    after: int
    sent: MinedTransaction


@dataclass(frozen=True, slots=True)
class Bundle:
    """The evidence of one dispute. `verdict` is the recorded one; None only for a game that is not over."""

    chain_id: int
    contracts: Contracts
    run: Digest
    terms: bytes
    claim_id: Digest
    ref: ClaimRef
    origin: ClaimOrigin
    game_id: int
    transactions: tuple[MinedTransaction, ...]
    """The opening of the game, then every move, a timeout included."""
    verdict: Verdict | None
    reused: tuple[Reused, ...] = ()


def encode_bundle(bundle: Bundle) -> bytes:
    """The file of a bundle with a verdict. Raises NumberTooLarge."""
    assert bundle.verdict is not None
    try:
        return rfc8785.dumps(to_document(bundle))
    except rfc8785.IntegerDomainError as error:
        raise NumberTooLarge(f"The bundle would hold a number that its format has not ({error}).") from None


def to_document(bundle: Bundle) -> dict[str, Any]:
    """The JSON document of a bundle."""
    ref, origin = bundle.ref, bundle.origin
    return {
        "format": FORMAT,
        "chain_id": bundle.chain_id,
        "contracts": {name: _hex(address) for name, address in bundle.contracts.named().items()},
        "run": _hex(bundle.run),
        "terms": _hex(bundle.terms),
        "claim": {
            "id": _hex(bundle.claim_id),
            "kind": ref.kind.name,
            "round": int(ref.round),
            "seat": int(ref.seat),
            "duty": ref.duty,
            "party": _hex(ref.party),
            "outer_root": _hex(ref.outer_root),
        },
        "origin": {
            "base_parameters": _hex(origin.base_parameters),
            "base_momentum": _hex(origin.base_momentum),
            "counted": [int(seat) for seat in origin.counted],
            "updates": [_hex(u) for u in origin.updates],
            "epoch": origin.epoch,
            "seed": _hex(origin.seed),
            "accuser": _hex(origin.accuser),
            "transactions": [_sent(s) for s in origin.transactions],
        },
        "game": {
            "id": bundle.game_id,
            "transactions": [_sent(s) for s in bundle.transactions],
            "reused": [{"after": r.after} | _sent(r.sent) for r in bundle.reused],
        },
        "verdict": None if bundle.verdict is None else verdict_document(bundle.verdict),
    }


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    return {
        "loser": _hex(verdict.loser),
        "side": verdict.side.name,
        "outcome": verdict.outcome.name,
        "family": verdict.family,
        "node": verdict.node,
        "element": str(verdict.element),
        "term": str(verdict.term),
        "expected": str(verdict.expected),
        "claimed": str(verdict.claimed),
    }


def decode_bundle(data: bytes) -> Bundle:
    """The bundle in a file that may come from anybody. Raises BundleMalformed."""
    try:
        document = parse_json(data, max_bytes=MAX_BYTES, max_depth=6)
    except JsonRefused as refused:
        raise BundleMalformed(f"The file is no bundle: {refused}.") from None
    top = _Fields(document, "the bundle")
    if top.text("format") != FORMAT:
        raise BundleMalformed(f"The bundle's format is not {FORMAT}.")
    bundle = Bundle(
        chain_id=top.number("chain_id", 64),
        contracts=_contracts(top.child("contracts")),
        run=top.digest("run"),
        terms=top.data("terms", MAX_TERMS),
        claim_id=_Fields(document.get("claim"), "claim").digest("id"),
        ref=_ref(top.child("claim")),
        origin=_origin(top.child("origin")),
        game_id=_Fields(document.get("game"), "game").number("id", 64),
        transactions=_transactions(top.child("game"), ("id", "reused")),
        verdict=_verdict(top.child("verdict")),
        reused=_reused(top.child("game")),
    )
    top.end()
    # One dispute, one file: two byte strings that say the same would have two digests.
    try:
        is_canonical = rfc8785.dumps(document) == data
    except rfc8785.CanonicalizationError as error:
        raise BundleMalformed(f"The file holds what canonical JSON has not: {error}.") from None
    if not is_canonical:
        raise BundleMalformed("The file is not written canonically (RFC 8785).")
    return bundle


_BOOKS: Final = ("challenges", "commitments", "generations", "duties")


def _contracts(found: _Fields) -> Contracts:
    books = {name: found.address(name) for name in _BOOKS if found.has(name)}
    contracts = Contracts(found.address("charter"), found.address("game"), **books)
    found.end()
    return contracts


def _ref(found: _Fields) -> ClaimRef:
    name = found.text("kind")
    if name not in ClaimKind.__members__:
        raise BundleMalformed(f"Claims of kind {name[:40]!r} are unknown.")
    ref = ClaimRef(
        ClaimKind[name],
        Round(found.number("round", 52)),
        Seat(found.number("seat", 32)),
        found.number("duty", 32),
        found.address("party"),
        found.digest("outer_root"),
    )
    found.end("id")
    return ref


def _origin(found: _Fields) -> ClaimOrigin:
    counted, updates = (found.items(name, MAX_SEATS) for name in ("counted", "updates"))
    for seat in counted:
        if type(seat) is not int or not 0 <= seat < MAX_SEATS:
            raise BundleMalformed("A seat that counts is no number below 64.")
    others = {"counted", "updates", "base_parameters", "base_momentum", "epoch", "seed", "accuser"}
    return ClaimOrigin(
        base_parameters=found.digest("base_parameters"),
        base_momentum=found.digest("base_momentum"),
        counted=tuple(Seat(seat) for seat in counted if isinstance(seat, int)),
        updates=tuple(Digest(_bytes(u, 32, 32, "an update")) for u in updates),
        epoch=found.number("epoch", 24),
        seed=found.digest("seed"),
        accuser=found.digest("accuser"),
        transactions=_transactions(found, tuple(others)),
    )


def _transactions(found: _Fields, others: tuple[str, ...]) -> tuple[MinedTransaction, ...]:
    sent = tuple(_transaction(_Fields(i, "a transaction")) for i in found.items("transactions", MAX_TRANSACTIONS))
    found.end(*others)
    return sent


def _transaction(found: _Fields, *others: str) -> MinedTransaction:
    sent = MinedTransaction(
        found.digest("hash"),
        found.address("sender"),
        found.number("block", 52),
        found.number("time", 52),
        found.data("raw", MAX_RAW),
    )
    found.end(*others)
    return sent


def _reused(found: _Fields) -> tuple[Reused, ...]:
    each = [_Fields(item, "a reused list") for item in found.items("reused", MAX_TRANSACTIONS)]
    return tuple(Reused(f.number("after", 16), _transaction(f, "after")) for f in each)


def _verdict(found: _Fields) -> Verdict:
    side, outcome = found.text("side"), found.text("outcome")
    if side not in Side.__members__ or outcome not in Outcome.__members__:
        raise BundleMalformed("The verdict's side or outcome is unknown.")
    verdict = Verdict(
        loser=found.address("loser"),
        side=Side[side],
        outcome=Outcome[outcome],
        family=found.number("family", 8),
        node=found.number("node", 32),
        element=found.word("element"),
        term=found.word("term"),
        expected=found.word("expected"),
        claimed=found.word("claimed"),
    )
    found.end()
    return verdict


class _Fields:
    """Typed access to the fields of an untrusted object; `end` refuses fields that were not asked for."""

    def __init__(self, value: object, what: str) -> None:
        if not isinstance(value, dict):
            raise BundleMalformed(f"There is no {what} in the bundle.")
        self._value: Mapping[str, object] = value
        self._what = what
        self._asked: set[str] = set()

    def _get(self, name: str) -> object:
        self._asked.add(name)
        return self._value.get(name)

    def has(self, name: str) -> bool:
        return name in self._value

    def child(self, name: str) -> _Fields:
        return _Fields(self._get(name), name)

    def text(self, name: str) -> str:
        value = self._get(name)
        if not isinstance(value, str):
            raise BundleMalformed(f"{name} of {self._what} is no text.")
        return value

    def items(self, name: str, most: int) -> list[object]:
        value = self._get(name)
        if not isinstance(value, list) or len(value) > most:
            raise BundleMalformed(f"{name} of {self._what} is no list of at most {most} entries.")
        return value

    def number(self, name: str, bits: int) -> int:
        value = self._get(name)
        if type(value) is not int or not 0 <= value < 1 << bits:
            raise BundleMalformed(f"{name} of {self._what} is no number of {bits} bits.")
        return value

    def word(self, name: str) -> int:
        value = self.text(name)
        if not _DECIMAL.fullmatch(value):
            raise BundleMalformed(f"{name} of {self._what} is no integer.")
        return int(value)

    def data(self, name: str, most: int, least: int = 0) -> bytes:
        return _bytes(self._get(name), most, least, f"{name} of {self._what}")

    def digest(self, name: str) -> Digest:
        return Digest(self.data(name, 32, 32))

    def address(self, name: str) -> Address:
        return Address(self.data(name, 20, 20))

    def end(self, *others: str) -> None:
        """Raises BundleMalformed for fields besides those asked for and `others`."""
        extra = self._value.keys() - self._asked - set(others)
        if extra:
            raise BundleMalformed(f"{self._what} has the unknown field {min(extra)[:40]!r}.")


def _bytes(value: object, most: int, least: int, what: str) -> bytes:
    if not isinstance(value, str) or not 2 + 2 * least <= len(value) <= 2 + 2 * most or not _HEX.fullmatch(value):
        raise BundleMalformed(f"{what} is not 0x and the right number of lower-case hex digits.")
    return bytes.fromhex(value[2:])


def _sent(sent: MinedTransaction) -> dict[str, Any]:
    return {
        "hash": _hex(sent.hash),
        "sender": _hex(sent.sender),
        "block": sent.block,
        "time": sent.time,
        "raw": _hex(sent.raw),
    }


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
