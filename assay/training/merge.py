"""The merge: what the counted updates of a round make of the model (DiLoCo, Douillard et al., 2023), whoever sent them.

Nothing in a merge trusts an update: what is not finite is zero, and each of its tensors is scaled down to a largest
norm, so that one seat moves the mean by no more than its share. In place of the mean a merge may take what most updates
agree on (`robust`), which liars within their norm do not lead far. Up to 64 seats are merged at once (`merge`); more in
two levels (`partial`, then `merge_partials`), each a program and a claim of its own. A group's sum travels too, as
f32 or rounded like an update.

The last tensors of the parameters may be running statistics, which no gradient moves and no step is taken on: they go
to the middle of where the seats' went (`statistics.middle`).

Shapes: N seats, G groups; momentum and updates have their parameter's, all else is f32 [].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Final

import torch
from torch import Tensor

from assay.training.finite import INFINITE, finite
from assay.training.guard import Guard, guarded
from assay.training.robust import MergeKind, agreed
from assay.training.statistics import middle, present
from assay.training.updates import UpdateWire, packed_sum, received

SPIKE: Final = 2.0
"""How far one update moves an element of a rounded sum, in limits of the rule. A round of Adam's moves one by about
one; 1.07 was the most of an update of the demo's (docs/LOG.md)."""

OuterState = tuple[list[Tensor], list[Tensor]]
"""Parameters and outer momentum."""


@dataclass(frozen=True, slots=True)
class MergeRule:
    """The constants of a merge: a charter's terms, in its programs.

    limit: the largest root mean square of a tensor of an update; more is scaled down to it. rate, momentum: of the
    Nesterov step on the mean. statistics: how many tensors at the end of the parameters are running statistics. kind:
    what is made of a group's updates.
    """

    limit: float
    rate: float = 0.7
    momentum: float = 0.9
    statistics: int = 0
    kind: MergeKind = MergeKind.MEAN

    def bound(self, shape: Sequence[int]) -> float:
        """The largest norm of one update of a parameter of this shape."""
        return self.limit * sqrt(prod(shape))


def usual_limit(inner_steps: int, learning_rate: float) -> float:
    """The root mean square that a round of Adam's steps keeps within: one moves an element by about the rate."""
    return inner_steps * learning_rate


def merge(
    parameters: Sequence[Tensor],
    momentum: Sequence[Tensor],
    *updates_and_mask: Sequence[Tensor],
    rule: MergeRule,
    wire: UpdateWire = UpdateWire.F32,
    guard: Guard | None = None,
) -> OuterState:
    """New parameters and outer momentum from N update lists on the wire and a list holding the mask f32 [N].

    The mean, or what the rule puts in its place, over the seats of the mask (1.0 or 0); a seat that is not in it has
    the zero update. None: nothing changes; nor where a guard finds the loss to rise too far.
    """
    *sent, (mask_N,) = updates_and_mask
    shapes = [p.shape for p in parameters]
    updates = [received(update, wire, shapes, statistics=rule.statistics) for update in sent]
    moves = [middle(same, mask_N > 0.0) for same in _statistics(updates, rule)]
    if rule.kind is MergeKind.MEAN:
        made = _moved(parameters, momentum, [*_total(updates, rule), *moves], mask_N.sum(), rule)
    else:
        means = [agreed(rule.kind, _limited(same, rule), mask_N > 0.0) for same in _trained(updates, rule)]
        made = _moved(parameters, momentum, [*means, *moves], mask_N.sum(), rule, are_means=True)
    return made if guard is None else guarded((parameters, momentum), made, updates, guard)


def partial(
    *updates: Sequence[Tensor],
    rule: MergeRule,
    shapes: Sequence[Sequence[int]],
    wire: UpdateWire = UpdateWire.F32,
    sums: UpdateWire = UpdateWire.F32,
) -> tuple[list[Tensor]]:
    """The sum of one group's updates, of parameters of these shapes; a seat not counted has the zero update.

    sums: how it travels, of `SUM_WIRES`.

    Where the rule has another than the mean: that, times the number of seats whose update is not zero, so that it
    stands among sums. Statistics have the middle in it, of the seats whose update moves any of them: nothing says here
    who is counted.
    """
    all_N = [received(update, wire, shapes, statistics=rule.statistics) for update in updates]
    if sums is not UpdateWire.F32:
        all_N = [_without_spikes(update, rule) for update in all_N]
    moved_N = present([update[len(update) - rule.statistics :] for update in all_N])
    totals = _total(all_N, rule) if rule.kind is MergeKind.MEAN else _agreed_total(all_N, rule)
    whole = [*totals, *[middle(same, moved_N) for same in _statistics(all_N, rule)]]
    return (packed_sum(whole, sums, statistics=rule.statistics),)


def merge_partials(
    parameters: Sequence[Tensor],
    momentum: Sequence[Tensor],
    *sums_and_weights: Sequence[Tensor],
    rule: MergeRule,
    sums: UpdateWire = UpdateWire.F32,
    guard: Guard | None = None,
) -> OuterState:
    """New parameters and outer momentum from G sums, as they travel, and a list holding the weights f32 [G].

    A weight is how many updates count in a group; 0, beside a sum of zeros, if its sum does not count. The contract
    knows the weights. Attack: a false sum over updates that nobody else holds cannot be refuted, so it is limited here
    to what true ones of so many updates reach, and says nothing of its own weight. In the statistics it has one voice
    of G.
    """
    *sent, (weights_G,) = sums_and_weights
    shapes = [p.shape for p in parameters]
    whole = [received(one, sums, shapes, statistics=rule.statistics) for one in sent]
    totals = [limited_sum(same, weights_G * rule.bound(same[0].shape)) for same in _trained(whole, rule)]
    moves = [middle(same, weights_G > 0.0) for same in _statistics(whole, rule)]
    made = _moved(parameters, momentum, [*totals, *moves], weights_G.sum(), rule)
    return made if guard is None else guarded((parameters, momentum), made, whole, guard)


def limited_sum(parts: Sequence[Tensor], bounds: Tensor | float) -> Tensor:
    """The sum of N tensors of one shape, each with zero where it is not finite and its norm at most its bound, f32 [N].

    One whose norm is beyond f32, about 1.8e19, counts as zero: nobody honest is near it.
    """
    return _sum_in_pairs(limited(parts, bounds))


def limited(parts: Sequence[Tensor], bounds: Tensor | float) -> list[Tensor]:
    """N tensors of one shape as `limited_sum` adds them."""
    clean = [finite(part) for part in parts]
    squares_N = torch.stack([(x * x).sum() for x in clean])
    norms_N = torch.sqrt(squares_N)
    scales_N = torch.where(norms_N <= bounds, 1.0, bounds / norms_N)
    # Squares beyond f32 sum to infinity or to NaN, and NaN is below nothing.
    scales_N = torch.where(squares_N < INFINITE, scales_N, 0.0)
    return [x * scales_N[k] for k, x in enumerate(clean)]


def _total(updates: Sequence[Sequence[Tensor]], rule: MergeRule) -> list[Tensor]:
    """The sum over seats of what is trained, tensor by tensor."""
    return [limited_sum(same, rule.bound(same[0].shape)) for same in _trained(updates, rule)]


def _agreed_total(updates: Sequence[Sequence[Tensor]], rule: MergeRule) -> list[Tensor]:
    """What the updates that are not zero agree on, times how many they are, tensor by tensor."""
    sent_N = present([update[: len(update) - rule.statistics] for update in updates])
    sent = sent_N.to(torch.float32).sum()
    means = [agreed(rule.kind, _limited(same, rule), sent_N) for same in _trained(updates, rule)]
    return [torch.where(sent > 0.0, mean * sent, 0.0) for mean in means]


def _without_spikes(update: Sequence[Tensor], rule: MergeRule) -> list[Tensor]:
    """Attack: one seat spends all that its norm allows on few elements, by the largest of which a sum is rounded: the
    rest of its group becomes zero.
    """
    most, count = SPIKE * rule.limit, len(update) - rule.statistics
    return [*[torch.clamp(finite(x), -most, most) for x in update[:count]], *update[count:]]


def _limited(same: Sequence[Tensor], rule: MergeRule) -> list[Tensor]:
    return limited(same, rule.bound(same[0].shape))


def _trained(updates: Sequence[Sequence[Tensor]], rule: MergeRule) -> list[tuple[Tensor, ...]]:
    """What stands side by side in the updates, per tensor, the statistics apart."""
    same = list(zip(*updates, strict=True))
    return same[: len(same) - rule.statistics]


def _statistics(updates: Sequence[Sequence[Tensor]], rule: MergeRule) -> list[tuple[Tensor, ...]]:
    same = list(zip(*updates, strict=True))
    return same[len(same) - rule.statistics :]


def _moved(
    parameters: Sequence[Tensor],
    momentum: Sequence[Tensor],
    totals: Sequence[Tensor],
    weight: Tensor,
    rule: MergeRule,
    *,
    are_means: bool = False,
) -> OuterState:
    """One Nesterov step on the mean, and statistics moved by theirs; weight: of the updates in the totals, f32 []."""
    anyone = weight > 0.0
    share = 1.0 / torch.maximum(weight, torch.ones(()))
    new_parameters: list[Tensor] = []
    new_momentum: list[Tensor] = []
    trained = len(parameters) - rule.statistics
    for k, (p, m, total) in enumerate(zip(parameters, momentum, totals, strict=True)):
        if k >= trained:
            new_parameters.append(torch.where(anyone, p - total, p))
            new_momentum.append(m)
            continue
        mean = total if are_means else total * share
        velocity = m * rule.momentum + mean
        moved = p - (mean + velocity * rule.momentum) * rule.rate
        new_parameters.append(torch.where(anyone, moved, p))
        new_momentum.append(torch.where(anyone, velocity, m))
    return new_parameters, new_momentum


def _sum_in_pairs(tensors: Sequence[Tensor]) -> Tensor:
    """The sum in the order of seats, neighbours first."""
    if len(tensors) == 1:
        return tensors[0]
    half = (len(tensors) + 1) // 2
    return _sum_in_pairs(tensors[:half]) + _sum_in_pairs(tensors[half:])
