"""The GPT of Karpathy's nanoGPT in its published CPU and GPU configurations, and the recipe that trains it.

Tied embeddings, no biases, GELU by erf, normal-like starting values of deviation 0.02, residual projections smaller.
Shapes: B batch, T tokens, C width, N heads, D = C / N, V vocabulary.
Source: github.com/karpathy/nanoGPT, README ("I only have a macbook") and config/train_shakespeare_char.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.initialize import uniform
from assay.training.model import next_token_loss
from assay.training.optimizer import AdamW
from assay.training.recipes.recipe import Recipe
from assay.training.schedules import warmup_cosine

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, STEPS = 4, 4, 128, 64, 12, 2000
RATE, FLOOR, WARMUP = 1e-3, 0.1, 100


@dataclass(frozen=True, slots=True)
class NanoSize:
    """A configuration: the model's, sequences of a batch, steps of the whole training."""

    layers: int
    heads: int
    width: int
    context: int
    batch: int
    steps: int
    dropout: float


CPU_SIZE: Final = NanoSize(LAYERS, HEADS, WIDTH, CONTEXT, BATCH, STEPS, dropout=0.0)
GPU_SIZE: Final = NanoSize(6, 6, 384, 256, 64, 5000, dropout=0.2)
"""config/train_shakespeare_char.py, for which nanoGPT's README names a loss of 1.4697."""

OUTLIERS = (3, 40, 77, 114)
"""Columns that an outlier run scales up."""

OUTLIER_SCALE = 64.0


class Scaled(nn.Module):
    """A linear layer without bias; `scale` multiplies columns of the input and divides those of the weight.

    In real numbers nothing changes, and with powers of two nothing in f32 but sums: what a run with outliers loses, it
    loses to quantization.
    """

    scale_C: Tensor | None

    def __init__(self, inputs: int, outputs: int, scale_C: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.register_buffer("scale_C", scale_C, persistent=False)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """f32 [B, T, inputs] to f32 [B, T, outputs]."""
        if self.scale_C is None:
            return F.linear(x_BTC, self.weight)
        return F.linear(x_BTC * self.scale_C, self.weight / self.scale_C)


class NanoBlock(nn.Module):
    """Causal attention and a two-layer perceptron, each behind a layer norm and added to its input."""

    future_TT: Tensor

    def __init__(self, width: int, heads: int, context: int, scale_C: Tensor | None, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.qkv, self.up = Scaled(width, 3 * width, scale_C), Scaled(width, 4 * width, scale_C)
        self.out, self.down = nn.Linear(width, width, bias=False), nn.Linear(4 * width, width, bias=False)
        future = torch.ones(context, context, dtype=torch.bool).triu(1)
        self.register_buffer("future_TT", future, persistent=False)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """f32 [B, T, C] to f32 [B, T, C]."""
        B, T, C = x_BTC.shape
        size = C // self.heads
        q, k, v = (p.view(B, T, self.heads, size).transpose(1, 2) for p in self.qkv(self.norm_1(x_BTC)).split(C, dim=2))
        scores_BNTT = (q @ k.transpose(2, 3)) * (1.0 / math.sqrt(size))
        scores_BNTT = scores_BNTT.masked_fill(self.future_TT[:T, :T], float("-inf"))
        weights_BNTT = self._dropped(F.softmax(scores_BNTT, dim=3))
        mixed_BTC = (weights_BNTT @ v).transpose(1, 2).reshape(B, T, C)
        x_BTC = x_BTC + self._dropped(self.out(mixed_BTC))
        return x_BTC + self._dropped(self.down(F.gelu(self.up(self.norm_2(x_BTC)))))

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x


class NanoGPT(nn.Module):
    """Logits of the next token at every position; starting values are a function of the seed on every machine.

    dropout: the share of embeddings, attention weights and what each branch adds that is zero while training.
    has_outliers: columns OUTLIERS of what attention and perceptron read are OUTLIER_SCALE times larger.
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        *,
        layers: int = LAYERS,
        width: int = WIDTH,
        heads: int = HEADS,
        context: int = CONTEXT,
        dropout: float = 0.0,
        has_outliers: bool = False,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        scale_C = None
        if has_outliers:
            scale_C = torch.ones(width)
            scale_C[[c % width for c in OUTLIERS]] = OUTLIER_SCALE
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(NanoBlock(width, heads, context, scale_C, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        with torch.no_grad():
            for stream, (name, parameter) in enumerate(self.named_parameters()):
                if parameter.ndim == 2:
                    is_residual = name.endswith(("out.weight", "down.weight"))
                    deviation = 0.02 / math.sqrt(2 * layers) if is_residual else 0.02
                    parameter.copy_(uniform(tuple(parameter.shape), math.sqrt(3.0) * deviation, seed, stream))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Integer [B, T], T <= context, to f32 [B, T, V]."""
        x_BTC = self.token(tokens_BT) + self.position.weight[: tokens_BT.shape[1]]
        if self.dropout:
            x_BTC = F.dropout(x_BTC, self.dropout, self.training)
        for block in self.blocks:
            x_BTC = block(x_BTC)
        return F.linear(self.norm(x_BTC), self.token.weight)


def window_loss(module: nn.Module, windows: Tensor) -> Tensor:
    """Mean cross-entropy in nats of predicting each next token of windows [B, T + 1]."""
    tokens = windows.long()
    return next_token_loss(module(tokens[:, :-1]), tokens[:, 1:])


def nanogpt_recipe(module: NanoGPT, tokens: Tensor, steps: int = STEPS, *, batch: int = BATCH) -> Recipe:
    """nanoGPT's training of a module on a stream of tokens (u8 or u16 [L])."""
    return Recipe(
        module,
        window_loss,
        AdamW(beta1=0.9, beta2=0.99, weight_decay=0.1),
        data=(tokens,),
        batch_size=batch,
        window=module.position.num_embeddings + 1,
        clip_norm=1.0,
        schedule=warmup_cosine(min(WARMUP, steps // 2), steps, FLOOR),
        learning_rate=RATE,
    )
