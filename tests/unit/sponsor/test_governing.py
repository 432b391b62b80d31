"""What owners are kept from voting about: decisions that move nothing any more."""

from __future__ import annotations

import pytest

from assay.cli.govern import WORDS
from assay.protocol.errors import RejectedError
from assay.protocol.rounds.decisions import Verb
from assay.protocol.rounds.escrow import RunPhase
from assay.sponsor.governing import check_in_time

ENDED = (RunPhase.WOUND_DOWN, RunPhase.CANCELLED, RunPhase.OVER)


def refused(verb: Verb, phase: RunPhase) -> str:
    """What is said of a decision; nothing where it is taken."""
    try:
        check_in_time(verb, phase)
    except RejectedError as error:
        assert error.code == "DecisionInVain"
        return error.explain()
    return ""


@pytest.mark.parametrize("phase", RunPhase)
def test_of_a_run_that_has_ended_nobody_votes_about_its_rounds(phase: RunPhase) -> None:
    """Bad luck: a week of votes and a time lock, for a pause of rounds that nobody opens any more."""
    assert phase.has_ended == (phase in ENDED)
    in_vain = {verb for verb in Verb if refused(verb, phase)}
    assert in_vain == ({Verb.PAUSE, Verb.RESUME, Verb.PRICE, Verb.DISMISS} if phase in ENDED else set())
    for verb in in_vain:
        said = refused(verb, phase)
        assert phase.words in said and all(word in said for word, (kind, _) in WORDS.items() if kind not in in_vain)
