"""The imagined run above 64 seats: tickets say what they hold, merge sums of groups, and the generation of those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from assay.bench.imagined_run import ROUND_S, ImaginedRun, ToldEvent, _digest, _Story
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round, Seat, Wei
from assay_ledger.bindings import commitments, generations
from assay_ledger.bindings.grouped_generations import NodeOpened, NodeSealed

SEATS: Final = 70
GROUP: Final = 16
GROUPS: Final = -(-SEATS // GROUP)
LEFT_OUT: Final = 2
"""The group whose sum nobody opens for generation 2."""

EARLIER: Final = 3 * ROUND_S // 4 - 3_600 - 90
"""Seconds: from a minute and a half after the last second to commit to when the imagined run merges."""

VOICES: Final = 3
"""Positions of each ticket that speaks."""


class GroupedStory(_Story):
    """The same, merged in two levels; nobody disputes."""

    def round(self, number: Round) -> Iterator[ToldEvent]:
        """See _Story."""
        for told in super().round(number):
            event = told[1].event
            if not (isinstance(event, commitments.Held) and event.held.bit_length() > GROUP):
                yield told

    def _dispute(self, number: Round, seat: Seat) -> Iterator[ToldEvent]:
        yield from ()

    def _merge(self, generation: Round) -> Iterator[ToldEvent]:
        rules, round_ = self._run.charter.training, Round(generation - 1)
        self._at -= EARLIER
        for group in range(GROUPS):
            held = Wei((1 << min(GROUP, SEATS - group * GROUP)) - 1)
            everybody = (1 << rules.positions) - 1
            yield self._tell("commitments", commitments.Held(round_, group, everybody, held))
        self._at += 60
        for group in range(GROUPS):
            if (generation, group) != (2, LEFT_OUT):
                node, name = ids.node_of(generation, group), f"sum {generation} {group}"
                yield from self._speak(node, rules.positions // VOICES, _digest(name), Digest(bytes(32)))
        self._at += 60
        lists = _digest(f"parameters {generation}"), _digest(f"momentum {generation}")
        yield from self._speak(int(generation), rules.top_positions // VOICES, *lists)
        self._at += EARLIER
        yield self._tell("generations", generations.Finalized(int(generation)))

    def _speak(self, node: int, tickets: int, first: Digest, second: Digest) -> Iterator[ToldEvent]:
        self._block += 1
        root = ids.root_of(node, first, second)
        for k in range(tickets):
            seal = NodeSealed(node, TicketId(1 + k), (1 << VOICES) - 1 << VOICES * k, _digest(f"seal {node} {k}"))
            yield self._tell("generations", seal)
        for k in range(tickets):
            yield self._tell("generations", NodeOpened(node, TicketId(1 + k), root, first, second))
        yield self._tell("generations", generations.Merged(node, root))


def grouped_run() -> ImaginedRun:
    """The run."""
    return ImaginedRun(SEATS, GROUP)


def grouped_events(run: ImaginedRun, rounds: int) -> Iterator[ToldEvent]:
    """What happened in its first rounds."""
    story = GroupedStory(run)
    yield from story.begin()
    for number in range(rounds):
        yield from story.round(Round(number))
