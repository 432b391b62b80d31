"""The user's own lines: of a frame, of an error, and the one that changes something."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
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
INSTALLED = tuple({sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep})
_PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})
_ARCHIVES = frozenset({".zip", ".whl", ".egg", ".pyz", ".pex"})
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
    return not is_library(path) and not is_python and not _is_own(path)


@cache
def _is_own(path: str) -> bool:
    return os.path.realpath(path).startswith(_OWN)


@cache
def installed_at(path: str) -> str:
    """The folder or archive of installed packages that a file lies in, with its separator; "" where it is the user's.

    Besides this Python's own: every folder for packages (of the user, of Debian, of an environment below), archives,
    and folders of the module path that list what is installed there. A package that is installed as a link to its
    sources is the user's: it is held to more.
    """
    for own in INSTALLED:
        if path.startswith(own):
            return own
    if not Path(path).is_absolute():
        return ""
    listed = {Path(folder) for folder in sys.path if folder}
    for folder in Path(path).parents:
        is_named = folder.name in _PACKAGE_FOLDERS or folder.suffix in _ARCHIVES
        if is_named or (folder in listed and _lists_packages(folder)):
            return f"{folder}{os.sep}"
    return ""


@cache
def _lists_packages(folder: Path) -> bool:
    return any(folder.glob("*.dist-info/RECORD"))


def line_of(frame: FrameType) -> str:
    """File, relative to the working folder where it lies inside, and line."""
    return f"{short(frame.f_code.co_filename)}:{frame.f_lineno}"


@cache
def short(path: str) -> str:
    """A path relative to the folder of installed packages or the working folder, where it lies inside one."""
    if installed_at(path):
        return path.removeprefix(installed_at(path))
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def users_line(places: Iterable[tuple[str, int]]) -> str | None:
    """Of files and lines, innermost first: the user's own, with the innermost line of a package that it calls.

    `FILE:LINE (in PACKAGE/FILE:LINE)`; the package's alone where no line is the user's; None where there is neither.
    """
    package = None
    for path, line in places:
        if not _is_users(path):
            continue
        if not installed_at(path):
            return f"{short(path)}:{line} (in {package})" if package else f"{short(path)}:{line}"
        package = package or f"{short(path)}:{line}"
    return package


def _running() -> Iterator[tuple[str, int]]:
    """Files and lines that run, innermost first, up to training's own: a mode of its own is passed through."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_own(frame.f_code.co_filename) and frame.f_code.co_name != "__torch_function__":
            return
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def calling_line() -> str:
    """The user's line that makes the call which is being looked at; training's own where it is captured by itself."""
    found = users_line(_running())
    if found is not None:
        return found
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return line_of(frame)
        frame = frame.f_back
    return "unknown line"


def here() -> str:
    """The innermost line of the user's own code that is running, as ` at FILE:LINE`; nothing beyond training's own."""
    found = users_line(_running())
    return "" if found is None else f" at {found}"


def definition(function: Any) -> str:
    """Where a function is written, as ` (FILE:LINE)`; nothing for what has no code of its own."""
    of = function.func if isinstance(function, functools.partial) else function
    code = getattr(of, "__code__", None) or getattr(vars(type(of)).get("__call__"), "__code__", None)
    return "" if code is None else f" ({short(code.co_filename)}:{code.co_firstlineno})"


def checkpoint_call() -> str | None:
    """The user's line `FILE:LINE` of the `torch.utils.checkpoint` call that runs now, if no line of theirs runs inside.

    A backward pass calls such a layer again from PyTorch's own code: no line of the user's is on the stack then.
    """
    frame: FrameType | None = sys._getframe(1)
    is_inside = False
    while frame is not None and not _is_own(frame.f_code.co_filename):
        if _is_users(frame.f_code.co_filename):
            return line_of(frame) if is_inside else None
        is_inside = is_inside or os.path.realpath(frame.f_code.co_filename) == _CHECKPOINT
        frame = frame.f_back
    return None


def where(error: BaseException) -> str:
    """The innermost line of the user's own code that an error came through, as ` at FILE:LINE`."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    found = users_line((f.filename, f.lineno or 0) for f in frames)
    return "" if found is None else f" at {found}"


def layer_line(error: BaseException) -> str:
    """The innermost line of PyTorch's own layers that an error came through below the user's code, or nothing.

    ` (in torch/nn/FILE:LINE)`: the user's line often calls a whole model, and one of its layers is what fails.
    """
    folder = _LIBRARIES[0] + "nn" + os.sep
    for f in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_users(f.filename):
            return ""
        real = os.path.realpath(f.filename)
        if real.startswith(folder) and Path(real).name not in ("module.py", "container.py"):
            return f" (in {short(f.filename)}:{f.lineno})"
    return ""


def came_through(error: BaseException, package: str) -> bool:
    """Whether an error came through a file of this package of PyTorch's, such as `distributions`."""
    folder = _LIBRARIES[0] + package + os.sep
    return any(os.path.realpath(f.filename).startswith(folder) for f in traceback.extract_tb(error.__traceback__))


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
