"""Packages that have no build for every Python or machine: tests that use one are skipped where it is not there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

NOT_EVERYWHERE = ("pyrevm",)
"""What the gate's Python has and others lack, as requirements.lock says. What Assay itself needs is not among them."""


class _Absent(ModuleType):
    """Has every name: what is imported of it can be named, and whoever calls it is skipped with the reason."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)  # for who looks for the package first: it would be called an error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def skip(*_: Any, **__: Any) -> None:
            here = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sys.platform}"
            pytest.skip(f"{self.__name__} has no build for {here}", allow_module_level=True)

        return skip


def skip_without(names: Sequence[str] = NOT_EVERYWHERE) -> None:
    """From now on a test that uses one of these that is not installed is skipped, in place of a module that is none."""
    for name in names:
        if name not in sys.modules and find_spec(name) is None:
            sys.modules[name] = _Absent(name)
