"""Gas of a round's calls at 8, 64 and 1,024 seats: none grows with the seats, members or rounds of the run."""

from __future__ import annotations

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round, Seat
from tests.harness.contracts import snapshots
from tests.harness.contracts.node_evm import NodeEvm
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.samples import START, TERMS, terms_of, work_of
from tests.harness.rounds.world import RoundWorld

TICKETS = 10_000
COLUMNS = (8, 64, 1024)

ON_A_NODE = (8, 64, 128)
NODE_TICKETS = 256
"""On a node everybody takes transactions, some twenty a second: two levels are played with few groups."""

NODE_CALLS = (
    "join", "commit", "hold", "seal", "open", "open with the majority", "prepare work", "restart", "finalize", "close",
    "settle",
)  # fmt: skip
"""Calls that there are at every width."""


class Meter:
    """The most gas that a call took, by call, of the calls after the first round: slots of a run are warm by then."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}

    def note(self, call: str, gas: int) -> None:
        self.most[call] = max(gas, self.most.get(call, 0))


def one_level(seats: int, node: NodeEvm | None = None) -> dict[str, int]:
    """Every call of two rounds with all seats held, in process or on a node."""
    w, meter = RoundWorld(RoundChain(terms_of(seats=seats), node)), Meter()
    people = w.begin(seats)
    meter.note("join", w.gas["join"])
    w.play_round(people)
    r = w.round
    w.at(w.model.commitments.rounds[r].t0 + TERMS.commit)
    for who in people:
        assert w.commit(who) == ""
        meter.note("commit", w.gas["commit"])
    w.tick(1)
    for who in people:
        assert w.hold(who) == ""
        meter.note("hold", w.gas["hold"])
    w.tick(1)
    for who in people:
        assert w.seal(who, "root") == ""
        meter.note("seal", w.gas["seal"])
    w.tick(1)
    for number, who in enumerate(people):
        assert w.open(who, "root", r) == ""
        meter.note("open with the majority" if number == seats // 2 else "open", w.gas["open"])
    entries = w.entries(r)
    words = [(e.seat, e.units, e.update) for e in entries]
    assert w.do(lambda: w.model.generations.prepare(r, entries, w.now), "Generations", "prepare", r, words) == ""
    meter.note("prepare a merge", w.gas["prepare"])
    work, kind = work_of((people[0], r)), ClaimKind.INTERVAL
    assert w.prepare(kind, r, Seat(0), work) == ""
    meter.note("prepare work", w.gas["prepare"])
    w.at(w.model.commitments.merge_until(w.round) + 1)
    assert w.restart() == ""
    meter.note("restart", w.gas["restart"])
    w.tick(TERMS.challenge)
    party, model = ids.seat_party(Seat(0)), w.model.generations
    for call in ("finalize", "close"):
        method = getattr(model, call)
        assert w.do(lambda: method(1, party, w.now), "Generations", call, 1, party) == ""  # noqa: B023
        meter.note(call, w.gas[call])
    assert w.settle(Round(0), Seat(0)) == ""
    meter.note("settle", w.gas["settle"])
    return meter.most


def two_levels(seats: int, node: NodeEvm | None = None, tickets: int = TICKETS) -> dict[str, int]:
    """Every call of two rounds with all seats held, in groups of 32, and 10,000 tickets."""
    terms = terms_of(seats=seats, group_size=32, group_merge=180)
    w, meter = GroupedWorld(RoundChain(terms, node)), Meter()
    people = w.start(auditors=[tickets])
    meter.note("join", w.gas["join"])
    w.play_round(people)
    r = w.round
    w.at(w.model.commitments.rounds[r].t0 + TERMS.commit)
    for who in people:
        assert w.commit(who) == ""
        meter.note("commit", w.gas["commit"])
    w.at(max(w.submit_beacon(), w.now + 1))
    nodes = [w.node(group) for group in w.groups()]
    for group, node in enumerate(nodes):
        for ticket, positions in w.committee(node).items():
            assert w.hold(w.owners[ticket], None, positions, group) == ""
            if len(positions) == 1:
                meter.note("hold", w.gas["hold"])
    w.tick(1)
    committees = {node: w.committee(node) for node in nodes}
    for node, members in committees.items():
        for ticket in members:
            assert w.seal_at(node, ticket, "sum", members[ticket]) == ""
            meter.note("seal a sum", w.gas["seal"] if len(members[ticket]) == 1 else 0)
    w.tick(1)
    for node, members in committees.items():
        for ticket in members:
            assert w.open_at(node, ticket, "sum") == ""
            meter.note("open a sum", w.gas["open"])
    w.tick(1)
    top = w.top()
    members = w.committee(top)
    for ticket, positions in members.items():
        assert w.seal_at(top, ticket, "root", positions) == ""
        meter.note("seal", w.gas["seal"] if len(positions) == 1 else 0)
    w.tick(1)
    for ticket in members:
        before = w.round
        assert w.open_at(top, ticket, "root") == ""
        meter.note("open" if w.round == before else "open with the majority", w.gas["open"])
    for call, node in (("prepare a sum", nodes[0]), ("prepare a merge of sums", top)):
        assert w.prepare_node(node) == ""
        meter.note(call, w.gas["preparePartial" if node != top else "prepareMerge"])
    assert w.prepare(ClaimKind.INTERVAL, r, Seat(0), work_of((people[0], r))) == ""
    meter.note("prepare work", w.gas["prepare"])
    w.at(w.model.commitments.merge_until(w.round) + 1)
    assert w.restart() == ""
    meter.note("restart", w.gas["restart"])
    w.tick(TERMS.challenge)
    for group in range(terms.groups):
        node = w.node(group, Round(0))
        assert w.on_node("finalize", node, ids.ticket_party(next(iter(w.committee(node))))) == ""
        meter.note("finalize a sum", w.gas["finalize"])
    party = ids.ticket_party(next(iter(w.committee(w.top(Round(0))))))
    for call in ("finalize", "close"):
        assert w.on_node(call, 1, party) == ""
        meter.note(call, w.gas[call])
    for seat in range(seats):
        assert w.settle(Round(1), Seat(seat)) == ""
        meter.note("settle", w.gas["settle"])
    w.check()
    return meter.most


@pytest.mark.timeout(300)
def test_gas_of_a_call_does_not_grow_with_the_run() -> None:
    measured = {8: one_level(8), 64: one_level(64), 1024: two_levels(1024)}
    # More than 32 seats of a group have two words of counters, and a merge's X lists every seat.
    wider = {"hold": 2.0, "prepare a merge": 8.0}
    for call, gas in measured[64].items():
        assert gas <= wider.get(call, 1.15) * measured[8][call], call
    for call, gas in measured[1024].items():
        assert gas <= 1.15 * measured[64].get(call, gas), call
    # Besides, an actor at two levels speaks for the sum of its group.
    calls = [*measured[8], *(call for call in measured[1024] if call not in measured[8])]
    table = {call: {f"{n:,} seats": measured[n][call] for n in COLUMNS if call in measured[n]} for call in calls}
    snapshots.check("rounds", table)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_gas_on_a_node_with_cold_slots_does_not_grow_with_the_run() -> None:
    measured = {}
    for seats in ON_A_NODE:
        with NodeEvm(START) as node:
            measured[seats] = two_levels(seats, node, NODE_TICKETS) if seats > 64 else one_level(seats, node)
    for call in NODE_CALLS:
        few, some, many = (measured[seats][call] for seats in ON_A_NODE)
        assert few <= some and many <= 1.15 * some, call
    table = {call: {f"{n} seats": measured[n][call] for n in ON_A_NODE} for call in NODE_CALLS}
    snapshots.check("rounds-on-a-node", table)
