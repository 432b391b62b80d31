"""What every training of a comparison has: data, workers that turn through shards, and meters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from assay.bench.methods.trained import TrainedModel
from assay.engine.runtime.executor import Executor
from assay.protocol.program.program import Program
from assay.protocol.trees.state import random_key
from assay.protocol.types import Digest, Round, Seat
from assay.training.guard import Guard
from assay.training.merge import MergeRule
from assay.training.state import Scalars
from assay.training.updates import UpdateWire


class MethodTraining(Protocol):
    """A training of one method, round after round."""

    @property
    def parameters(self) -> list[Tensor]:
        """The model as it is."""

    @property
    def sent(self) -> float:
        """Bytes that a worker has sent, on average of all."""

    @property
    def peak(self) -> float:
        """The most bytes that a worker sends at once."""

    @property
    def carried(self) -> float:
        """Bytes that a worker keeps from round to round."""

    @property
    def rule_s(self) -> float:
        """CPU seconds in the method's own programs."""

    def round(self, number: int) -> None:
        """As many steps of all workers as a round has, and what they exchange."""

    def finish(self) -> None:
        """What is still on its way when training ends."""


@dataclass(frozen=True, slots=True)
class MethodSetting:
    """A training's model and sizes.

    run_id: of a run, whose seats' keys then draw the batches. guard: behind the merge. group_size, sums: of merges in
    two levels, 0 for one.
    """

    model: TrainedModel
    workers: int
    seed: int
    rounds: int
    inner_steps: int
    wire: UpdateWire
    rule: MergeRule
    run_id: Digest | None = None
    guard: Guard | None = None
    group_size: int = 0
    sums: UpdateWire = UpdateWire.F32

    def scalars(self, number: int, worker: int, done: int = 0) -> list[Tensor]:
        """Of a worker's state in a round, so many steps into it: shards turn, keys differ."""
        data = self.model.data
        length, key = data.shape[0] // self.workers, (self.seed, number * self.workers + worker)
        if self.run_id is not None:
            key = random_key(self.run_id, Seat(worker), Round(number))
        return Scalars.of(
            data,
            learning_rate=self.model.learning_rate,
            step=number * self.inner_steps + done,
            key=key,
            seat=worker,
            round=number,
            shard_start=(worker + number) % self.workers * length,
            shard_length=length,
        ).to_list()

    def start(self) -> list[Tensor]:
        """The first parameters."""
        return self.model.start(self.seed, as_a_run=self.run_id is not None)


class MeteredProgram:
    """A program's executor that counts its CPU seconds."""

    def __init__(self, program: Program) -> None:
        self._executor, self.seconds = Executor(program), 0.0

    def __call__(self, lists: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        """The lists of Y, nobody else's."""
        begun = time.process_time()
        found = [[t.clone() for t in part] for part in self._executor.run(lists)]
        self.seconds += time.process_time() - begun
        return found


class LastingWorkers:
    """Workers that keep their parameters and moments from round to round."""

    def __init__(self, setting: MethodSetting, parameters: Sequence[Tensor]) -> None:
        self.setting = setting
        step = setting.model.lasting()
        self._step = Executor(step.program)
        self.parameters = [list(parameters) for _ in range(setting.workers)]
        self._moments = [step.moments for _ in range(setting.workers)]

    @property
    def carried(self) -> float:
        """Bytes that a worker keeps."""
        return float(bytes_of([*self.parameters[0], *self._moments[0]]))

    def advance(self, number: int, done: int, steps: int) -> None:
        """Train all for so many steps, `done` steps into a round."""
        if not steps:
            return
        for k in range(self.setting.workers):
            state = [self.parameters[k], self._moments[k], self.setting.scalars(number, k, done)]
            end = self._step.repeat(state, steps)
            self.parameters[k], self._moments[k] = ([t.clone() for t in part] for part in end[:2])


def bytes_of(tensors: Sequence[Tensor]) -> int:
    """Of their elements."""
    return sum(t.numel() * t.element_size() for t in tensors)
