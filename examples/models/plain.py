"""Plain torch: models as people write them."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from assay.training.recipes.recipe import Recipe
from examples.models.listing import EXAMPLES, add, classify, entry, images, labels, recipe, regress, tokens


def points() -> tuple[Tensor, Tensor]:
    """f32 [EXAMPLES, 6] and classes."""
    return torch.randn(EXAMPLES, 6), labels()


@entry("torch/perceptron")
def perceptron() -> Recipe:
    """Two layers with dropout."""
    return recipe(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4)), classify, *points())


@entry("torch/conv-batchnorm")
def conv_batchnorm() -> Recipe:
    """Convolutions with batch norm and pooling."""
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return recipe(nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 4)), classify, images(16), labels())


class LastOutput(nn.Module):
    """A recurrent layer and a head on its last output."""

    def __init__(self, kind: type[nn.RNNBase], **options: object) -> None:
        super().__init__()
        self.embed, self.body = nn.Embedding(64, 16), kind(16, 16, batch_first=True, **options)
        self.head = nn.Linear(32 if options.get("bidirectional") else 16, 4)

    def forward(self, ids: Tensor) -> Tensor:
        """i64 [B, T] to logits [B, 4]."""
        return self.head(self.body(self.embed(ids))[0][:, -1])


for _name, _kind, _options in (
    ("lstm", nn.LSTM, {}),
    ("lstm-bidirectional", nn.LSTM, {"bidirectional": True, "num_layers": 2, "dropout": 0.1}),
    ("gru", nn.GRU, {}),
    ("rnn", nn.RNN, {}),
):
    add(f"torch/{_name}", lambda k=_kind, o=_options: recipe(LastOutput(k, **o), classify, tokens(length=8), labels()))


class Translator(nn.Module):
    """nn.Transformer as it ships, with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(64, 16), nn.Linear(16, 64)
        self.body = nn.Transformer(16, 4, 1, 1, 32, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        """i64 [B, T] to logits [B, T, 64]."""
        x = self.embed(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(self.body(x, x, tgt_mask=mask, tgt_is_causal=True))


def next_symbol(module: nn.Module, ids: Tensor) -> Tensor:
    """Cross-entropy of each token given those before."""
    return F.cross_entropy(module(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


@entry("torch/nn-transformer")
def nn_transformer() -> Recipe:
    """Encoder and decoder."""
    return recipe(Translator(), next_symbol, tokens(length=8))


@entry("torch/transformer-encoder")
def transformer_encoder() -> Recipe:
    """nn.TransformerEncoder with gelu, norm first."""
    layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True)
    body = nn.Sequential(nn.Embedding(64, 16), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    return recipe(nn.Sequential(*body, nn.Linear(16, 64)), next_symbol, tokens(length=8))


class Variational(nn.Module):
    """A variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 8), nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 6))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Reconstruction, mean and logarithm of the variance."""
        mean, log_variance = self.encode(x).chunk(2, -1)
        return self.decode(mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)), mean, log_variance


def evidence(module: nn.Module, x: Tensor) -> Tensor:
    """The bound on the evidence."""
    out, mean, log_variance = module(x)
    return F.mse_loss(out, x) - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).mean()


@entry("torch/vae")
def vae() -> Recipe:
    """Sampling inside the step."""
    return recipe(Variational(), evidence, torch.randn(EXAMPLES, 6))


def normal_likelihood(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Likelihood by torch.distributions as it ships, with its checks of arguments."""
    mean, spread = module(x).chunk(2, -1)
    return -torch.distributions.Normal(mean, F.softplus(spread) + 1e-3).log_prob(y).mean()


@entry("torch/distributions", stays_refused="control flow that depends on values (its checks of arguments)")
def distributions() -> Recipe:
    """torch.distributions.Normal checks values."""
    return recipe(nn.Linear(6, 4), normal_likelihood, torch.randn(EXAMPLES, 6), torch.randn(EXAMPLES, 2))


def unchecked_likelihood(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The same with validate_args=False."""
    mean, spread = module(x).chunk(2, -1)
    return -torch.distributions.Normal(mean, F.softplus(spread) + 1e-3, validate_args=False).log_prob(y).mean()


@entry("torch/distributions-unchecked")
def distributions_unchecked() -> Recipe:
    """torch.distributions.Normal without its checks."""
    return recipe(nn.Linear(6, 4), unchecked_likelihood, torch.randn(EXAMPLES, 6), torch.randn(EXAMPLES, 2))


class UNet(nn.Module):
    """Down, up, and a bridge."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(16, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, 3, H, W] to logits [B, 4, H, W]."""
        d = F.relu(self.down(x))
        return self.out(torch.cat([d, self.up(F.relu(self.deep(d)))], 1))


@entry("torch/unet")
def unet() -> Recipe:
    """A class for every pixel."""
    return recipe(UNet(), classify, images(16), torch.randint(0, 4, (EXAMPLES, 16, 16)))


def triplets(module: nn.Module, a: Tensor, p: Tensor, n: Tensor) -> Tensor:
    """Triplet margin loss."""
    return F.triplet_margin_loss(module(a), module(p), module(n))


@entry("torch/siamese")
def siamese() -> Recipe:
    """One network on three inputs."""
    return recipe(
        nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 8)),
        triplets,
        *(torch.randn(EXAMPLES, 6) for _ in range(3)),
    )


def doubled(module: nn.Module, x: Tensor) -> Tensor:
    """InfoNCE between two noisy views."""
    a, b = (F.normalize(module(x + 0.1 * torch.randn_like(x)), dim=-1) for _ in range(2))
    return F.cross_entropy(a @ b.T / 0.1, torch.arange(x.shape[0]))


@entry("torch/simclr")
def simclr() -> Recipe:
    """Contrastive views."""
    return recipe(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8)), doubled, torch.randn(EXAMPLES, 6))


class TwoBestExperts(nn.Module):
    """Each input through its two best experts of four."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 4)
        self.experts = nn.ModuleList(nn.Linear(6, 4) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, 6] to [B, 4]."""
        weight, chosen = self.gate(x).softmax(-1).topk(2)
        every = torch.stack([e(x) for e in self.experts], 1)
        return (weight[..., None] * every.gather(1, chosen[..., None].expand(-1, -1, 4))).sum(1)


@entry("torch/experts")
def experts() -> Recipe:
    """A dense mixture with topk."""
    return recipe(TwoBestExperts(), classify, *points())


def q_learning(module: nn.Module, s: Tensor, a: Tensor, r: Tensor, later: Tensor) -> Tensor:
    """The temporal difference, with the network as its own target."""
    value = module(s).gather(1, a[:, None])[:, 0]
    with torch.no_grad():
        wanted = r + 0.9 * module(later).max(1).values
    return F.smooth_l1_loss(value, wanted)


@entry("torch/dqn")
def dqn() -> Recipe:
    """Q-learning."""
    data = torch.randn(EXAMPLES, 6), labels(), torch.randn(EXAMPLES), torch.randn(EXAMPLES, 6)
    return recipe(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4)), q_learning, *data)


def clipped_policy(module: nn.Module, s: Tensor, a: Tensor, advantage: Tensor, old: Tensor) -> Tensor:
    """The clipped objective of PPO with an entropy bonus."""
    logs = F.log_softmax(module(s), -1)
    ratio = (logs.gather(1, a[:, None])[:, 0] - old).exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    return -gain + 0.01 * (logs.exp() * logs).sum(-1).mean()


@entry("torch/ppo")
def ppo() -> Recipe:
    """A policy by PPO."""
    data = torch.randn(EXAMPLES, 6), labels(), torch.randn(EXAMPLES), -torch.rand(EXAMPLES)
    return recipe(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)), clipped_policy, *data)


def flowing(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Eight Euler steps of a neural differential equation."""
    for _ in range(8):
        x = x + 0.125 * module(x)
    return F.mse_loss(x, y)


@entry("torch/neural-ode")
def neural_ode() -> Recipe:
    """A differential equation by Euler's rule."""
    module = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 6))
    return recipe(module, flowing, torch.randn(EXAMPLES, 6), torch.randn(EXAMPLES, 6))


def curved(module: nn.Module, x: Tensor) -> Tensor:
    """A physics-informed loss: the derivative of the output for the input is in it."""
    x = x.requires_grad_()
    (slope,) = torch.autograd.grad(module(x).sum(), x, create_graph=True)
    return ((slope + module(x)) ** 2).mean()


@entry("torch/pinn")
def pinn() -> Recipe:
    """Gradients of gradients."""
    return recipe(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)), curved, torch.randn(EXAMPLES, 1))


@entry("torch/spectral-norm")
def spectral_norm() -> Recipe:
    """A weight divided by its largest singular value, whose vectors are buffers."""
    module = nn.Sequential(parametrizations.spectral_norm(nn.Linear(6, 16)), nn.ReLU(), nn.Linear(16, 4))
    return recipe(module, classify, *points())


@entry("torch/weight-norm")
def weight_norm() -> Recipe:
    """A weight as length and direction."""
    module = nn.Sequential(parametrizations.weight_norm(nn.Linear(6, 16)), nn.ReLU(), nn.Linear(16, 4))
    return recipe(module, classify, *points())


@entry("torch/orthogonal")
def orthogonal() -> Recipe:
    """A weight held orthogonal, by PyTorch's parametrization."""
    return recipe(nn.Sequential(parametrizations.orthogonal(nn.Linear(6, 6)), nn.Linear(6, 4)), classify, *points())


class EarlyExit(nn.Module):
    """Stops when it is sure."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(6, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, 6] to [B, 4]."""
        h = self.one(x)
        return h if h.abs().max() > 10.0 else self.two(h)


@entry("torch/early-exit", stays_refused="control flow that depends on values")
def early_exit() -> Recipe:
    """A branch that a value decides."""
    return recipe(EarlyExit(), classify, *points())


@entry("torch/linear-regression")
def linear_regression() -> Recipe:
    """A line."""
    return recipe(nn.Linear(6, 2), regress, torch.randn(EXAMPLES, 6), torch.randn(EXAMPLES, 2))
