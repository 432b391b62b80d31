"""A run's events as its node would tell them, in the order in which contracts emit them: what an index is measured by.

Rounds of 64 seats, each with commitments, what positions hold, seals, openings, settlements and pay, and an epoch of
audits. The values are made up; forms, order and what an index checks of them are those of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Final, cast

from assay.amounts import TEST_MONEY
from assay.bench.goodput import GoodputTerms
from assay.bench.goodput_model import round_terms
from assay.protocol.digests import ZERO, keccak
from assay.protocol.rounds.duty_draws import attestation_id
from assay.protocol.rounds.duty_types import DutyKind, DutyTerms, ReplayFinding
from assay.protocol.rounds.ids import party_of, work_digest
from assay.protocol.rounds.terms import SeatWork, WorkStatus
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms, chain_of
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.bindings import attestations, beacon, commitments, duties, generations, grants, payments, tenures
from assay_ledger.bindings import tickets as ticket_events
from assay_ledger.contract import Contract, Event, abi_value
from assay_ledger.event_forms import CODEC, form_of
from assay_ledger.rounds.facts import BeaconTimes, RunFacts

SEATS: Final = 64
TICKETS: Final = 16
CHAIN: Final = 31337
START: Final = 1_800_000_000
BLOCK_S: Final = 12
ROUND_S: Final = 7200
PER_BLOCK: Final = 16
"""Events of a block that has any: calls of a round come close together."""

ADDRESS: Final = Address(b"\xc4" * 20)
DRAND: Final = BeaconTimes(START - 3600, 30)


def facts() -> RunFacts:
    """The terms of a run whose node tells these events."""
    terms = round_terms(GoodputTerms(seats=SEATS, rounds=1 << 20))
    audits = DutyTerms(START, ROUND_S, 60, 4, 4_000_000, 4_000_000, Wei(1))
    all_terms = (terms, audits, TicketTerms(Wei(100), 2 * ROUND_S, 1))
    return RunFacts(CHAIN, ADDRESS, keccak(b"run"), *all_terms, DRAND, TEST_MONEY)


@dataclass(frozen=True, slots=True)
class PlacedEvent:
    """An event, the name of its contract, and the number and chain time of its block."""

    contract: str
    event: Event
    block: int
    time: int
    index: int


def placed(count: int) -> Iterator[PlacedEvent]:
    """So many events in blocks: as many as fit into a block come together, and time goes on between rounds."""
    block, index, time, due = 1, 0, START, START
    for name, event, now in islice(_events(count), count):
        if index == PER_BLOCK or now > due:
            block, index, due = block + 1, 0, max(due, now)
            time = max(time + 1, due)
        yield PlacedEvent(name, event, block, time, index)
        index += 1


def _mark(*label: object) -> Digest:
    return keccak(repr(label).encode())


def _events(count: int) -> Iterator[tuple[str, Event, int]]:
    """Events without end, each with the name of its contract and the chain time from which it may come."""
    rounds = count // 400 + 2
    chains = [chain_of(_mark("ticket", k), rounds) for k in range(TICKETS)]
    people = [Address(_mark("person", k)[:20]) for k in range(max(SEATS, TICKETS))]
    for seat in range(SEATS):
        yield "tenures", tenures.TenureBegan(seat + 1, people[seat], Seat(seat), 0), START
    for k in range(TICKETS):
        yield "tickets", ticket_events.TicketRegistered(TicketId(k + 1), people[k], START - 1, chains[k][0]), START
    for number in range(rounds):
        yield from _round(Round(number), people)
        yield from _epoch(number, chains)


def _work(round_: int, seat: int) -> SeatWork:
    ends = _mark("parameters", round_, seat), _mark("optimizer", round_, seat), _mark("scalars", round_, seat)
    return SeatWork(60, _mark("marks", round_, seat), ends, _mark("update", round_, seat))


def _round(r: Round, people: Sequence[Address]) -> Iterator[tuple[str, Event, int]]:
    t0 = START + (int(r) + 1) * ROUND_S
    root, next_ = _mark("root", r), Round(r + 1)
    yield "commitments", commitments.RoundBegan(r, int(r), t0, SEATS), t0
    for s in map(Seat, range(SEATS)):
        work = commitments.WorkCommitted(r, s, s + 1, _work(r, s), _mark("acc", r, s), False)
        yield "commitments", work, t0 + 3600
    for place in range(SEATS):
        yield "commitments", commitments.Held(r, 0, 1 << place, Wei((1 << SEATS) - 1)), t0 + 4800
    for s in map(Seat, range(SEATS)):
        yield "generations", generations.RootSealed(next_, s, _mark("seal", r, s)), t0 + 5400
    for s in map(Seat, range(SEATS)):
        opened = generations.RootOpened(next_, s, root, _mark("base", r), _mark("momentum", r))
        yield "generations", opened, t0 + 5700
        if s == SEATS // 2:
            yield "generations", generations.Merged(next_, root), t0 + 5700
    yield "generations", generations.Finalized(int(next_)), t0 + 6600
    for s in map(Seat, range(SEATS)):
        yield "commitments", commitments.WorkSettled(r, s, WorkStatus.FINAL), t0 + 6600
        yield "payments", payments.WorkPaid(r, s, s + 1, WorkStatus.FINAL, Wei(10**18), Wei(10**17)), t0 + 6600
        yield "grants", grants.Credited(_mark("grant", r, s), people[s], Wei(10**17), t0 + 10**6), t0 + 6600
    for position in range(SEATS):
        yield "generations", generations.OpeningClosed(int(next_), party_of(position)), t0 + 6660


def _epoch(number: int, chains: Sequence[Sequence[Digest]]) -> Iterator[tuple[str, Event, int]]:
    """An epoch that audits the round before: every ticket opens one result."""
    now = START + (number + 1) * ROUND_S + 6700
    seed, source = _mark("seed", number), DRAND.round_after(now)
    yield "beacon", beacon.BeaconSubmitted(source, seed), now
    yield "duties", duties.EpochBegan(number, seed, 0, TICKETS, now + 300), now
    for k, chain in enumerate(chains):
        ticket, seat = TicketId(k + 1), Seat(k % SEATS)
        work = _work(number, seat)
        target = work_digest(Round(number), seat, seat + 1, work)
        name = attestation_id(number, ticket, DutyKind.WORK, target)
        finding = ReplayFinding(work.ends, work.update, (_mark("key", number, k),), (_mark("sum", number, k),))
        yield "tickets", ticket_events.SecretShown(ticket, number, 0, chain[number + 1]), now + 60
        found = attestations.Attested(number, ticket, name, target, Round(number), seat, finding)
        yield "attestations", found, now + 60
        yield "payments", payments.FindingPaid(name, ticket, Wei(10**18), Wei(0)), now + 120
    yield "duties", duties.EpochClosed(number, True), now + 360


def log_of(made: PlacedEvent, contract: Contract, hash_: bytes) -> dict[str, Any]:
    """An event as a node's JSON has it."""
    event = cast(Any, made.event)
    form = form_of(type(event).ABI)
    values = dict(zip(form.types, (abi_value(getattr(event, f.name)) for f in fields(event)), strict=True))
    topics = [form.topic, *(CODEC.encode([form.types[name]], [values[name]]) for name in form.indexed)]
    data = CODEC.encode([form.types[name] for name in form.data], [values[name] for name in form.data])
    transaction = keccak(made.block.to_bytes(8, "big") + made.index.to_bytes(4, "big"))
    return {
        "address": "0x" + contract.address.hex(),
        "topics": ["0x" + topic.hex() for topic in topics],
        "data": "0x" + data.hex(),
        "blockNumber": hex(made.block),
        "blockHash": "0x" + hash_.hex(),
        "blockTimestamp": hex(made.time),
        "transactionHash": "0x" + transaction.hex(),
        "transactionIndex": hex(made.index),
        "logIndex": hex(made.index),
        "removed": False,
    }


def hash_of(number: int) -> bytes:
    """The hash of a block."""
    return ZERO if number < 0 else bytes(_mark("block", number))
