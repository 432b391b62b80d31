"""What Python code names outside itself, and whether it reads it."""

from __future__ import annotations

import dis
import functools
import os
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from assay.engine.compiler.hidden.walk import is_foreign, is_installed

Global = tuple[dict[str, Any], str, str]
"""A module's namespace, a name in it, and how a person calls the two."""


def named_globals(function: FunctionType) -> Iterator[Global]:
    """The globals that a user's function names, and attributes of the user's modules."""
    if is_foreign(function.__module__):
        yield from globals_of(function.__code__, function.__globals__)


def globals_of(code: CodeType, table: dict[str, Any]) -> Iterator[Global]:
    """The globals that code with this namespace names, and attributes of the modules among them.

    Code that asks for `globals()` can name every one of its own file's.
    """
    names = sorted(_names(code))
    asks = "globals" in names and "globals" not in table and not is_installed(table)
    for name in [*names, *sorted(k for k in table if not _is_plumbing(k, table[k]))] if asks else names:
        if name in table:
            yield table, name, f"global {name}"
            yield from _of_module(table[name], name, names, frozenset())
    for name in sorted(_stored_globals(code)):
        if name not in table:
            yield table, name, f"global {name}"


def _of_module(value: object, path: str, names: list[str], seen: frozenset[int]) -> Iterator[Global]:
    """Attributes that code names of a module, and of the modules in it; of Python's own, the environment alone."""
    if not isinstance(value, ModuleType) or id(value) in seen:
        return
    if value is os:
        if "environ" in names:
            yield vars(os), "environ", "os.environ"
        return
    if not is_foreign(value.__name__):
        return
    for k in names:
        if k in vars(value):
            yield vars(value), k, f"{path}.{k}"
            yield from _of_module(vars(value)[k], f"{path}.{k}", names, seen | {id(value)})


def _is_plumbing(name: str, value: object) -> bool:
    return name.startswith("__") or isinstance(value, ModuleType)


def _names(code: CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


@functools.lru_cache(maxsize=4096)
def _stored_globals(code: CodeType) -> frozenset[str]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    own = {str(i.argval) for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL"}
    return frozenset(own.union(*map(_stored_globals, inner)))


@functools.lru_cache(maxsize=4096)
def only_counted(code: CodeType) -> frozenset[str]:
    """The globals that this code names only to add a constant to them (`CALLS += 1`): it computes nothing by them."""
    steps = list(dis.get_instructions(code))
    counted: set[str] = set()
    read: set[str] = set().union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))
    for k, step in enumerate(steps):
        name = str(step.argval)
        following = [(s.opname, s.argrepr) for s in steps[k + 1 : k + 4]]
        adds = len(following) == 3 and following[0][0] == "LOAD_CONST" and following[1] == ("BINARY_OP", "+=")
        if step.opname == "LOAD_GLOBAL" and adds and following[2] == ("STORE_GLOBAL", name):
            counted.add(name)
        elif step.opname != "STORE_GLOBAL" and step.opcode in dis.hasname:
            read.add(name)
    return frozenset(counted - read)
