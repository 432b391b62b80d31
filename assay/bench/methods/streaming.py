"""Fragments in turn, while training goes on; and workers that meet once, at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from assay.bench.methods.setting import LastingWorkers, MeteredProgram, MethodSetting, bytes_of
from assay.training.methods.fragments import fragments_of, mixed
from assay.training.outer import zero_momentum
from assay.training.programs import merge_program, program_of_lists, update_program


class _Exchange:
    """One fragment's programs, and its outer state: where it was merged last, and its momentum."""

    def __init__(self, setting: MethodSetting, base: Sequence[Tensor], alpha: float) -> None:
        self.base, self.momentum = list(base), zero_momentum(base)
        self._mask = [torch.ones(setting.workers)]
        self.update = MeteredProgram(update_program(base, setting.wire))
        self.merge = MeteredProgram(merge_program(base, setting.workers, setting.rule, setting.wire))
        # Nothing of one's own is the merge as it is.
        zeros = zero_momentum(base)
        mixing = program_of_lists("mixing", mixed, [zeros, zeros], alpha=alpha)
        self.mixing = MeteredProgram(mixing) if alpha else None

    @property
    def seconds(self) -> float:
        return sum(program.seconds for program in (self.update, self.merge, self.mixing) if program is not None)

    def merged(self, sent: Sequence[Sequence[Tensor]]) -> None:
        self.base, self.momentum = self.merge([self.base, self.momentum, *sent, self._mask])


class Streaming:
    """Streaming DiLoCo: each fragment once a round, at its own time (arXiv 2501.18512).

    overlap: steps that are trained while a fragment is on its way. alpha: what a worker keeps of its own parameters
    when a merge arrives. When training ends, the fragments whose turn was earlier are sent once more.
    """

    def __init__(self, setting: MethodSetting, fragments: int = 4, overlap: int = 0, alpha: float = 0.0) -> None:
        self._setting, self._overlap = setting, overlap
        start = setting.start()
        self.workers = LastingWorkers(setting, start)
        self._parts = fragments_of([p.numel() for p in start], fragments)
        self._exchanges = [_Exchange(setting, [start[k] for k in part], alpha) for part in self._parts]
        self._on_its_way: tuple[int, list[list[Tensor]]] | None = None
        self.sent, self.peak, self.carried = 0.0, 0.0, self.workers.carried

    @property
    def parameters(self) -> list[Tensor]:
        """The fragments as they were merged last."""
        found: dict[int, Tensor] = {}
        for part, exchange in zip(self._parts, self._exchanges, strict=True):
            found |= zip(part, exchange.base, strict=True)
        return [found[k] for k in sorted(found)]

    @property
    def rule_s(self) -> float:
        """See MethodTraining."""
        return sum(exchange.seconds for exchange in self._exchanges)

    def round(self, number: int) -> None:
        """Each fragment is sent when its share of the steps is done, and arrives `overlap` steps later."""
        done, steps = 0, self._setting.inner_steps
        for turn in range(len(self._parts)):
            until = steps * (turn + 1) // len(self._parts)
            if self._on_its_way is not None:
                late = min(self._overlap, until - done)
                self.workers.advance(number, done, late)
                done += late
                self.arrive()
            self.workers.advance(number, done, until - done)
            done = until
            self.send(turn)
            if not self._overlap:
                self.arrive()

    def finish(self) -> None:
        """What is on its way arrives; then the fragments that have trained on since their turn."""
        self.arrive()
        for turn in range(len(self._parts) - 1):
            self.send(turn)
            self.arrive()

    def send(self, turn: int) -> None:
        """A fragment's updates set out."""
        exchange, part = self._exchanges[turn], self._parts[turn]
        updates = [exchange.update([exchange.base, [own[k] for k in part]])[0] for own in self.workers.parameters]
        size = bytes_of(updates[0])
        self.sent, self.peak = self.sent + size, max(self.peak, size)
        self._on_its_way = (turn, updates)

    def arrive(self) -> None:
        """What is on its way, if anything, is merged, and workers go on from it."""
        if self._on_its_way is None:
            return
        turn, updates = self._on_its_way
        self._on_its_way = None
        exchange, part = self._exchanges[turn], self._parts[turn]
        exchange.merged(updates)
        for own in self.workers.parameters:
            new = exchange.base
            if exchange.mixing is not None:
                new = exchange.mixing([[own[k] for k in part], exchange.base])[0]
            for k, value in zip(part, new, strict=True):
                own[k] = value


class LoFi:
    """lo-fi (Wortsman et al., 2023): nobody sends anything until the end, and then the mean is taken."""

    def __init__(self, setting: MethodSetting) -> None:
        rule = replace(setting.rule, limit=setting.rule.limit * setting.rounds, rate=1.0, momentum=0.0)
        self._whole = Streaming(replace(setting, rule=rule), fragments=1)
        self.sent, self.peak, self.carried = 0.0, 0.0, self._whole.carried

    @property
    def parameters(self) -> list[Tensor]:
        """Where all started, until the end."""
        return self._whole.parameters

    @property
    def rule_s(self) -> float:
        """See MethodTraining."""
        return self._whole.rule_s

    def round(self, number: int) -> None:
        """Everybody trains on."""
        workers = self._whole.workers
        workers.advance(number, 0, workers.setting.inner_steps)

    def finish(self) -> None:
        """The mean of where all have come to."""
        self._whole.send(0)
        self._whole.arrive()
        self.sent, self.peak = self._whole.sent, self._whole.peak
