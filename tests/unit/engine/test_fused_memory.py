"""Values that live at once never share memory, and outputs take up only what nothing refers to any more."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.engine.runtime.fused import memory
from assay.engine.runtime.fused.memory import Life, Recycled, placed


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 12), st.integers(0, 6)), max_size=40),
    st.sampled_from([0, 5, 40]),
)
def test_values_that_live_at_once_never_overlap(drawn: list[tuple[int, int, int]], fitted: int):
    """However many look for a gap before the others take turns."""
    lives = [Life(k, size, first, first + more) for k, (size, first, more) in enumerate(drawn)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_MOST_FITTED", fitted)
        offsets, total = placed(lives)
    for a in lives:
        assert 0 <= offsets[a.key] <= total - a.size
        for b in lives:
            apart = offsets[a.key] + a.size <= offsets[b.key] or offsets[b.key] + b.size <= offsets[a.key]
            assert a.key == b.key or a.last < b.first or b.last < a.first or apart or not a.size or not b.size


def test_values_of_different_moments_share_memory():
    _, total = placed([Life(k, 1000, k, k) for k in range(10)])
    assert total == 1024


def test_a_million_small_values_take_turns_and_look_for_no_gap(monkeypatch: pytest.MonkeyPatch):
    """Attack: a stranger's program whose plan takes whoever runs it for ever."""
    looked: list[int] = []
    fitted = memory._fitted
    monkeypatch.setattr(memory, "_fitted", lambda lives: looked.append(len(lives)) or fitted(lives[:3]))
    values = [Life(k, 64, k, k + 1) for k in range(100_000)]
    offsets, total = placed(values)
    assert looked == [memory._MOST_FITTED]
    assert len(offsets) == len(values) - memory._MOST_FITTED + 3
    assert total == 4 * 64


def test_memory_is_taken_up_only_when_nothing_refers_to_it():
    recycled = Recycled(torch.float32, (300, 200))
    first = recycled.take()
    kept, part = first.data_ptr(), first[3:5, 1]
    first.fill_(1.0)
    second = recycled.take()
    assert second.data_ptr() != kept
    del first
    assert recycled.take().data_ptr() != kept  # a part of it is still looked at
    assert bool((part == 1.0).all())
    del part
    assert recycled.take().data_ptr() == kept


def test_many_results_that_a_caller_keeps_are_all_their_own():
    recycled = Recycled(torch.int32, (50_000,))
    kept = [recycled.take().fill_(k) for k in range(9)]
    assert all(bool((t == k).all()) for k, t in enumerate(kept))
    assert len({t.data_ptr() for t in kept}) == 9


def test_small_and_empty_tensors_are_simply_new():
    assert Recycled(torch.float32, ()).take().shape == ()
    assert Recycled(torch.bool, (0, 3)).take().numel() == 0
