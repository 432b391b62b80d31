"""Late updates and islands against rounds made up by hand: from which base, which way, and with which momentum."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from assay.bench.compare import METHODS, setting_of
from assay.bench.methods.late import Islands, LateUpdates
from assay.bench.methods.trained import PresetModel
from assay.training.data import corpus_from_text
from assay.training.merge import MergeRule
from assay.training.presets import TINY
from tests.unit.bench.test_compare import JOB, TEXT

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

TensorList = list[Tensor]
RATE, MOMENTUM = 0.7, 0.9


@pytest.fixture(scope="module")
def model() -> PresetModel:
    return PresetModel(TINY, corpus_from_text(TEXT))


class RecordedRounds:
    """Rounds as they are trained, and a record of each: worker, its number, its base, and the update that it sent."""

    def __init__(self, training: LateUpdates | Islands) -> None:
        self.rounds: list[tuple[int, int, TensorList, TensorList]] = []
        self._send, training._send = training._send, self.send

    def send(self, parameters: TensorList, number: int, worker: int) -> TensorList:
        sent = self._send(parameters, number, worker)
        self.rounds.append((worker, number, [p.clone() for p in parameters], sent))
        return sent

    def mean_of(self, rounds: tuple[int, ...], workers: int) -> TensorList:
        """The sum of what these sent, over all workers."""
        return [torch.stack(same).sum(0) / workers for same in zip(*(self.rounds[k][3] for k in rounds), strict=True)]


def outer(start: TensorList, means: list[TensorList]) -> TensorList:
    """Where Nesterov's steps on these means lead, against them."""
    found, velocity = [t.clone() for t in start], [torch.zeros_like(t) for t in start]
    for mean in means:
        velocity = [MOMENTUM * v + m for v, m in zip(velocity, mean, strict=True)]
        found = [p - RATE * (m + MOMENTUM * v) for p, m, v in zip(found, mean, velocity, strict=True)]
    return found


def check_same(got: TensorList, wanted: TensorList) -> None:
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def moved(own: TensorList, before: TensorList, mean: TensorList, workers: int) -> TensorList:
    """The mean of the round before with one's own update of this round in the place of the last one."""
    return [m + (a - b) / workers for a, b, m in zip(own, before, mean, strict=True)]


def test_two_rounds_of_which_everything_is_late(model: PresetModel) -> None:
    training = LateUpdates(setting_of(replace(JOB, method="delayed"), model), eager=False)
    kept, start = RecordedRounds(training), [t.clone() for t in training.parameters]
    training.round(0)
    training.round(1)
    for _, _, base, _ in kept.rounds:  # nothing had arrived when the second round began
        check_same(base, start)
    first, second = kept.mean_of((0, 1), 2), kept.mean_of((2, 3), 2)
    check_same(training.parameters, outer(start, [first]))
    training.finish()
    check_same(training.parameters, outer(start, [first, second]))


def test_two_rounds_of_which_ones_own_update_is_not_late(model: PresetModel) -> None:
    training = LateUpdates(setting_of(replace(JOB, method="eager"), model), eager=True)
    kept, start = RecordedRounds(training), [t.clone() for t in training.parameters]
    nothing = [torch.zeros_like(t) for t in start]
    training.round(0)
    training.round(1)
    sent, first, second = [r[3] for r in kept.rounds], kept.mean_of((0, 1), 2), kept.mean_of((2, 3), 2)
    for worker in (0, 1):
        own = moved(sent[worker], nothing, nothing, 2)
        check_same(kept.rounds[2 + worker][2], outer(start, [own]))
    steps = [moved(sent[0], nothing, nothing, 2), moved(sent[2], sent[0], first, 2)]
    check_same(training.parameters, outer(start, steps))
    training.finish()
    check_same(training.parameters, outer(start, [*steps, moved(nothing, sent[2], second, 2)]))


def test_a_workers_own_update_is_within_the_limit_as_it_is_among_all(model: PresetModel) -> None:
    """Otherwise what was taken back would be more than what had been applied."""
    setting = setting_of(replace(JOB, method="eager"), model)
    limit = 1e-4
    training = LateUpdates(replace(setting, rule=MergeRule(limit=limit)), eager=True)
    start = [t.clone() for t in training.parameters]
    for number in range(2):
        training.round(number)
        for t in training._own[0]:
            assert float(t.norm()) <= limit * t.numel() ** 0.5 * 1.001
    training.finish()
    for a, b in zip(start, training.parameters, strict=True):  # two updates, each within the limit
        assert float((a - b).norm()) <= 2 * limit * a.numel() ** 0.5 / (1 - MOMENTUM)


def test_two_rounds_of_islands_take_as_large_steps_together_as_rounds_of_all(model: PresetModel) -> None:
    training = Islands(setting_of(replace(JOB, method="islands", workers=4), model))
    kept, start = RecordedRounds(training), [t.clone() for t in training.parameters]
    training.round(0)
    training.round(1)
    # Rounds of 2, 2, 3 and 4 halves; two that have arrived are a merge, and begin again when it is made.
    assert [(worker, number) for worker, number, _, _ in kept.rounds] == [
        (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (3, 0), (0, 2), (1, 2)
    ]  # fmt: skip
    means = [kept.mean_of(pair, 4) for pair in ((0, 1), (2, 3), (4, 5), (6, 7))]
    merges_before = [0, 0, 0, 1, 1, 0, 2, 3]
    for (_, _, base, _), merges in zip(kept.rounds, merges_before, strict=True):
        check_same(base, outer(start, means[:merges]))
    check_same(training.parameters, outer(start, means))
    training.finish()
    check_same(training.parameters, outer(start, means))


def test_what_is_tested_here_is_what_the_command_begins() -> None:
    for name in ("delayed", "eager", "islands"):
        assert (METHODS[name].rate, METHODS[name].momentum) == (RATE, MOMENTUM)
