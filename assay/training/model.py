"""A character-level GPT in ordinary PyTorch: pre-norm blocks, causal attention, GELU, untied head.

Shapes: B batch, T tokens, C width, N heads, D = C / N, V vocabulary.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.presets import Preset


class CausalAttention(nn.Module):
    """Multi-head attention in which token t sees tokens 0..t."""

    future_TT: Tensor

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        future = torch.ones(context, context, dtype=torch.bool).triu(1)
        self.register_buffer("future_TT", future, persistent=False)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """Mix tokens: f32 [B, T, C] to f32 [B, T, C]."""
        B, T, C = x_BTC.shape
        q, k, v = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2) for part in self.qkv(x_BTC).split(C, dim=2)
        )
        scores_BNTT = (q @ k.transpose(2, 3)) * (1.0 / math.sqrt(C // self.heads))
        scores_BNTT = scores_BNTT.masked_fill(self.future_TT[:T, :T], float("-inf"))
        mixed_BNTD = F.softmax(scores_BNTT, dim=3) @ v
        return self.out(mixed_BNTD.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """Attention and a two-layer perceptron, each behind a layer norm and added to its input."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads, context)
        self.norm_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """One block: f32 [B, T, C] to f32 [B, T, C]."""
        x_BTC = x_BTC + self.attention(self.norm_1(x_BTC))
        return x_BTC + self.down(F.gelu(self.up(self.norm_2(x_BTC)), approximate="tanh"))


class CharacterGPT(nn.Module):
    """Logits of the next character at every position."""

    def __init__(self, vocabulary: int, layers: int, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.context = context
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.empty(context, width))
        self.blocks = nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Integer [B, T], T <= context, to f32 [B, T, V]."""
        x_BTC = self.token(tokens_BT) + self.position[: tokens_BT.shape[1]]
        for block in self.blocks:
            x_BTC = block(x_BTC)
        return self.head(self.norm(x_BTC))


def next_token_loss(logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
    """Mean cross-entropy in nats, f32 []."""
    return F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten().long())


def build_model(preset: Preset, vocabulary: int) -> CharacterGPT:
    """The preset's model for this many symbols; its parameters are set by `initialize` or loaded."""
    return CharacterGPT(vocabulary, preset.layers, preset.width, preset.heads, preset.context)
