"""Gas of the second round's calls at 8, 64 and 1,024 seats: none grows with the seats, members or rounds of the run."""

from __future__ import annotations

import pytest

from assay.protocol.rounds import round_ids as ids
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round, Seat
from tests.harness.contracts import snapshots
from tests.harness.rounds.round_chain import RoundChain
from tests.harness.rounds.round_samples import ETHER, TERMS, TICKET_TERMS, bits, mark, terms_of, work_of
from tests.harness.rounds.round_world import RoundWorld

TICKETS = 10_000
COLUMNS = (8, 64, 1024)


class Meter:
    """The most gas that a call took, by call, of the calls after the first round: slots of a run are warm by then."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}

    def note(self, call: str, gas: int) -> None:
        self.most[call] = max(gas, self.most.get(call, 0))


def one_level(seats: int) -> dict[str, int]:
    """Every call of two rounds with all seats held."""
    w, meter = RoundWorld(RoundChain(terms_of(seats=seats))), Meter()
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


def two_levels(seats: int) -> dict[str, int]:
    """Joining, committing, and speaking by positions of 10,000 tickets, groups of 32."""
    w, meter = RoundWorld(RoundChain(terms_of(seats=seats, group_size=32))), Meter()
    auditor = w.add_person(TICKETS * TICKET_TERMS.bond)
    w.register(auditor, TICKETS)
    people = [w.add_person(100 * ETHER) for _ in range(seats)]
    for who in people:
        assert w.join(who) == ""
        if who != people[0]:
            meter.note("join", w.gas["join"])
    w.tick(TICKET_TERMS.seasoning)
    everything = frozenset(range(32))
    for _ in range(2):
        r = w.open_wide(mark("base"))
        w.tick(TERMS.commit)
        for who in people:
            assert w.commit(who) == ""
            if r:
                meter.note("commit", w.gas["commit"])
        w.at(w.submit_beacon())
        for group in range(seats // 32):
            for j in range(TERMS.positions):
                assert w.hold(auditor, everything, [j], group) == ""
                if r:
                    meter.note("hold", w.gas["hold"])
            assert w.call("Commitments", "countedOf", r, group) == (bits(everything), False)
        w.tick(1)
    assert w.call("Commitments", "countedOf", 1, 31) == (bits(everything), True)
    return meter.most


@pytest.mark.timeout(300)
def test_gas_of_a_call_does_not_grow_with_the_run() -> None:
    measured = {8: one_level(8), 64: one_level(64), 1024: two_levels(1024)}
    # More than 32 seats of a group have two words of counters, and a merge's X lists every seat.
    wider = {"hold": 2.0, "prepare a merge": 8.0}
    for call, gas in measured[64].items():
        assert gas <= wider.get(call, 1.15) * measured[8][call], call
    for call, gas in measured[1024].items():
        assert gas <= 1.15 * measured[64][call], call
    table = {call: {f"{n:,} seats": measured[n][call] for n in COLUMNS if call in measured[n]} for call in measured[8]}
    snapshots.check("rounds", table)
