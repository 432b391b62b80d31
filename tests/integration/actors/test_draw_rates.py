"""Duties at p = 0.3 with unequal stakes and a split identity: exactly those that the formula draws, and as often.

First a real run: contracts on a node, the agents themselves, whose revealed leaves are compared with the formula as
docs/protocol.md writes it. Then many rounds of real signatures by the same code as the agents', without a chain, whose
counts must lie in exact binomial intervals.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from eth_abi import encode
from eth_hash.auto import keccak
from numpy.typing import NDArray

from assay.protocol.run.charter import Charter
from assay.protocol.run.draws import Purpose, coverage
from assay.protocol.run.schedule import Times
from assay.protocol.types import Address, Digest, Role, Round, Seat, Status, Wei
from assay_ledger.bindings.audit import LeafRevealed
from assay_ledger.chain.client import Head
from assay_ledger.index.records import AttendanceRecord, AttesterRecord, CommitmentRecord, RoundRecord, RunState
from assay_ledger.index.view import Facts, Memory, RunView
from assay_ledger.keys.bls import CURVE_ORDER, BlsKey, verify_draw
from tests.harness.actors.world import ETHER, ActorWorld, SharedChain, new_world, small_work, with_economics

pytestmark = pytest.mark.long

P = Fraction(3, 10)
Q2 = Fraction(2, 10)
ROUNDS = 4
SOLVERS = ("ada", "bob", "cora")
STAKES = {"large": 900, "whole": 500, "half-1": 300, "half-2": 200}
"""In tokens. One operator holds both halves: as much stake as `whole`, under two keys."""

TOTAL = sum(STAKES.values())
BOND = 200 * ETHER
"""At p = 0.3 the least bond is five commitments' pay; see protocol.economics."""


def formula(y: bytes, claim: bytes, duty: int, rate: Fraction, stake: int, total: int) -> bool:
    """uint128(keccak256(abi.encode(y, C, j))) < floor(2^128 min(1, rate stake / total))."""
    ticket = int.from_bytes(keccak(encode(["bytes", "bytes32", "uint256"], (y, claim, duty))), "big") % 2**128
    return ticket < int(2**128 * min(Fraction(1), rate * stake / total))


# --- a real run


@pytest.fixture(scope="module")
def played(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ActorWorld, dict[str, int]]]:
    """The run at its end, with what everybody had at its start."""
    change = with_economics(audit_ppm=int(P * 10**6), whistle_ppm=int(Q2 * 10**6), verifier_bond=Wei(BOND))
    world = new_world(stage, tmp_path_factory.mktemp("rates"), small_work(), rounds=ROUNDS, change=change)
    first = {"first_seats": len(SOLVERS), "first_verifiers": len(STAKES)}
    for name in SOLVERS:
        world.solver(name, **first)
    for name, tokens in STAKES.items():
        world.verifier(name, stake=tokens * ETHER, **first)
    world.whistleblower("wilma")
    before = {name: world.wealth(name) for name in world.players}
    world.settle()
    yield world, before


def view_of(world: ActorWorld, name: str) -> RunView:
    state = world.state
    agent = world.players[name].agent
    return RunView(agent.facts, agent.me, state.head.timestamp, state.head.number, state, Memory())


def claims_of(world: ActorWorld, record: RoundRecord) -> dict[tuple[Seat, int], Digest]:
    """Every claim of a round by seat and duty."""
    return {(duty.seat, duty.number): duty.id for duty in view_of(world, "ada").duties_of(record)}


def expected(world: ActorWorld, record: RoundRecord, name: str) -> set[tuple[Seat, int]]:
    """What the formula draws for somebody's revealed signature."""
    mine = record.attendance.get(world.address(name))
    if mine is None or mine.y is None:
        return set()
    rate, stake, total = (P, STAKES[name], TOTAL) if name in STAKES else (Q2, 1, 1)
    claims = claims_of(world, record)
    return {place for place, claim in claims.items() if formula(mine.y, claim, place[1], rate, stake, total)}


def revealed(world: ActorWorld, record: RoundRecord, name: str) -> set[tuple[Seat, int]]:
    """What somebody revealed."""
    return set(record.attendance.get(world.address(name), AttendanceRecord(Role.NONE, Digest(bytes(32)))).leaves)


def test_the_chain_counts_the_stakes_that_were_put_down(played: tuple[ActorWorld, dict[str, int]]) -> None:
    world, _ = played
    ask, audit = world.stage.chain.ask, world.run.audit
    for number in range(ROUNDS):
        assert ask(audit.total_at(Role.VERIFIER, number)) == TOTAL * ETHER
        for name, tokens in STAKES.items():
            assert ask(audit.stake_at(world.address(name), number)) == tokens * ETHER


def test_every_signature_is_its_keys_own_on_its_rounds_seed(played: tuple[ActorWorld, dict[str, int]]) -> None:
    world, _ = played
    kinds = ["uint256", "address", "bytes32", "uint64", "uint8", "bytes32"]
    seen = set()
    for record in world.state.rounds:
        assert {*STAKES} == {n for n in STAKES if record.attendance[world.address(n)].y is not None}
        for who, mine in record.attendance.items():
            purpose, seed = (Purpose.AUDIT, record.seed) if mine.role is Role.VERIFIER else (Purpose.WHISTLE, None)
            seed = seed or record.whistle_seed
            contract = "0x" + world.run.modules.audit.hex()
            values = (world.stage.chain.chain_id, contract, world.run.run_id, record.number, int(purpose), seed)
            assert mine.y is not None
            assert verify_draw(world.state.attesters[who].public_key, mine.y, encode(kinds, values))
            seen.add(mine.y)
    assert len(seen) == sum(len(r.attendance) for r in world.state.rounds)


def test_a_verifiers_revealed_leaves_are_the_duties_that_the_formula_draws(
    played: tuple[ActorWorld, dict[str, int]],
) -> None:
    world, _ = played
    places = found = 0
    for record in world.state.rounds:
        for name in STAKES:
            assert revealed(world, record, name) == expected(world, record, name), (record.number, name)
            places += len(claims_of(world, record))
            found += len(revealed(world, record, name))
    assert places == ROUNDS * len(STAKES) * len(SOLVERS) * world.run.charter.training.duties
    # Draws differ from run to run; with 288 places of mean 0.075 neither end is ever seen.
    assert 0 < found < places // 2


def test_the_contract_names_the_same_claims(played: tuple[ActorWorld, dict[str, int]]) -> None:
    world, _ = played
    found = world.stage.chain.events(LeafRevealed.search(world.run.audit.address), 0)
    assert found
    for event in (logged.event for logged in found):
        assert event.claim_id == claims_of(world, world.state.rounds[event.round])[event.seat, event.duty]
        assert event.agrees


def test_a_whistleblower_reveals_what_it_drew_of_what_is_attested(played: tuple[ActorWorld, dict[str, int]]) -> None:
    world, _ = played
    for record in world.state.rounds:
        attested = set().union(*(expected(world, record, name) for name in STAKES))
        assert revealed(world, record, "wilma") == expected(world, record, "wilma") & attested


def test_every_round_settles_drawn_or_not_and_nobody_loses(played: tuple[ActorWorld, dict[str, int]]) -> None:
    world, before = played
    state, terms = world.state, world.run.charter.economics
    assert len(state.rounds) == ROUNDS and not state.games
    for record in state.rounds:
        assert record.settled
        assert [c.status for c in record.commitments.values()] == [Status.FINAL] * len(SOLVERS)
    for name in SOLVERS:
        assert world.wealth(name) == before[name]
        assert world.shares(name) == ROUNDS * terms.units * terms.shares_per_unit
    for name in (*STAKES, "wilma"):
        duties = sum(len(revealed(world, record, name)) for record in state.rounds)
        assert world.wealth(name) == before[name] + duties * terms.wage
        assert world.shares(name) == duties * terms.shares_per_duty


# --- frequencies

RUNS = 300
SEATS = 4
SEED = 20261120


@cache
def pmf(n: int, p: Fraction) -> NDArray[np.float64]:
    """The binomial distribution, by its logarithms."""
    k = np.arange(n + 1)
    steps = np.concatenate(([0.0], np.cumsum(np.log((n - k[:-1]) / (k[:-1] + 1)))))
    weights = np.exp(steps + k * np.log(float(p)) + (n - k) * np.log1p(-float(p)))
    return np.asarray(weights / weights.sum(), np.float64)


def interval(distribution: NDArray[np.float64]) -> tuple[int, int]:
    """The central 99.9 %: what lies below and what lies above has at most 0.05 % each. Exact, no approximation."""
    below = np.cumsum(distribution)
    return int(np.searchsorted(below, 0.0005)), int(np.searchsorted(below, 0.9995))


def signed_rounds(charter: Charter) -> tuple[dict[str, int], int]:
    """How often each holder is drawn, and how many duties somebody is drawn for, in the first rounds of many runs.

    The commitments are invented; drawing among them takes no calculation.

    Signatures, seeds, claim ids, thresholds are made as agents make them: BlsKey.sign_draw and View.drawn. Under one
    signature the tickets are hashes of different (claim, duty), so the trials are independent.
    """
    source = random.Random(SEED)
    contract = Address(source.randbytes(20))
    keys = {name: BlsKey.from_secret(source.randrange(1, CURVE_ORDER)) for name in STAKES}
    owners = {name: Address(hashlib.sha256(name.encode()).digest()[:20]) for name in STAKES}
    attesters = {
        owners[name]: AttesterRecord(
            owners[name], Role.VERIFIER, Wei(STAKES[name] * ETHER), Round(0), keys[name].public_key
        )
        for name in STAKES
    }
    state = RunState(Head(1, 1), attesters=attesters)
    counts, covered = dict.fromkeys(STAKES, 0), 0
    for _ in range(RUNS):
        run, seed = Digest(source.randbytes(32)), Digest(source.randbytes(32))
        facts = Facts(31337, contract, run, charter)
        record = RoundRecord(Round(0), Times(*range(10)), (None,) * 8, seed=seed)
        for k in range(SEATS):
            record.commitments[Seat(k)] = commitment(facts, source, Seat(k))
        someone = set()
        for name, key in keys.items():
            view = RunView(facts, owners[name], 1, 1, state, Memory())
            y = key.sign_draw(31337, contract, run, record.number, Purpose.AUDIT, seed)
            drawn = view.drawn(record, attesters[owners[name]], y)
            counts[name] += len(drawn)
            someone.update((duty.seat, duty.number) for duty in drawn)
        covered += len(someone)
    return counts, covered


def commitment(facts: Facts, source: random.Random, seat: Seat) -> CommitmentRecord:
    """A complete commitment to nothing in particular."""

    def root() -> Digest:
        return Digest(source.randbytes(32))

    roots = tuple(root() for _ in range(facts.charter.training.intervals + 1))
    solver = Address(source.randbytes(20))
    return CommitmentRecord(
        seat, solver, root(), facts.genesis, roots, (root(), root()), root(), bytes(32), complete=True
    )


def test_real_signatures_draw_as_often_as_the_formula_says_however_a_stake_is_split(
    played: tuple[ActorWorld, dict[str, int]],
) -> None:
    world, _ = played
    counts, covered = signed_rounds(world.run.charter)
    trials = RUNS * SEATS * world.run.charter.training.duties
    parts = {name: P * tokens / TOTAL for name, tokens in STAKES.items()}
    for name, chance in parts.items():
        low, high = interval(pmf(trials, chance))
        assert low <= counts[name] <= high, (name, counts[name], (low, high))
    # The two halves are drawn independently of each other; together as often as the whole.
    low, high = interval(np.convolve(pmf(trials, parts["half-1"]), pmf(trials, parts["half-2"])))
    assert low <= counts["half-1"] + counts["half-2"] <= high
    assert parts["half-1"] + parts["half-2"] == parts["whole"]
    low, high = interval(pmf(trials, coverage(300_000, [Wei(t) for t in STAKES.values()])))
    assert low <= covered <= high
    # The intervals are narrow enough to tell: a rate that is a third too low or half too high gives others.
    for name, chance in parts.items():
        for wrong in (chance * 2 / 3, chance * 3 / 2):
            low, high = interval(pmf(trials, wrong))
            assert not low <= counts[name] <= high, name
