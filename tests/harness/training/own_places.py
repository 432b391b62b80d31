"""Modules that count their steps in places where Python keeps things, and halve after a hundred: refused.

Two traces of such a step are equal, as are two trials: only a record of the place finds it.
"""

from __future__ import annotations

import argparse
import collections
import configparser
import contextvars
import ctypes
import dataclasses
import enum
import io
import os
import queue
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor

from tests.harness.training import own_package
from tests.harness.training.own_code import Net
from tests.harness.training.own_package import part  # noqa: F401 - what `own_package.part` names


class _Table(dict):
    pass


class _Row(list):
    pass


class _Line(collections.deque):
    pass


class _Number(int):
    pass


class _Word(str):
    pass


class Mode(enum.Enum):
    TRAIN = 1


class _Slots:
    __slots__ = ("__weakref__", "n")


@dataclasses.dataclass
class _Fields:
    n: int = 0


def _with_attribute(thing: Any) -> Any:
    thing.n = 0
    return thing


def _add(thing: Any) -> None:
    thing.n += 1


def _read(thing: Any) -> int:
    return thing.n


def _words(thing: Any) -> None:
    thing["steps"]["n"] = str(int(thing["steps"]["n"]) + 1)


def _parser() -> Any:
    parser = configparser.ConfigParser()
    parser["steps"] = {"n": "0"}
    return parser


_KEPT = _with_attribute(_Slots())
"""What only a weak reference reaches."""


@dataclasses.dataclass(frozen=True)
class Place:
    """How a count is begun, raised and read."""

    begin: Callable[[], Any]
    add: Callable[[Any], object] = _add
    read: Callable[[Any], int] = _read


PLACES = {
    "a namespace": Place(lambda: types.SimpleNamespace(n=0)),
    "parsed arguments": Place(lambda: argparse.Namespace(n=0)),
    "a file of settings": Place(_parser, _words, lambda k: int(k["steps"]["n"])),
    "a user's dict": Place(lambda: collections.UserDict(n=0), lambda k: k.update(n=k["n"] + 1), lambda k: k["n"]),
    "a user's list": Place(collections.UserList, lambda k: k.append(1), len),
    "a counter": Place(collections.Counter, lambda k: k.update("a"), lambda k: k["a"]),
    "a thread's own": Place(lambda: _with_attribute(threading.local())),
    "a context": Place(
        lambda: contextvars.ContextVar("n", default=0), lambda k: k.set(k.get() + 1), lambda k: int(k.get())
    ),
    "a number of C": Place(lambda: ctypes.c_int(0), lambda k: setattr(k, "value", k.value + 1), lambda k: int(k.value)),
    "a queue": Place(queue.Queue, lambda k: k.put(1), lambda k: k.qsize()),
    "a text in memory": Place(io.StringIO, lambda k: k.write("a"), lambda k: len(k.getvalue())),
    "an attribute of a dict": Place(lambda: _with_attribute(_Table())),
    "an attribute of a list": Place(lambda: _with_attribute(_Row())),
    "an attribute of a deque": Place(lambda: _with_attribute(_Line())),
    "an attribute of a number": Place(lambda: _with_attribute(_Number())),
    "an attribute of a word": Place(lambda: _with_attribute(_Word())),
    "an attribute of a choice": Place(lambda: _with_attribute(Mode.TRAIN)),
    "a slot": Place(lambda: _with_attribute(_Slots())),
    "a field": Place(_Fields),
    "a bound method": Place(lambda: [].append, lambda k: k(1), lambda k: len(k.__self__)),
    "a weak reference": Place(
        lambda: weakref.ref(_KEPT), lambda k: _add(k()), lambda k: k().n if k() is not None else 0
    ),
    "a weak table": Place(
        lambda: weakref.WeakValueDictionary(one=_KEPT), lambda k: _add(k["one"]), lambda k: int(k["one"].n)
    ),
}


def _late(steps: int, h: Tensor) -> Tensor:
    return h * 0.5 if steps > 100 else h


class Counts(Net):
    """Counts in one of `PLACES`."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place, self.count = place, place.begin()

    def hidden(self, h: Tensor) -> Tensor:
        self.place.add(self.count)
        return _late(self.place.read(self.count), h)


class CountsInAModule(Net):
    """Counts in a module of a package of one's own."""

    def hidden(self, h: Tensor) -> Tensor:
        own_package.part.STEPS += 1
        return _late(own_package.part.STEPS, h)


class CountsByName(Net):
    """Counts in a global that only a word names."""

    def hidden(self, h: Tensor) -> Tensor:
        globals()["BY_NAME"] += 1
        return _late(globals()["BY_NAME"], h)


class CountsInTheEnvironment(Net):
    """Counts in what the processes that this one starts are told."""

    def setup(self) -> None:
        os.environ["ASSAY_TEST_STEPS"] = "0"

    def hidden(self, h: Tensor) -> Tensor:
        os.environ["ASSAY_TEST_STEPS"] = str(int(os.environ["ASSAY_TEST_STEPS"]) + 1)
        return _late(int(os.environ["ASSAY_TEST_STEPS"]), h)


BY_NAME = 0
