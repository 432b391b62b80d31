"""Capture your own module, loss and optimizer as a program, and train it exactly.

    python examples/capture_a_module.py

Shows what `assay.engine` promises: the program runs to the same bits on every machine, computes what PyTorch computes,
and refuses by name and line what it cannot express.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values import state_io
from assay.protocol.errors import UserError
from assay.training.optimizer import AdamW

module = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
names = [name for name, _ in module.named_parameters()]
optimizer = AdamW(weight_decay=0.0)
rate = torch.tensor(1e-2)


def loss_of(parameters, x, y):
    """Mean squared error of the module with these parameters."""
    return F.mse_loss(functional_call(module, dict(zip(names, parameters, strict=True)), (x,)), y)


def step(parameters, moments, batch):
    """One step of AdamW: lists of tensors in, lists of tensors out, nothing else."""
    x, y = batch
    leaves = [p.detach().requires_grad_() for p in parameters]
    gradients = torch.autograd.grad(loss_of(leaves, x, y), leaves)
    parameters, moments = optimizer.update(parameters, gradients, moments, rate)
    return parameters, moments, [x, y]


def main() -> None:
    """Train exactly and in stock PyTorch, and compare."""
    torch.manual_seed(0)
    x = torch.rand(128, 2) * 4 - 2
    y = (x[:, :1] * 2).sin() * x[:, 1:]
    parameters = [p.detach().clone() for p in module.parameters()]
    state = (parameters, optimizer.zero_init(parameters), [x, y])

    program = capture(step, state).program
    print(f"program {program.root.hex()[:16]}: {len(program.nodes)} nodes")

    exact, stock = Executor(program).repeat(state, 200), state
    for _ in range(200):
        stock = step(*stock)
    print(f"loss before {loss_of(parameters, x, y):.4f}")
    print(f"loss after 200 steps: exact {loss_of(exact[0], x, y):.4f}, stock {loss_of(stock[0], x, y):.4f}")
    print(f"state root {state_io.state_root(exact).hex()[:16]}, the same on every machine")

    try:
        capture(lambda part: ([torch.lgamma(part[0])],), [[x]])
    except UserError as error:
        print(f"refused: {error.explain()}")


if __name__ == "__main__":
    main()
