"""The charter of a run: every constant that its contracts are built from (ICharter.sol, `Terms` and `Modules`).

`Charter.encode` is Solidity's abi.encode of the constructor's struct and `Charter.run` its keccak-256, the identity of
the run. Amounts are Wei of the settlement token, rates parts per million (ppm), times seconds of chain time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

from eth_abi.abi import encode

from assay.protocol.digests import keccak
from assay.protocol.errors import InvariantError
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import ClockTerms, address_of, plain
from assay.protocol.trees.state import RoundScalars
from assay.protocol.types import Address, Digest, Round, Seat, Wei


@dataclass(frozen=True, slots=True)
class Training:
    """What is trained, how it is cut into claims and shards, and the roots that it starts from."""

    intervals: int
    """n, intervals of one commitment; its duties are 0..n, the last being the update."""
    steps_per_interval: int
    """J; a round has H = n J inner steps."""
    shards: int
    shard_length: int
    """Elements of the data tensor in one shard."""
    learning_rate: int
    """The bits of a binary32."""
    parameters: Digest
    momentum: Digest
    zero_optimizer: Digest
    zero_update: Digest
    data: Digest
    """Tensor root; the other four are list roots."""

    @property
    def steps_per_round(self) -> int:
        """H."""
        return self.intervals * self.steps_per_interval

    @property
    def duties(self) -> int:
        """Duties of one commitment: the intervals and the update."""
        return self.intervals + 1

    @property
    def roots(self) -> dict[str, Digest]:
        """The roots that the run starts from, by their names for people, in the contract's order."""
        return {
            "parameters": self.parameters,
            "momentum": self.momentum,
            "zero optimizer": self.zero_optimizer,
            "zero update": self.zero_update,
            "data": self.data,
        }


@dataclass(frozen=True, slots=True)
class Windows:
    """Lengths in seconds; the first seven are laid end to end from T0 (`reveal` twice)."""

    commit: int
    receipt: int
    seed_delay: int
    attest: int
    draw: int
    whistle: int
    reveal: int
    challenge: int
    rescue: int
    """After the first loss of one of its posters: how long others may still back an outer root."""
    longest_dispute: int
    exit: int

    @property
    def round_length(self) -> int:
        """T7 - T0, the scheduled length of a round."""
        spans = (self.commit, self.receipt, self.seed_delay, self.attest, self.draw, self.whistle, 2 * self.reveal)
        return sum(spans) + 1


@dataclass(frozen=True, slots=True)
class Economics:
    """Prices, locks and rates."""

    unit_price: Wei
    units: int
    """Units of one commitment; W = units * unit_price."""
    pays: bool
    """Whether a final commitment is paid W; otherwise it is credited in shares alone."""
    shares_per_unit: Wei
    shares_per_duty: Wei
    claim_lock: Wei
    """S."""
    verifier_bond: Wei
    """B."""
    wage: Wei
    """Per drawn and revealed duty."""
    seat_fee: Wei
    challenge_bond: Wei
    challenge_deposit: Wei
    audit_ppm: int
    """p: expected replays per duty over all verifiers; may exceed 10^6."""
    whistle_ppm: int
    """q2."""
    trap_ppm: int
    """phi."""
    cartel_ppm: int
    """v."""
    bounty_ppm: int
    """beta."""

    @property
    def price(self) -> Wei:
        """W: the full pay of one commitment."""
        return Wei(self.unit_price * self.units)


@dataclass(frozen=True, slots=True)
class ChainProfile:
    """What the run's chain is like, and up to which fee gas costs an honest party nothing."""

    reorg_depth: int
    """Seconds of chain time that a reorganization can undo."""
    inclusion_delay: int
    """F: seconds for which a transaction can be kept out of the chain."""
    fee_cap: int
    """Wei of the chain's coin per gas; while the base fee is above it, the side to move in a game may defer."""
    gas_price: Wei
    """Wei of the settlement token that a unit of gas is worth at the cap, as the sponsor reckons; 0: no promise."""


@dataclass(frozen=True, slots=True)
class Modules:
    """Addresses of the contracts of a run."""

    vault: Address
    rounds: Address
    outers: Address
    audit: Address
    settlement: Address
    game: Address
    shares: Address
    vesting: Address
    revenue: Address


@dataclass(frozen=True)
class Charter:
    """Everything that a run promises. Not slotted: encoding and identity are computed once."""

    name: Digest
    sponsor: Address
    token: Address
    seed: Address
    rounds: int
    expiry: int
    training: Training
    windows: Windows
    economics: Economics
    clocks: ClockTerms
    chain: ChainProfile
    step: ProgramRef
    update: ProgramRef
    outer: ProgramRef
    revenue_tokens: tuple[Address, ...] = ()

    @cached_property
    def encoded(self) -> bytes:
        """abi.encode(terms), as the contract hashes it.

        Raises InvariantError (CharterFieldOutOfRange) for a value that does not fit its Solidity type.
        """
        try:
            return encode([TERMS_TYPE], [self.as_tuple()])
        except Exception as error:  # eth_abi raises several unrelated classes
            raise InvariantError(f"The charter cannot be encoded: {error}", code="CharterFieldOutOfRange") from error

    @cached_property
    def run(self) -> Digest:
        """The identity of the run."""
        return keccak(self.encoded)

    @property
    def programs(self) -> dict[str, ProgramRef]:
        """The three programs by their names."""
        return {"step": self.step, "update": self.update, "outer": self.outer}

    def round_scalars(self, round_: Round, seat: Seat) -> RoundScalars:
        """What the scalars of a seat's s_0 follow from."""
        training = self.training
        return RoundScalars(
            run=self.run,
            seat=seat,
            round=round_,
            steps_per_round=training.steps_per_round,
            shards=training.shards,
            shard_length=training.shard_length,
            lr=training.learning_rate,
            data_root=training.data,
        )

    def as_tuple(self) -> tuple[Any, ...]:
        """The nested tuple that an ABI encoder takes for `Terms`."""
        return tuple(plain(getattr(self, f.name)) for f in fields(self))

    @staticmethod
    def from_tuple(values: Sequence[Any]) -> Charter:
        """A charter from the nested tuple that an ABI decoder gives for `Terms` (addresses as bytes or text)."""
        name, sponsor, token, seed, rounds, expiry, *parts, tokens = values
        training, windows, economics, clocks, chain, step, update, outer = parts
        return Charter(
            name=Digest(bytes(name)),
            sponsor=address_of(sponsor),
            token=address_of(token),
            seed=address_of(seed),
            rounds=rounds,
            expiry=expiry,
            training=Training(*training),
            windows=Windows(*windows),
            economics=Economics(*economics),
            clocks=ClockTerms(*clocks),
            chain=ChainProfile(*chain),
            step=ProgramRef(*step),
            update=ProgramRef(*update),
            outer=ProgramRef(*outer),
            revenue_tokens=tuple(address_of(t) for t in tokens),
        )


def modules_tuple(modules: Modules) -> tuple[bytes, ...]:
    """The tuple that an ABI encoder takes for `Modules`."""
    return tuple(bytes(getattr(modules, f.name)) for f in fields(modules))


_PROGRAM: Final = "(bytes32,bytes32,bytes)"
_TRAINING: Final = "(uint32,uint32,uint32,uint32,uint32,bytes32,bytes32,bytes32,bytes32,bytes32)"
_WINDOWS: Final = "(" + ",".join(["uint64"] * 11) + ")"
_ECONOMICS: Final = (
    "(uint128,uint64,bool,uint128,uint128,uint128,uint128,uint128,uint128,uint128,uint128,"
    "uint32,uint32,uint32,uint32,uint32)"
)
_CLOCKS: Final = "(uint64,uint64,uint64,uint32)"
_CHAIN: Final = "(uint64,uint64,uint128,uint128)"
TERMS_TYPE: Final = (
    f"(bytes32,address,address,address,uint64,uint64,{_TRAINING},{_WINDOWS},{_ECONOMICS},{_CLOCKS},{_CHAIN},"
    f"{_PROGRAM},{_PROGRAM},{_PROGRAM},address[])"
)
"""The ABI type of `Terms`."""
