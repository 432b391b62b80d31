"""A language model's forward pass in three forms that give the same bits: a whole window, a prompt, one more token.

The window is the definition: a run's answer is what it says. Prompt and one more token keep keys and values of what was
read, for architectures that we know; their bits are the window's, since no exact sum depends on what is ahead of it.

Shapes: B rows, T tokens of a window or a prompt, S places of a cache, L blocks, N heads, D size of a head, C width, V
vocabulary. A cache is f32 [B, L, 2, N, S, D], keys before values; what lies behind a row's position is never read.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.protocol.errors import UserError
from assay.training.model import Block, CharacterGPT


class WindowLogits(nn.Module):
    """Logits behind the last token of each window: (tokens [B, T], lengths [B]) to f32 [B, V].

    Of any module that maps tokens to logits [B, T, V], or to something whose `logits` are these.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens_BT: Tensor, length_B: Tensor) -> Tensor:
        """Tokens from length_B on are padding. Lengths are from 1 to T. Raises UserError (NotALanguageModel)."""
        found: Any = self.model(tokens_BT)
        logits_BTV = found if isinstance(found, Tensor) else found.logits
        if logits_BTV.ndim != 3 or logits_BTV.shape[:2] != tokens_BT.shape:
            raise UserError(
                f"This is no language model: it makes {list(logits_BTV.shape)} of tokens {list(tokens_BT.shape)}.",
                code="NotALanguageModel",
                remedy="Give a recipe whose module maps tokens [B, T] to logits [B, T, V].",
            )
        return _last(logits_BTV.float(), length_B)


class PromptLogits(nn.Module):
    """The same of a GPT, with the cache that it leaves: to (f32 [B, V], f32 [B, L, 2, N, T, D])."""

    def __init__(self, model: CharacterGPT) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens_BT: Tensor, length_B: Tensor) -> tuple[Tensor, Tensor]:
        """As `WindowLogits.forward`; the head reads one token a row."""
        model, kept = self.model, []
        T = tokens_BT.shape[1]
        x_BTC = model.token(tokens_BT) + model.position[:T]
        for block in model.blocks:
            assert isinstance(block, Block)
            q, k, v = _parts(block, x_BTC)
            kept.append(torch.stack((k, v), 1))  # [B, 2, N, T, D]
            scores_BNTT = (q @ k.transpose(2, 3)) * (1.0 / math.sqrt(q.shape[3]))
            scores_BNTT = scores_BNTT.masked_fill(block.attention.future_TT[:T, :T], float("-inf"))
            x_BTC = _mixed(block, x_BTC, F.softmax(scores_BNTT, dim=3) @ v)
        return model.head(model.norm(_last(x_BTC, length_B))), torch.stack(kept, 1)


class NextLogits(nn.Module):
    """One more token a row: (token [B], position [B], cache) to (f32 [B, V], its keys and values f32 [B, L, 2, N, D]).

    A row's cache holds the tokens before its position, which is below S; whoever calls writes the new ones there.
    """

    def __init__(self, model: CharacterGPT) -> None:
        super().__init__()
        self.model = model

    def forward(self, token_B: Tensor, position_B: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens and positions i32; rows know nothing of each other."""
        model, kept = self.model, []
        places_S = torch.arange(cache.shape[4], dtype=torch.int32)
        is_own = places_S == position_B[:, None]
        is_ahead = places_S > position_B[:, None]
        x_BTC = model.token(token_B[:, None]) + model.position[position_B.long()][:, None]
        for number, block in enumerate(model.blocks):
            assert isinstance(block, Block)
            q, k, v = _parts(block, x_BTC)  # [B, N, 1, D]
            kept.append(torch.stack((k[:, :, 0], v[:, :, 0]), 1))
            past_k, past_v = cache[:, number, 0], cache[:, number, 1]
            scale = 1.0 / math.sqrt(q.shape[3])
            scores_BNTS = (q @ past_k.transpose(2, 3)) * scale
            own_BNTT = (q @ k.transpose(2, 3)) * scale
            scores_BNTS = torch.where(is_own[:, None, None], own_BNTT, scores_BNTS)
            scores_BNTS = scores_BNTS.masked_fill(is_ahead[:, None, None], float("-inf"))
            values_BNSD = torch.where(is_own[:, None, :, None], v, past_v)
            x_BTC = _mixed(block, x_BTC, F.softmax(scores_BNTS, dim=3) @ values_BNSD)
        return model.head(model.norm(x_BTC[:, 0])), torch.stack(kept, 1)


def _parts(block: Block, x_BTC: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each [B, N, T, D]."""
    B, T, C = x_BTC.shape
    heads = block.attention.heads
    split = block.attention.qkv(block.norm_1(x_BTC)).split(C, dim=2)
    q, k, v = (part.view(B, T, heads, C // heads).transpose(1, 2) for part in split)
    return q, k, v


def _mixed(block: Block, x_BTC: Tensor, mixed_BNTD: Tensor) -> Tensor:
    """The rest of a block behind what attention mixed."""
    x_BTC = x_BTC + block.attention.out(mixed_BNTD.transpose(1, 2).reshape(x_BTC.shape))
    hidden = F.gelu(block.up(block.norm_2(x_BTC)), approximate="tanh")
    out: Tensor = x_BTC + block.down(hidden)
    return out


def _last(x_BTX: Tensor, length_B: Tensor) -> Tensor:
    """What stands at the last token of each row, [B, X]."""
    rows_B = torch.arange(x_BTX.shape[0])
    return x_BTX[rows_B, (length_B - 1).long()]
