"""What never changes about a run, and the neighbours that its books ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from assay.amounts import Currency
from assay.protocol.digests import keccak, state_digest
from assay.protocol.errors import refuse
from assay.protocol.rounds.duty_types import DutyTerms
from assay.protocol.rounds.run_terms import duty_terms, round_terms, ticket_terms
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.ticket_types import TicketTerms
from assay.protocol.rounds.vault import Vault
from assay.protocol.run.beacon import DrandNetwork
from assay.protocol.run.claims import ClaimKind, claim_id
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees.state import RoundScalars
from assay.protocol.types import Address, BeaconRound, Digest, Round, Seat, Wei


@dataclass(frozen=True, slots=True)
class BeaconTimes:
    """When the rounds of a beacon are due: round 1 at `genesis`, then one every `period` seconds."""

    genesis: int
    period: int

    @staticmethod
    def of(network: DrandNetwork) -> BeaconTimes:
        """Those of a drand network."""
        return BeaconTimes(network.genesis_time, network.period)

    def round_after(self, time: int) -> BeaconRound:
        """The first round whose time is later than `time`, in seconds."""
        return BeaconRound(1 if time < self.genesis else (time - self.genesis) // self.period + 2)

    def time_of(self, beacon_round: int) -> int:
        """The second from which a round can be known."""
        return self.genesis + (beacon_round - 1) * self.period


PREVRANDAO_TIMES: Final = BeaconTimes(genesis=1, period=1)
"""PrevrandaoSeed.sol: a round is a second."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The identity of a run and all its terms; `address` is that of its charter."""

    chain_id: int
    address: Address
    run_id: Digest
    rounds: RoundTerms
    duties: DutyTerms
    tickets: TicketTerms
    beacon: BeaconTimes
    currency: Currency
    """How amounts of its token are written, as the token said when the run was opened here."""

    @staticmethod
    def of(chain_id: int, address: Address, charter: RunCharter, beacon: BeaconTimes, currency: Currency) -> RunFacts:
        """Those of a charter."""
        terms = round_terms(charter), duty_terms(charter), ticket_terms(charter)
        return RunFacts(chain_id, address, charter.run, *terms, beacon, currency)

    @property
    def identity(self) -> Digest:
        """This run among those of all chains: what an actor's secrets are made for.

        Attack: the terms of a run posted once more, on another chain or by another charter, so that what an actor
        opens in one of the two shows what it has sealed in the other.
        """
        return keccak(self.chain_id.to_bytes(32, "big") + self.address + self.run_id)

    @property
    def genesis(self) -> Digest:
        """The state root of generation 0."""
        return state_digest((self.rounds.parameters, self.rounds.momentum))

    def round_scalars(self, round_: Round, seat: Seat) -> RoundScalars:
        """Where the scalars of a seat's work in a round start."""
        terms = self.rounds
        return RoundScalars(
            run=terms.run,
            seat=seat,
            round=round_,
            steps_per_round=terms.max_units * terms.steps_per_unit,
            shards=terms.shards,
            shard_length=terms.shard_length,
            lr=terms.learning_rate,
            data_root=terms.data,
        )

    def claim_id(self, kind: ClaimKind, claimant: Address, x: Digest, y: Digest) -> Digest:
        """The id of a claim of this run."""
        return claim_id(self.chain_id, self.address, self.run_id, kind, claimant, x, y)


@dataclass(slots=True)
class KnownBeacon:
    """A beacon's times, and the randomness of the rounds that were submitted to the chain."""

    times: BeaconTimes
    known: dict[int, Digest] = field(default_factory=dict)
    since: dict[int, int] = field(default_factory=dict)
    """When each was submitted, in seconds of chain time."""

    def learn(self, beacon_round: int, randomness: Digest, time: int) -> None:
        """A round was submitted."""
        self.known[beacon_round], self.since[beacon_round] = randomness, time

    def round_after(self, time: int) -> BeaconRound:
        """The first round whose time is later than `time`, in seconds."""
        return self.times.round_after(time)

    def time_of(self, beacon_round: int) -> int:
        """The second from which a round can be known."""
        return self.times.time_of(beacon_round)

    def randomness_of(self, beacon_round: int) -> Digest:
        """Raises BeaconNotSubmitted."""
        if beacon_round not in self.known:
            raise refuse("BeaconNotSubmitted", beacon_round=beacon_round)
        return self.known[beacon_round]


class UncountedVault(Vault):
    """The vault as books need it that only follow the chain: who could pay is decided there."""

    def __init__(self) -> None:
        super().__init__(exit_delay=0)

    def lock(self, lock_id: Digest, owner: Address, amount: Wei) -> None:
        """Counts nothing."""
