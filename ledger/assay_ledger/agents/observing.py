"""What an actor's loop tells whoever watches the process: turns, actions and what became of them. It asks nothing back.

Whoever is told must not block: the loop of somebody who stands in a game waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from assay.protocol.errors import AssayError

_LOG = logging.getLogger("assay.agent")

V = TypeVar("V", contravariant=True)


class LoopObserver(Protocol[V]):
    """Is told what a loop does, from its own thread."""

    def turned(self, view: V, deadline: int | None) -> None:
        """The loop looked at the run. `deadline`: the next chain time that it waits for, in seconds; None for none."""

    def begun(self, action: object) -> None:
        """An action begins, or goes on: it may take long."""

    def tried(self, action: object, error: AssayError | None) -> None:
        """An action was carried out, or refused with an error."""


class Unobserved:
    """Nobody watches."""

    def turned(self, view: object, deadline: int | None) -> None:
        """See LoopObserver."""

    def begun(self, action: object) -> None:
        """See LoopObserver."""

    def tried(self, action: object, error: AssayError | None) -> None:
        """See LoopObserver."""


NOBODY: Final = Unobserved()


def tell(listener: Callable[..., object], *told: object) -> None:
    """Tells somebody who watches, and goes on whatever comes of it: no figure and no line is worth a game."""
    try:
        listener(*told)
    except Exception as error:
        _LOG.warning("What watches this actor failed (%s: %s); the actor goes on.", type(error).__name__, error)


def correlation(action: object) -> dict[str, Any]:
    """What an action is about, by the names that logs use: action, round, seat, game, epoch, ticket, tenure."""
    found: dict[str, Any] = {"action": type(action).__name__}
    about = getattr(action, "ref", action)
    for field in ("round", "seat", "game_id", "epoch", "ticket", "tenure"):
        value = getattr(about, field, None)
        if isinstance(value, int):
            found[field.removesuffix("_id")] = int(value)
    return found
