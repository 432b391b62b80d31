"""Answers for many at once: one thread that adds whoever comes to the batch, and gives each row a token in turn.

An answer does not depend on who else is in the batch (docs/adr/0062-inference.md), so who comes is let in between any
two tokens. What waits is bounded: beyond it the gateway says when to come again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import torch

from assay.inference.rows import TextRow, TextRows
from assay.inference.sampling import SamplingTerms, draw
from assay.protocol.errors import AssayError, DeadlineError, NumericsError, UnavailableError

log = logging.getLogger("assay.gateway")

ADMITTED: Final = 4
"""Prompts that are read between two tokens of the others."""

_PACE: Final = 0.9
"""Of the measured seconds of an answer, the weight of those before."""


class GatewayBusy(UnavailableError):
    """More wait than the gateway lets wait. retry_after: seconds, in the details."""

    remedy = "Ask again after that time, or ask another gateway."


@dataclass(eq=False, slots=True)
class TextWish:
    """An answer that somebody waits for.

    said: called by the batch's thread with each token, and with None or an error at the end. deadline: by
    `time.monotonic`. is_given_up: set by whoever no longer waits. is_read: whether its turn has come. answer: what was
    drawn; it may be begun before.
    """

    prompt: tuple[int, ...]
    terms: SamplingTerms
    most: int
    end: int
    deadline: float
    said: Callable[[int | AssayError | None], None]
    is_given_up: bool = False
    is_read: bool = False
    answer: list[int] = field(default_factory=list)


class TextBatch:
    """The thread. waiting: wishes at most that are not begun yet."""

    def __init__(self, rows: TextRows, waiting: int = 64) -> None:
        self._rows, self._waiting = rows, waiting
        self._queue: deque[TextWish] = deque()
        self._turn = threading.Condition()
        self._is_over = False
        self._begun = 0
        self._seconds = 1.0
        self.error: Exception | None = None
        """What ended the thread, where nobody closed it."""
        self.tokens = 0
        """Tokens given so far."""
        self._thread = threading.Thread(target=self._run, name="text batch", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether anybody is answered."""
        return self._thread.is_alive() and not self._is_over

    def check_room(self) -> None:
        """Raises what `submit` would now."""
        with self._turn:
            self._check_room()

    def submit(self, wish: TextWish) -> None:
        """Let a wish wait. Raises GatewayBusy, UnavailableError (GatewayEnds)."""
        with self._turn:
            self._check_room()
            self._queue.append(wish)
            self._turn.notify()

    def _check_room(self) -> None:
        if not self.is_alive:
            raise _ends()
        # Who comes while rows are free waits for no other, only for the thread to look.
        if len(self._queue) >= self._waiting + max(0, self._rows.most - self._begun):
            seconds = max(1, round(self._seconds * len(self._queue) / self._rows.most))
            raise GatewayBusy(f"{len(self._queue)} others wait already.", retry_after=seconds)

    def end(self) -> None:
        """Whoever waits is told that the gateway ends."""
        with self._turn:
            self._is_over = True
            self._turn.notify()

    def close(self) -> None:
        """The same, and the thread has ended when it returns."""
        self.end()
        self._thread.join()

    def _run(self) -> None:
        active: dict[TextWish, TextRow] = {}
        try:
            while not self._is_over:
                self._step(active)
        except Exception as error:
            log.exception("the batch ends")
            self.error = error
        with self._turn:
            self._is_over = True
            left = [*active, *self._queue]
            self._queue.clear()
        for wish in left:
            wish.said(_ends())

    def _step(self, active: dict[TextWish, TextRow]) -> None:
        """Read the prompts of a few who wait, then give everybody else one more token."""
        self._drop(active)
        going = list(active)
        for _ in range(min(ADMITTED, self._rows.most - len(active))):
            wish = self._next(is_idle=not active)
            if wish is None:
                break
            start, wish.is_read = time.monotonic(), True
            try:
                row, logits_V = self._rows.admit((*wish.prompt, *wish.answer))
            except Exception:
                wish.said(_ends())  # it waits no longer and is in no row: nobody else would tell it
                raise
            active[wish] = row
            self._give([wish], logits_V[None], active)
            self._note(time.monotonic() - start, wish)
        going = [wish for wish in going if wish in active]
        if going:
            start = time.monotonic()
            logits_BV = self._rows.advance([active[w] for w in going], [w.answer[-1] for w in going])
            self._give(going, logits_BV, active)
            self._note(time.monotonic() - start, going[0])

    def _next(self, *, is_idle: bool) -> TextWish | None:
        """Who is next, None where nobody waits; with nothing else to do, waits for one."""
        with self._turn:
            while is_idle and not self._queue and not self._is_over:
                self._turn.wait()
            if not self._queue or self._is_over:
                return None
            self._begun += 1
            return self._queue.popleft()

    def _give(self, wishes: list[TextWish], logits_BV: torch.Tensor, active: dict[TextWish, TextRow]) -> None:
        """The next token of each, and an end where there is one."""
        no_numbers = logits_BV.isnan().any(1).tolist()
        for wish, is_lost in zip(list(wishes), no_numbers, strict=True):
            if is_lost:
                self._end(wish, active, NumericsError("The model gives no numbers here.", code="LogitsNotFinite"))
        kept = [k for k, is_lost in enumerate(no_numbers) if not is_lost]
        if not kept:
            return
        left = [wishes[k] for k in kept]
        for wish, token in zip(
            left, draw(logits_BV[kept], [w.terms for w in left], [len(w.answer) for w in left]), strict=True
        ):
            wish.answer.append(token)
            self.tokens += 1
            wish.said(token)
            if token == wish.end or len(wish.answer) == wish.most:
                self._end(wish, active, None)

    def _drop(self, active: dict[TextWish, TextRow]) -> None:
        """Nobody waits for those whose time is over."""
        now = time.monotonic()
        with self._turn:
            late = [wish for wish in self._queue if wish.is_given_up or wish.deadline < now]
            for wish in late:
                self._queue.remove(wish)
        for wish in late:
            wish.said(_late())
        for wish in [wish for wish in active if wish.is_given_up or wish.deadline < now]:
            self._end(wish, active, _late())

    def _end(self, wish: TextWish, active: dict[TextWish, TextRow], error: AssayError | None) -> None:
        try:
            self._rows.release(active.pop(wish))
        except Exception:
            wish.said(_ends())
            raise
        with self._turn:
            self._begun -= 1
        wish.said(error)

    def _note(self, seconds: float, wish: TextWish) -> None:
        """What an answer takes, roughly: a step's time for each of its tokens."""
        self._seconds = _PACE * self._seconds + (1 - _PACE) * seconds * wish.most


def _late() -> DeadlineError:
    return DeadlineError("The answer was not finished in time.", code="AnswerLate", remedy="Ask for fewer tokens.")


def _ends() -> UnavailableError:
    return UnavailableError("The gateway ends.", code="GatewayEnds", remedy="Ask again later, or another gateway.")
