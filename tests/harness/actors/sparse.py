"""A training step that sends only its largest gradients, in ordinary PyTorch: the captured program that has ranks."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache
from hashlib import sha256

import torch
from torch import Tensor, nn

from assay.engine import ops
from assay.engine.compiler.capture import capture
from assay.engine.runtime.values.state_io import to_lists_of_bytes
from assay.sponsor.cards import ModelOrigin
from assay.sponsor.preparing import PreparedRounds, prepared_rounds
from assay.training.initialize import initialize
from assay.training.outer import SLOTS, outer_step, zero_momentum
from assay.training.state import Scalars, TensorLists
from assay.training.step import TrainingStep, draw_batch
from assay.training.updates import compute_update
from tests.harness.actors.world import TrainedWork

VOCABULARY, WIDTH, RATE = 16, 12, 0.05
SENT = 4
"""One gradient in four is sent; the others wait in the residual."""


def sparse_step(
    parameters: Sequence[Tensor], residuals: Sequence[Tensor], scalars: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """A step of top-k sparsified gradient descent with error feedback (Stich et al., 2018)."""
    step, now = bigram(), Scalars.from_list(scalars)
    gradients = step.gradients(parameters, draw_batch(now, step.batch, step.context))
    updated, rest = [], []
    for p, r, g in zip(parameters, residuals, gradients, strict=True):
        whole = r + g
        sent = ops.rank(whole.abs().flatten()).reshape(p.shape) < max(1, p.numel() // SENT)
        updated.append(p - now.learning_rate * torch.where(sent, whole, 0.0))
        rest.append(torch.where(sent, 0.0, whole))
    return updated, rest, now.advanced().to_list()


@cache
def bigram() -> TrainingStep:
    """A bigram model on two rows of six tokens."""
    return TrainingStep(nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)), 2, 6)


@cache
def sparse_work() -> TrainedWork:
    """A run of this step: its three programs captured, parameters, zero residuals, and data."""
    tokens = b"".join(sha256(bytes([k])).digest() for k in range(32))
    data = torch.tensor([t % VOCABULARY for t in tokens], dtype=torch.uint8)
    parameters = initialize(bigram().module, 1)
    zeros = [torch.zeros_like(p) for p in parameters]
    state: TensorLists = (parameters, zeros, Scalars.of(data, learning_rate=RATE).to_list())
    zeros = [torch.zeros_like(p) for p in parameters]
    outer = [zeros, zero_momentum(zeros), *[zeros] * SLOTS, [torch.zeros(SLOTS)]]
    lists = to_lists_of_bytes(state)
    (rate,) = struct.unpack("<I", lists[2][1])
    assert math.prod(data.shape) == len(lists[2][-1])
    return TrainedWork(
        capture(sparse_step, state).program,
        capture(compute_update, [zeros, zeros]).program,
        capture(outer_step, outer).program,
        lists[0],
        lists[1],
        lists[2][-1],
        10,
        rate,
    )


@cache
def sparse_rounds(seats: int) -> PreparedRounds:
    """A run of this step, whose residuals are zero when a round begins."""
    data = torch.tensor([t % VOCABULARY for k in range(32) for t in sha256(bytes([k])).digest()], dtype=torch.uint8)
    parameters = initialize(bigram().module, 1)
    zeros = [torch.zeros_like(p) for p in parameters]
    state: TensorLists = (parameters, zeros, Scalars.of(data, learning_rate=RATE).to_list())
    return prepared_rounds(ModelOrigin(), capture(sparse_step, state).program, state, seats, inner_steps=10)
