"""Updates that arrive a round late, and islands that each go by a clock of their own."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

import torch
from torch import Tensor

from assay.bench.methods.setting import MeteredProgram, MethodSetting, bytes_of
from assay.engine.runtime.executor import Executor
from assay.training.initialize import initialize
from assay.training.methods.lag import eager_update, late_update
from assay.training.outer import zero_momentum
from assay.training.programs import merge_program, partial_program, program_of_lists, training_program, update_program
from assay.training.step import preset_step
from assay.training.updates import zero_update


class _Rounds:
    """A round of one worker from given parameters, as a seat trains it; what it sends."""

    def __init__(self, setting: MethodSetting) -> None:
        self.setting = setting
        model = preset_step(setting.preset, len(setting.corpus.vocabulary), restarts=True)
        self.start = initialize(model.module, setting.seed)
        self._moments = model.optimizer.zero_init(self.start)
        self._step = Executor(training_program(setting.preset, setting.corpus, restarts=True))
        self._update = MeteredProgram(update_program(self.start, setting.wire))
        self.sent, self.peak = 0.0, 0.0

    @property
    def seconds(self) -> float:
        return self._update.seconds

    def update(self, parameters: list[Tensor], number: int, worker: int) -> list[Tensor]:
        state = [parameters, self._moments, self.setting.scalars(number, worker)]
        end = self._step.repeat(state, self.setting.preset.inner_steps)
        sent = self._update([parameters, list(end[0])])[0]
        self.sent += bytes_of(sent) / self.setting.workers
        self.peak = float(bytes_of(sent))
        return sent


class LateUpdates:
    """What others send is a round late (Kale et al., 2025, arXiv 2502.12996).

    eager: a worker's own update is applied at once, so that each worker has parameters and a momentum of its own.
    Otherwise all is late, and what a round trained waits for the next. Updates travel as f32.
    """

    def __init__(self, setting: MethodSetting, eager: bool) -> None:
        self._rounds, self._workers = _Rounds(setting), setting.workers
        start = self._rounds.start
        zeros = zero_momentum(start)
        copies = setting.workers if eager else 1
        self._states: list[list[list[Tensor]]] = [[list(start), list(zeros)] for _ in range(copies)]
        self._is_eager, self._total = eager, list(zeros)
        self._own = [list(zeros) for _ in range(setting.workers)]
        self._sum = MeteredProgram(partial_program(start, setting.workers, setting.rule))
        self._outer = MeteredProgram(merge_program(start, 1, setting.rule))
        kind, function, count = ("eager update", eager_update, 3) if eager else ("late update", late_update, 1)
        mixing = program_of_lists(kind, function, [zeros] * count, workers=setting.workers)
        self._mix = MeteredProgram(mixing)
        self._zeros = zeros
        # Its own update; where it is eager, its parameters and momentum too, which are no longer everybody's.
        self.carried = float(bytes_of(start)) * (3 if eager else 1)

    @property
    def parameters(self) -> list[Tensor]:
        """Those of the first worker."""
        return self._states[0][0]

    @property
    def sent(self) -> float:
        """See MethodTraining."""
        return self._rounds.sent

    @property
    def peak(self) -> float:
        """See MethodTraining."""
        return self._rounds.peak

    @property
    def rule_s(self) -> float:
        """See MethodTraining."""
        return self._rounds.seconds + self._sum.seconds + self._outer.seconds + self._mix.seconds

    def round(self, number: int) -> None:
        """All train from where they stand; then the updates of the round before arrive."""
        sent = [self._rounds.update(self._states[k % len(self._states)][0], number, k) for k in range(self._workers)]
        for k, state in enumerate(self._states):
            self._apply(state, [sent[k], self._own[k], self._total] if self._is_eager else [self._total])
        self._own, self._total = sent, self._sum(sent)[0]

    def finish(self) -> None:
        """What the last round sent arrives."""
        first = [self._zeros, self._own[0], self._total] if self._is_eager else [self._total]
        self._apply(self._states[0], first)

    def _apply(self, state: list[list[Tensor]], lists: list[list[Tensor]]) -> None:
        mean = self._mix(lists)[0]
        state[:] = self._outer([*state, mean, [torch.ones(1)]])


class Islands:
    """Islands with clocks of their own and a merge whenever a quorum has arrived (arXiv 2604.21428).

    An island trains a round's steps from the newest base that there was when it began, sends, and waits for the merge
    that it is in; the others train on from what they had. Durations are those of a round, in halves of the fastest
    one's. All have had as many rounds together as synchronous workers have when as many tokens are trained; merged
    updates weigh the same, since each is of as many tokens.
    """

    DURATIONS: Final = (2, 2, 3, 4)

    def __init__(self, setting: MethodSetting) -> None:
        self._rounds = _Rounds(setting)
        self.parameters, self._momentum = list(self._rounds.start), zero_momentum(self._rounds.start)
        self._quorum = -(-setting.workers // 2)
        self._merge = MeteredProgram(merge_program(self.parameters, setting.workers, setting.rule, setting.wire))
        self._absent = zero_update(self.parameters, setting.wire)
        self._bases = [self.parameters] * setting.workers
        self._counts = [0] * setting.workers
        self._clock: list[tuple[int, int]] = []
        for k in range(setting.workers):
            heappush(self._clock, (self._duration(k), k))
        self._arrived: dict[int, list[Tensor]] = {}
        self.carried = 0.0

    @property
    def sent(self) -> float:
        """See MethodTraining."""
        return self._rounds.sent

    @property
    def peak(self) -> float:
        """See MethodTraining."""
        return self._rounds.peak

    @property
    def rule_s(self) -> float:
        """See MethodTraining."""
        return self._rounds.seconds + self._merge.seconds

    def round(self, number: int) -> None:
        """As many islands' rounds as there are islands, whichever they are."""
        for _ in range(len(self._bases)):
            now, k = heappop(self._clock)
            self._arrived[k] = self._rounds.update(self._bases[k], self._counts[k], k)
            self._counts[k] += 1
            if len(self._arrived) >= self._quorum:
                self._merge_arrived(now)

    def finish(self) -> None:
        """What has arrived is merged, if no quorum."""
        if self._arrived:
            self._merge_arrived(0)

    def _duration(self, island: int) -> int:
        return self.DURATIONS[island % len(self.DURATIONS)]

    def _merge_arrived(self, now: int) -> None:
        seats = range(len(self._bases))
        sent = [self._arrived.get(k, self._absent) for k in seats]
        mask = torch.tensor([1.0 if k in self._arrived else 0.0 for k in seats])
        self.parameters, self._momentum = self._merge([self.parameters, self._momentum, *sent, [mask]])
        for k in sorted(self._arrived):
            self._bases[k] = self.parameters
            heappush(self._clock, (now + self._duration(k), k))
        self._arrived = {}
