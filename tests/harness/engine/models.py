"""Small models of every supported kind, each as an ordinary PyTorch user would write it, with its recipe.

Shapes: B batch, T tokens, C width, N heads, D = C / N, V vocabulary, E experts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.model import CharacterGPT, next_token_loss
from assay.training.recipes.recipe import Recipe


def stream(length: int = 60, vocabulary: int = 11) -> Tensor:
    """Tokens, the same ones always."""
    return torch.randint(0, vocabulary, (length,), generator=torch.Generator().manual_seed(1)).to(torch.uint8)


def images(count: int, channels: int, size: int) -> tuple[Tensor, Tensor]:
    """Images in [0, 255] and one of three classes each."""
    generator = torch.Generator().manual_seed(2)
    pixels = torch.randint(0, 256, (count, channels, size, size), generator=generator).to(torch.uint8)
    return pixels, torch.randint(0, 3, (count,), generator=generator)


def language_loss(module: nn.Module, window_BT: Tensor) -> Tensor:
    """Next-token cross-entropy of windows of a stream."""
    tokens = window_BT.long()
    return next_token_loss(module(tokens[:, :-1]), tokens[:, 1:])


def image_loss(module: nn.Module, pixels: Tensor, classes: Tensor) -> Tensor:
    """Cross-entropy of classes; the model reads floats of the type of its own parameters."""
    dtype = next(module.parameters()).dtype
    return F.cross_entropy(module(pixels.to(dtype) / 255.0), classes)


def language(module: nn.Module, optimizer: torch.optim.Optimizer, window: int = 5, **options) -> Recipe:
    return Recipe(module, language_loss, optimizer, data=(stream(),), batch_size=2, window=window, **options)


def gpt(*, tied: bool = False) -> Recipe:
    module = CharacterGPT(11, layers=1, width=8, heads=2, context=4)
    nn.init.normal_(module.position, std=0.5)
    if tied:
        module.head.weight = module.token.weight
    return language(module, torch.optim.AdamW(module.parameters(), lr=1e-2), clip_norm=1.0)


class Rotary(nn.Module):
    """Tables of sines and cosines as buffers: constants of the program."""

    def __init__(self, width: int, context: int) -> None:
        super().__init__()
        rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(context), rates).repeat(1, 2)
        self.register_buffer("cos_TD", angles.cos(), persistent=False)
        self.register_buffer("sin_TD", angles.sin(), persistent=False)

    def forward(self, x_BNTD: Tensor) -> Tensor:
        low, high = x_BNTD.chunk(2, -1)
        T = x_BNTD.shape[2]
        return x_BNTD * self.cos_TD[:T] + torch.cat([-high, low], -1) * self.sin_TD[:T]


class LlamaBlock(nn.Module):
    """Grouped-query attention and SwiGLU behind RMS norms."""

    def __init__(self, width: int, heads: int, kv_heads: int, context: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * kv_heads * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.rotary = Rotary(self.size, context)

    def forward(self, x_BTC: Tensor) -> Tensor:
        B, T, C = x_BTC.shape
        h = self.norm_1(x_BTC)
        q = self.rotary(self.q(h).view(B, T, self.heads, self.size).transpose(1, 2))
        k, v = self.kv(h).view(B, T, 2, self.kv_heads, self.size).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, self.rotary(k), v, is_causal=True, enable_gqa=True)
        x_BTC = x_BTC + self.o(mixed.transpose(1, 2).reshape(B, T, C))
        h = self.norm_2(x_BTC)
        return x_BTC + self.down(F.silu(self.gate(h)) * self.up(h))


def llama() -> Recipe:
    module = nn.Sequential(
        nn.Embedding(11, 16),
        LlamaBlock(16, 4, 2, 4),
        nn.RMSNorm(16, eps=1e-6),
        nn.Linear(16, 11, bias=False),
    )
    return language(module, torch.optim.AdamW(module.parameters(), lr=1e-2))


class LoRA(nn.Module):
    """A frozen linear map with a trained map of low rank beside it (Hu et al., 2021)."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) * 0.3)
        self.b = nn.Parameter(torch.randn(base.out_features, rank) * 0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + (x @ self.a.t()) @ self.b.t()


def lora() -> Recipe:
    recipe = gpt()
    module = recipe.module.requires_grad_(False)
    for block in module.blocks:
        block.attention.qkv = LoRA(block.attention.qkv, 2)
        block.up = LoRA(block.up, 2)
    trained = [p for p in module.parameters() if p.requires_grad]
    return language(module, torch.optim.AdamW(trained, lr=1e-2))


def perceptron() -> Recipe:
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    sgd = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    return Recipe(module, image_loss, sgd, data=images(8, 1, 4), batch_size=4, micro_batches=2)


def convolutional() -> Recipe:
    module = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, padding=1, stride=2),
        nn.GroupNorm(2, 4),
        nn.GELU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4, 3),
    )
    return Recipe(module, image_loss, torch.optim.Adam(module.parameters()), data=images(6, 1, 8), batch_size=3)


class PatchTransformer(nn.Module):
    """A vision transformer: patches by a convolution, a class token, stock encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 8, 2, stride=2)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.position = nn.Parameter(torch.randn(1, 5, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x_BTC = self.patches(x).flatten(2).transpose(1, 2)
        x_BTC = torch.cat([self.token.expand(x_BTC.shape[0], -1, -1), x_BTC], 1) + self.position
        return self.head(self.encoder(x_BTC)[:, 0])


def vision_transformer() -> Recipe:
    module = PatchTransformer()
    return Recipe(module, image_loss, torch.optim.AdamW(module.parameters()), data=images(6, 1, 4), batch_size=2)


class Recurrent(nn.Module):
    """Embedding, a stock recurrent layer, logits."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.token, self.layer, self.head = nn.Embedding(11, 4), kind(4, 5, batch_first=True), nn.Linear(5, 11)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        return self.head(self.layer(self.token(tokens_BT))[0])


def recurrent(kind: type[nn.RNNBase]) -> Recipe:
    module = Recurrent(kind)
    return language(module, torch.optim.Adam(module.parameters(), lr=1e-2), window=4)


class Experts(nn.Module):
    """A mixture of experts: each token goes to the two best of four; the router learns through their weights."""

    def __init__(self, width: int, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.4)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.4)
        self.chosen = chosen

    def forward(self, x_BTC: Tensor) -> tuple[Tensor, Tensor]:
        scores_BTE = self.router(x_BTC)
        best, which = torch.topk(scores_BTE, self.chosen, dim=-1)
        gates_BTE = torch.zeros_like(scores_BTE).scatter(-1, which, torch.softmax(best, -1))
        hidden = F.silu(torch.einsum("btc,ecd->betd", x_BTC, self.up))
        each_BETC = torch.einsum("betd,edc->betc", hidden, self.down)
        mixed = (each_BETC * gates_BTE.permute(0, 2, 1).unsqueeze(-1)).sum(1)
        load = (gates_BTE > 0).float().mean((0, 1)) * torch.softmax(scores_BTE, -1).mean((0, 1))
        return mixed, load.sum() * scores_BTE.shape[-1]


class ExpertModel(nn.Module):
    """Token by token: embedding, experts, logits."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.experts, self.head = nn.Embedding(11, 8), Experts(8), nn.Linear(8, 11)

    def forward(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        x = self.token(tokens_BT)
        mixed, load = self.experts(x)
        return self.head(x + mixed), load


def expert_loss(module: nn.Module, window_BT: Tensor) -> Tensor:
    tokens = window_BT.long()
    logits, load = module(tokens[:, :-1])
    return next_token_loss(logits, tokens[:, 1:]) + 0.01 * load


def experts() -> Recipe:
    module = ExpertModel()
    sgd = torch.optim.SGD(module.parameters(), lr=0.1)
    return Recipe(module, expert_loss, sgd, data=(stream(),), batch_size=2, window=5)


class Preference(nn.Module):
    """A policy and the frozen model that it started from (Rafailov et al., 2023)."""

    def __init__(self, policy: nn.Module) -> None:
        super().__init__()
        self.reference = copy.deepcopy(policy).requires_grad_(False)
        self.policy = policy
        with torch.no_grad():
            for p in self.policy.parameters():
                p.add_(torch.randn_like(p) * 0.05)


def log_likelihood(module: nn.Module, tokens_BT: Tensor) -> Tensor:
    logits_BTV = module(tokens_BT[:, :-1])
    return F.log_softmax(logits_BTV, -1).gather(-1, tokens_BT[:, 1:, None]).squeeze(-1).sum(-1)


def preference_loss(module: Preference, chosen: Tensor, rejected: Tensor) -> Tensor:
    """DPO: the policy's log ratio over the reference's, chosen against rejected."""
    good, bad = chosen.long(), rejected.long()
    policy = log_likelihood(module.policy, good) - log_likelihood(module.policy, bad)
    reference = log_likelihood(module.reference, good) - log_likelihood(module.reference, bad)
    return -F.logsigmoid(0.5 * (policy - reference)).mean()


def preference() -> Recipe:
    module = Preference(Recurrent(nn.RNN))
    data = stream(40).reshape(10, 4), stream(80)[40:].reshape(10, 4)
    trained = torch.optim.AdamW(module.policy.parameters(), lr=1e-2)
    return Recipe(module, preference_loss, trained, data=data, batch_size=2)


def muon() -> Recipe:
    """A perceptron whose one matrix Muon turns; the rest stays."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 6), nn.Tanh(), nn.Linear(6, 3))
    turned = torch.optim.Muon([module[1].weight], lr=0.02)
    return Recipe(module, image_loss, turned, data=images(8, 1, 4), batch_size=4)


MODELS: dict[str, Callable[[], Recipe]] = {
    "gpt": gpt,
    "gpt tied": lambda: gpt(tied=True),
    "llama": llama,
    "lora": lora,
    "mlp": perceptron,
    "cnn": convolutional,
    "vit": vision_transformer,
    "gru": lambda: recurrent(nn.GRU),
    "lstm": lambda: recurrent(nn.LSTM),
    "experts": experts,
    "dpo": preference,
    "muon": muon,
}
