"""The user's own lines: of a frame, of an error, and the one that changes something."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint

_ENGINE = Path(__file__).resolve().parents[2]
_LIBRARIES = (str(Path(torch.__file__).resolve().parent) + os.sep, str(_ENGINE) + os.sep)
_OWN = (str(_ENGINE.parent / "training") + os.sep,)
_STDLIB = str(Path(os.__file__).resolve().parent) + os.sep
_CHECKPOINT = os.path.realpath(torch.utils.checkpoint.__file__)


@cache
def is_library(path: str) -> bool:
    """Whether a file is PyTorch's or the engine's own, so that no line of it is the user's."""
    return path.startswith("<frozen") or os.path.realpath(path).startswith(_LIBRARIES)


@cache
def _is_users(path: str) -> bool:
    if path.startswith("<"):
        return False
    real = os.path.realpath(path)
    is_python = real.startswith(_STDLIB) and "site-packages" not in real
    return not is_library(path) and not is_python and not real.startswith(_OWN)


def line_of(frame: FrameType) -> str:
    """File, relative to the working folder where it lies inside, and line."""
    return f"{short(frame.f_code.co_filename)}:{frame.f_lineno}"


def short(path: str) -> str:
    """A path relative to the working folder where it lies inside."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def here() -> str:
    """The innermost line of the user's own code that is running, as ` at FILE:LINE`; nothing beyond training's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not os.path.realpath(frame.f_code.co_filename).startswith(_OWN):
        if _is_users(frame.f_code.co_filename):
            return f" at {line_of(frame)}"
        frame = frame.f_back
    return ""


def checkpoint_call() -> str | None:
    """The user's line `FILE:LINE` of the `torch.utils.checkpoint` call that runs now, if no line of theirs runs inside.

    A backward pass calls such a layer again from PyTorch's own code: no line of the user's is on the stack then.
    """
    frame: FrameType | None = sys._getframe(1)
    is_inside = False
    while frame is not None and not os.path.realpath(frame.f_code.co_filename).startswith(_OWN):
        if _is_users(frame.f_code.co_filename):
            return line_of(frame) if is_inside else None
        is_inside = is_inside or os.path.realpath(frame.f_code.co_filename) == _CHECKPOINT
        frame = frame.f_back
    return None


def where(error: BaseException) -> str:
    """The innermost line of the user's own code that an error came through, as ` at FILE:LINE`."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    return f" at {short(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def line_that_changes(run: Callable[[], object], is_changed: Callable[[], bool]) -> str | None:
    """The user's line after which `is_changed` first holds while `run` runs; None where it never does.

    Every line of the user's code is looked at, so this is slow: it serves to word a refusal.
    """
    last: list[str] = []
    found: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if found or not _is_users(frame.f_code.co_filename):
            return None
        if last and is_changed():
            found.append(last[-1])
            return None
        now: FrameType | None = frame if event != "return" else frame.f_back
        while now is not None and not _is_users(now.f_code.co_filename):
            now = now.f_back
        last[:] = [] if now is None else [line_of(now)]
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        run()
    except Exception:  # how it ends is known already; here only the line counts
        pass
    finally:
        sys.settrace(before)
    if not found and last and is_changed():
        found.append(last[-1])
    return found[0] if found else None
