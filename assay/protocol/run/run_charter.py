"""The charter of a run: every constant that its contracts are built from (IRunCharter.sol).

`RunCharter.encoded` is Solidity's abi.encode of the constructor's struct `RunTerms`, and `RunCharter.run` its
keccak-256, the identity of the run. Amounts are Wei of the settlement token, rates parts per million (ppm), times
seconds of chain time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

from assay.protocol import abi
from assay.protocol.digests import ZERO, keccak
from assay.protocol.errors import InvariantError
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.trees.state import RoundScalars
from assay.protocol.types import Address, Digest, Round, Seat, Wei

ONE_LEVEL: Final = 64
"""Seats up to which a run has one group, whose seats are its positions."""

NO_PROGRAM: Final = ProgramRef(ZERO, ZERO, b"")
"""The partial sum of a run with one level."""


@dataclass(frozen=True, slots=True)
class RunTraining:
    """What is trained, by how many, how it is split, and the roots that it starts from."""

    seats: int
    group_size: int
    positions: int
    top_positions: int
    min_units: int
    max_units: int
    """What a fast machine trains in C."""
    steps_per_unit: int
    shards: int
    shard_length: int
    """Elements of the data tensor in one shard."""
    learning_rate: int
    """The bits of a binary32."""
    parameters: Digest
    momentum: Digest
    zero_optimizer: Digest
    """Every round starts from it."""
    zero_update: Digest
    zero_partial: Digest
    """Zero at one level."""
    data: Digest
    """Tensor root; the other five are list roots."""

    @property
    def steps_per_round(self) -> int:
        """H, of a whole commitment."""
        return self.max_units * self.steps_per_unit


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Lengths in seconds of chain time."""

    commit: int
    """C."""
    grace: int
    hold: int
    group_merge: int
    """Of partial sums; 0 at one level."""
    merge: int
    beacon_delay: int
    challenge: int
    rescue: int
    audits_from: int
    """Chain time at which epoch 0 begins."""
    epoch: int
    """A, from a seed to the last opening."""
    seed_delay: int
    seasoning: int
    vesting: int
    longest_dispute: int
    stall: int
    exit: int


@dataclass(frozen=True, slots=True)
class RunEconomics:
    """Prices, locks and rates."""

    unit_price: Wei
    pays: bool
    shares_per_unit: Wei
    shares_per_duty: Wei
    seat_lock: Wei
    """S."""
    seat_fee: Wei
    ticket_bond: Wei
    """B."""
    wage: Wei
    """w, of a finding."""
    merge_pay: Wei
    """Of an opening of a final root."""
    challenge_bond: Wei
    challenge_deposit: Wei
    audit_ppm: int
    """p."""
    reaudit_ppm: int
    """q."""
    cartel_ppm: int
    """v."""
    drawn_bounty_ppm: int
    """beta_d."""
    third_bounty_ppm: int
    """beta_f."""
    capacity: int
    """c."""
    shifts: int


@dataclass(frozen=True, slots=True)
class RunLaunch:
    """When the run opens without its sponsor, and what every round needs."""

    open_from: int
    """Chain time from which anybody may open the run."""
    tickets: int
    """That count, at least; below it no round opens."""
    seats: int


@dataclass(frozen=True, slots=True)
class ClockTerms:
    """Chess clocks of a game in seconds, and the arity of its digest lists."""

    budget: int
    replay: int
    move: int
    arity: int


@dataclass(frozen=True, slots=True)
class RunChain:
    """What the run's chain is like, and up to which fee gas costs an honest party nothing."""

    reorg_depth: int
    inclusion_delay: int
    """F."""
    least_budget: int
    """Seconds of censorship that a side survives in a game."""
    fee_cap: int
    """Wei of the chain's coin per gas."""
    gas_price: Wei
    """Of a unit of gas at the cap, in the settlement token; 0: no promise."""
    data_price: Wei
    """Of a byte of data, where the chain charges it apart."""


@dataclass(frozen=True, slots=True)
class RunGovernance:
    """What the owners of shares may decide, and how: lengths in seconds, rates in parts per million.

    All zero: nobody can ever pause, end or change the run.
    """

    guardian: Address
    """May pause without a vote; zero: nobody."""
    voting_delay: int
    """From a proposal to its snapshot, and between the two at which votes must be held."""
    voting_period: int
    """Zero: no governance."""
    timelock: int
    """From a decision's queue to its execution."""
    longest_pause: int
    """Of one pause by a vote."""
    guardian_pause: int
    """Of each pause by the guardian."""
    guardian_pauses: int
    """That the guardian has in all."""
    quorum_ppm: int
    """Of the vested shares."""
    least_rounds: int
    """That are final before anybody proposes."""
    least_price_ppm: int
    """Of `unit_price`, which is the most."""

    @property
    def is_named(self) -> bool:
        """Whether the run has a governor."""
        return self.voting_period != 0


NO_GOVERNANCE: Final = RunGovernance(Address(bytes(20)), *[0] * 9)
"""Nobody decides anything: what a charter names unless its sponsor says otherwise."""


@dataclass(frozen=True, slots=True)
class RunModules:
    """Addresses of the contracts of a run (IRoundTerms.sol): the charter, modules in the order of creation, beacon."""

    charter: Address
    vault: Address
    tickets: Address
    tenures: Address
    commitments: Address
    generations: Address
    duties: Address
    attestations: Address
    escrow: Address
    payments: Address
    bounties: Address
    game: Address
    challenges: Address
    shares: Address
    grants: Address
    revenue: Address
    governor: Address
    """Zero in a run whose charter names no governance."""
    beacon: Address


@dataclass(frozen=True)
class RunCharter:
    """Everything that a run promises. Not slotted: encoding and identity are computed once."""

    name: Digest
    sponsor: Address
    token: Address
    beacon: Address
    rounds: int
    expiry: int
    training: RunTraining
    timing: RunTiming
    economics: RunEconomics
    launch: RunLaunch
    clocks: ClockTerms
    chain: RunChain
    step: ProgramRef
    update: ProgramRef
    merge: ProgramRef
    witness: ProgramRef
    partial_sum: ProgramRef = NO_PROGRAM
    revenue_tokens: tuple[Address, ...] = ()
    governance: RunGovernance = NO_GOVERNANCE

    @cached_property
    def encoded(self) -> bytes:
        """abi.encode(terms), as the contract hashes it.

        Raises InvariantError (CharterFieldOutOfRange) for a value that does not fit its Solidity type.
        """
        try:
            return abi.encode([RUN_TERMS_TYPE], [self.as_tuple()])
        except InvariantError as error:
            raise InvariantError(f"The charter cannot be encoded: {error}", code="CharterFieldOutOfRange") from error

    @cached_property
    def run(self) -> Digest:
        """The identity of the run."""
        return keccak(self.encoded)

    @property
    def price(self) -> Wei:
        """W: the full pay of one commitment."""
        return Wei(self.economics.unit_price * self.training.max_units)

    @property
    def by_seats(self) -> bool:
        """Whether the seats that committed are the positions: one level."""
        return self.training.seats <= ONE_LEVEL

    @property
    def programs(self) -> dict[str, ProgramRef]:
        """The programs by their names; one of a partial sum only at two levels."""
        named = {"step": self.step, "update": self.update, "merge": self.merge, "witness": self.witness}
        return named if self.by_seats else named | {"partial sum": self.partial_sum}

    def round_scalars(self, round_: Round, seat: Seat) -> RoundScalars:
        """What the scalars of a seat's start follow from."""
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
        """The nested tuple that an ABI encoder takes for `RunTerms`."""
        return tuple(plain(getattr(self, f.name)) for f in fields(self))

    @staticmethod
    def from_tuple(values: Sequence[Any]) -> RunCharter:
        """A charter from the nested tuple that an ABI decoder gives for `RunTerms` (addresses as bytes or text)."""
        name, sponsor, token, beacon, rounds, expiry, *parts, tokens, governance = values
        training, timing, economics, launch, clocks, chain, *programs = parts
        step, update, merge, witness, partial_sum = (ProgramRef(*p) for p in programs)
        return RunCharter(
            name=Digest(bytes(name)),
            sponsor=address_of(sponsor),
            token=address_of(token),
            beacon=address_of(beacon),
            rounds=rounds,
            expiry=expiry,
            training=RunTraining(*training),
            timing=RunTiming(*timing),
            economics=RunEconomics(*economics),
            launch=RunLaunch(*launch),
            clocks=ClockTerms(*clocks),
            chain=RunChain(*chain),
            step=step,
            update=update,
            merge=merge,
            witness=witness,
            partial_sum=partial_sum,
            revenue_tokens=tuple(address_of(t) for t in tokens),
            governance=RunGovernance(address_of(governance[0]), *governance[1:]),
        )


def plain(value: Any) -> Any:
    """A dataclass as a tuple of its fields in order, addresses as bytes."""
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if hasattr(value, "__dataclass_fields__"):
        return tuple(plain(getattr(value, f.name)) for f in fields(value))
    return value


def address_of(value: bytes | str) -> Address:
    """An address as an ABI decoder gives it."""
    return Address(bytes.fromhex(value.removeprefix("0x")) if isinstance(value, str) else bytes(value))


def _repeated(kind: str, count: int) -> str:
    return ",".join([kind] * count)


_PROGRAM: Final = "(bytes32,bytes32,bytes)"
_TRAINING: Final = f"({_repeated('uint32', 10)},{_repeated('bytes32', 6)})"
_TIMING: Final = f"({_repeated('uint48', 16)})"
_ECONOMICS: Final = f"(uint128,bool,{_repeated('uint128', 9)},{_repeated('uint32', 7)})"
_LAUNCH: Final = "(uint48,uint32,uint32)"
_CLOCKS: Final = "(uint64,uint64,uint64,uint32)"
_CHAIN: Final = "(uint48,uint48,uint48,uint128,uint128,uint128)"
_GOVERNANCE: Final = f"(address,{_repeated('uint48', 5)},{_repeated('uint32', 4)})"
RUN_TERMS_TYPE: Final = (
    f"(bytes32,address,address,address,uint64,uint64,{_TRAINING},{_TIMING},{_ECONOMICS},{_LAUNCH},{_CLOCKS},{_CHAIN},"
    f"{_repeated(_PROGRAM, 5)},address[],{_GOVERNANCE})"
)
"""The ABI type of `RunTerms`."""
