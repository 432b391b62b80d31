"""Between a commitment and the next round: what a position does is done at the first second that takes it."""

from __future__ import annotations

from dataclasses import replace

from assay.protocol.types import Digest, Round, Seat
from assay_solver.merging import (
    Abstain,
    ComputeMerge,
    FetchUpdate,
    HoldUpdates,
    MergeAction,
    MergeKnown,
    MergeSeen,
    OpenRoot,
    SealRoot,
    merging,
    times,
)

R, ME, LEAD = Round(3), Seat(1), 24
ALL = frozenset(map(Seat, (0, 1, 2)))
ROOT = Digest(bytes(31) + b"\1")
MASK, HOLD, SEAL, MERGE = 1000, 1120, 1600, 1600
SEEN = MergeSeen(R, ME, True, ALL, MASK, HOLD, False, frozenset(), True, SEAL, False, False, MERGE)
SPOKEN = replace(SEEN, spoke=True, counted=ALL)
HOLDER = MergeKnown(held=ALL)
MERGED = MergeKnown(ALL, frozenset(), ALL, ROOT)
SEALED = replace(SPOKEN, has_sealed=True, seal_until=1300)


def at(now: int, seen: MergeSeen, known: MergeKnown) -> list[MergeAction]:
    return list(merging(seen, known, now, LEAD))


def fetches(*seats: int) -> list[MergeAction]:
    return [FetchUpdate(R, Seat(s)) for s in seats]


def test_updates_are_fetched_as_they_are_committed_before_the_mask_closes() -> None:
    assert at(MASK - 500, SEEN, MergeKnown()) == fetches(0, 1, 2)
    assert at(MASK - 500, SEEN, MergeKnown(frozenset({ME}))) == fetches(0, 2)


def test_a_position_speaks_as_soon_as_the_mask_is_closed_and_all_is_held() -> None:
    assert at(MASK - 1, SEEN, HOLDER) == []
    assert at(MASK, SEEN, HOLDER) == [HoldUpdates(R, ME, ALL)]
    assert at(MASK, replace(SEEN, spoke=True), HOLDER) == []
    assert at(MASK, replace(SEEN, is_position=False), HOLDER) == []


def test_who_holds_less_fetches_until_its_word_has_to_go_out() -> None:
    some = MergeKnown(frozenset({ME}))
    assert at(HOLD - LEAD - 1, SEEN, some) == fetches(0, 2)
    assert at(HOLD - LEAD, SEEN, some) == [HoldUpdates(R, ME, frozenset({ME})), *fetches(0, 2)]
    assert at(HOLD, SEEN, some)[:1] == fetches(0)


def test_what_is_not_there_is_not_waited_for() -> None:
    known = MergeKnown(held=frozenset({Seat(1), Seat(2)}), lost=frozenset({Seat(0)}))
    assert at(MASK, SEEN, known) == [HoldUpdates(R, ME, frozenset({Seat(1), Seat(2)}))]


def test_a_word_names_no_update_without_weight() -> None:
    known = MergeKnown(held=ALL | {Seat(7)})
    assert at(MASK, SEEN, known) == [HoldUpdates(R, ME, ALL)]


def test_the_merge_is_computed_once_nobody_can_speak_any_more() -> None:
    assert at(HOLD - 1, SPOKEN, HOLDER) == []
    assert at(HOLD, SPOKEN, HOLDER) == [ComputeMerge(R, ALL)]
    early = replace(SPOKEN, hold_until=MASK + 5)
    assert at(MASK + 5, early, HOLDER) == [ComputeMerge(R, ALL)]


def test_what_counts_is_fetched_again_though_it_was_not_there_before() -> None:
    known = MergeKnown(held=frozenset({Seat(1), Seat(2)}), lost=frozenset({Seat(0)}))
    assert at(HOLD, SPOKEN, known) == fetches(0)


def test_who_cannot_have_what_counts_says_so_once_a_majority_has_spoken() -> None:
    known, closing = MergeKnown(frozenset({Seat(1), Seat(2)}), frozenset({Seat(0)})), replace(SPOKEN, seal_until=1300)
    assert at(1299, SPOKEN, known) == fetches(0)
    assert at(HOLD, closing, known) == at(1299, closing, known) == [*fetches(0), Abstain(R, ME)]
    assert at(1300, closing, known) == fetches(0)
    # Nothing is at stake with somebody else's seat, and nobody speaks twice.
    assert at(HOLD, replace(closing, is_position=False), known) == fetches(0)
    assert at(HOLD, replace(closing, has_sealed=True), known) == fetches(0)


def test_who_has_asked_too_seldom_or_lacks_nothing_that_counts_does_not_abstain() -> None:
    closing = replace(SPOKEN, seal_until=1300)
    assert at(HOLD, closing, MergeKnown(frozenset({ME}), frozenset({Seat(0)}))) == fetches(2, 0, 2)
    fewer = replace(closing, counted=frozenset({Seat(1), Seat(2)}))
    known = MergeKnown(frozenset({Seat(1), Seat(2)}), frozenset({Seat(0)}))
    assert at(HOLD, fewer, known) == [ComputeMerge(R, fewer.counted)]


def test_a_merge_over_other_updates_is_computed_anew() -> None:
    fewer = replace(SPOKEN, counted=frozenset({Seat(1), Seat(2)}))
    assert at(HOLD, fewer, MERGED) == [ComputeMerge(R, fewer.counted)]


def test_the_root_is_sealed_until_sealing_ends() -> None:
    assert at(HOLD, SPOKEN, MERGED) == [SealRoot(R, ME)]
    closing = replace(SPOKEN, seal_until=1300)
    assert at(1299, closing, MERGED) == [SealRoot(R, ME)]
    assert at(1300, closing, MERGED) == []
    assert at(HOLD, replace(SPOKEN, is_position=False), MERGED) == []


def test_the_root_is_opened_from_the_end_of_sealing_to_the_last_second() -> None:
    assert at(1299, SEALED, MERGED) == []
    assert at(1300, SEALED, MERGED) == [OpenRoot(R, ME)]
    assert at(MERGE - 1, SEALED, MERGED) == [OpenRoot(R, ME)]
    assert at(MERGE, SEALED, MERGED) == []
    assert at(1300, replace(SEALED, has_opened=True), MERGED) == []


def test_a_root_that_an_earlier_process_sealed_is_computed_before_it_is_opened() -> None:
    assert at(1300, SEALED, MergeKnown()) == fetches(0, 1, 2, 0, 1, 2)
    assert at(1300, SEALED, HOLDER) == [ComputeMerge(R, ALL)]
    assert at(MERGE, SEALED, HOLDER) == []
    other = replace(MERGED, merged=frozenset({ME}))
    assert at(1300, SEALED, other) == [ComputeMerge(R, ALL)]


def test_a_round_that_is_cut_or_deserted_is_not_merged() -> None:
    assert at(HOLD, replace(SPOKEN, is_alive=False), HOLDER) == []


def test_a_solver_wakes_at_every_second_at_which_something_becomes_due() -> None:
    last = {MASK, HOLD, SEAL, MERGE}
    # What comes after a window goes through from the second after its last one.
    assert set(times(SEEN, LEAD)) == {HOLD - LEAD, *last, *(second + 1 for second in last)}
