"""The batch's thread: who waits, who gives up, who is late, and what one address may ask."""

from __future__ import annotations

import queue
import threading
import time

import pytest
from torch import Tensor

from assay.inference.gateway.batcher import GatewayBusy, TextBatch, TextWish
from assay.inference.gateway.limits import ASKERS, RateLimit
from assay.inference.generate import NO_END
from assay.inference.rows import TextRow, WindowRows
from assay.inference.sampling import GREEDY, SamplingTerms
from assay.protocol.errors import AssayError, UnavailableError
from tests.harness.inference.models import small_gpt

PATIENT_S = 100.0
"""For what is answered at once: a test must not end because a machine is slow."""


class HeldRows(WindowRows):
    """Rows that wait for a word before each token, and whose numbers may be none for some prompt."""

    def __init__(self, most: int = 1, *, lost: int | None = None) -> None:
        super().__init__(small_gpt())
        self.most, self.lost = most, lost
        self.word = threading.Semaphore(0)
        self.released = 0

    def admit(self, tokens) -> tuple[TextRow, Tensor]:
        row, logits = super().admit(tokens)
        return row, logits * float("nan") if tokens[0] == self.lost else logits

    def advance(self, rows, tokens) -> Tensor:
        assert self.word.acquire(timeout=PATIENT_S)
        return super().advance(rows, tokens)

    def release(self, row: TextRow) -> None:
        self.released += 1

    def _logits(self, rows) -> Tensor:
        return super()._logits(rows[:1]).expand(len(rows), -1)


def wish(*prompt: int, most: int = 3, seconds: float = 60.0) -> tuple[TextWish, queue.Queue]:
    """A wish, and what it is told."""
    told: queue.Queue = queue.Queue()
    return TextWish(prompt or (1,), GREEDY, most, NO_END, time.monotonic() + seconds, told.put), told


def ending(told: queue.Queue) -> AssayError | None:
    """What a wish was told at its end."""
    while isinstance(event := told.get(timeout=PATIENT_S), int):
        pass
    return event


def test_one_more_than_may_wait_is_refused_and_the_others_are_answered() -> None:
    rows = HeldRows()
    batch = TextBatch(rows, waiting=2)
    first, *others = (wish() for _ in range(3))
    batch.submit(first[0])
    first[1].get(timeout=PATIENT_S)  # it is being answered, and waits for a word
    for other, _ in others:
        batch.submit(other)
    with pytest.raises(GatewayBusy) as busy:
        batch.submit(wish()[0])
    assert busy.value.details["retry_after"] >= 1
    assert first[0].is_read and not any(other.is_read for other, _ in others)
    rows.word.release(6)
    assert [ending(told) for _, told in (first, *others)] == [None] * 3
    assert (rows.released, batch.tokens) == (3, 9)
    batch.close()


def test_who_gives_up_or_is_late_leaves_room_for_the_next() -> None:
    rows = HeldRows()
    batch = TextBatch(rows)
    given_up, told = wish(most=1000)
    late, told_late = wish(seconds=-1.0)
    batch.submit(given_up)
    told.get(timeout=PATIENT_S)
    given_up.is_given_up = True
    batch.submit(late)
    last, told_last = wish(most=1)
    batch.submit(last)
    rows.word.release(2)
    assert [getattr(ending(t), "code", None) for t in (told, told_late, told_last)] == [
        "AnswerLate",
        "AnswerLate",
        None,
    ]
    batch.close()


def test_what_was_begun_goes_on_as_if_it_had_never_broken_off() -> None:
    batch = TextBatch(WindowRows(small_gpt()))
    (whole, told), (rest, told_rest) = wish(1, 2, most=6), wish(1, 2, most=6)
    whole.terms = rest.terms = SamplingTerms(7, 1_000_000, 0)
    batch.submit(whole)
    assert ending(told) is None
    rest.answer.extend(whole.answer[:2])
    batch.submit(rest)
    assert ending(told_rest) is None and rest.answer == whole.answer
    assert batch.tokens == 6 + 4
    batch.close()


def test_a_row_without_numbers_ends_alone() -> None:
    batch = TextBatch(HeldRows(2, lost=5))
    (bad, told_bad), (good, told_good) = wish(5), wish(1, most=1)
    batch.submit(bad)
    batch.submit(good)
    assert getattr(ending(told_bad), "code", None) == "LogitsNotFinite"
    assert ending(told_good) is None
    batch.close()


def test_who_waits_when_the_gateway_ends_is_told() -> None:
    rows = HeldRows()
    batch = TextBatch(rows)
    (first, told), (second, told_second) = wish(), wish()
    batch.submit(first)
    told.get(timeout=PATIENT_S)
    batch.submit(second)
    batch._is_over = True
    rows.word.release(9)
    assert {getattr(ending(t), "code", None) for t in (told, told_second)} == {"GatewayEnds"}
    batch.close()
    with pytest.raises(UnavailableError):
        batch.submit(wish()[0])


def test_an_address_asks_as_often_as_its_rate_allows() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 3, lambda: now[0])
    assert [limit.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert limit.wait("b") == 0.0
    now[0] = 0.5
    assert limit.wait("a") == 0.0 and limit.wait("a") == 0.5
    for k in range(ASKERS):
        limit.wait(str(k))
    assert limit.wait("a") == 0.0 and len(limit._known) == ASKERS
