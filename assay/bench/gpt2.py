"""GPT-2 small (124,439,808 parameters), its training step, and the program of that step, captured without its memory.

Shapes count in a capture, values do not: parameters live on the meta device, and the capture runs on fake tensors.
Source: Radford et al. 2019; the layout of huggingface.co/openai-community/gpt2.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.capture import capture
from assay.protocol.program.program import Program
from assay.training.model import Block
from assay.training.state import Scalars
from assay.training.step import TrainingStep, initial_state

LAYERS: Final = 12
WIDTH: Final = 768
HEADS: Final = 12
CONTEXT: Final = 1024
VOCABULARY: Final = 50_257
BATCH: Final = 8
"""Sequences of a batch: 8,192 tokens."""

DATA: Final = 10_000_000
"""Tokens of the data tensor; indices into a shard stay below 2^24."""


class GPT2(nn.Module):
    """Logits of the next token; the head is the token embedding."""

    def __init__(self, layers: int, width: int, heads: int, context: int, vocabulary: int) -> None:
        super().__init__()
        self.heads = heads
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Integer [B, T] to f32 [B, T, V]."""
        x_BTC = self.token(tokens_BT) + self.position.weight[: tokens_BT.shape[1]]
        for block in self.blocks:
            x_BTC = block(x_BTC)
        return F.linear(self.norm(x_BTC), self.token.weight)


def shapes_only(
    layers: int = LAYERS,
    width: int = WIDTH,
    heads: int = HEADS,
    context: int = CONTEXT,
    vocabulary: int = VOCABULARY,
) -> GPT2:
    """The module with parameters that have shapes and no memory; masks, which enter the program, are real."""
    with torch.device("meta"):
        module = GPT2(layers, width, heads, context, vocabulary)
    for block in module.blocks:
        block.attention.future_TT = torch.ones(context, context, dtype=torch.bool).triu(1)  # type: ignore[union-attr]
    return module


def program_of(module: GPT2, batch: int = BATCH, data: int = DATA) -> Program:
    """The program of one step of AdamW on windows of a stream of u16 tokens; from the cache where it was captured."""
    context, vocabulary = module.position.num_embeddings, module.token.num_embeddings
    step = TrainingStep(module, batch, context)
    described = {
        "kind": "gpt2",
        "size": [len(module.blocks), module.token.embedding_dim, module.heads, context, vocabulary],
        "batch": batch,
        "data": data,
    }

    def make() -> Program:
        # Memory that is never touched is never taken: the capture looks at shapes only.
        parameters = [torch.empty(p.shape) for p in module.parameters()]
        scalars = Scalars.of(torch.empty(data, dtype=torch.uint16), learning_rate=6e-4)
        return capture(step, initial_state(step, parameters, scalars)).program

    return cached_program(described, make)


def parameters_of(module: nn.Module) -> int:
    """How many parameters a module has."""
    return sum(p.numel() for p in module.parameters())
