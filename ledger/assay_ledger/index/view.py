"""What a strategy sees: the run's records at a head, and what its own actor knows. Pure values and lookups.

Nothing here asks the chain or the store; agents fill a `RunView` and strategies answer with actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from assay.protocol.digests import state_digest
from assay.protocol.economics.formulas import vesting_delay
from assay.protocol.game.clock import Clocks
from assay.protocol.game.state import GameConfig
from assay.protocol.run.charter import Charter
from assay.protocol.run.claims import AttestationLeaf, ClaimKind, ClaimRef, claim_id
from assay.protocol.run.draws import is_drawn
from assay.protocol.types import Address, Digest, Role, Round, Seat, Status, Wei
from assay_ledger.chain.client import Head
from assay_ledger.index.records import AttesterRecord, CommitmentRecord, GameRecord, OuterRecord, RoundRecord, RunState


@dataclass(frozen=True)
class Facts:
    """What never changes about a run. Not slotted: the genesis root is computed once."""

    chain_id: int
    address: Address
    run_id: Digest
    charter: Charter

    @cached_property
    def genesis(self) -> Digest:
        """The outer root of generation 0."""
        return state_digest((self.charter.training.parameters, self.charter.training.momentum))

    @cached_property
    def clocks(self) -> Clocks:
        """Of games."""
        return GameConfig.of(self.charter).clocks

    @property
    def vesting(self) -> int:
        """Seconds from T7 until shares vest."""
        return vesting_delay(self.charter.windows, self.charter.chain.inclusion_delay)


@dataclass(frozen=True, slots=True)
class Duty:
    """A claim that can be audited: an interval or the update of a commitment, or somebody's attestation of it."""

    ref: ClaimRef
    id: Digest
    claimant: Address
    x: Digest
    y: Digest

    @property
    def round(self) -> Round:
        """The round of the claim."""
        return self.ref.round

    @property
    def seat(self) -> Seat:
        """The seat whose work is claimed."""
        return self.ref.seat

    @property
    def number(self) -> int:
        """j: intervals first, the update last."""
        return self.ref.duty

    def attestation(self, by: Address) -> ClaimRef:
        """The reference of an attester's claim about the same work."""
        return ClaimRef(ClaimKind.ATTESTATION, self.round, self.seat, self.number, party=by)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A hidden result with the place that it is revealed for."""

    seat: Seat
    leaf: AttestationLeaf


@dataclass(frozen=True, slots=True)
class OuterStep:
    """Where an outer step from some X ends: list roots."""

    parameters: Digest
    momentum: Digest

    @property
    def root(self) -> Digest:
        """The outer root."""
        return state_digest((self.parameters, self.momentum))


@dataclass(frozen=True, slots=True)
class Trained:
    """What a solver trained and published for a round: everything that its commitment says, and its manifest."""

    base: Digest
    roots: tuple[Digest, ...]
    end_lists: tuple[Digest, ...]
    update: Digest
    manifest: Digest | None = None


@dataclass(frozen=True, slots=True)
class CommittedChallenge:
    """A committed third-party challenge, and the salt that opens it; block and chain time once it is on chain."""

    ref: ClaimRef
    own_root: Digest
    salt: Digest
    block: int | None = None
    time: int = 0
    revealed: bool = False


@dataclass(slots=True)
class Memory:
    """What an actor knows that the chain does not say; from its journal, or computed again."""

    y: dict[Round, bytes] = field(default_factory=dict)
    """This actor's draw of a round, once the seed is out. Secret until the reveal."""
    duties: dict[Round, tuple[Duty, ...]] = field(default_factory=dict)
    """What it draws, in order of claim id and duty."""
    results: dict[tuple[Digest, Digest], Digest] = field(default_factory=dict)
    """(program root, X root) to the end root that this actor computed."""
    leaves: dict[Round, tuple[Leaf, ...]] = field(default_factory=dict)
    draws: dict[Round, Digest] = field(default_factory=dict)
    """What the leaves of a round were drawn from: `attester.draw_of`."""
    outers: dict[Digest, OuterStep] = field(default_factory=dict)
    """X root of an outer step to where it ends."""
    trained: dict[tuple[Round, Digest], Trained] = field(default_factory=dict)
    """By round and base."""
    committed: dict[ClaimRef, CommittedChallenge] = field(default_factory=dict)
    released: set[tuple[str, Round]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as one actor sees it at a head. `now` is the chain time of the head in seconds, `block` its number."""

    facts: Facts
    me: Address
    now: int
    block: int
    state: RunState
    memory: Memory

    @property
    def charter(self) -> Charter:
        """The run's promises."""
        return self.facts.charter

    # --- who takes part

    def stake_at(self, who: AttesterRecord, round_: Round) -> Wei:
        """Stake that counts in a round."""
        serves = who.counts_from <= round_ and (who.retires_with is None or round_ < who.retires_with)
        return who.stake if serves else Wei(0)

    def total_at(self, role: Role, round_: Round) -> Wei:
        """Total stake of a role that counts in a round."""
        return Wei(sum(self.stake_at(a, round_) for a in self.state.attesters.values() if a.role is role))

    def attesters(self, role: Role, round_: Round) -> list[Address]:
        """Members of a role whose stake counts in a round and who were not convicted, sorted."""
        return sorted(
            a.who
            for a in self.state.attesters.values()
            if a.role is role and a.convicted_at is None and self.stake_at(a, round_)
        )

    @property
    def participants(self) -> list[Address]:
        """Holders of seats and verifiers, sorted: those who may post outer steps and do keeper tasks."""
        round_ = Round(max(len(self.state.rounds) - 1, 0))
        return sorted({*self.state.holders.values(), *self.attesters(Role.VERIFIER, round_)})

    # --- claims

    def commitment(self, round_: Round, seat: Seat) -> CommitmentRecord | None:
        """A seat's commitment."""
        return self.state.rounds[round_].commitments.get(seat) if round_ < len(self.state.rounds) else None

    def duty(self, record: RoundRecord, commitment: CommitmentRecord, number: int) -> Duty:
        """The claim behind a duty of a commitment."""
        training = self.charter.training
        if number < training.intervals:
            kind, x, y = ClaimKind.INTERVAL, commitment.roots[number], commitment.roots[number + 1]
        else:
            kind = ClaimKind.UPDATE
            start = self.outer_lists(record.number, commitment.base).parameters
            x, y = state_digest((start, commitment.end_lists[0])), state_digest((commitment.update,))
        ref = ClaimRef(kind, record.number, commitment.seat, number)
        return Duty(ref, self.claim_id(kind, commitment.solver, x, y), commitment.solver, x, y)

    def claim_id(self, kind: ClaimKind, claimant: Address, x: Digest, y: Digest) -> Digest:
        """The id of a claim of this run."""
        return claim_id(self.facts.chain_id, self.facts.address, self.facts.run_id, kind, claimant, x, y)

    def duties_of(self, record: RoundRecord) -> Iterator[Duty]:
        """Every claim of a round's complete commitments."""
        for _, commitment in sorted(record.commitments.items()):
            if commitment.complete:
                yield from (self.duty(record, commitment, j) for j in range(self.charter.training.duties))

    def drawn(self, record: RoundRecord, who: AttesterRecord, y: bytes) -> tuple[Duty, ...]:
        """The duties that a ticket draws, in the order of the leaves' tree."""
        rate = self.charter.economics.audit_ppm if who.role is Role.VERIFIER else self.charter.economics.whistle_ppm
        stake, total = self.stake_at(who, record.number), self.total_at(who.role, record.number)
        found = [d for d in self.duties_of(record) if is_drawn(y, d.id, d.number, rate, stake, total)]
        return tuple(sorted(found, key=lambda duty: (duty.id, duty.number)))

    def program_of(self, duty: Duty) -> Digest:
        """The root of the program that a duty is about."""
        is_update = duty.number == self.charter.training.intervals
        return (self.charter.update if is_update else self.charter.step).root

    def result(self, duty: Duty) -> Digest | None:
        """The end root that this actor computed for a duty."""
        return self.memory.results.get((self.program_of(duty), duty.x))

    # --- outer steps

    def outer(self, generation: Round, root: Digest) -> OuterRecord | None:
        """An outer root of a generation above 0."""
        return self.state.rounds[generation - 1].outers.get(root) if generation else None

    def outer_lists(self, generation: Round, root: Digest) -> OuterStep:
        """The list roots of an outer root that the chain knows."""
        if not generation:
            return OuterStep(self.charter.training.parameters, self.charter.training.momentum)
        record = self.state.rounds[generation - 1].outers[root]
        return OuterStep(record.parameters, record.momentum)

    def posted_in(self, generation: Round, root: Digest) -> list[bytes]:
        """The transactions that posted an outer root, of those first that still stand by it."""
        record = self.outer(generation, root)
        if record is None:
            return []
        posters = sorted(
            record.posters.items(), key=lambda entry: (entry[1] not in (Status.OPEN, Status.FINAL), entry[0])
        )
        return [record.transactions[who] for who, _ in posters]

    def is_standing(self, generation: Round, root: Digest) -> bool:
        """Does a round start from this root, as far as anybody has refuted it?"""
        if not generation:
            return root == self.facts.genesis
        record = self.outer(generation, root)
        return record is not None and not record.fallen

    def is_alive(self, generation: Round, root: Digest) -> bool:
        """Does it stand, or can it still be rescued? What may be built upon."""
        record = self.outer(generation, root)
        return self.is_standing(generation, root) or (record is not None and self.now <= record.rescue_until)

    def is_upheld(self, generation: Round, root: Digest, base: Digest) -> bool:
        """Does somebody stand by the claim that the step from this base ends in this root?"""
        record = self.outer(generation, root)
        if record is None or record.fallen:
            return False
        return any(
            record.bases[who] == base for who, status in record.posters.items() if status in (Status.OPEN, Status.FINAL)
        )

    def is_final(self, generation: Round, root: Digest) -> bool:
        """Was a claim behind this root finalized?"""
        if not generation:
            return root == self.facts.genesis
        record = self.outer(generation, root)
        return record is not None and Status.FINAL in record.posters.values()

    def verified_base(self, generation: Round) -> Digest | None:
        """The root that this generation has by this actor's own calculation from the chain's inclusions; posted or not.

        None while an inclusion before it is not fixed, or its step not computed yet.
        """
        root = self.facts.genesis
        for record in self.state.rounds[:generation]:
            inclusion = record.inclusions.get(root)
            step = None if inclusion is None else self.memory.outers.get(inclusion[1])
            if step is None:
                return None
            root = step.root
        return root

    @property
    def head(self) -> Head:
        """The newest block."""
        return self.state.head

    @property
    def games(self) -> Mapping[int, GameRecord]:
        """All games by number."""
        return self.state.games

    # --- games

    def games_on(self, refs: Iterable[ClaimRef]) -> list[int]:
        """Ids of games on any of these claims, over or not."""
        wanted = set(refs)
        return [g.game_id for g in self.state.games.values() if g.ref in wanted]


def turn_of(order: list[Address], who: Address, round_: Round, limit: int = 4) -> int:
    """The place of an actor in a round's order of keeper tasks: the one whose index is round mod count goes first.

    At most `limit`, so that the last does not come too late; those not in the order come last.
    """
    if who not in order:
        return limit
    return min((order.index(who) - round_) % len(order), limit)


def until(times: Mapping[str, int] | Iterable[int], now: int) -> int | None:
    """The earliest of some chain times that is still to come."""
    values = times.values() if isinstance(times, Mapping) else times
    return min((t for t in values if t > now), default=None)
