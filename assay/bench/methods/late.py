"""Updates that arrive a round late, and islands that each go by a clock of their own."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

import torch
from torch import Tensor

from assay.bench.methods.setting import MeteredProgram, MethodSetting, bytes_of
from assay.engine.runtime.executor import Executor
from assay.protocol.program.program import Program
from assay.training.methods.lag import eager_update, late_update
from assay.training.outer import zero_momentum
from assay.training.programs import merge_program, partial_program, program_of_lists, update_program
from assay.training.updates import zero_update


class _SeatRounds:
    """Workers that train each round from given parameters, as seats do, and send what comes of it. See
    MethodTraining.
    """

    def __init__(self, setting: MethodSetting) -> None:
        self._setting = setting
        step = setting.model.restarting(setting.inner_steps)
        self._start, self._moments = setting.start(), step.moments
        self._step = Executor(step.program)
        self._metered: list[MeteredProgram] = []
        self._update = self._meter(update_program(self._start, setting.wire))
        self.sent, self.peak = 0.0, 0.0

    @property
    def rule_s(self) -> float:
        """See MethodTraining."""
        return sum(program.seconds for program in self._metered)

    def _meter(self, program: Program) -> MeteredProgram:
        """One of the method's own programs."""
        self._metered.append(MeteredProgram(program))
        return self._metered[-1]

    def _send(self, parameters: list[Tensor], number: int, worker: int) -> list[Tensor]:
        """What a worker sends after a round from these parameters."""
        state = [parameters, self._moments, self._setting.scalars(number, worker)]
        end = self._step.repeat(state, self._setting.inner_steps)
        sent = self._update([parameters, list(end[0])])[0]
        self.sent += bytes_of(sent) / self._setting.workers
        self.peak = float(bytes_of(sent))
        return sent


class LateUpdates(_SeatRounds):
    """What others send is a round late (Kale et al., 2025, arXiv 2502.12996).

    eager: a worker's own update is applied at once, so that each worker has parameters and a momentum of its own.
    Otherwise all is late, and what a round trained waits for the next. Updates travel as f32, and each is limited
    before it is added to or taken from others.
    """

    def __init__(self, setting: MethodSetting, eager: bool) -> None:
        super().__init__(setting)
        start, workers = self._start, setting.workers
        zeros = zero_momentum(start)
        copies = workers if eager else 1
        self._states: list[list[list[Tensor]]] = [[list(start), list(zeros)] for _ in range(copies)]
        self._is_eager, self._total = eager, list(zeros)
        self._own = [list(zeros) for _ in range(workers)]
        self._limit = self._meter(partial_program(start, 1, setting.rule))
        self._sum = self._meter(partial_program(start, workers, setting.rule))
        self._outer = self._meter(merge_program(start, 1, setting.rule))
        kind, function, count = ("eager update", eager_update, 3) if eager else ("late update", late_update, 1)
        self._mix = self._meter(program_of_lists(kind, function, [zeros] * count, workers=workers))
        self._zeros = zeros
        # Its own update; where it is eager, its parameters and momentum too, which are no longer everybody's.
        self.carried = float(bytes_of(start)) * (3 if eager else 1)

    @property
    def parameters(self) -> list[Tensor]:
        """Those of the first worker."""
        return self._states[0][0]

    def round(self, number: int) -> None:
        """All train from where they stand; then the updates of the round before arrive."""
        workers = range(self._setting.workers)
        sent = [self._send(self._states[k % len(self._states)][0], number, k) for k in workers]
        own = [self._limit([update])[0] for update in sent] if self._is_eager else self._own
        for k, state in enumerate(self._states):
            self._apply(state, [own[k], self._own[k], self._total] if self._is_eager else [self._total])
        self._own, self._total = own, self._sum(sent)[0]

    def finish(self) -> None:
        """What the last round sent arrives."""
        first = [self._zeros, self._own[0], self._total] if self._is_eager else [self._total]
        self._apply(self._states[0], first)

    def _apply(self, state: list[list[Tensor]], lists: list[list[Tensor]]) -> None:
        mean = self._mix(lists)[0]
        state[:] = self._outer([*state, mean, [torch.ones(1)]])


class Islands(_SeatRounds):
    """Islands with clocks of their own and a merge whenever a quorum has arrived (arXiv 2604.21428).

    An island trains a round's steps from the newest base that there was when it began, sends, and waits for the merge
    that it is in; the others train on from what they had. Durations are those of a round, in halves of the fastest
    one's. All have had as many rounds together as synchronous workers have when as many tokens are trained; merged
    updates weigh the same, since each is of as many tokens. A merge is of all islands, of which those that have not
    arrived send zeros: so each update moves the model as far as in a round of all, however many merges there are.
    """

    DURATIONS: Final = (2, 2, 3, 4)

    def __init__(self, setting: MethodSetting) -> None:
        super().__init__(setting)
        self.parameters, self._momentum = list(self._start), zero_momentum(self._start)
        self._quorum = -(-setting.workers // 2)
        self._merge = self._meter(merge_program(self.parameters, setting.workers, setting.rule, setting.wire))
        self._absent = zero_update(self.parameters, setting.wire)
        self._bases = [self.parameters] * setting.workers
        self._counts = [0] * setting.workers
        self._clock: list[tuple[int, int]] = []
        for k in range(setting.workers):
            heappush(self._clock, (self._duration(k), k))
        self._arrived: dict[int, list[Tensor]] = {}
        self.carried = 0.0

    def round(self, number: int) -> None:
        """As many islands' rounds as there are islands, whichever they are."""
        for _ in range(len(self._bases)):
            now, k = heappop(self._clock)
            self._arrived[k] = self._send(self._bases[k], self._counts[k], k)
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
        sent = [self._arrived.get(k, self._absent) for k in range(len(self._bases))]
        everybody = torch.ones(len(self._bases))
        self.parameters, self._momentum = self._merge([self.parameters, self._momentum, *sent, [everybody]])
        for k in sorted(self._arrived):
            self._bases[k] = self.parameters
            heappush(self._clock, (now + self._duration(k), k))
        self._arrived = {}
