"""What Python code names outside itself, and whether it reads it."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from assay.engine.compiler.hidden.walk import is_foreign

Global = tuple[dict[str, Any], str, str]
"""A module's namespace, a name in it, and how a person calls the two."""


def named_globals(function: FunctionType) -> Iterator[Global]:
    """The globals that a user's function names, and attributes of the user's modules."""
    if is_foreign(function.__module__):
        yield from globals_of(function.__code__, function.__globals__)


def globals_of(code: CodeType, table: dict[str, Any]) -> Iterator[Global]:
    """The globals that code with this namespace names, and attributes of the modules among them."""
    names = sorted(_names(code))
    for name in names:
        if name in table:
            value = table[name]
            yield table, name, f"global {name}"
            if isinstance(value, ModuleType) and is_foreign(value.__name__):
                yield from ((vars(value), k, f"{name}.{k}") for k in names if k in vars(value))
    for name in sorted(_stored_globals(code)):
        if name not in table:
            yield table, name, f"global {name}"


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
