"""Rules of the model of rounds against their plain statements: masks, counts, cuts, conservation."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.digests import ZERO
from assay.protocol.rounds.clock import close_mask, commit_until
from assay.protocol.rounds.segments import Segments
from assay.protocol.rounds.terms import RoundState
from tests.harness.rounds.samples import TERMS

C, F, G = TERMS.commit, TERMS.inclusion, TERMS.grace


@given(st.integers(1, 64), st.data())
@settings(max_examples=300, deadline=None)
def test_the_mask_closes_where_the_rule_over_all_commitments_puts_it(seats: int, data: st.DataObject) -> None:
    """The contract moves the close commit by commit; the rule names it from all times at once."""
    times = sorted(data.draw(st.lists(st.integers(0, C + F), max_size=seats)))
    state = RoundState(0, C + F, seats, 0, ZERO)
    for now in times:
        before = state.mask_at
        close_mask(TERMS, state, now)
        assert min(now, before) <= state.mask_at <= before  # nobody who was in time is put out
    ends = [C + F]
    two_thirds = -(-2 * seats // 3)
    nearly_all = max(two_thirds, seats - 1 if seats < 20 else -(-95 * seats // 100))
    if len(times) >= two_thirds:
        ends.append(max(times[two_thirds - 1], C) + G)
    if len(times) >= nearly_all:
        ends.append(times[nearly_all - 1] + G)
    if len(times) == seats:
        ends.append(times[-1])
    assert state.mask_at == min(ends)
    assert state.committed == len(times)
    assert commit_until(TERMS, state) == C + F


@given(st.lists(st.tuples(st.sampled_from(["merge", "lose", "fall"]), st.integers(0, 60)), max_size=60))
@settings(max_examples=400, deadline=None)
def test_a_stack_of_segments_cuts_what_a_walk_to_the_genesis_would(moves: list[tuple[str, int]]) -> None:
    """B12. A generation is cut iff it, or one that it builds on, was cut."""
    segments, parents, cut, merged = Segments(), {}, set(), {0}

    def is_cut(generation: int) -> bool:
        while generation != 0:
            if generation in cut:
                return True
            generation = parents[generation]
        return False

    def open_round(parent: int, is_empty: bool) -> None:
        number = len(parents)
        segments.go_on(number, parent, is_empty)
        parents[number + 1] = parent

    open_round(0, False)
    for move, which in moves:
        latest = len(parents)
        if move == "merge" and not is_cut(latest):
            merged.add(latest)
            open_round(latest, False)
        elif move == "fall":
            alive = [g for g in sorted(merged) if g and not is_cut(g)]
            if alive:
                cut.add(fallen := alive[which % len(alive)])
                segments.cut(fallen)
        else:
            if not is_cut(latest):
                cut.add(latest)
                segments.cut(latest)
            parent, is_empty = segments.newest(latest - 1)
            assert parent == max(g for g in merged if not is_cut(g))
            open_round(parent, is_empty)
        assert [segments.is_cut(g) for g in range(len(parents) + 1)] == [is_cut(g) for g in range(len(parents) + 1)]


@given(st.integers(1, 1024), st.integers(1, 64), st.data())
def test_every_seat_has_one_place_in_one_group(seats: int, size: int, data: st.DataObject) -> None:
    terms = replace(TERMS, seats=seats, group_size=size)
    seat = data.draw(st.integers(0, seats - 1))
    group, place = terms.place(seat)  # type: ignore[arg-type]
    width = 64 if seats <= 64 else size
    assert group * width + place == seat
    assert 0 <= place < width
    assert seats > 64 or group == 0
