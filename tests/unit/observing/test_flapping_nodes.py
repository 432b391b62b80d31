"""A watch whose node answers now and then says so once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from assay.protocol.errors import UnavailableError
from assay.watchdog.alarms import Alarm, AlarmKind, Standing, changes
from assay.watchdog.looking import CALM_LOOKS, ChainWatch


class Flapping(ChainWatch):
    """Of a run of which nothing is wrong; `answers` says whether its node answers the next look."""

    def __init__(self, error: Exception) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.error, self.answers = error, True
        self.wrong: list[Alarm] = []

    head = property(lambda _: (1, 1))  # type: ignore[assignment]

    def sync(self) -> None:
        """See ChainWatch."""
        if not self.answers:
            raise self.error

    def found(self) -> Iterator[Alarm]:
        """See ChainWatch."""
        yield from self.wrong


def told(dog: Flapping, answers: Callable[[int], bool], looks: int) -> list[tuple[bool, AlarmKind]]:
    """What is raised and cleared in so many looks."""
    found, before = list[tuple[bool, AlarmKind]](), dict[Any, Alarm](dog.alarms)
    for look in range(looks):
        dog.answers = answers(look)
        after: Standing = dict(dog.look())
        found += [(raised, alarm.kind) for raised, alarm in changes(before, after)]
        before = dict(after)
    return found


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnavailableError("The node does not answer."), AlarmKind.CHAIN_UNREACHABLE),
        (AssertionError("no such vote"), AlarmKind.CANNOT_CHECK),
    ],
)
def test_a_node_that_answers_every_other_look_is_told_once(error: Exception, kind: AlarmKind) -> None:
    """Bad luck: a node behind a proxy that is half down wakes somebody every five seconds."""
    dog = Flapping(error)
    assert told(dog, lambda look: look % 2 == 0, 100) == [(True, kind)]
    # Meanwhile what is wrong in the run is told as ever, and ends.
    dog.wrong = [Alarm(AlarmKind.GAS_LOW, "0x", "low")]
    assert told(dog, lambda look: look % 2 == 0, 4) == [(True, AlarmKind.GAS_LOW)]
    dog.wrong = []
    assert told(dog, lambda look: look % 2 == 0, 4) == [(False, AlarmKind.GAS_LOW)]
    assert told(dog, lambda _: True, CALM_LOOKS - 1) == []
    assert [alarm.text for alarm in dog.alarms.values()] == [f"it answers again, not yet {CALM_LOOKS} looks in a row"]
    assert told(dog, lambda _: True, CALM_LOOKS) == [(False, kind)]
