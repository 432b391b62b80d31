"""The training step is a pure function of the state, and agrees with PyTorch's own optimizers where they overlap."""

import pytest
import torch

from assay.protocol.arithmetic import philox as reference
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.evaluate import generate, validation_loss
from assay.training.initialize import initialize, uniform
from assay.training.optimizer import AdamW
from assay.training.outer import SLOTS, outer_step, zero_momentum
from assay.training.presets import DEMO, TINY, preset
from assay.training.schedules import RoundWarmup, warmup_linear
from assay.training.state import Scalars, i32
from assay.training.step import draw_batch, initial_state, preset_step
from assay.training.updates import compute_update


@pytest.fixture(scope="module")
def corpus():
    return corpus_from_text(pydoc_text()[:20_000])


def test_a_batch_is_the_windows_that_the_protocol_names(corpus):
    scalars = Scalars.of(
        corpus.train, learning_rate=0.1, step=(5 << 32) + 3, key=(0x89ABCDEF, 7), shard_start=1000, shard_length=500
    )
    rows = draw_batch(scalars, 6, 8)
    for b in range(6):
        word = reference.random_word(b, 0, (3, 5), (0x89ABCDEF, 7))
        start = 1000 + (word * (500 - 8) >> 32)
        assert rows[b].tolist() == corpus.train[start : start + 9].tolist()


def test_the_step_counter_carries_into_its_high_word(corpus):
    scalars = Scalars.of(corpus.train, learning_rate=0.1, step=0xFFFFFFFF)
    assert scalars.advanced().step.tolist() == [0, 1]
    assert scalars.advanced().advanced().step.tolist() == [1, 1]


def test_a_step_changes_parameters_moments_and_step_only_and_depends_on_nothing_else(corpus):
    step = preset_step(TINY, len(corpus.vocabulary))
    state = initial_state(step, initialize(step.module, 1), Scalars.of(corpus.train, learning_rate=1e-3, key=(1, 2)))
    before = [[t.clone() for t in part] for part in state]
    first, again = step(*state), step(*state)
    for old, new, repeated, kept in zip(state, first, again, before, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(new, repeated, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(old, kept, strict=True))
    assert [a.shape for part in first for a in part] == [a.shape for part in state for a in part]
    assert [torch.equal(a, b) for a, b in zip(first[2], state[2], strict=True)] == [False] + [True] * 7


def test_adamw_agrees_with_pytorchs_own():
    torch.manual_seed(0)
    ours = [torch.randn(4, 3), torch.randn(3)]
    theirs = [torch.nn.Parameter(p.clone()) for p in ours]
    stock = torch.optim.AdamW(
        [{"params": theirs[:1], "weight_decay": 0.01}, {"params": theirs[1:], "weight_decay": 0.0}],
        lr=1e-2,
        betas=(0.9, 0.99),
        eps=1e-8,
    )
    adamw = AdamW()
    state = adamw.zero_init(ours)
    for _ in range(10):
        gradients = [torch.randn_like(p) for p in ours]
        for p, g in zip(theirs, gradients, strict=True):
            p.grad = g
        stock.step()
        ours, state = adamw.update(ours, gradients, state, torch.tensor(1e-2))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-5, atol=1e-6)


def test_the_outer_step_agrees_with_pytorchs_nesterov_on_the_mean_of_the_included():
    torch.manual_seed(1)
    ours, momentum = [torch.randn(5)], zero_momentum([torch.zeros(5)])
    theirs = torch.nn.Parameter(ours[0].clone())
    stock = torch.optim.SGD([theirs], lr=0.7, momentum=0.9, nesterov=True)
    for _ in range(3):
        updates = [torch.randn(5), torch.randn(5), torch.randn(5)]
        slots = [[u] for u in updates] + [[torch.zeros(5)]] * (SLOTS - 3)
        mask = torch.tensor([1.0] * 3 + [0.0] * (SLOTS - 3))
        ours, momentum = outer_step(ours, momentum, *slots, [mask])
        theirs.grad = (updates[0] + updates[1] + updates[2]) / 3
        stock.step()
    torch.testing.assert_close(ours[0], theirs.detach(), rtol=1e-5, atol=1e-6)


def test_the_outer_step_without_any_update_changes_nothing():
    p, m = [torch.randn(5)], [torch.randn(5)]
    new_p, new_m = outer_step(p, m, *[[torch.zeros(5)]] * SLOTS, [torch.zeros(SLOTS)])
    assert torch.equal(new_p[0], p[0])
    assert torch.equal(new_m[0], m[0])


def test_an_update_is_start_minus_end():
    assert compute_update([torch.tensor([3.0])], [torch.tensor([1.0])])[0][0].tolist() == [2.0]


def test_starting_values_follow_from_seed_and_stream_alone():
    a = uniform((64, 64), 0.5, seed=7, stream=3)
    assert torch.equal(a, uniform((64, 64), 0.5, seed=7, stream=3))
    assert not torch.equal(a, uniform((64, 64), 0.5, seed=8, stream=3))
    assert a.abs().max() <= 0.5
    assert abs(float(a.std()) - 0.5 / 3**0.5) < 0.02
    word = reference.random_word(0, 3, (0, 0), (7, 0))
    signed = (word ^ 0x80000000) - 0x80000000
    assert float(a[0, 0]) == (signed >> 8) / 2**23 * 0.5


def test_presets_have_the_sizes_they_promise(corpus):
    assert preset("demo") is DEMO
    assert 240_000 < sum(p.numel() for p in initialize(preset_step(DEMO, 103).module, 0)) < 250_000


def test_loss_and_sample_come_from_the_parameters_given(corpus):
    step = preset_step(TINY, len(corpus.vocabulary))
    model, parameters = step.module, initialize(step.module, 1)
    loss = validation_loss(model, parameters, corpus)
    assert 3.0 < loss < 8.0
    assert loss == pytest.approx(validation_loss(model, parameters, corpus, windows=7), rel=1e-5)
    text = generate(model, parameters, corpus, length=30, seed=1)
    assert len(text) == 30
    assert text == generate(model, parameters, corpus, length=30, seed=1)


def factors(rise, round_, schedule=None):
    first = round_ * rise.round_length
    steps = [i32(first + k, 0, shape=(2,)) for k in range(rise.round_length)]
    return [rise.factor(step, i32(round_), schedule).item() for step in steps]


def test_the_rate_rises_anew_in_each_round_and_stays_until_its_end():
    rise = RoundWarmup(steps=4, round_length=6)
    for round_ in (0, 1, 7):
        assert factors(rise, round_) == pytest.approx([1 / 3, 2 / 3, 1.0, 4 / 3, 4 / 3, 4 / 3], rel=1e-6)
    # A step that belongs to an earlier round has no rate, never a negative one.
    assert rise.factor(i32(5, 0, shape=(2,)), i32(1)).item() == 0.0
    assert rise.factor(i32(3, 0, shape=(2,)), i32(1)).item() == 0.0


def test_a_schedule_that_rises_by_itself_is_not_made_to_rise_twice():
    rise, schedule = RoundWarmup(steps=4, round_length=10), warmup_linear(15, 40)
    level = 10 / 8.5
    # Round 0: the schedule is the lower one. Round 1: it rises until step 14, and falls to 0.84 by the last step.
    assert factors(rise, 0, schedule) == pytest.approx([level * (k + 1) / 15 for k in range(10)], rel=1e-6)
    own = [schedule(torch.tensor(float(step))).item() for step in range(10, 40)]
    assert factors(rise, 1, schedule) == pytest.approx(
        [level * min(s, max(s, own[9]) * min((k + 1) / 4, 1)) for k, s in enumerate(own[:10])], rel=1e-6
    )
    # Where it falls, both multiply.
    for round_ in (2, 3):
        part = own[10 * round_ - 10 : 10 * round_]
        wanted = [level * s * min((k + 1) / 4, 1) for k, s in enumerate(part)]
        assert factors(rise, round_, schedule) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(("steps", "length"), [(1, 1), (1, 6), (10, 25), (20, 50), (25, 25), (100, 500)])
def test_a_round_with_a_warm_up_walks_as_far_as_one_without(steps, length):
    found = factors(RoundWarmup(steps, length), 3)
    assert sum(found) == pytest.approx(length, rel=1e-6)
    assert found[0] == pytest.approx(found[-1] / steps, rel=1e-6)
    assert found[steps - 1] == found[-1] == max(found) < 2.0


def test_the_usual_warm_up_takes_ten_steps_but_two_fifths_of_a_round_at_most():
    steps = {length: RoundWarmup.usual(length).steps for length in (1, 2, 5, 10, 24, 25, 50, 500)}
    assert steps == {1: 1, 2: 1, 5: 2, 10: 4, 24: 9, 25: 10, 50: 10, 500: 10}
    assert max(RoundWarmup.usual(length).level for length in range(1, 600)) <= 1.25


def test_a_warm_up_is_exact_where_steps_outgrow_32_bits():
    rise = RoundWarmup(steps=10, round_length=50)
    for round_ in (2**32 // 50, 2**31 - 1):
        step = round_ * 50 + 4
        found = rise.factor(i32(step & 0xFFFFFFFF, step >> 32, shape=(2,)), i32(round_)).item()
        assert found == pytest.approx(25 / 45.5, rel=1e-6)


def test_a_restarting_step_warms_up_and_another_does_not(corpus):
    plain, rising = (preset_step(TINY, len(corpus.vocabulary), restarts=r) for r in (False, True))
    start = initialize(plain.module, 1)
    for round_, position, factor in (
        (0, 0, 1 / 3.4),
        (3, 1, 2 / 3.4),
        (3, 3, 4 / 3.4),
        (3, TINY.inner_steps - 1, 4 / 3.4),
    ):
        given = {"round": round_, "step": round_ * TINY.inner_steps + position, "key": (1, 2)}
        full = Scalars.of(corpus.train, learning_rate=3e-3, **given)
        part = Scalars.of(corpus.train, learning_rate=3e-3 * factor, **given)
        got = rising(*initial_state(rising, start, full))
        wanted = plain(*initial_state(plain, start, part))
        for a, b in zip((*got[0], *got[1]), (*wanted[0], *wanted[1]), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
        assert torch.equal(got[2][1], full.learning_rate)
