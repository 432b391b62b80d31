"""Which rounds and bases anybody may still fetch, by a run's books. Pure but for the look whether a base is there.

A round is over once its work is settled, its generation is final or cut, and nothing of it can be accused, challenged
or is in a game. What is over is still needed where a later base has to be merged again, or a joiner starts from it.
Source: docs/adr/0057-stores.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.ids import generation_of, is_group
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Digest, Round
from assay_ledger.rounds.view import RunView

IsServed = Callable[[int], bool]
"""Whether the store gives a generation's lists, found by reading them."""


@dataclass(frozen=True, slots=True)
class Retained:
    """What has to stay: rounds from `first_round` on, generations from `first_base` on; `because` of what."""

    first_round: Round
    first_base: int
    because: str


def oldest_needed(view: RunView) -> tuple[Round, str]:
    """The oldest round of which something is not over, and what that is."""
    return min(_needs(view), default=(Round(0), "no round has begun"))


def retained(view: RunView, is_served: IsServed) -> Retained:
    """What anybody may still fetch of a run. Raises what `is_served` raises."""
    oldest, because = oldest_needed(view)
    if view.round is None:
        return Retained(Round(0), 0, because)
    # The round before: its updates make the base of the oldest one where nobody published that.
    first = Round(max(oldest - 1, 0))
    finals = sorted((node for node in view.state.final_at if not is_group(node)), reverse=True)
    base = next((generation for generation in finals if not generation or is_served(generation)), 0)
    if base < first:
        first, because = Round(base), f"generation {base} is the newest final one that the store serves"
    served = {base: True, 0: True}
    while True:
        parents = sorted({view.round_of(r).parent for r in map(Round, range(first, view.round + 1))})
        # A base that was merged before these rounds and is not served has to be merged again from its own round.
        for parent in (p for p in parents if p <= first):
            if not served.setdefault(parent, parent == 0 or is_served(parent)):
                first, because = Round(parent - 1), f"nobody published generation {parent}"
                break
        else:
            return Retained(first, min(base, *parents, first), because)


def kept_roots(view: RunView, kept: Retained) -> frozenset[Digest]:
    """Roots of lists and digests of marks that have to stay."""
    rules, found = view.rules, set[Digest]()
    found |= {rules.parameters, rules.momentum, rules.zero_optimizer, rules.zero_update, rules.data}
    for (round_, _), record in view.state.works.items():
        if round_ >= kept.first_round:
            found |= {record.work.update, record.work.marks}
    for (node, _), made in view.books.generations.nodes.items():
        if is_kept(node, kept):
            found |= {made.parameters, made.momentum}
    return frozenset(found)


def is_kept(node: int, kept: Retained) -> bool:
    """Whether the lists of a generation, or of the sum of a group, have to stay; those that a run starts from do."""
    generation = generation_of(node)
    return generation == 0 or generation > kept.first_round or (not is_group(node) and generation >= kept.first_base)


def _needs(view: RunView) -> Iterator[tuple[Round, str]]:
    books, now = view.books, view.now
    if view.round is not None:
        yield view.round, f"round {view.round} is the newest"
    for round_, seat in view.state.unsettled:
        yield round_, f"work of seat {seat} in round {round_} is not settled"
    for number, game in view.games.items():
        if not game.is_over:
            yield game.ref.round, f"game {number} is open"
    for generation in view.state.merged:
        if view.status(generation) is GenerationStatus.MERGED:
            yield Round(generation - 1), f"generation {generation} is not final"
    for record in view.state.unclosed.values():
        games = books.generations.openings[record.node, record.party].games
        if games or now <= record.at + view.rules.challenge:
            yield Round(record.generation - 1), f"a root of generation {record.generation} can be challenged"
    found = books.duties.attestations
    for name, made in found.attestations.items():
        since = found.window_of(name)
        if not since or now < since:
            yield Round(made.round), f"what ticket {made.ticket} found in round {made.round} can be challenged"
    for accusation in found.accusations.values():
        if accusation.status in (AccusationStatus.RECORDED, AccusationStatus.TRIED):
            round_ = Round(found.attestations[accusation.by].round)
            yield round_, f"an accusation in round {round_} is not judged"
