"""Ranks of one seat that exchange a few coefficients in every step (DeMo, arXiv 2411.19870)."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.bench.methods.setting import MeteredProgram, MethodSetting, bytes_of
from assay.engine.runtime.executor import Executor
from assay.training.methods.ranked import pack_coefficients, sign_step
from assay.training.outer import zero_momentum
from assay.training.programs import program_of_lists


class BetweenRanks:
    """Every worker is a rank: a step of all on the same parameters, each with data and a momentum of its own."""

    def __init__(self, setting: MethodSetting) -> None:
        self._setting, model = setting, setting.model
        self.parameters = setting.start()
        zeros = zero_momentum(self.parameters)
        self._momenta = [zeros] * setting.workers
        self._rank = Executor(model.of_a_rank(setting.scalars(0, 0)))
        packed = [pack_coefficients(p) for p in zeros]
        sent = [*[places for places, _ in packed], *[bits for _, bits in packed]]
        self._rate = [torch.tensor(model.learning_rate)]
        lists = [zeros, self._rate, *[sent] * setting.workers]
        self._apply = MeteredProgram(program_of_lists("sign step", sign_step, lists, weight_decay=model.weight_decay))
        self.sent, self.peak, self.carried = 0.0, float(bytes_of(sent)), float(bytes_of(zeros))

    @property
    def rule_s(self) -> float:
        """Of adding up and stepping alone: what a rank sends is made inside its step."""
        return self._apply.seconds

    def round(self, number: int) -> None:
        """A round's steps, with an exchange in each."""
        for done in range(self._setting.inner_steps):
            sent = []
            for k, momentum in enumerate(self._momenta):
                found = self._rank.run([self.parameters, momentum, self._setting.scalars(number, k, done)])
                sent.append([t.clone() for t in found[0]])
                self._momenta[k] = [t.clone() for t in found[1]]
            self.parameters = self._apply([self.parameters, self._rate, *sent])[0]
            self.sent += self.peak

    def finish(self) -> None:
        """Nothing is on its way."""

    def momentum_of(self, rank: int) -> list[Tensor]:
        """What a rank keeps."""
        return self._momenta[rank]
