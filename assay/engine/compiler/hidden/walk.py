"""Where Python code keeps state: attributes, containers, closures, globals that code names, class attributes, grads.

Nothing is called that a user wrote: properties, `__getattr__` and iterators are left alone.
"""

from __future__ import annotations

import contextvars
import enum
import functools
import io
import os
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    GenericAlias,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any
from weakref import ReferenceType

import torch
from torch import Tensor, nn

from assay.engine.compiler.hidden import arrays
from assay.engine.compiler.hidden.lines import installed_at

Slots = dict[Any, tuple[str, Any]]
"""By key: how a person calls the place, and what lies there."""


class _Missing:
    """Lies where nothing does: a global that code names and that was never set."""


MISSING = _Missing()

_ATOMS = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis), type(NotImplemented)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, *arrays.ATOMS, enum.Enum, CodeType),
    *(BuiltinFunctionType, GenericAlias, MappingProxyType),
)
_ITERABLES: tuple[Iterable[Any], ...] = ((), [], {}, set(), "", b"", range(0), {}.values(), {}.items())
_ITERATORS: tuple[type, ...] = (
    *(GeneratorType, enumerate, zip, map, filter, reversed),
    *(type(iter(x)) for x in _ITERABLES),
)
_UNCOMPILED = "__dynamo_disable"
"""Where PyTorch keeps, on a function of its own such as `checkpoint`, what its first call made of it."""
_MODULE_TABLES = ("_parameters", "_buffers", "_modules")
OWN = frozenset({"assay", "assay_ledger", "assay_solver", "assay_verifier", "assay_whistleblower"})
STDLIB = sys.stdlib_module_names - {"__main__"}
_HOLDERS = frozenset(
    {"types", "argparse", "collections", "queue", "weakref", "_thread", "configparser", "optparse", "multiprocessing"}
)
"""Modules of Python's whose objects hold what users put into them. The insides of all others are Python's own."""


_CONTENTS = (dict, list, deque, *_ATOMS)
"""What is compared by its contents or value, so that attributes of a user's own subclass lie beside its slots."""


def is_atom(value: object) -> bool:
    """Whether a value has no parts and cannot change."""
    return isinstance(value, _ATOMS) or value is MISSING


def has_parts(value: object) -> bool:
    """Whether something can be reached from a value: from atoms too, where a user hung it there or bound them to it."""
    if not is_atom(value):
        return True
    return isinstance(value, BuiltinFunctionType) or (is_foreign(type(value).__module__) and bool(_dict_of(value)))


def is_iterator(value: object) -> bool:
    """Whether a value yields once what it yields: a position that nothing can read or put back."""
    is_cursor = (type(value).__module__, type(value).__name__) == ("sqlite3", "Cursor")
    return isinstance(value, _ITERATORS) or str(type(value).__module__) == "itertools" or is_cursor or _is_read(value)


def _is_read(value: object) -> bool:
    """Whether a value is an open file, pipe or device that one reads, other than the process's own three."""
    if not isinstance(value, io.TextIOWrapper | io.BufferedReader | io.BufferedRandom | io.FileIO) or value.closed:
        return False
    streams = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return value.readable() and all(value is not stream for stream in streams)


def is_foreign(module: object) -> bool:
    """Whether a module of this name is the user's or a package's, not Python's, PyTorch's, NumPy's or our own."""
    # Some classes of C code have something else than a name there.
    root = module.partition(".")[0] if isinstance(module, str) else ""
    return bool(root) and root not in STDLIB and root not in OWN and root not in ("torch", "numpy", "builtins")


def is_installed(table: Mapping[str, Any]) -> bool:
    """Whether these are the globals of an installed package, not of the user's own file."""
    return bool(installed_at(str(table.get("__file__", ""))))


def slots_of(value: object) -> Slots | None:
    """The places in a value that can be set; None where there are none."""
    match value:
        case dict():
            return {k: (f"[{_short(k)}]", v) for k, v in dict.items(value)}
        case list() | deque():
            return {i: (f"[{i}]", v) for i, v in enumerate(value)}
        case CellType():
            try:
                return {0: ("", value.cell_contents)}
            except ValueError:  # a variable that is not bound yet
                return {0: ("", MISSING)}
        case contextvars.ContextVar():
            try:
                return {0: ("", value.get())}
            except LookupError:  # it was never set and has no default
                return {0: ("", MISSING)}
        case os._Environ():
            return {k: (f"[{k!r}]", v) for k, v in value.items()}
        case type():
            if not is_foreign(value.__module__):
                return None
            return {k: (f".{k}", v) for k, v in vars(value).items() if not _is_dunder(k)}
        case _:
            return _attributes(value)


def _attributes(value: object) -> Slots | None:
    """The attributes of an object; none of Python's own objects, whose insides are theirs, but of those that hold."""
    root = str(type(value).__module__).partition(".")[0]
    is_own = root in STDLIB and root not in _HOLDERS and not isinstance(value, FunctionType | functools.partial)
    if isinstance(value, ModuleType) or is_own:
        return None
    found: Slots = {}
    own = _dict_of(value)
    if own is not None:
        tables = _MODULE_TABLES if isinstance(value, nn.Module) else ()
        found = {k: ("" if k in tables else f".{k}", v) for k, v in own.items() if k != _UNCOMPILED}
    for cls in type(value).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and name not in found and hasattr(cls, name):
                descriptor = cls.__dict__.get(name)
                try:
                    found[name] = (f".{name}", descriptor.__get__(value, cls) if descriptor is not None else MISSING)
                except AttributeError:
                    found[name] = (f".{name}", MISSING)
    return found if own is not None or found else None


def _dict_of(value: object) -> dict[str, Any] | None:
    try:
        # A thread's own table is found by its own way alone.
        own = value.__dict__ if type(value) is threading.local else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def put_back(value: Any, before: Slots) -> None:
    """Make the places of a value hold again what they held."""
    contents = {k: v for k, (_, v) in before.items()}
    match value:
        case OrderedDict():
            OrderedDict.clear(value)
            for k, v in contents.items():
                OrderedDict.__setitem__(value, k, v)
        case dict():
            dict.clear(value)
            dict.update(value, contents)
        case list():
            list.__setitem__(value, slice(None), list(contents.values()))
        case deque():
            value.clear()
            value.extend(contents.values())
        case CellType():
            if contents[0] is MISSING:
                del value.cell_contents
            else:
                value.cell_contents = contents[0]
        case contextvars.ContextVar():
            # What was never set cannot be unset.
            if contents[0] is not MISSING:
                value.set(contents[0])
        case os._Environ():
            value.clear()
            value.update(contents)
        case type():
            _put_back_class(value, contents)
        case _:
            own = _dict_of(value)
            if own is not None:
                kept = {k: v for k, v in contents.items() if k in own or not hasattr(type(value), k)}
                own.clear()
                own.update({k: v for k, v in kept.items() if v is not MISSING})
            for k, v in contents.items():
                if own is None or k not in own:
                    object.__delattr__(value, k) if v is MISSING else object.__setattr__(value, k, v)


def _put_back_class(value: type, before: dict[str, Any]) -> None:
    for k in [k for k in vars(value) if not _is_dunder(k) and k not in before]:
        type.__delattr__(value, k)
    for k, v in before.items():
        if vars(value).get(k, MISSING) is not v:
            type.__setattr__(value, k, v)


def fixed_parts(value: object) -> Iterator[tuple[str, Any]]:
    """What can be reached from a value besides its places: what it holds for good."""
    match value:
        case tuple() | frozenset() | set():
            yield from ((f"[{i}]", v) for i, v in enumerate(value))
        case MethodType():
            yield "", value.__self__
            yield "", value.__func__
        case BuiltinFunctionType() | MethodWrapperType():
            if not isinstance(value.__self__, ModuleType | type | None):
                yield "", value.__self__
        case ReferenceType():
            yield "", value()
        case functools.partial():
            yield "", value.func
            yield from ((f"[{i}]", v) for i, v in enumerate(value.args))
            yield "", value.keywords
        case staticmethod() | classmethod():
            yield "", value.__func__
        case property():
            yield from (("", f) for f in (value.fget, value.fset) if f is not None)
        case functools.cached_property():
            yield "", value.func
        case FunctionType():
            yield from _parts_of_function(value)
        case Tensor():
            if value.is_leaf and value.grad is not None:
                yield ".grad", value.grad
        case _ if isinstance(value, functools._lru_cache_wrapper):
            yield "", value.__wrapped__
    cls = type(value)
    if isinstance(value, _CONTENTS) and is_foreign(cls.__module__) and _dict_of(value):
        yield ".__dict__", _dict_of(value)
    if is_foreign(cls.__module__) and not isinstance(value, type):
        yield f" (class {cls.__qualname__})", cls
    if isinstance(value, type):
        yield from ((f" (class {b.__qualname__})", b) for b in value.__mro__[1:] if is_foreign(b.__module__))


def _parts_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    yield from ((f" (default {i})", v) for i, v in enumerate(function.__defaults__ or ()))
    yield " (defaults)", function.__kwdefaults__ or {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield f" (variable {name})", cell
    wrapped = function.__dict__.get("__wrapped__")
    if wrapped is not None:
        yield "", wrapped


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _short(key: object) -> str:
    text = repr(key) if is_atom(key) else type(key).__name__
    return text if len(text) <= 40 else text[:37] + "..."
