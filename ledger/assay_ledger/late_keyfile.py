"""`eth_keyfile` put off until a key file is written or opened.

Whoever signs imports `eth_account`, which imports it, and with it py_ecc's constants of pairings: two fifths
of the processor time in which the chain's client is imported. Nothing else of it is ever used there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "eth_keyfile"
_PUT_OFF: Final = ("create_keyfile_json", "decode_keyfile_json")
_HINTS: Final = {"KDFType": str}

_taking_place = RLock()


class _Late(ModuleType):
    """Stands in for a module until something of it is called, or asked for that `eth_account` does not ask for."""

    def __getattr__(self, name: str) -> Any:
        if name in _PUT_OFF:
            return _called_later(name)
        if name.startswith("__"):  # imports look for such
            raise AttributeError(name)
        return _HINTS[name] if name in _HINTS else getattr(_found(self.__name__), name)


def _called_later(name: str) -> Callable[..., Any]:
    return lambda *given, **named: getattr(_found(_PACKAGE), name)(*given, **named)


def _found(name: str) -> ModuleType:
    """The module itself, which takes the place of what stood in for it."""
    with _taking_place:  # of two threads that open a key file one would import what the other has not taken away yet
        for each in (f"{_PACKAGE}.keyfile", _PACKAGE):
            if isinstance(sys.modules.get(each), _Late):
                del sys.modules[each]
        return import_module(name)


def put_off() -> None:
    """Puts it off in this process, unless it has been imported."""
    if _PACKAGE in sys.modules or (spec := find_spec(_PACKAGE)) is None:
        return
    late = {name: _Late(name) for name in (_PACKAGE, f"{_PACKAGE}.keyfile")}
    late[_PACKAGE].__path__ = list(spec.submodule_search_locations or ())  # where its other modules are
    sys.modules |= late
