"""A program's whole runs, its attention in tiles where a GPU would not hold the scores: what is not stored then."""

from __future__ import annotations

from typing import Protocol

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.checks import ProductChecks
from assay.engine.runtime.triton.groups import MapGroups
from assay.engine.runtime.triton.nodes import admitted
from assay.engine.runtime.triton.routes import Route
from assay.engine.runtime.triton.tails import CausalRows
from assay.engine.runtime.triton.tiles import VirtualKernels
from assay.engine.runtime.triton.virtual import VirtualNodes, virtual_nodes
from assay.engine.runtime.triton.whole import WholeRuns
from assay.protocol.errors import UserError
from assay.protocol.program.nodes import Const, Dot
from assay.protocol.program.program import Program


class StoredKernels(Protocol):
    """The kernels of nodes that are stored (`node_kernels.KernelsByNode`)."""

    checks: ProductChecks | None
    product_variants: dict[int, str]
    causal: CausalRows | None

    def of(self, k: int) -> Kernel:
        """The kernel of node k."""

    def in_whole(self, k: int) -> Kernel:
        """The kernel of node k in a run whose values are the program's own."""


def whole_runs(program: Program, kernels: StoredKernels, by_tiles: bool | None = None) -> WholeRuns:
    """Runs that keep every value, the faster ones as counted; by tiles where the GPU's memory does not hold those.

    by_tiles: which of the two, whatever fits. `product_variants` is told of products by tiles.

    Raises:
        UserError: ProgramTooLarge, before anything is allocated: the GPU's memory holds neither.
    """
    most, sizes = backend.memory(), []
    beside = sum(program.specs[k].nbytes for k, node in enumerate(program.nodes) if isinstance(node, Const))
    beside += 0 if kernels.checks is None else kernels.checks.nbytes
    if not by_tiles:
        made = WholeRuns(program, MapGroups(program, kernels.in_whole, causal=kernels.causal), beside)
        if most is None or made.nbytes <= most:
            return made
        sizes.append(made.nbytes)
    virtual = virtual_nodes(program, _admits)
    if by_tiles or (by_tiles is None and virtual.spaces):
        made = WholeRuns(program, _in_tiles(program, kernels, virtual), beside)
        if most is None or made.nbytes <= most:
            return made
        sizes.append(made.nbytes)
    assert most is not None
    # The machine's own memory may be larger: an actor that finds this out in a run has staked already.
    raise UserError(
        f"A run of the program takes {min(sizes) / 2**30:,.1f} GiB of the GPU's memory, which has "
        f"{most / 2**30:,.1f} GiB for programs.",
        code="ProgramTooLarge",
        remedy="Run it by --device cpu, or on a larger GPU.",
    )


def _in_tiles(program: Program, kernels: StoredKernels, virtual: VirtualNodes) -> MapGroups:
    """The runs of a program whose virtual nodes have no step."""
    made = VirtualKernels(program, virtual, _admits, kernels.checks)
    for k in (*virtual.spaces, *virtual.readers):
        node = program.nodes[k]
        if isinstance(node, Dot):
            # The virtual side is the right factor.
            is_turned = k in virtual.readers and not virtual.readers[k].is_b
            kernels.product_variants[k] = f"{made.route(node, is_turned=is_turned).name}, by tiles"
    return MapGroups(program, lambda k: made.of(k) if k in virtual.readers else kernels.of(k), virtual)


def _admits(pa: int, pb: int) -> Route | None:
    return admitted(pa, pb)[0]
