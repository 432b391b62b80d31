"""A program's whole runs with attention in tiles: what is not stored here, and by what kernels that is read."""

from __future__ import annotations

from typing import Protocol

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton.checks import ProductChecks
from assay.engine.runtime.triton.groups import MapGroups
from assay.engine.runtime.triton.nodes import admitted
from assay.engine.runtime.triton.routes import Route
from assay.engine.runtime.triton.tiles import VirtualKernels
from assay.engine.runtime.triton.virtual import virtual_nodes
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program


class StoredKernels(Protocol):
    """The kernels of nodes that are stored (`node_kernels.KernelsByNode`)."""

    checks: ProductChecks | None
    product_variants: dict[int, str]

    def of(self, k: int) -> Kernel:
        """The kernel of node k."""


def in_tiles(program: Program, kernels: StoredKernels) -> MapGroups:
    """The runs of a program whose virtual nodes have no step; `product_variants` is told of their products."""
    virtual = virtual_nodes(program, _admits)
    made = VirtualKernels(program, virtual, _admits, kernels.checks)
    for k in (*virtual.spaces, *virtual.readers):
        node = program.nodes[k]
        if isinstance(node, Dot):
            is_turned = k in virtual.readers and virtual.readers[k].is_b
            kernels.product_variants[k] = f"{made.route(node, is_turned=is_turned).name}, by tiles"
    return MapGroups(program, lambda k: made.of(k) if k in virtual.readers else kernels.of(k), virtual)


def _admits(pa: int, pb: int) -> Route | None:
    return admitted(pa, pb)[0]
