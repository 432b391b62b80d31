"""Plain torch: one step for every operator that strangers missed, each between two linear layers.

So each operator has a gradient to pass, is fed by trained values, and its result is trained on.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe
from examples.models.listing import BATCH, EXAMPLES, add, recipe

WIDTH = 16
Operation = Callable[[Tensor], Tensor]
"""f32 [B, WIDTH] to any f32 tensor with B in front."""


class Around(nn.Module):
    """A linear layer, the operation, and another layer on what it leaves of every example."""

    def __init__(self, operation: Operation) -> None:
        super().__init__()
        self.operation = operation
        self.before = nn.Linear(6, WIDTH)
        with torch.no_grad():
            size = operation(torch.rand(BATCH, WIDTH) * 0.5 + 0.25).reshape(BATCH, -1).shape[1]
        self.after = nn.Linear(size, 2)

    def forward(self, x: Tensor) -> Tensor:
        """f32 [B, 6] to [B, 2]."""
        return self.after(self.operation(self.before(x)).reshape(x.shape[0], -1))


def fitted(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean squared error."""
    return F.mse_loss(module(x), y)


def around(operation: Operation) -> Callable[[], Recipe]:
    """A factory of a step around an operation."""
    return lambda: recipe(Around(operation), fitted, torch.randn(EXAMPLES, 6), torch.randn(EXAMPLES, 2), lr=1e-2)


def positive(h: Tensor) -> Tensor:
    """Values in (0.1, 1.1)."""
    return h.sigmoid() + 0.1


def square(h: Tensor) -> Tensor:
    """As pictures, f32 [B, 1, 4, 4]."""
    return h.reshape(-1, 1, 4, 4)


def slice_assignment(h: Tensor) -> Tensor:
    """Half of a copy replaced by the other half."""
    z = h.clone()
    z[:, :8] = h[:, 8:]
    return z


def filled_by_loop(h: Tensor) -> Tensor:
    """A tensor filled column by column."""
    out = torch.zeros(h.shape[0], 4)
    for k in range(4):
        out[:, k] = h[:, k] * h[:, k + 4]
    return out


def written_view(h: Tensor) -> Tensor:
    """A view written in place."""
    z = h.clone()
    z.reshape(-1, 4, 4)[:, 1].mul_(2.0)
    return z


def stepped_slice(h: Tensor) -> Tensor:
    """Every second column replaced."""
    z = h * 1.0
    z[:, ::2] = z[:, 1::2] * 2.0
    return z


def put_by_index(h: Tensor) -> Tensor:
    """Columns replaced at a list of places."""
    z = h.clone()
    z[:, [1, 3, 5]] = h[:, [0, 2, 4]]
    return z


def constant_mask(h: Tensor) -> Tensor:
    """Columns chosen by a constant mask of bools."""
    return h[:, torch.arange(WIDTH) % 3 == 0]


def masked_select(h: Tensor) -> Tensor:
    """The same by masked_select."""
    return torch.masked_select(h, torch.arange(WIDTH) % 2 == 0).reshape(h.shape[0], -1)


def masked_scatter(h: Tensor) -> Tensor:
    """Values written where a constant mask is true."""
    mask = (torch.arange(WIDTH) % 2 == 0).expand_as(h)
    return h.masked_scatter(mask, h.flip(1) * 2.0)


def sampled_grid(h: Tensor, mode: str = "bilinear") -> Tensor:
    """A picture read along a fixed, bent grid."""
    line = torch.linspace(-0.9, 0.9, 4)
    grid = torch.stack(torch.meshgrid(line, line * 0.5, indexing="ij"), -1).expand(h.shape[0], -1, -1, -1)
    return F.grid_sample(square(h), grid, mode=mode, align_corners=False)


def affine_grid(h: Tensor) -> Tensor:
    """A picture read along a grid that is trained (spatial transformer)."""
    theta = h[:, :6].reshape(-1, 2, 3) * 0.1 + torch.eye(2, 3)
    return F.grid_sample(
        square(h), F.affine_grid(theta, [h.shape[0], 1, 4, 4], align_corners=False), align_corners=False
    )


def mean_and_variance(h: Tensor) -> Tensor:
    """torch.var_mean."""
    variance, mean = torch.var_mean(h.reshape(-1, 4, 4), -1)
    return torch.cat([variance, mean], -1)


def scatter_reduced(reduce: str) -> Operation:
    """Columns gathered into four places."""

    def operation(h: Tensor) -> Tensor:
        index = (torch.arange(WIDTH) % 4).expand_as(h)
        return torch.zeros(h.shape[0], 4).scatter_reduce(1, index, h, reduce, include_self=False)

    return operation


def in_half_precision(h: Tensor) -> Tensor:
    """A product under autocast."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (h.reshape(-1, 4, 4) @ h.reshape(-1, 4, 4)).float()


def symmetric(h: Tensor) -> Tensor:
    """Well-conditioned symmetric matrices, f32 [B, 4, 4]."""
    m = square(h)[:, 0]
    return m @ m.transpose(1, 2) + 4.0 * torch.eye(4)


OPERATIONS: dict[str, Operation] = {
    "slice-assignment": slice_assignment,
    "filled-by-loop": filled_by_loop,
    "written-view": written_view,
    "stepped-slice": stepped_slice,
    "index-put": put_by_index,
    "as-strided": lambda h: F.adaptive_avg_pool2d(square(h).permute(0, 2, 3, 1), 1),
    "unfold": lambda h: h.unfold(1, 4, 2),
    "constant-mask": constant_mask,
    "masked-select": masked_select,
    "masked-scatter": masked_scatter,
    "interpolate-bilinear": lambda h: F.interpolate(square(h), scale_factor=2, mode="bilinear"),
    "interpolate-corners": lambda h: F.interpolate(square(h), size=7, mode="bilinear", align_corners=True),
    "grid-sample": sampled_grid,
    "affine-grid": affine_grid,
    "cumprod": lambda h: positive(h).cumprod(1),
    "prod": lambda h: positive(h).reshape(-1, 4, 4).prod(-1),
    "pow-tensor": lambda h: positive(h[:, :8]) ** h[:, 8:],
    "atan2": lambda h: torch.atan2(h[:, :8], positive(h[:, 8:])),
    "erfinv": lambda h: torch.erfinv(h.tanh() * 0.9),
    "log2": lambda h: torch.log2(positive(h)),
    "exp2": torch.exp2,
    "fmod": lambda h: torch.fmod(h, 0.7),
    "var-mean": mean_and_variance,
    "scatter-reduce-mean": scatter_reduced("mean"),
    "scatter-reduce-amax": scatter_reduced("amax"),
    "scatter-reduce-prod": scatter_reduced("prod"),
    "median": lambda h: h.reshape(-1, 2, 8).median(-1).values,
    "autocast": in_half_precision,
}
"""Operators that strangers missed by name."""

MORE: dict[str, Operation] = {
    "index-fill": lambda h: h.index_fill(1, torch.tensor([0, 3]), 0.5),
    "interpolate-bicubic": lambda h: F.interpolate(square(h), scale_factor=2, mode="bicubic"),
    "interpolate-nearest": lambda h: F.interpolate(square(h), size=6, mode="nearest"),
    "adaptive-pool": lambda h: F.adaptive_avg_pool2d(square(h), 3),
    "atan": torch.atan,
    "remainder": lambda h: torch.remainder(h, 0.7),
    "floor-divide": lambda h: h + torch.floor_divide(h.detach(), 0.3),
    "std": lambda h: h.reshape(-1, 4, 4).std(-1),
    "sort": lambda h: h.sort(1).values,
    "topk": lambda h: h.topk(4, dim=1).values,
    "cdist": lambda h: torch.cdist(h.reshape(-1, 4, 4), h.reshape(-1, 4, 4) + 1.0),
    "einsum": lambda h: torch.einsum("bij,bkj->bik", h.reshape(-1, 4, 4), h.reshape(-1, 4, 4)),
    "matrix-inverse": lambda h: torch.linalg.inv(symmetric(h)),
    "gumbel-softmax": lambda h: F.gumbel_softmax(h, hard=True),
    "bfloat16-cast": lambda h: h.to(torch.bfloat16).float(),
    "float64-inside": lambda h: (h.double() * 1.5).float(),
}
"""Others that a program may meet."""

REFUSED: dict[str, tuple[Operation, str]] = {
    "rfft": (lambda h: torch.fft.rfft(h).abs(), "Fourier transform"),
    "nonzero": (lambda h: h.sum(1) + h[h > 0].sum(), "control flow that depends on values (a size)"),
    "item": (lambda h: h * h.abs().max().item(), "control flow that depends on values (item)"),
}

for _name, _operation in OPERATIONS.items():
    add(f"torch-op/{_name}", around(_operation))
for _name, _operation in MORE.items():
    add(f"torch-op-more/{_name}", around(_operation))
for _name, (_operation, _why) in REFUSED.items():
    add(f"torch-op/{_name}", around(_operation), _why)
