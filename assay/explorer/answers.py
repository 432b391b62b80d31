"""Answers of `explain`: known, counted, paid; and if not, the code, the remedy, the deadline."""

from __future__ import annotations

from typing import Any

from assay.explorer.codes import STANDING_CODES
from assay.explorer.documents import Document


def answer(question: str, yes: bool | None, text: str, **more: Any) -> Document:
    """A question, whether it is so (None: not yet), and why."""
    return {"question": question, "yes": yes, "text": text, "code": None, "remedy": None, "deadline": None, **more}


def yes(question: str, text: str) -> Document:
    """It is so."""
    return answer(question, True, text)


def not_yet(question: str, text: str, deadline: int) -> Document:
    """It is not known before a chain time, in seconds."""
    return answer(question, None, text, deadline=deadline)


def no(question: str, text: str, code: str, remedy: str, deadline: int | None = None) -> Document:
    """It is not so: why, what to do, and until when."""
    return answer(question, False, text, code=code, remedy=remedy, deadline=deadline)


def standing(question: str, text: str, code: str, deadline: int | None = None) -> Document:
    """It is not so, for one of the reasons that stand between work and pay."""
    return no(question, text, code, STANDING_CODES[code][1], deadline)
