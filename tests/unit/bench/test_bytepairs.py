"""Byte-pair tokens: nothing is lost, the most frequent pair comes first, ties have one winner."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.bench.bytepairs import decode, encode, train_merges


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.text(max_size=80))
def test_any_text_survives_tokens_learned_on_another(learned: str, text: str) -> None:
    merges = train_merges(learned, 300)
    assert decode(encode(text, merges), merges) == text


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="abc ", max_size=120))
def test_each_merge_is_the_most_frequent_pair_of_what_the_earlier_ones_left(text: str) -> None:
    merges = train_merges(text, 262)
    for k, best in enumerate(merges):
        words = [encode(word, merges[:k]).tolist() for word in words_of(text)]
        counts = Counter(pair for word in words for pair in pairwise(word))
        assert best == min(counts, key=lambda pair: (-counts[pair], pair))


def words_of(text: str) -> list[str]:
    from assay.bench.bytepairs import _WORD

    return _WORD.findall(text)


@pytest.mark.parametrize(("text", "first"), [("ab ab ab b", (97, 98)), ("zz yy", (32, 121))])
def test_ties_go_to_the_smaller_pair(text: str, first: tuple[int, int]) -> None:
    assert train_merges(text, 257) == [first]


def test_a_text_without_pairs_has_no_merges() -> None:
    assert train_merges("a", 300) == []
    assert encode("", []).numel() == 0
