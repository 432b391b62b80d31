"""Text becomes tokens alike for everybody, and bad text is refused with a remedy."""

import math

import pytest
import torch

from assay.protocol.errors import UserError
from assay.training.data import corpus_from_text, pydoc_text, read_text


def test_tokens_of_both_splits_decode_to_the_text_they_came_from():
    text = "the quick brown fox jumps over the lazy dog. " * 20
    corpus = corpus_from_text(text)
    assert corpus.decode(corpus.train.tolist()) + corpus.decode(corpus.validation.tolist()) == text
    assert corpus.validation.numel() == len(text) // 10
    assert corpus.train.dtype is torch.uint8
    assert corpus.encode("fox!") == [corpus.vocabulary.index(c) for c in "fox"]


def test_more_than_256_symbols_take_two_bytes_each():
    text = "".join(chr(0x4E00 + i % 300) for i in range(3000))
    corpus = corpus_from_text(text)
    assert corpus.train.dtype is torch.uint16
    assert corpus.decode(corpus.train.to(torch.int32).tolist()) == text[:2700]


def test_letter_entropy_of_equally_frequent_letters_is_their_logarithm():
    assert corpus_from_text("abcd" * 1000).letter_entropy() == pytest.approx(math.log(4), abs=1e-3)


def test_the_documentation_of_python_is_enough_to_train_on():
    corpus = corpus_from_text(pydoc_text(), min_tokens=33)
    assert corpus.train.numel() > 300_000
    assert 2.8 < corpus.letter_entropy() < 3.6


def test_shards_are_equal_and_fit():
    corpus = corpus_from_text("hello world " * 100)
    assert corpus.shard_length(7) * 7 <= corpus.train.numel() < (corpus.shard_length(7) + 1) * 7


@pytest.mark.parametrize(
    ("content", "code"), [(b"", "EmptyData"), (b"\xff\xfe\x00abc", "DataNotUtf8"), (None, "DataUnreadable")]
)
def test_a_bad_file_is_refused_with_what_to_do(tmp_path, content, code):
    path = tmp_path / "data.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_text(path)
    assert caught.value.code == code
    assert caught.value.remedy


def test_too_short_a_text_is_refused():
    with pytest.raises(UserError) as caught:
        corpus_from_text("short", min_tokens=33)
    assert caught.value.code == "EmptyData"
