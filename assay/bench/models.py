"""The models whose steps are measured, written as a PyTorch user would, each with its recipe.

Shapes: B batch, T tokens, C width, N heads, D = C / N, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.protocol.errors import UsageError
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.model import next_token_loss
from assay.training.recipes.recipe import Recipe


class Attention(nn.Module):
    """Causal attention, keys and values perhaps shared by several heads, positions perhaps by rotation."""

    cos_TD: Tensor
    sin_TD: Tensor

    def __init__(self, width: int, heads: int, kv_heads: int, context: int, *, is_rotary: bool, bias: bool) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q, self.kv = nn.Linear(width, width, bias), nn.Linear(width, 2 * kv_heads * self.size, bias)
        self.out = nn.Linear(width, width, bias)
        rates = 10000.0 ** (-torch.arange(0, self.size, 2) / self.size)
        angles = torch.outer(torch.arange(context), rates).repeat(1, 2)
        self.is_rotary = is_rotary
        self.register_buffer("cos_TD", angles.cos(), persistent=False)
        self.register_buffer("sin_TD", angles.sin(), persistent=False)

    def _turned(self, x_BNTD: Tensor) -> Tensor:
        if not self.is_rotary:
            return x_BNTD
        low, high = x_BNTD.chunk(2, -1)
        return x_BNTD * self.cos_TD + torch.cat([-high, low], -1) * self.sin_TD

    def forward(self, x_BTC: Tensor) -> Tensor:
        """f32 [B, T, C] to f32 [B, T, C]; T is the context."""
        B, T, C = x_BTC.shape
        q = self._turned(self.q(x_BTC).view(B, T, self.heads, self.size).transpose(1, 2))
        k, v = self.kv(x_BTC).view(B, T, 2, self.kv_heads, self.size).permute(2, 0, 3, 1, 4)
        is_shared = self.kv_heads != self.heads
        mixed = F.scaled_dot_product_attention(q, self._turned(k), v, is_causal=True, enable_gqa=is_shared)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(B, T, C))
        return out


class Gated(nn.Module):
    """SwiGLU (Shazeer, 2020)."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """f32 [..., C] to f32 [..., C]."""
        out: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return out


class Decoder(nn.Module):
    """A GPT (layer norm, GELU, learned positions) or a Llama-style decoder (RMS norm, SwiGLU, rotation).

    is_tied: the head is the token embedding.
    """

    def __init__(
        self,
        vocabulary: int,
        layers: int,
        width: int,
        heads: int,
        context: int,
        *,
        is_llama: bool = False,
        is_tied: bool = False,
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = None if is_llama else nn.Parameter(torch.randn(context, width) * 0.02)
        kv_heads = heads // 2 if is_llama else heads
        norm = partial(nn.RMSNorm, eps=1e-6) if is_llama else nn.LayerNorm
        self.attentions, self.perceptrons = nn.ModuleList(), nn.ModuleList()
        for _ in range(layers):
            attention = Attention(width, heads, kv_heads, context, is_rotary=is_llama, bias=not is_llama)
            plain = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
            self.attentions.append(nn.Sequential(norm(width), attention))
            self.perceptrons.append(nn.Sequential(norm(width), Gated(width, width * 8 // 3) if is_llama else plain))
        self.norm, self.head = norm(width), None if is_tied else nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Integer [B, T] to f32 [B, T, V]."""
        x_BTC = self.token(tokens_BT)
        if self.position is not None:
            x_BTC = x_BTC + self.position
        for attention, perceptron in zip(self.attentions, self.perceptrons, strict=True):
            x_BTC = x_BTC + attention(x_BTC)
            x_BTC = x_BTC + perceptron(x_BTC)
        return F.linear(self.norm(x_BTC), self.token.weight if self.head is None else self.head.weight)


def _language_loss(module: nn.Module, windows: Tensor) -> Tensor:
    tokens = windows.long()
    return next_token_loss(module(tokens[:, :-1]), tokens[:, 1:])


def _image_loss(module: nn.Module, pixels: Tensor, classes: Tensor) -> Tensor:
    return F.cross_entropy(module(pixels.float() / 255.0), classes.long())


@cache
def _text() -> tuple[Tensor, int]:
    corpus = corpus_from_text(pydoc_text())
    return corpus.train, len(corpus.vocabulary)


def _decoder(layers: int, width: int, heads: int, context: int, batch: int, *, is_llama: bool = False) -> Recipe:
    torch.manual_seed(1)
    tokens, vocabulary = _text()
    module = Decoder(vocabulary, layers, width, heads, context, is_llama=is_llama)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.1)
    return Recipe(module, _language_loss, optimizer, data=(tokens,), batch_size=batch, window=context + 1)


def _gpt2_small(context: int, batch: int) -> Recipe:
    """GPT-2 small (Radford et al., 2019) on noise: 124 M parameters, fewer where the context is shorter than 1,024."""
    torch.manual_seed(1)
    module = Decoder(50_257, 12, 768, 12, context, is_tied=True)
    nn.init.normal_(module.token.weight, std=0.02)  # as a head it would give logits of deviation 28
    optimizer = torch.optim.AdamW(module.parameters(), lr=6e-4, weight_decay=0.1)
    tokens = torch.randint(50_257, (1 << 20,), dtype=torch.int32).to(torch.uint16)
    return Recipe(module, _language_loss, optimizer, data=(tokens,), batch_size=batch, window=context + 1)


def _convolutional() -> Recipe:
    """Two convolutions with batch norm and pooling, two linear layers, on 28 x 28 images of noise in ten classes."""
    torch.manual_seed(1)
    module = nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    pixels = torch.randint(0, 256, (1024, 1, 28, 28)).to(torch.uint8)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    data = (pixels, torch.randint(0, 10, (1024,)).to(torch.uint8))
    return Recipe(module, _image_loss, optimizer, data=data, batch_size=64)


MODELS: dict[str, Callable[[], Recipe]] = {
    "gpt-4x384": partial(_decoder, 4, 384, 6, 128, 16),
    "gpt-4x128": partial(_decoder, 4, 128, 4, 64, 12),
    "llama-4x256": partial(_decoder, 4, 256, 8, 64, 12, is_llama=True),
    "cnn-28x28": _convolutional,
    "gpt-2x96": partial(_decoder, 2, 96, 4, 32, 8),
}
"""Factories by name; the last has the size of the demo's model."""

LARGE: dict[str, Callable[[], Recipe]] = {"gpt2-12x768": partial(_gpt2_small, 1024, 8)}
"""Those that a GPU steps through in well under a second, and a CPU core in a minute."""

SHORT: dict[str, Callable[[], Recipe]] = {"gpt2-12x768-short": partial(_gpt2_small, 128, 2)}
"""Large ones on few tokens, whose memory a CPU shows in seconds: parameters, moments and gradients are most of it."""


def recipe_of(model: str) -> Recipe:
    """A fresh recipe, the same values each time. Raises UsageError (UnknownModel)."""
    factories = MODELS | LARGE | SHORT
    if model not in factories:
        raise UsageError(
            f"There is no model {model!r} to measure.",
            code="UnknownModel",
            remedy=f"Choose from {', '.join(factories)}.",
        )
    return factories[model]()
