"""Whether a run's contracts were created from this release's code: asked before anything is approved or staked.

An impostor's vault with a way out for its author answers every question as the real one does, and so does the real code
over storage that another constructor wrote. What cannot be imitated is an address
(`assay_ledger.deployment.places`): charter, modules,
arbiter, leaves and beacon must be where this release's creation code puts them.
Reasons: docs/adr/0023-code-checked.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.arbiter import ArbiterContract
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.deployment.places import FAMILY_CODES, LEAVES, NOBODY, beacons, places_of
from assay_ledger.rounds.run import Run

Pair = tuple[str, Address, Address]
"""A contract's name, where the run has it, and where this release's code puts it."""

TEST_TOKEN: Final = "a test token: everybody mints"


class UnknownCode(RejectedError):
    """A contract of the run was not created from this release's code: its author may take what is staked."""


@dataclass(frozen=True, slots=True)
class CodeAt:
    """A contract of a run. `code` is keccak-256 of what is at its address, 32 zero bytes where there is nothing.

    `is_known`: it is where this release's creation code puts it, and it exists.
    """

    name: str
    address: Address
    code: Digest
    is_known: bool


@dataclass(frozen=True, slots=True)
class RunCode:
    """All contracts that hold money of a run or decide over it, and the token, which its issuer answers for."""

    contracts: tuple[CodeAt, ...]
    token: CodeAt

    @property
    def digest(self) -> Digest:
        """Names all of it at once: keccak-256 over addresses and code hashes in the order of `contracts`."""
        parts = [[c.address for c in self.contracts], [c.code for c in self.contracts]]
        return Digest(keccak(encode(["address[]", "bytes32[]"], parts)))

    @property
    def unknown(self) -> tuple[CodeAt, ...]:
        """The contracts that are not this release's."""
        return tuple(c for c in self.contracts if not c.is_known)

    def status(self, allowed: Collection[Digest] = ()) -> str:
        """In a word: release, allowed (by the user, by name) or unknown."""
        if not self.unknown:
            return "release"
        return "allowed" if self.digest in allowed else "unknown"

    @property
    def token_words(self) -> str:
        """What is known of the token."""
        return TEST_TOKEN if self.token.is_known else "its issuer's own code, which this release does not know"


def code_of(run: Run) -> RunCode:
    """What is at the addresses of a run. Raises UnavailableError, ConfigError (ContractsNotCompiled)."""
    places = places_of(run.charter)
    pairs = [("charter", run.address, places.charter)]
    pairs += [(name, getattr(run.modules, name), place) for name, place in places.modules.items()]
    pairs += _judges(run, pairs, places.arbiter, places.leaves)
    beacon = run.charter.beacon
    return _code(
        run, [*pairs, ("beacon", beacon, beacon if beacon in beacons().values() else NOBODY)], run.charter.token
    )


def _judges(run: Run, pairs: list[Pair], arbiter: Address, leaves: Mapping[str, Address]) -> Iterator[Pair]:
    """The arbiter that the game asks, and its leaves."""
    if all(found == wanted for _, found, wanted in pairs):
        # The deployer gave this arbiter to the game, and the arbiter's address names its leaves.
        yield "arbiter", arbiter, arbiter
        yield from ((f"{family} leaf", place, place) for family, place in leaves.items())
    else:
        named = _arbiter_of(run)
        yield "arbiter", named, arbiter
        yield from ((name, found, leaves[family]) for name, family, found in _leaves_of(run, named))


def _code(run: Run, pairs: Sequence[Pair], token: Address) -> RunCode:
    contracts = []
    for name, found, wanted in pairs:
        code = _code_hash(run, found)
        contracts.append(CodeAt(name, found, code, found == wanted and any(code)))
    code = _code_hash(run, token)
    is_test = code == keccak(load_artifact("TestToken").deployed)
    return RunCode(tuple(contracts), CodeAt("token", token, code, is_test))


def check_code(run: Run, allowed: Collection[Digest] = ()) -> RunCode:
    """The code of a run, if it is this release's or what the user allowed by its digest. Raises UnknownCode."""
    code = code_of(run)
    if code.status(allowed) == "unknown":
        names = ", ".join(c.name for c in code.unknown)
        raise UnknownCode(
            f"Not created from this release's code, or not at all: {names}. Their author may take what is staked.",
            remedy=f"Take no part; or, if you have checked this very code yourself, add --allow-code "
            f"0x{code.digest.hex()} (setting `allow_code`).",
            contracts={c.name: {"address": "0x" + c.address.hex(), "code": "0x" + c.code.hex()} for c in code.unknown},
            digest="0x" + code.digest.hex(),
        )
    return code


def _arbiter_of(run: Run) -> Address:
    """What a game that is not ours says of its arbiter; NOBODY if it says nothing."""
    try:
        return run.chain.ask(run.game.arbiter())
    except AssayError:
        return NOBODY


def _leaves_of(run: Run, arbiter: Address) -> Iterator[tuple[str, str, Address]]:
    contract = ArbiterContract(arbiter)
    for family, code in zip(LEAVES, FAMILY_CODES, strict=True):
        try:
            yield f"{family} leaf", family, run.chain.ask(contract.leaf_of(code))
        except AssayError:
            yield f"{family} leaf", family, NOBODY


def _code_hash(run: Run, address: Address) -> Digest:
    code = run.chain.code_at(address)
    return Digest(keccak(code) if code else bytes(32))
