"""Text with what was read kept is the text of the definition, in any batch and by every executor."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.inference.generate import generate
from assay.inference.model import LanguageModel
from assay.inference.programs import GptShape
from assay.inference.rows import CachedRows, TextRow, TextRows, WindowRows, rows_of
from assay.inference.sampling import SamplingTerms
from assay.protocol.program.reference import ReferenceExecutor
from tests.harness.engine.helpers import bits_equal
from tests.harness.inference.models import LETTERS, SHAPE, small_gpt, two_back

PROMPTS = ([1, 2, 3], [5], [7, 7, 8, 1, 0, 2, 9, 4, 4, 3, 11], [6, 1])


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_gpt()


def walked(rows: TextRows, prompt: list[int], text: list[int]) -> list[Tensor]:
    """The logits behind a prompt and behind each further token of a text."""
    row, logits_V = rows.admit(prompt)
    found = [logits_V, *(rows.advance([row], [token])[0] for token in text)]
    rows.release(row)
    return found


@pytest.mark.parametrize("prompt", PROMPTS, ids=["short", "one", "nearly-all", "two"])
def test_one_more_token_gives_the_bits_of_the_whole_window(model: LanguageModel, prompt: list[int]) -> None:
    text = [4, 0, 9, 9, 1, 2, 12, 3, 3, 5, 6]  # goes on beyond the context
    cached, whole = (walked(rows, prompt, text) for rows in (CachedRows(model), WindowRows(model)))
    assert all(bits_equal(a, b) for a, b in zip(cached, whole, strict=True))
    assert not bits_equal(whole[-1], whole[-2])


def test_what_an_earlier_text_left_behind_changes_no_bit(model: LanguageModel) -> None:
    rows = CachedRows(model)
    first = walked(rows, [1, 2], [3, 4])
    walked(rows, [9, 8, 7, 6, 5, 4], [3, 2, 1])
    rows._cache[:] = float("nan")
    assert all(bits_equal(a, b) for a, b in zip(walked(rows, [1, 2], [3, 4]), first, strict=True))


def test_rows_that_come_and_go_give_each_the_bits_that_it_gets_alone(model: LanguageModel) -> None:
    prompts = PROMPTS[:2]
    together, alone = CachedRows(model, 2), [CachedRows(model) for _ in prompts]
    begun = [(*together.admit(p), *r.admit(p)) for p, r in zip(prompts, alone, strict=True)]
    assert all(bits_equal(logits, own) for _, logits, _, own in begun)
    left = list(range(len(prompts)))
    for step in range(6):
        tokens = [(3 * k + step) % LETTERS.size for k in left]
        logits = together.advance([begun[k][0] for k in left], tokens)
        for place, (k, token) in enumerate(zip(left, tokens, strict=True)):
            assert bits_equal(logits[place], alone[k].advance([begun[k][2]], [token])[0])
        if step == 3:
            together.release(begun[left.pop(0)][0])


DEEP = GptShape(layers=3, width=32, heads=4, context=24, vocabulary=LETTERS.size)


@pytest.mark.long
def test_a_batch_of_thirty_two_gives_each_row_the_bits_of_one() -> None:
    model = small_gpt(DEEP)
    together, prompts = CachedRows(model, 32), [[k % LETTERS.size, (5 * k) % LETTERS.size] for k in range(32)]
    begun = [together.admit(p)[0] for p in prompts]
    whole = WindowRows(model, 32)
    seen = [whole.admit(p)[0] for p in prompts]
    for step in range(5):
        tokens = [(k + step) % LETTERS.size for k in range(32)]
        cached, windows = together.advance(begun, tokens), whole.advance(seen, tokens)
        assert bits_equal(cached, windows)
        for k in (0, 13, 31):
            assert bits_equal(WindowRows(model).admit(seen[k].tokens)[1], cached[k])


LONG = GptShape(layers=2, width=16, heads=2, context=40, vocabulary=LETTERS.size)


def test_a_cache_grows_and_shrinks_with_the_longest_text_and_changes_no_bit() -> None:
    model = small_gpt(LONG)
    together, alone = CachedRows(model, 2), [WindowRows(model), WindowRows(model)]
    prompts, sizes = [[k % LETTERS.size for k in range(30)], [3, 1, 2]], []

    def advance(k: int, both: list[TextRow], own: list[TextRow], token: int) -> None:
        cached = together.advance([both[k]], [token])[0]
        assert bits_equal(cached, alone[k].advance([own[k]], [token])[0]), (k, token, len(own[k].tokens))
        sizes.append(together._cache.shape[4])

    both, own = (list(part) for part in ([], []))
    for k in (1, 0):
        rows = [together.admit(prompts[k]), alone[k].admit(prompts[k])]
        assert bits_equal(rows[0][1], rows[1][1])
        both.insert(0, rows[0][0]), own.insert(0, rows[1][0])
        sizes.append(together._cache.shape[4])
    for token in range(4):
        advance(0, both, own, token)
        advance(1, both, own, token)
    together.release(both[0])
    for token in range(12):
        advance(1, both, own, token)
    # A place more for each token: the 16th and the 32nd are the last of their sizes.
    assert sizes == [16, 32, *[32] * 4, *[40] * 4, *[16] * 9, *[32] * 3]


def test_what_lies_in_new_places_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight of 0 leaves nothing of what is ahead of a row, be it no number: memory is taken as it is."""
    monkeypatch.setattr("assay.inference.rows._CHECK_EVERY", 1)  # products are checked against faults too
    model = small_gpt(LONG)
    rows = CachedRows(model)
    first = walked(rows, [1] * 14, [2, 3, 4, 5])
    rows._flat.fill_(float("nan")), rows._spare.fill_(float("nan"))
    assert all(bits_equal(a, b) for a, b in zip(walked(rows, [1] * 14, [2, 3, 4, 5]), first, strict=True))


def test_executors_that_were_not_used_for_longest_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.inference.rows._MOST_EXECUTORS", 2)
    model = small_gpt(LONG)
    rows = CachedRows(model)
    first = walked(rows, [1, 2], list(range(8)))
    walked(rows, [1] * 20, [1, 2])
    assert list(rows._executors._made) == [("prompt", 32), ("next", 1, 32)]
    assert all(bits_equal(a, b) for a, b in zip(walked(rows, [1, 2], list(range(8))), first, strict=True))


def test_a_model_of_ones_own_goes_on_by_windows() -> None:
    model = two_back()
    rows = rows_of(model, 2)
    assert isinstance(rows, WindowRows) and rows.most == 2
    text = generate(model, rows, [1, 2], SamplingTerms(seed=3), 12)
    assert text == generate(model, WindowRows(model), [1, 2], SamplingTerms(seed=3), 12)
    assert len(set(text)) > 3


def test_a_model_whose_rows_mix_is_served_row_by_row() -> None:
    assert WindowRows(two_back(mixes=True), 2).most == 1


TINY = GptShape(layers=1, width=8, heads=2, context=4, vocabulary=LETTERS.size)


def next_lists(model: LanguageModel) -> list[list[Tensor]]:
    """What one more token is computed from, behind two that were read."""
    rows = CachedRows(model)
    rows.admit([1, 2])
    place = [torch.tensor([3], dtype=torch.int32), torch.tensor([2], dtype=torch.int32)]
    return [list(model.parameters), place, [rows._cache[:1].clone()]]


@pytest.mark.long
@pytest.mark.parametrize("shape", [SHAPE, DEEP], ids=["small", "deep"])
def test_every_executor_gives_the_same_bits(shape: GptShape) -> None:
    from assay.inference.programs import next_program

    model = small_gpt(shape)
    window = model.program, [list(model.parameters), list(_window(shape))]
    behind = next_lists(model)
    for program, lists in (window, (next_program(shape, places=behind[2][0].shape[4]), behind)):
        stock = Executor(program, variant=KernelVariant.STOCK).run(lists)
        for other in (
            Executor(program, variant=KernelVariant.FUSED),
            Executor(program, variant=KernelVariant.TRITON),
            Executor(program, cross_check=True),
        ):
            found = other.run(lists)
            assert all(bits_equal(a, b) for p, q in zip(stock, found, strict=True) for a, b in zip(p, q, strict=True))


def _window(shape: GptShape) -> tuple[Tensor, Tensor]:
    from assay.inference.rows import windows

    return windows([[1, 2, 3]], shape.context, 1)


@pytest.mark.long
def test_the_reference_computes_the_same_logits() -> None:
    from assay.engine.runtime.values import state_io

    model = small_gpt(TINY)
    lists = [list(model.parameters), list(_window(TINY))]
    values = ReferenceExecutor(model.program).run(state_io.to_lists_of_bytes(lists))
    (node,) = model.program.output_nodes[0]
    assert values[node] == bytes(state_io.to_lists_of_bytes(Executor(model.program).run(lists))[0][0])
