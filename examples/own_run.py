"""A run of one's own model: `assay run post --recipe examples.own_run:factory --steps 50`.

A run has one data tensor; inputs and targets lie side by side in it, and the loss takes them apart.
"""

import torch
from torch import nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe


def loss(module, rows):
    """Mean cross-entropy of rows (x, y, class)."""
    return F.cross_entropy(module(rows[:, :2]), rows[:, 2].to(torch.int64))


def rows(count):
    """Points of two classes that no line divides: (x, y, class)."""
    points = torch.rand(count, 2) * 4 - 2
    classes = (points[:, 0].sin() * points[:, 1] > 0).to(torch.float32)
    return torch.cat([points, classes[:, None]], 1)


def factory():
    """A small network that learns from 4,096 points; 1,024 others say in each round how well."""
    torch.manual_seed(0)
    data = rows(4096)
    module = nn.Sequential(nn.Linear(2, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    return Recipe(module, loss, optimizer, data=(data,), batch_size=64, validation=(rows(1024),))
