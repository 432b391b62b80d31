"""scikit-learn's handwritten digits: `assay train compare --recipe examples.digits:factory --inner-steps 25`.

The package scikit-learn holds the data: 1,797 images of 8 x 8 pixels from 0 to 16 and the digit of each.
"""

import torch
from torch import nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe

HELD_OUT = 5
"""Every fifth image is not trained on."""


def loss(module, images, digits):
    """Mean cross-entropy of u8 images [B, 64] and digits [B]."""
    return F.cross_entropy(module(images.float() / 16.0), digits.to(torch.int64))


def factory(seed: int = 1) -> Recipe:
    """A perceptron of two hidden layers, by AdamW."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images, digits = torch.tensor(found.data).to(torch.uint8), torch.tensor(found.target).to(torch.uint8)
    kept = torch.arange(len(digits)) % HELD_OUT > 0
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    return Recipe(
        module,
        loss,
        optimizer,
        data=(images[kept], digits[kept]),
        batch_size=32,
        validation=(images[~kept], digits[~kept]),
    )
