"""Stock `torch.optim` objects read as pure optimizers: their constants and parameter groups, none of their state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from assay.protocol.errors import UserError
from assay.training.optimizer import SGD, AdamW, Grouped, Maximizing, Muon, Optimizer, ParameterGroup
from assay.training.optimizers.adams import Adamax, AMSGrad, NAdam, RAdam
from assay.training.optimizers.signs import ASGD, Rprop
from assay.training.optimizers.squares import Adadelta, Adafactor, Adagrad, RMSprop
from assay.training.recipes.own_optimizers import own_optimizer

Options = Mapping[str, Any]
"""What a parameter group says."""


def translated(
    given: torch.optim.Optimizer,
    parameters: Sequence[Tensor],
    names: Sequence[str],
    trained: Sequence[int],
    rates: Sequence[float] | None = None,
) -> tuple[Grouped, float]:
    """The pure optimizer with the constants of a stock one, and its learning rate: the first group's that is not 0.

    Rates of other groups are kept in proportion. parameters: in the order of the state's first list. trained: positions
    of those that get gradients. rates: of the groups, instead of what they say.

    Raises:
        UserError: UnsupportedOptimizer; what `own_optimizer` raises.
    """
    positions = {id(p): k for k, p in enumerate(parameters)}
    rates = [float(part["lr"]) for part in given.param_groups] if rates is None else rates
    base = next((rate for rate in rates if rate), 0.0)
    if not is_stock(given):
        return _own(given, positions, trained, [rate / base if base else 1.0 for rate in rates], parameters, base), base
    groups = []
    for part, rate in zip(given.param_groups, rates, strict=True):
        own = _positions_of(given, part, positions, trained)
        if own:
            translate = _translation(given, part, [names[k] for k in own])
            for few, optimizer in _by_kind(translate(part), part, own, parameters):
                climbing = Maximizing(optimizer) if part.get("maximize") else optimizer
                groups.append(ParameterGroup(few, climbing, rate / base if base else 1.0))
    return Grouped(tuple(groups)), base


def _positions_of(
    given: torch.optim.Optimizer, part: Options, positions: Mapping[int, int], trained: Sequence[int]
) -> tuple[int, ...]:
    """Where a group's parameters stand in the state, those that get gradients."""
    strangers = [p for p in part["params"] if id(p) not in positions]
    if strangers:
        raise UserError(
            f"{type(given).__name__} was given {len(strangers)} tensors that are no parameters of the module.",
            code="UnsupportedOptimizer",
            remedy="Make the optimizer from the parameters of the very module that the recipe holds.",
        )
    return tuple(sorted({positions[id(p)] for p in part["params"]} & set(trained)))


def is_stock(given: object) -> bool:
    """Whether it is an optimizer that PyTorch brings."""
    return isinstance(given, torch.optim.Optimizer) and type(given).__module__.partition(".")[0] == "torch"


def _own(
    given: torch.optim.Optimizer,
    positions: Mapping[int, int],
    trained: Sequence[int],
    rates: Sequence[float],
    parameters: Sequence[Tensor],
    base: float,
) -> Grouped:
    """A user's optimizer, for its parameters alone."""
    groups = [_positions_of(given, part, positions, trained) for part in given.param_groups]
    every = tuple(k for own in groups for k in own)
    local = {k: number for number, k in enumerate(every)}
    optimizer = own_optimizer(
        given, [[local[k] for k in own] for own in groups], rates, [parameters[k] for k in every], base
    )
    return Grouped((ParameterGroup(every, optimizer),))


def _by_kind(
    optimizer: Optimizer, part: Options, own: tuple[int, ...], parameters: Sequence[Tensor]
) -> list[tuple[tuple[int, ...], Optimizer]]:
    """The group's parameters with their optimizer; Adafactor's matrices and its other parameters apart."""
    if not isinstance(optimizer, Adafactor):
        return [(own, optimizer)]
    matrices = tuple(k for k in own if parameters[k].ndim > 1)
    others = tuple(k for k in own if parameters[k].ndim <= 1)
    # PyTorch takes the first parameter's type for all of a group.
    dtype = parameters[own[0]].dtype
    kinds = ((matrices, _adafactor(part, dtype)), (others, _adafactor(part, dtype, factored=False)))
    return [(few, kind) for few, kind in kinds if few]


def _translation(given: torch.optim.Optimizer, part: Options, names: Sequence[str]) -> Callable[[Options], Optimizer]:
    """How a group of this optimizer is read. Raises UserError (UnsupportedOptimizer)."""
    kind = type(given)
    if part.get("differentiable"):
        raise _unsupported(f"{kind.__name__} with differentiable=True", "Leave differentiable out.")
    if kind not in _TRANSLATIONS:
        raise _unsupported(f"{kind.__name__}, which is to update {', '.join(names[:3])}", _INSTEAD.get(kind, _REMEDY))
    return _TRANSLATIONS[kind]


def _betas(part: Options) -> tuple[float, float]:
    beta1, beta2 = (float(beta) for beta in part["betas"])
    return beta1, beta2


def _sgd(part: Options) -> Optimizer:
    return SGD(part["momentum"], part["dampening"], part["weight_decay"], part["nesterov"])


def _adam(part: Options) -> Optimizer:
    (beta1, beta2), decay, decoupled = _betas(part), part["weight_decay"], part["decoupled_weight_decay"]
    if part["amsgrad"]:
        return AMSGrad(beta1, beta2, part["eps"], decay, decoupled)
    return AdamW(beta1, beta2, part["eps"], decay, decays_vectors=True, decoupled=decoupled)


def _nadam(part: Options) -> Optimizer:
    decay, decoupled = part["weight_decay"], part["decoupled_weight_decay"]
    return NAdam(*_betas(part), part["eps"], decay, decoupled, part["momentum_decay"])


def _radam(part: Options) -> Optimizer:
    return RAdam(*_betas(part), part["eps"], part["weight_decay"], part["decoupled_weight_decay"])


def _adamax(part: Options) -> Optimizer:
    return Adamax(*_betas(part), part["eps"], part["weight_decay"])


def _rmsprop(part: Options) -> Optimizer:
    return RMSprop(part["alpha"], part["eps"], part["weight_decay"], part["momentum"], part["centered"])


def _adagrad(part: Options) -> Optimizer:
    return Adagrad(part["lr_decay"], part["eps"], part["weight_decay"], part["initial_accumulator_value"])


def _adadelta(part: Options) -> Optimizer:
    return Adadelta(part["rho"], part["eps"], part["weight_decay"])


def _adafactor(part: Options, dtype: torch.dtype = torch.float32, *, factored: bool = True) -> Optimizer:
    first, second = part["eps"]
    epsilon = torch.finfo(dtype).eps if first is None else first
    return Adafactor(factored, part["beta2_decay"], epsilon, second, part["d"], part["weight_decay"])


def _rprop(part: Options) -> Optimizer:
    return Rprop(*part["etas"], *part["step_sizes"])


def _asgd(part: Options) -> Optimizer:
    return ASGD(part["lambd"], part["alpha"], part["t0"], part["weight_decay"])


def _muon(part: Options) -> Optimizer:
    coefficients, count = part["ns_coefficients"], part["ns_steps"]
    adjust = part["adjust_lr_fn"] or "original"
    return Muon(part["momentum"], part["weight_decay"], part["nesterov"], coefficients, count, part["eps"], adjust)


_TRANSLATIONS: Final[Mapping[type, Callable[[Options], Optimizer]]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adam: _adam,
    torch.optim.AdamW: _adam,
    torch.optim.NAdam: _nadam,
    torch.optim.RAdam: _radam,
    torch.optim.Adamax: _adamax,
    torch.optim.RMSprop: _rmsprop,
    torch.optim.Adagrad: _adagrad,
    torch.optim.Adadelta: _adadelta,
    torch.optim.Adafactor: _adafactor,
    torch.optim.Rprop: _rprop,
    torch.optim.ASGD: _asgd,
    torch.optim.Muon: _muon,
}

KNOWN: Final = ", ".join(kind.__name__ for kind in _TRANSLATIONS)
"""The optimizers of `torch.optim` that have an exact form."""

_REMEDY: Final = f"Use one of torch.optim's {KNOWN}, or an optimizer of your own (docs/own-models.md)."

_INSTEAD: Final[Mapping[type, str]] = {
    torch.optim.LBFGS: "How often it calls the loss depends on values, and a step of a program is a fixed computation:"
    " use AdamW, or SGD with momentum.",
    torch.optim.SparseAdam: "Gradients of a program are dense: use Adam, and leave sparse=True out of the embedding.",
}


def _unsupported(what: str, remedy: str) -> UserError:
    return UserError(f"There is no exact form of {what}.", code="UnsupportedOptimizer", remedy=remedy)
