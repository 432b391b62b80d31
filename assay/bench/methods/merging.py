"""What becomes of the updates of all workers: merged at once, or group by group, as a run does it above 64 seats."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from assay.bench.methods.setting import MeteredProgram, MethodSetting
from assay.training.programs import generation_program, merge_program, partial_program
from assay.training.updates import zero_update


class PlainMerge:
    """All at once."""

    def __init__(self, setting: MethodSetting, parameters: Sequence[Tensor]) -> None:
        program = merge_program(parameters, setting.workers, setting.rule, setting.wire, setting.guard)
        self._program, self._mask = MeteredProgram(program), [torch.ones(setting.workers)]

    @property
    def seconds(self) -> float:
        """Of a processor."""
        return self._program.seconds

    def __call__(
        self, parameters: list[Tensor], momentum: list[Tensor], sent: list[list[Tensor]]
    ) -> list[list[Tensor]]:
        """New parameters and outer momentum from what each worker sent."""
        return self._program([parameters, momentum, *sent, self._mask])


class GroupedMerge:
    """Sums of groups, and then of these; places that are nobody's have the zero update."""

    def __init__(self, setting: MethodSetting, parameters: Sequence[Tensor]) -> None:
        rule, wire, sums, size = setting.rule, setting.wire, setting.sums, setting.group_size
        groups, self._size = -(-setting.workers // size), size
        nobody = zero_update(parameters, wire, statistics=rule.statistics)
        self._nobody = [nobody] * (groups * size - setting.workers)
        counts = [min(size, setting.workers - g * size) for g in range(groups)]
        self._weights = [torch.tensor(counts, dtype=torch.float32)]
        self._sum = MeteredProgram(partial_program(parameters, size, rule, wire, sums))
        self._program = MeteredProgram(generation_program(parameters, groups, rule, setting.guard, sums))

    @property
    def seconds(self) -> float:
        """Of a processor."""
        return self._sum.seconds + self._program.seconds

    def __call__(
        self, parameters: list[Tensor], momentum: list[Tensor], sent: list[list[Tensor]]
    ) -> list[list[Tensor]]:
        """New parameters and outer momentum from what each worker sent."""
        places = [*sent, *self._nobody]
        sums = [self._sum(places[k : k + self._size])[0] for k in range(0, len(places), self._size)]
        return self._program([parameters, momentum, *sums, self._weights])
