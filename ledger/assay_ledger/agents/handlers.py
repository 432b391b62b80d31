"""Which method carries out which action: one table per role, from the action's class to the method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, TypeVar

from assay.protocol.errors import InvariantError

A = TypeVar("A")
V = TypeVar("V")
"""What an actor sees of its run."""


class Handlers(Generic[V]):
    """A table from actions to methods. `role` is whose it is, for errors."""

    def __init__(self, role: str) -> None:
        self._role = role
        # Typed where it is written (`add`): under a class stands only what takes its values.
        self._methods: dict[type, Callable[[Any, V], None]] = {}

    def __iter__(self) -> Iterator[type]:
        return iter(self._methods)

    def add(self, kind: type[A], method: Callable[[A, V], None]) -> Self:
        """Has a method carry out the actions of a class, in place of the one that did before."""
        self._methods[kind] = method
        return self

    def method_of(self, kind: type) -> Callable[[Any, V], None] | None:
        """What carries out the actions of a class."""
        return self._methods.get(kind)

    def carry_out(self, action: object, view: V) -> None:
        """Carries an action out. Raises InvariantError (NoSuchAction) for one that this role has no method for."""
        method = self.method_of(type(action))
        if method is None:
            raise InvariantError(f"A {self._role} does not carry out {action}.", code="NoSuchAction")
        method(action, view)
