"""How good a model is, in stock PyTorch: validation loss and a sample of generated text.

Shapes: N windows of the split, n of them at a time, T tokens of context, W = T + 1 in a window, V symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from assay.training.data import Corpus
from assay.training.model import CharacterGPT, next_token_loss


def validation_loss(model: CharacterGPT, parameters: Sequence[Tensor], corpus: Corpus, windows: int = 64) -> float:
    """Mean cross-entropy in nats over the whole validation split, in windows of the model's context."""
    return split_loss(model, parameters, corpus.validation, model.context, windows=windows)


@torch.no_grad()
def split_loss(
    model: nn.Module,
    parameters: Sequence[Tensor],
    tokens: Tensor,
    context: int,
    *,
    windows: int = 64,
    stride: int = 1,
) -> float:
    """Mean cross-entropy in nats over every `stride`-th window of tokens (u8 or u16 [L]), `windows` at a time."""
    named = {name: p for (name, _), p in zip(model.named_parameters(), parameters, strict=True)}
    count = (tokens.numel() - 1) // context
    if count == 0:
        raise ValueError("the validation split is shorter than the context")
    rows = torch.arange(0, count, stride)[:, None] * context + torch.arange(context + 1)
    windows_NW = tokens.to(torch.int64)[rows]
    total = 0.0
    for chunk_nW in torch.split(windows_NW, windows):
        logits_nTV = functional_call(model, named, (chunk_nW[:, :-1],))
        total += float(next_token_loss(logits_nTV, chunk_nW[:, 1:])) * chunk_nW.shape[0]
    return total / windows_NW.shape[0]


@torch.no_grad()
def generate(
    model: CharacterGPT,
    parameters: Sequence[Tensor],
    corpus: Corpus,
    *,
    prompt: str = "The ",
    length: int = 200,
    seed: int = 0,
) -> str:
    """`length` characters sampled after the prompt (which is not part of the result)."""
    named = {name: p for (name, _), p in zip(model.named_parameters(), parameters, strict=True)}
    generator = torch.Generator().manual_seed(seed)
    tokens = corpus.encode(prompt) or [0]
    start = len(tokens)
    for _ in range(length):
        window = torch.tensor([tokens[-model.context :]])
        logits_V = functional_call(model, named, (window,))[0, -1]
        tokens.append(int(torch.multinomial(torch.softmax(logits_V, 0), 1, generator=generator)))
    return corpus.decode(tokens[start:])
