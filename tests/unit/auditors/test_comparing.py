"""What a finding contradicts: ends first, then accumulators under their keys, then updates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds.duty_types import MAX_AUDITED, ReplayFinding
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Digest
from assay_verifier.comparing import Contradiction, FalseClaim, against_attestation, against_work, part_of


def digest(n: int) -> Digest:
    return Digest(bytes([n]) * 32)


ENDS = (digest(1), digest(2), digest(3))
WORK = SeatWork(60, digest(4), ENDS, digest(5))
KEYS = (digest(10), digest(11))
THEIRS = ReplayFinding(ENDS, digest(5), KEYS, (digest(20), digest(21)))
OURS = ReplayFinding(ENDS, digest(5), (digest(9), *KEYS), (digest(19), digest(20), digest(21)))


@pytest.mark.parametrize("which", range(3))
def test_any_list_of_the_end_is_the_end(which: int) -> None:
    ends = tuple(digest(99) if k == which else root for k, root in enumerate(ENDS))
    assert against_work(replace(OURS, ends=ends), WORK) == Contradiction(FalseClaim.END)  # type: ignore[arg-type]


def test_an_update_is_false_where_the_end_is_not() -> None:
    assert against_work(replace(OURS, update=digest(99)), WORK) == Contradiction(FalseClaim.UPDATE)
    both = replace(OURS, update=digest(99), ends=(digest(99), *ENDS[1:]))
    assert against_work(both, WORK) == Contradiction(FalseClaim.END)


def test_what_agrees_contradicts_nothing() -> None:
    assert against_work(OURS, WORK) is None and against_attestation(OURS, THEIRS) is None


@pytest.mark.parametrize("which", range(2))
def test_a_false_accumulator_is_tried_under_its_key(which: int) -> None:
    accumulators = tuple(digest(99) if k == which else a for k, a in enumerate(THEIRS.accumulators))
    theirs = replace(THEIRS, accumulators=accumulators)
    found = against_attestation(OURS, theirs)
    assert found == Contradiction(FalseClaim.ACCUMULATOR, KEYS[which])
    assert part_of(found, theirs) == which


def test_an_attestations_update_is_the_part_behind_its_keys() -> None:
    found = against_attestation(OURS, replace(THEIRS, update=digest(99)))
    assert found == Contradiction(FalseClaim.UPDATE) and part_of(found, THEIRS) == 2


def test_an_attestations_end_is_tried_under_its_own_key() -> None:
    found = against_attestation(replace(OURS, ends=(digest(99), *ENDS[1:])), THEIRS)
    assert found == Contradiction(FalseClaim.END, KEYS[0]) and part_of(found, THEIRS) == 0


@pytest.mark.parametrize(("count", "answers"), [(MAX_AUDITED, True), (MAX_AUDITED + 1, False)])
def test_who_audits_answers_for_six_accumulators_and_no_more(count: int, answers: bool) -> None:
    keys = tuple(digest(30 + k) for k in range(count))
    theirs = ReplayFinding(ENDS, digest(5), keys, tuple(digest(99) for _ in keys))
    ours = ReplayFinding(ENDS, digest(5), (digest(9), *keys) if answers else (digest(9),), ())
    ours = replace(ours, accumulators=tuple(digest(50) for _ in ours.keys))
    found = against_attestation(ours, theirs)
    assert found == (Contradiction(FalseClaim.ACCUMULATOR, keys[0]) if answers else None)
