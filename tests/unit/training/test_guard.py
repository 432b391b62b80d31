"""A guard of loss behind a merge: harmful work that was truly done changes nothing, honest work is merged as ever."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from assay.bench.compare import ComparedRun, Training
from assay.bench.methods.trained import PresetModel
from assay.engine.runtime.executor import Executor
from assay.protocol.errors import UserError
from assay.training.data import Corpus, corpus_from_text
from assay.training.guard import HELD_OUT, PIECES, Guard, guarded, held_out_of, preset_guard, round_key
from assay.training.merge import MergeRule, merge, merge_partials, usual_limit
from assay.training.outer import zero_momentum
from assay.training.presets import TINY
from assay.training.programs import generation_program, merge_program
from tests.harness.engine.helpers import both_executors, same_lists

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
WORKERS, ROUNDS = 3, 8
JOB = ComparedRun("f32", "tiny", WORKERS, seed=1, rounds=ROUNDS, inner_steps=10)
RULE = MergeRule(limit=usual_limit(10, TINY.learning_rate))
"""That of the trainings, whose programs these are."""

TOLERANCE = 0.02


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpus_from_text(TEXT)


@cache
def guard_of(corpus: Corpus, tolerance: float = TOLERANCE) -> Guard:
    return preset_guard(replace(TINY, inner_steps=JOB.inner_steps), corpus, tolerance)


@pytest.fixture(scope="module")
def trained(corpus: Corpus) -> tuple[list[Tensor], list[Tensor]]:
    """A base to which honest rounds have come, behind a guard that let all of them pass."""
    training = Training(replace(JOB, guard=TOLERANCE), PresetModel(TINY, corpus))
    for number in range(ROUNDS):
        training.round(number)
    assert training.refused == 0 and training.loss() < 3.0
    return training.parameters, training.momentum


def a_round(corpus: Corpus, base: tuple[list[Tensor], list[Tensor]], **terms: object) -> Training:
    """One round more from this base."""
    training = Training(replace(JOB, **terms), PresetModel(TINY, corpus))
    training.parameters, training.momentum = (list(part) for part in base)
    training.round(ROUNDS)
    return training


@pytest.mark.long
def test_honest_rounds_pass_a_guard_and_end_on_the_bits_that_they_end_on_without_one(corpus: Corpus) -> None:
    with_guard, without = (
        Training(replace(JOB, guard=guard), PresetModel(TINY, corpus)) for guard in (TOLERANCE, None)
    )
    for number in range(3):
        with_guard.round(number)
        without.round(number)
    assert with_guard.refused == 0
    assert same_lists([with_guard.parameters, with_guard.momentum], [without.parameters, without.momentum])


@pytest.mark.parametrize("merge_of", ["mean", pytest.param("median", marks=pytest.mark.long)])
def test_a_majority_that_trains_truly_on_poison_is_merged_and_a_guard_keeps_the_base(
    corpus: Corpus, trained: tuple[list[Tensor], list[Tensor]], merge_of: str
) -> None:
    """Attack: true work on a text of which every second letter is another: no dispute convicts, no median stops it."""
    poison = {"poison": "label-flip", "poisoned": 2, "merge": merge_of}
    plain, kept = (a_round(corpus, trained, guard=guard, **poison) for guard in (None, TOLERANCE))
    base = Training(JOB, PresetModel(TINY, corpus))
    base.parameters = list(trained[0])
    assert plain.loss() > base.loss() * (1 + TOLERANCE)
    assert kept.refused == 1 and same_lists([kept.parameters, kept.momentum], trained)
    # The next honest round goes on from there.
    honest = a_round(corpus, (kept.parameters, kept.momentum), guard=TOLERANCE)
    assert honest.refused == 0 and honest.loss() < base.loss() * (1 + TOLERANCE)


def updates_of(parameters: list[Tensor], size: float, seed: int = 3) -> list[list[Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    return [[torch.randn(p.shape, generator=draw) * size for p in parameters] for _ in range(WORKERS)]


@pytest.mark.parametrize(("size", "is_taken"), [(1e-4, True), (0.5, False)], ids=["harmless", "harmful"])
def test_executors_agree_on_what_a_guard_takes(
    corpus: Corpus, trained: tuple[list[Tensor], list[Tensor]], size: float, is_taken: bool
) -> None:
    guard, (parameters, momentum) = guard_of(corpus), trained
    updates, mask = updates_of(parameters, size), [torch.ones(WORKERS)]
    stock, fused = both_executors(merge_program(parameters, WORKERS, RULE, guard=guard))
    lists = [parameters, momentum, *updates, mask]
    found = [[t.clone() for t in part] for part in stock.run(lists)]
    assert same_lists(found, fused.run(lists))
    assert same_lists(found, trained) != is_taken
    if is_taken:
        assert same_lists(found, Executor(merge_program(parameters, WORKERS, RULE)).run(lists))
    # Stock PyTorch decides alike.
    assert same_lists(merge(*lists, rule=RULE, guard=guard), trained) != is_taken


@pytest.mark.long
@pytest.mark.parametrize(("size", "is_taken"), [(1e-4, True), (0.5, False)], ids=["harmless", "harmful"])
def test_a_merge_of_groups_has_its_guard_at_the_top(
    corpus: Corpus, trained: tuple[list[Tensor], list[Tensor]], size: float, is_taken: bool
) -> None:
    guard, (parameters, momentum) = guard_of(corpus), trained
    lists = [parameters, momentum, *updates_of(parameters, size), [torch.ones(WORKERS)]]
    made = Executor(generation_program(parameters, WORKERS, RULE, guard)).run(lists)
    assert same_lists(made, trained) != is_taken
    assert same_lists(merge_partials(*lists, rule=RULE, guard=guard), trained) != is_taken


def test_a_candidate_that_is_no_number_is_refused_and_the_base_stays_bit_by_bit(
    corpus: Corpus, trained: tuple[list[Tensor], list[Tensor]]
) -> None:
    for bad in (torch.nan, torch.inf, 1e30):
        candidate = [torch.full_like(p, bad) for p in trained[0]], zero_momentum(trained[0])
        assert same_lists(guarded(trained, candidate, [], guard_of(corpus)), trained)


def test_all_seats_read_windows_that_hang_on_the_base_and_on_every_update(
    corpus: Corpus, trained: tuple[list[Tensor], list[Tensor]]
) -> None:
    guard, parameters = guard_of(corpus), trained[0]
    lists = [parameters, *updates_of(parameters, 1e-3)]
    windows = guard.drawn(round_key(lists))
    assert windows.shape == (guard.windows, TINY.context + 1)
    assert torch.equal(windows, guard.drawn(round_key(lists)))
    for k in range(len(lists)):
        other = [*lists[:k], [lists[k][0] * 1.5, *lists[k][1:]], *lists[k + 1 :]]
        assert not torch.equal(windows, guard.drawn(round_key(other)))
    # Every window is in the held-out text, its last one too.
    held = corpus.validation.tolist()
    places = {tuple(held[k : k + TINY.context + 1]) for k in range(len(held) - TINY.context)}
    assert {tuple(row) for row in windows.tolist()} <= places
    last = torch.tensor([-1, -1], dtype=torch.int32)
    drawn = torch.stack([guard.drawn(last + k) for k in range(40)]).reshape(-1, TINY.context + 1)
    assert {tuple(held[: TINY.context + 1]), tuple(held[-TINY.context - 1 :])} <= {tuple(r) for r in drawn.tolist()}


def test_what_is_held_out_is_of_the_validation_split_and_bounded() -> None:
    short = torch.arange(100, dtype=torch.uint8)
    assert torch.equal(held_out_of(short), short)
    long = (torch.arange(10 * HELD_OUT) // 1000).to(torch.uint8)
    found = held_out_of(long)
    assert found.numel() == HELD_OUT and int(found[0]) == 0
    assert int(found[-1]) >= int(long[-1]) - 10 * HELD_OUT // PIECES // 1000


@pytest.mark.parametrize(("tokens", "tolerance"), [(9, 0.1), (100, -0.1)], ids=["short", "negative"])
def test_a_guard_that_can_read_nothing_is_refused(corpus: Corpus, tokens: int, tolerance: float) -> None:
    with pytest.raises(UserError) as caught:
        replace(guard_of(corpus), tokens=torch.zeros(tokens, dtype=torch.uint8), tolerance=tolerance)
    assert caught.value.code == "BadGuard"
