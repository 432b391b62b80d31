"""The kernel of each node of a program: stock torch's, or Triton's where these are asked for."""

from __future__ import annotations

from functools import partial

import torch

from assay.engine.runtime.products import native_dot
from assay.engine.runtime.products.dot import dot
from assay.engine.runtime.products.freivalds import ProductCheck, ProductWatch
from assay.engine.runtime.stock import gather, reduce
from assay.engine.runtime.stock.maps import scalar_map
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import nodes as triton_nodes
from assay.engine.runtime.triton.checks import ProductChecks
from assay.engine.runtime.triton.tails import CausalRows
from assay.engine.runtime.triton.triangles import Triangles
from assay.engine.runtime.values.dtypes import from_bytes
from assay.protocol.program.nodes import (
    Const,
    Dot,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
)
from assay.protocol.program.program import Program


class KernelsByNode:
    """A program's kernels, each made when it is first asked for and kept.

    device: where values lie. by_triton: Triton's, in a process that has it. cross_check: other product variants than
    usual, and sums by the general kernels. products: native ones, for dots. `product_variants` says per dot made so far
    which product is used; `checks` are those of Triton's products, which a run begins and verifies; `causal` is what is
    known of causal rows in such a run.
    """

    def __init__(
        self,
        program: Program,
        watch: ProductWatch,
        device: torch.device,
        *,
        by_triton: bool = False,
        cross_check: bool = False,
        products: native_dot.DotKernels | None = None,
    ) -> None:
        self._program, self._watch, self.device = program, watch, device
        self._by_triton, self._is_cross_check, self._products = by_triton, cross_check, products
        if by_triton:
            triton_nodes.compile_probes_of(program)
        self.checks = ProductChecks(program, watch) if by_triton else None
        self.product_variants: dict[int, str] = {}
        self._made: dict[int, Kernel] = {}
        self._triangles = Triangles(program) if by_triton else None
        self.causal = None if self._triangles is None else CausalRows(program, self._triangles)

    def in_whole(self, k: int) -> Kernel:
        """The kernel of node k in a run whose values are the program's own: of a product it may leave out what no
        reader can tell from zeros (`triangles`).
        """
        node = self._program.nodes[k]
        if self._triangles is None or not isinstance(node, Dot):
            return self.of(k)
        check = None if self.checks is None else (self.checks, k)
        found = triton_nodes.kernel(self._program, node, check, (self._triangles, k))
        assert found is not None
        made, self.product_variants[k] = found
        return made

    def of(self, k: int) -> Kernel:
        """The kernel of node k; the same function whenever it is asked for."""
        if k not in self._made:
            node = self._program.nodes[k]
            check = None if self.checks is None else (self.checks, k)
            found = triton_nodes.kernel(self._program, node, check) if self._by_triton else None
            if found is None:
                self._made[k] = self._stock(k, node)
            else:
                self._made[k], name = found
                if isinstance(node, Dot):
                    self.product_variants[k] = name
        return self._made[k]

    def make_all(self) -> None:
        """Makes every node's kernel now."""
        for k in range(len(self._program.nodes)):
            self.of(k)

    def untrusting(self, k: int) -> Kernel:
        """The kernel of a dot or sum that takes any exponents: after a hook has replaced those of a row."""
        node = self._program.nodes[k]
        if self._by_triton:
            return self.of(k)  # which trusts none
        if isinstance(node, Dot):
            check, due = ProductCheck(self._watch, k), partial(self._watch.is_due, k)
            return dot(self._program, node, trusted=False, check=check, due=due)[0]
        assert isinstance(node, Sum)
        return reduce.total(self._program, node, trusted=False)

    def _stock(self, k: int, node: Node) -> Kernel:
        match node:
            case Input():
                return lambda values: values[k]
            case Const():
                constant = from_bytes(node.spec.dtype, node.spec.dims, self._program.consts[node.root])
                constant = constant.to(self.device)
                return lambda _: constant
            case Output():
                return lambda values: values[node.node]
            case Map():
                return scalar_map(self._program, node)
            case RowExp():
                return reduce.rowexp(self._program, node)
            case Max():
                return reduce.maximum(self._program, node)
            case Sum():
                return reduce.total(self._program, node, trusted=not self._is_cross_check)
            case ScatterSum():
                return reduce.scatter_sum(self._program, node)
            case Rank():
                return reduce.rank(self._program, node)
            case Dot():
                cross_check = self._is_cross_check
                kernel, self.product_variants[k] = dot(
                    self._program,
                    node,
                    trusted=not cross_check,
                    other=cross_check,
                    native=self._products,
                    check=ProductCheck(self._watch, k),
                    due=partial(self._watch.is_due, k),
                )
                return kernel
            case Gather():
                return gather.gather(self._program, node)
            case Random():
                return gather.random(node)


def exponents_of(node: Node) -> tuple[int, ...]:
    """The nodes whose values a fast kernel takes for the exponents of the rows it quantizes."""
    match node:
        case Dot():
            return node.exponent_a.node, node.exponent_b.node
        case Sum():
            return (node.exponent.node,)
        case _:
            return ()
