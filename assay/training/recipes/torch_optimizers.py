"""Stock `torch.optim` objects read as pure optimizers: their constants and parameter groups, none of their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from assay.protocol.errors import UserError
from assay.training.optimizer import SGD, AdamW, Grouped, Muon, Optimizer, ParameterGroup


def translated(
    given: torch.optim.Optimizer, parameters: Sequence[Tensor], names: Sequence[str], trained: Sequence[int]
) -> tuple[Grouped, float]:
    """The pure optimizer with the constants of a stock one, and its learning rate, that of the first group.

    Rates of other groups are kept in proportion. parameters: in the order of the state's first list. trained: positions
    of those that get gradients.

    Raises:
        UserError: UnsupportedOptimizer.
    """
    positions = {id(p): k for k, p in enumerate(parameters)}
    base = float(given.param_groups[0]["lr"])
    groups = []
    for part in given.param_groups:
        strangers = [p for p in part["params"] if id(p) not in positions]
        if strangers:
            raise UserError(
                f"{type(given).__name__} was given {len(strangers)} tensors that are no parameters of the module.",
                code="UnsupportedOptimizer",
                remedy="Make the optimizer from the parameters of the very module that the recipe holds.",
            )
        own = tuple(sorted({positions[id(p)] for p in part["params"]} & set(trained)))
        if own:
            rate = float(part["lr"]) / base if base else 1.0
            groups.append(ParameterGroup(own, _one(given, part, [names[k] for k in own]), rate))
    return Grouped(tuple(groups)), base


def _one(given: torch.optim.Optimizer, part: Mapping[str, Any], names: Sequence[str]) -> Optimizer:
    """The optimizer of one parameter group."""
    for option in ("maximize", "amsgrad", "differentiable"):
        if part.get(option):
            raise _unsupported(f"{type(given).__name__} with {option}=True", f"Leave {option} out.")
    match type(given):
        case torch.optim.SGD:
            return SGD(part["momentum"], part["dampening"], part["weight_decay"], part["nesterov"])
        case torch.optim.AdamW | torch.optim.Adam:
            is_decoupled = part.get("decoupled_weight_decay", type(given) is torch.optim.AdamW)
            (beta1, beta2), decay = part["betas"], part["weight_decay"]
            return AdamW(beta1, beta2, part["eps"], decay, decays_vectors=True, decoupled=is_decoupled)
        case torch.optim.Muon:
            coefficients, count = part["ns_coefficients"], part["ns_steps"]
            adjust = part["adjust_lr_fn"] or "original"
            return Muon(
                part["momentum"], part["weight_decay"], part["nesterov"], coefficients, count, part["eps"], adjust
            )
    known = "torch.optim.SGD, Adam, AdamW and Muon"
    raise _unsupported(
        f"{type(given).__name__}, which is to update {', '.join(names[:3])}",
        f"Use {known}, or an object with `size`, `zero_init` and `update` (assay/training/optimizer.py).",
    )


def _unsupported(what: str, remedy: str) -> UserError:
    return UserError(f"There is no exact form of {what}.", code="UnsupportedOptimizer", remedy=remedy)
