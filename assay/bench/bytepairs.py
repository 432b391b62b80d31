"""Byte-pair tokens trained on a text: the most frequent pair of neighbours becomes a token, again and again.

Pairs do not cross words (a word begins with the space before it). Source: Sennrich, Haddow and Birch, 2016.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from heapq import heapify, heappop, heappush
from itertools import pairwise

import torch
from torch import Tensor

_WORD = re.compile(r" ?\w+| ?[^\w\s]+|\s+")

BytePair = tuple[int, int]


def train_merges(text: str, vocabulary: int) -> list[BytePair]:
    """The pairs to merge, in order, so that there are `vocabulary` tokens (fewer if the text has no more pairs).

    Tokens 0..255 are bytes, token 256 + k is merge k. Ties go to the smaller pair.
    """
    counts = Counter(_WORD.findall(text))
    words = [list(word.encode()) for word in sorted(counts)]
    weights = [counts[word] for word in sorted(counts)]
    pairs: Counter[BytePair] = Counter()
    where: defaultdict[BytePair, set[int]] = defaultdict(set)
    for k, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += weights[k]
            where[pair].add(k)
    # A heap whose entries may be stale: one counts only if its pair still has that count.
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapify(heap)
    merges: list[BytePair] = []
    while len(merges) < vocabulary - 256 and heap:
        count, best = heappop(heap)
        if -count != pairs[best] or not count:
            continue
        touched: set[BytePair] = set()
        for k in sorted(where[best]):
            for pair in pairwise(words[k]):
                pairs[pair] -= weights[k]
                where[pair].discard(k)
                touched.add(pair)
            words[k] = _merged(words[k], best, 256 + len(merges))
            for pair in pairwise(words[k]):
                pairs[pair] += weights[k]
                where[pair].add(k)
                touched.add(pair)
        for pair in touched:
            heappush(heap, (-pairs[pair], pair))
        merges.append(best)
    return merges


def encode(text: str, merges: list[BytePair]) -> Tensor:
    """The tokens of a text, u16 rank 1: in every word the earliest merge first."""
    ranks = {pair: k for k, pair in enumerate(merges)}
    known: dict[str, list[int]] = {}
    tokens: list[int] = []
    for word in _WORD.findall(text):
        if word not in known:
            known[word] = _encoded(list(word.encode()), ranks)
        tokens += known[word]
    return torch.tensor(tokens, dtype=torch.int32).to(torch.uint16)


def decode(tokens: Tensor, merges: list[BytePair]) -> str:
    """The text of tokens."""
    pieces = [bytes([b]) for b in range(256)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    return b"".join(pieces[t] for t in tokens.tolist()).decode()


def _encoded(word: list[int], ranks: dict[BytePair, int]) -> list[int]:
    while len(word) > 1:
        rank = min(ranks.get(pair, len(ranks)) for pair in pairwise(word))
        if rank == len(ranks):
            break
        pair = next(p for p in pairwise(word) if ranks.get(p) == rank)
        word = _merged(word, pair, 256 + rank)
    return word


def _merged(word: list[int], pair: BytePair, token: int) -> list[int]:
    """The word with every occurrence of the pair replaced, from the left."""
    out: list[int] = []
    k = 0
    while k < len(word):
        if k + 1 < len(word) and (word[k], word[k + 1]) == pair:
            out.append(token)
            k += 2
        else:
            out.append(word[k])
            k += 1
    return out
