"""How much of a step somebody has to compute who is given the state before it and wants some elements of it.

Elements are followed backwards through views, as exactly as views say it: an element of a product wants a row of one
operand and a column of the other. What is picked by data (tables of gathers, terms of scatter sums) counts as wanted
whole, so the demand is never too small by that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.programs.describe import work_of
from assay.protocol.program.nodes import Const, Dot, Gather, Input, Node, Operand, Output, Random, ScatterSum, operands
from assay.protocol.program.program import Program

Demanded = dict[int, Tensor]
"""By node the elements that are wanted, bool [numel]."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Operations: multiplications of products, and those of all other nodes (`describe.work_of`)."""

    products: int
    others: int


def demand_of(program: Program, wanted: Mapping[int, Tensor]) -> Demand:
    """What it takes to compute these elements; inputs and constants are given."""
    products = others = 0
    for k, mask in demanded(program, wanted).items():
        node, count = program.nodes[k], int(mask.sum())
        if isinstance(node, Dot):
            products += count * node.terms
        else:
            others += count * work_of(program, node) // max(node.spec.numel, 1)
    return Demand(products, others)


def demanded(program: Program, wanted: Mapping[int, Tensor]) -> Demanded:
    """These elements and all that they are computed from."""
    found: Demanded = {k: mask.clone() for k, mask in wanted.items()}
    for k in range(len(program.nodes) - 1, -1, -1):
        node = program.nodes[k]
        if k not in found or isinstance(node, Input | Const | Random) or not found[k].any():
            continue
        if isinstance(node, Output):
            _mask(program, found, node.node).logical_or_(found[k])
            continue
        for number, (operand, dims) in enumerate(operands(node)):
            _want(_over(node, number, found[k], dims), operand, dims, _mask(program, found, operand.node))
    return found


def everything(program: Program) -> Demanded:
    """All elements of Y."""
    return {k: torch.ones(program.specs[k].numel, dtype=torch.bool) for part in program.output_nodes for k in part}


def _mask(program: Program, found: Demanded, k: int) -> Tensor:
    return found.setdefault(k, torch.zeros(program.specs[k].numel, dtype=torch.bool))


def _over(node: Node, number: int, wanted: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The wanted elements of a node over the index space of an operand, size 1 where all indices are."""
    mask = wanted.reshape(node.spec.dims)
    if isinstance(node, Gather) and number == 0:
        return mask.unsqueeze(0)
    if isinstance(node, ScatterSum) and number < 2:
        mask = mask.any(0, keepdim=True)
    return mask.reshape((*mask.shape, *(1,) * (len(dims) - mask.ndim)))


def _want(mask: Tensor, operand: Operand, dims: tuple[int, ...], source: Tensor) -> None:
    """Marks what an operand reads where the mask holds."""
    view = operand.view
    address = torch.full((1,) * len(dims), view.offset, dtype=torch.int64)
    for d, size in enumerate(dims):
        lo, hi = max(view.lo[d], 0), min(view.hi[d], size)
        if lo >= hi:
            return
        if mask.shape[d] == size:
            mask = mask.narrow(d, lo, hi - lo)
        if view.strides[d] == 0:
            mask = mask.any(d, keepdim=True)
        else:
            steps = torch.arange(lo, hi) * view.strides[d]
            address = address + steps.reshape((1,) * d + (-1,) + (1,) * (len(dims) - 1 - d))
    address, mask = torch.broadcast_tensors(address, mask)  # type: ignore[no-untyped-call]
    source[address[mask]] = True
