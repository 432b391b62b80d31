"""Small language models with strong, uneven activations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from assay.datasets.tokenizers import Characters, HuggingFaceTokenizer
from assay.inference.model import LanguageModel, gpt, gpt_config, own_model
from assay.inference.programs import GptShape
from assay.training.initialize import initialize
from assay.training.optimizer import AdamW
from assay.training.recipes.recipe import Recipe

LETTERS = Characters("".join(sorted(" abcdefghijklmnopqrstuvwxyz.é")))
SHAPE = GptShape(layers=1, width=16, heads=2, context=12, vocabulary=LETTERS.size)


def small_gpt(shape: GptShape = SHAPE, seed: int = 9) -> LanguageModel:
    """A preset's architecture, its weights drawn."""
    return gpt(shape, [p * 3.0 if p.ndim > 1 else p for p in initialize(shape.module(), seed)], LETTERS)


def write_folder(model: LanguageModel, folder: Path) -> Path:
    """What `assay model pull` would write of it."""
    assert model.shape is not None
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name, _ in model.shape.module().named_parameters()]
    save_file(dict(zip(names, model.parameters, strict=True)), folder / "model.safetensors")
    (folder / "config.json").write_bytes(gpt_config(model.shape))
    (folder / "tokenizer.json").write_bytes(model.tokenizer.file)
    return folder


def bytes_gpt(context: int = 64) -> LanguageModel:
    """The same for any text: a byte is a token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    numbers = {letter: number for number, letter in enumerate(sorted(level.alphabet()))}
    made = Tokenizer(models.BPE(vocab=numbers, merges=[]))
    made.pre_tokenizer, made.decoder = level, decoders.ByteLevel()
    shape = replace(SHAPE, context=context, vocabulary=len(numbers))
    return gpt(shape, initialize(shape.module(), 9), HuggingFaceTokenizer(made.to_str().encode()))


class TwoBack(nn.Module):
    """A model that is no transformer: each token from the two before it. mixes: and from the other rows, a little."""

    def __init__(self, vocabulary: int, *, mixes: bool = False) -> None:
        super().__init__()
        self.token, self.head = nn.Embedding(vocabulary, 8), nn.Linear(16, vocabulary)
        self.mixes = mixes

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """i32 [B, T] to f32 [B, T, V]."""
        x_BTC = self.token(tokens_BT)
        before_BTC = torch.cat([torch.zeros_like(x_BTC[:, :1]), x_BTC[:, :-1]], 1)
        logits_BTV = self.head(torch.cat([x_BTC, before_BTC], 2).tanh())
        return logits_BTV + logits_BTV.mean(0, keepdim=True) if self.mixes else logits_BTV


def recipe_of(module: nn.Module) -> Recipe:
    """A recipe whose loss nobody asks."""
    data = torch.zeros(64, dtype=torch.uint8)
    tokenizer = LETTERS.file
    return Recipe(
        module, lambda m, x: m(x).mean(), AdamW(), (data,), 2, window=9, learning_rate=1.0, tokenizer=tokenizer
    )


def two_back(*, mixes: bool = False, without_text: int = 0) -> LanguageModel:
    """The same as a language model with a context of 8. without_text: tokens more than its tokenizer has characters."""
    torch.manual_seed(3)
    recipe = recipe_of(TwoBack(LETTERS.size + without_text, mixes=mixes))
    return own_model(recipe, dict(recipe.module.state_dict()), b"", None)
