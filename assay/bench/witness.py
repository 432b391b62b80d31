"""What a witness is worth on a real training: what it samples, how well that is guessed, and how much of a step one may
skip who is given every state that an auditor has to compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log2
from statistics import mean, median
from typing import Any

import torch
from torch import Tensor

from assay.bench.demand import Demanded, demand_of, everything
from assay.bench.sides import start_of
from assay.engine.runtime.executor import Executor
from assay.protocol.program.program import Program
from assay.protocol.program.witness import witnessed_program
from assay.protocol.program.witness_rows import LANES, witness_rows
from assay.training.state import TensorLists

SHOWN = 8
"""Products that a report names: those whose elements are guessed best."""


@dataclass(frozen=True, slots=True)
class Guess:
    """How well an element of a product is guessed at one step by who knows how often each word occurs in it.

    most: share of the word that occurs most. zeros: share of zeros. low_bits: entropy of the lowest eight bits.
    """

    node: int
    dims: tuple[int, ...]
    step: int
    zeros: float
    most: float
    low_bits: float

    @property
    def bits(self) -> float:
        """A guess succeeds once in 2 to this."""
        return -log2(self.most)


@dataclass(frozen=True, slots=True)
class WitnessReport:
    """One model and tier.

    words: sampled in each step. saved_products, saved_others: shares of a step's operations that these do not need, for
    who is given the state before it. zeros, bits and low_bits: of sampled words, at `steps` of a training; the mean,
    the median and the worst over products. bits_of_a_step: what guessing all of a step's samples takes.
    """

    model: str
    tier: str
    nodes: int
    added: int
    products: int
    words: int
    saved_products: float
    saved_others: float
    steps: tuple[int, ...]
    zeros: float
    bits: float
    bits_least: float
    low_bits: float
    low_bits_least: float
    bits_of_a_step: float
    worst: list[dict[str, Any]]


def report_of(model: str, tier: str, steps: Sequence[int] = (1, 20, 100), seed: int = 1) -> WitnessReport:
    """Trains the model and looks at its products at these steps; the seed draws samples.

    Raises:
        UsageError: UnknownModel, UnknownTier.
    """
    plain, state = start_of(model, tier)
    rows = Counter(row.node for row in witness_rows(plain))
    guesses = sorted(guesses_at(plain, state, steps), key=lambda g: g.bits)
    saved = saved_shares(plain, seed)
    return WitnessReport(
        model,
        tier,
        nodes=len(plain.nodes),
        added=len(witnessed_program(plain).nodes) - len(plain.nodes),
        products=len(rows),
        words=rows.total() * LANES,
        saved_products=round(saved[0], 4),
        saved_others=round(saved[1], 4),
        steps=tuple(steps),
        zeros=round(mean(g.zeros for g in guesses), 5),
        bits=round(median(g.bits for g in guesses), 2),
        bits_least=round(guesses[0].bits, 2),
        low_bits=round(median(g.low_bits for g in guesses), 2),
        low_bits_least=round(min(g.low_bits for g in guesses), 2),
        bits_of_a_step=round(sum(rows[g.node] * LANES * g.bits for g in guesses) / len(steps), 1),
        worst=[asdict(g) for g in guesses[:SHOWN]],
    )


def guesses_at(plain: Program, state: TensorLists, steps: Sequence[int]) -> list[Guess]:
    """How well every sampled product is guessed at these steps of a training."""
    executor = Executor(plain)
    sampled = {row.node for row in witness_rows(plain)}
    found = []
    now: Sequence[Sequence[Tensor]] = state
    for t in range(1, max(steps) + 1):

        def look(k: int, value: Tensor, t: int = t) -> Tensor:
            if k in sampled:
                found.append(_guess(k, t, value))
            return value

        now = executor.run(now, look if t in steps else None)
    return found


def _guess(k: int, step: int, value: Tensor) -> Guess:
    words = value.flatten().view(torch.int32)
    _, counts = torch.unique(words, return_counts=True)
    low = torch.bincount(words & 0xFF).double() / words.numel()
    entropy = float((low[low > 0] * -low[low > 0].log2()).sum())
    zeros = float((words & 0x7FFFFFFF == 0).double().mean())
    return Guess(k, tuple(value.shape), step, round(zeros, 5), int(counts.max()) / words.numel(), round(entropy, 3))


def saved_shares(plain: Program, seed: int) -> tuple[float, float]:
    """Shares of the operations of a step, of products and of the rest, that one draw of samples does not need."""
    generator = torch.Generator().manual_seed(seed)
    wanted: Demanded = {}
    for row in witness_rows(plain):
        mask = wanted.setdefault(row.node, torch.zeros(plain.specs[row.node].numel, dtype=torch.bool))
        mask[torch.randint(row.start, row.start + row.size, (LANES,), generator=generator)] = True
    whole, samples = demand_of(plain, everything(plain)), demand_of(plain, wanted)
    return 1 - samples.products / whole.products, 1 - samples.others / max(whole.others, 1)
