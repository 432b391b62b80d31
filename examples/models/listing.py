"""What an entry of the list is, and the data that entries share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe

EXAMPLES, BATCH = 16, 4


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A training step. stays_refused: why no program can hold it, where that is so."""

    factory: Callable[[], Recipe]
    stays_refused: str = ""


LISTED: dict[str, ListedModel] = {}
"""Every entry by `library/name`."""


def entry(name: str, stays_refused: str = "") -> Callable[[Callable[[], Recipe]], Callable[[], Recipe]]:
    """Puts a factory on the list."""

    def put(factory: Callable[[], Recipe]) -> Callable[[], Recipe]:
        add(name, factory, stays_refused)
        return factory

    return put


def add(name: str, factory: Callable[[], Recipe], stays_refused: str = "") -> None:
    """Puts a factory on the list under a name that nothing there has."""
    if name in LISTED:
        raise ValueError(f"{name} is on the list already")
    LISTED[name] = ListedModel(factory, stays_refused)


def recipe(
    module: nn.Module,
    loss: Callable[..., Tensor],
    *data: Tensor,
    lr: float = 1e-3,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
    **options: Any,
) -> Recipe:
    """A recipe with small batches and AdamW unless another optimizer is given."""
    trained = [p for p in module.parameters() if p.requires_grad]
    return Recipe(module, loss, optimizer(trained, lr=lr), data=data, batch_size=BATCH, **options)


def tokens(vocabulary: int = 64, length: int = 16, least: int = 3) -> Tensor:
    """i64 [EXAMPLES, length] in [least, vocabulary): below lie symbols with a meaning of their own."""
    return torch.randint(least, vocabulary, (EXAMPLES, length))


def images(size: int = 32, channels: int = 3) -> Tensor:
    """f32 [EXAMPLES, channels, size, size]."""
    return torch.randn(EXAMPLES, channels, size, size)


def labels(classes: int = 4) -> Tensor:
    """i64 [EXAMPLES]."""
    return torch.randint(0, classes, (EXAMPLES,))


def classify(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of logits."""
    return F.cross_entropy(module(x), y)


def regress(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean squared error."""
    return F.mse_loss(module(x), y)
