"""When an accuser opens its game: at once, or while somebody else's runs at the middle of the last window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds.duty_types import AccusationStatus, Epoch
from assay.protocol.types import Digest
from assay_whistleblower.pursuing import OwnAccusation, TryAccusation, patience_until, pursuit

LENGTH = 3600
SEED = Digest(b"seed".ljust(32, b"\0"))
ID = Digest(b"id".ljust(32, b"\0"))
MADE = OwnAccusation(ID, AccusationStatus.RECORDED, 4, is_accused_convicted=False, is_tried_elsewhere=False)
CLOSED = [Epoch(k * 10_000, SEED, k * 10_000 + LENGTH, closed=True, fines=True) for k in range(5)]
AFTER = Epoch(50_000, SEED, 54_000)
RIVAL = replace(MADE, is_tried_elsewhere=True)


def test_the_game_is_opened_at_once_where_nobody_plays() -> None:
    assert list(pursuit([MADE], CLOSED, LENGTH, 41_000)) == [TryAccusation(ID)]


@pytest.mark.parametrize("epochs", [CLOSED, [*CLOSED, Epoch(50_000)]])
def test_somebody_elses_game_is_waited_for_while_the_last_window_has_not_begun(epochs: list[Epoch]) -> None:
    assert list(pursuit([RIVAL], epochs, LENGTH, 10**9)) == []


def test_somebody_elses_game_is_waited_for_to_the_middle_of_the_last_window() -> None:
    epochs = [*CLOSED, AFTER]
    middle = AFTER.deadline - LENGTH // 2
    assert patience_until(4, epochs, LENGTH) == middle
    assert list(pursuit([RIVAL], epochs, LENGTH, middle - 1)) == []
    assert list(pursuit([RIVAL], epochs, LENGTH, middle)) == [TryAccusation(ID)]


def test_a_game_whose_time_is_over_is_opened_while_nobody_ended_the_accusation() -> None:
    assert list(pursuit([RIVAL], [*CLOSED, AFTER, Epoch(60_000)], LENGTH, 60_001)) == [TryAccusation(ID)]


def test_no_game_is_opened_on_somebody_convicted_elsewhere() -> None:
    gone = replace(MADE, is_accused_convicted=True)
    assert list(pursuit([gone], CLOSED, LENGTH, 41_000)) == []


@pytest.mark.parametrize("status", [s for s in AccusationStatus if s is not AccusationStatus.RECORDED])
def test_what_is_tried_or_over_is_left_alone(status: AccusationStatus) -> None:
    assert list(pursuit([replace(MADE, status=status)], CLOSED, LENGTH, 41_000)) == []


def test_the_oldest_accusation_comes_first() -> None:
    younger = replace(MADE, id=Digest(bytes(32)), epoch=5)
    assert list(pursuit([younger, MADE], CLOSED, LENGTH, 41_000)) == [TryAccusation(ID), TryAccusation(younger.id)]
