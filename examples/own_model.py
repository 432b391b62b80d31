"""An own model in twenty lines: `assay program capture examples.own_model:factory --out own.program`."""

import torch
from torch import nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe


def loss(module, x, y):
    """Mean cross-entropy of a batch."""
    return F.cross_entropy(module(x), y)


def factory():
    """Two classes of points in the plane, a small network with dropout, AdamW."""
    x = torch.rand(512, 2) * 4 - 2
    y = (x[:, 0] * x[:, 1] > 0).long()
    module = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    return Recipe(module, loss, optimizer, data=(x, y), batch_size=64)
