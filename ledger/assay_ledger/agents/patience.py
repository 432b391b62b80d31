"""How long an action may wait for stores, from the clock that runs against it. Pure.

What is waited counts, not what is computed. A store that is only slow enough never to be silent could add up many short
waits to a missed window; so each action has its share of the time that is left, and what did not get through is tried
again later, after whatever else is due.
"""

from __future__ import annotations

from typing import Final

LEAST_S: Final = 10.0
"""Less would not even get one object of a store that is far away."""

MOST_S: Final = 300.0
"""Half of the shortest turn: a game that opens while an actor waits is answered in time."""

IN_GAME_S: Final = 60.0
"""For all that a move needs and that the actor has no copy of: a tenth of the shortest turn."""

BESIDE_GAME_S: Final = 30.0
"""For anything else while a clock of this actor's runs in a game."""


def share(left: int, waiting: int) -> float:
    """Seconds for one of so many things that wait for stores: together they take half of what is left of a window."""
    return min(max(left / (2 * max(waiting, 1)), LEAST_S), MOST_S)
