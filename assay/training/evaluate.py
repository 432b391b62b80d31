"""How good a model is, in stock PyTorch: validation loss and a sample of generated text.

Shapes: N windows of the split, n of them at a time, T tokens of context, V symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call

from assay.training.data import Corpus
from assay.training.model import CharacterGPT, next_token_loss


@torch.no_grad()
def validation_loss(model: CharacterGPT, parameters: Sequence[Tensor], corpus: Corpus, windows: int = 64) -> float:
    """Mean cross-entropy in nats over the whole validation split, in windows of the model's context."""
    named = {name: p for (name, _), p in zip(model.named_parameters(), parameters, strict=True)}
    width = model.context
    tokens = corpus.validation.to(torch.int64)
    count = (tokens.numel() - 1) // width
    if count == 0:
        raise ValueError("the validation split is shorter than the context")
    x_NT = tokens[: count * width].view(count, width)
    y_NT = tokens[1 : count * width + 1].view(count, width)
    total = 0.0
    for start in range(0, count, windows):
        chunk = slice(start, start + windows)
        logits_nTV = functional_call(model, named, (x_NT[chunk],))
        total += float(next_token_loss(logits_nTV, y_NT[chunk])) * x_NT[chunk].shape[0]
    return total / count


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
