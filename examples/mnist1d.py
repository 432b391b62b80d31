"""MNIST-1D (Greydanus and Kobak, 2020): `assay train compare --recipe examples.mnist1d:factory --inner-steps 25`.

The package mnist1d makes the data, alike on every machine: 4,000 curves of 40 points to train on, 1,000 held out.
"""

import torch
from torch import nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe


class Convolutions(nn.Module):
    """The package's own convolutional baseline: three layers of 25 channels, then a read-out."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 25, 5, stride=2, padding=1)
        self.second = nn.Conv1d(25, 25, 3, stride=2, padding=1)
        self.third = nn.Conv1d(25, 25, 3, stride=2, padding=1)
        self.head = nn.Linear(125, 10)

    def forward(self, curves):
        """Logits [B, 10] of curves [B, 40]."""
        hidden = curves[:, None]
        for layer in (self.first, self.second, self.third):
            hidden = layer(hidden).relu()
        return self.head(hidden.flatten(1))


def loss(module, curves, digits):
    """Mean cross-entropy of f32 curves [B, 40] and digits [B]."""
    return F.cross_entropy(module(curves), digits.to(torch.int64))


def factory(seed: int = 1) -> Recipe:
    """The baseline, by AdamW."""
    from mnist1d.data import get_dataset_args, make_dataset

    found = make_dataset(get_dataset_args())
    curves, digits = (
        (torch.tensor(found["x"]).float(), torch.tensor(found["x_test"]).float()),
        (
            torch.tensor(found["y"]).to(torch.uint8),
            torch.tensor(found["y_test"]).to(torch.uint8),
        ),
    )
    torch.manual_seed(seed)
    module = Convolutions()
    optimizer = torch.optim.AdamW(module.parameters(), lr=2e-3)
    return Recipe(
        module, loss, optimizer, data=(curves[0], digits[0]), batch_size=32, validation=(curves[1], digits[1])
    )
