"""Plain torch: one step for every optimizer and way of using it that strangers missed, on one small network."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe
from examples.models.listing import BATCH, EXAMPLES, add, classify, entry, labels, tokens

DATA = 6


def network() -> nn.Module:
    """A small perceptron."""
    return nn.Sequential(nn.Linear(DATA, 16), nn.Tanh(), nn.Linear(16, 4))


def trained(make: Callable[[nn.Module], optim.Optimizer], **options: Any) -> Callable[[], Recipe]:
    """A factory of the network with an optimizer of its parameters."""

    def factory() -> Recipe:
        module = network()
        return Recipe(module, classify, make(module), (torch.randn(EXAMPLES, DATA), labels()), BATCH, **options)

    return factory


class Lion(optim.Optimizer):
    """Lion (Chen et al., 2023) as users write it."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """Moves every parameter by the sign of its momentum."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                m = state["exp_avg"]
                p.mul_(1.0 - group["lr"] * group["weight_decay"])
                p.add_(torch.sign(m * beta1 + p.grad * (1.0 - beta1)), alpha=-group["lr"])
                m.mul_(beta2).add_(p.grad, alpha=1.0 - beta2)


def grouped(module: nn.Module) -> optim.Optimizer:
    """Two groups with rates and decays of their own."""
    first, _, last = module
    groups = [{"params": first.parameters(), "lr": 3e-3, "weight_decay": 0.1}, {"params": last.parameters()}]
    return optim.AdamW(groups, lr=1e-3, weight_decay=0.0)


OPTIMIZERS: dict[str, Callable[[nn.Module], optim.Optimizer]] = {
    "sgd": lambda m: optim.SGD(m.parameters(), lr=1e-2),
    "sgd-momentum": lambda m: optim.SGD(m.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-3),
    "sgd-nesterov": lambda m: optim.SGD(m.parameters(), lr=1e-2, momentum=0.9, nesterov=True),
    "sgd-dampening": lambda m: optim.SGD(m.parameters(), lr=1e-2, momentum=0.9, dampening=0.5),
    "sgd-maximize": lambda m: optim.SGD(m.parameters(), lr=1e-3, maximize=True),
    "adam": lambda m: optim.Adam(m.parameters(), lr=1e-3),
    "adam-decay": lambda m: optim.Adam(m.parameters(), lr=1e-3, weight_decay=1e-2),
    "adam-amsgrad": lambda m: optim.Adam(m.parameters(), lr=1e-3, amsgrad=True),
    "adam-maximize": lambda m: optim.Adam(m.parameters(), lr=1e-3, maximize=True),
    "adamw": lambda m: optim.AdamW(m.parameters(), lr=1e-3),
    "adamw-amsgrad": lambda m: optim.AdamW(m.parameters(), lr=1e-3, amsgrad=True),
    "adamw-tensor-rate": lambda m: optim.AdamW(m.parameters(), lr=torch.tensor(1e-3)),
    "adamw-groups": grouped,
    "adamax": lambda m: optim.Adamax(m.parameters(), lr=1e-3),
    "nadam": lambda m: optim.NAdam(m.parameters(), lr=1e-3),
    "radam": lambda m: optim.RAdam(m.parameters(), lr=1e-3),
    "rmsprop": lambda m: optim.RMSprop(m.parameters(), lr=1e-3),
    "rmsprop-centered": lambda m: optim.RMSprop(m.parameters(), lr=1e-3, centered=True, momentum=0.9),
    "adagrad": lambda m: optim.Adagrad(m.parameters(), lr=1e-2),
    "adagrad-decay": lambda m: optim.Adagrad(m.parameters(), lr=1e-2, lr_decay=1e-2, initial_accumulator_value=0.1),
    "adadelta": lambda m: optim.Adadelta(m.parameters(), lr=1.0),
    "adafactor": lambda m: optim.Adafactor(m.parameters(), lr=1e-2),
    "asgd": lambda m: optim.ASGD(m.parameters(), lr=1e-2),
    "rprop": lambda m: optim.Rprop(m.parameters(), lr=1e-3),
    "lion": lambda m: Lion(m.parameters(), lr=1e-4, weight_decay=1e-2),
}
for _name, _make in OPTIMIZERS.items():
    add(f"torch-optim/{_name}", trained(_make))

add("torch-optim/lbfgs", trained(lambda m: optim.LBFGS(m.parameters())), "LBFGS searches along lines")
add("torch-optim/adamw-clipped", trained(OPTIMIZERS["adamw"], clip_norm=0.1))
add("torch-optim/sgd-micro-batches", trained(OPTIMIZERS["sgd-momentum"], micro_batches=2))


def in_bfloat16(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of a network of bfloat16 parameters."""
    return F.cross_entropy(module(x.to(torch.bfloat16)).float(), y)


@entry("torch/bfloat16-parameters")
def bfloat16_parameters() -> Recipe:
    """Parameters of 16 bits."""
    module = network().to(torch.bfloat16)
    return Recipe(
        module, in_bfloat16, optim.AdamW(module.parameters(), lr=1e-2), (torch.randn(EXAMPLES, DATA), labels()), BATCH
    )


class Bag(nn.Module):
    """An embedding bag and a head."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(64, 8, mode=mode), nn.Linear(8, 4)

    def forward(self, ids: Tensor) -> Tensor:
        """i64 [B, T] to logits [B, 4]."""
        return self.head(self.bag(ids))


for _mode in ("mean", "sum", "max"):
    add(
        f"torch-op/embedding-bag-{_mode}",
        lambda mode=_mode: Recipe(
            (m := Bag(mode)), classify, optim.AdamW(m.parameters(), lr=1e-3), (tokens(length=6), labels()), BATCH
        ),
    )


class Pairs(nn.Module):
    """nn.Bilinear between two halves of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = nn.Bilinear(3, 3, 4)

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, 6] to [B, 4]."""
        return self.pair(x[:, :3], x[:, 3:])


@entry("torch-op/bilinear")
def bilinear() -> Recipe:
    """nn.Bilinear."""
    module = Pairs()
    return Recipe(
        module, classify, optim.AdamW(module.parameters(), lr=1e-2), (torch.randn(EXAMPLES, 6), labels()), BATCH
    )


def connectionist(module: nn.Module, x: Tensor, wanted: Tensor) -> Tensor:
    """CTC: [B, T, 6] to log-probabilities [T, B, 8], targets of 3 symbols."""
    logs = F.log_softmax(module(x), -1).transpose(0, 1)
    lengths = torch.full((x.shape[0],), x.shape[1]), torch.full((x.shape[0],), wanted.shape[1])
    return F.ctc_loss(logs, wanted, *lengths)


@entry("torch-op/ctc-loss")
def ctc_loss() -> Recipe:
    """Connectionist temporal classification."""
    module = nn.Linear(6, 8)
    data = torch.randn(EXAMPLES, 10, 6), torch.randint(1, 8, (EXAMPLES, 3))
    return Recipe(module, connectionist, optim.AdamW(module.parameters(), lr=1e-2), data, BATCH)
