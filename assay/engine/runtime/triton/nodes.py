"""A kernel for each node of a program: by Triton, or none and why."""

from __future__ import annotations

from math import prod

from assay.engine.runtime.products.dot import groups
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import elementwise, reductions
from assay.engine.runtime.triton.checks import ProductChecks
from assay.engine.runtime.triton.probe import compile_probes, failure
from assay.engine.runtime.triton.products import ProductParts, by_digits, is_better_turned, turned
from assay.engine.runtime.triton.routes import Carrier, Route, is_counted, route
from assay.engine.runtime.triton.triangles import Triangles
from assay.protocol.program.nodes import Dot, Gather, Map, Max, Node, Random, Rank, RowExp, ScatterSum, Sum
from assay.protocol.program.program import Program


def kernel(
    program: Program,
    node: Node,
    check: tuple[ProductChecks, int] | None = None,
    above: tuple[Triangles, int] | None = None,
) -> tuple[Kernel, str] | None:
    """The node's kernel and how it is computed; None for inputs, constants and outputs, which are not computed.

    check: by what its product is checked, and its number in the program. above: what is known above diagonals, and its
    number, for a run in which no value is replaced.
    """
    match node:
        case Map():
            return elementwise.scalar_map(program, node), "map"
        case Gather():
            return elementwise.gather(program, node), "gather"
        case Random():
            return elementwise.random(node), "random"
        case RowExp():
            return reductions.rowexp(program, node), "rowexp"
        case Max():
            return reductions.maximum(program, node), "max"
        case Sum():
            return reductions.total(program, node), "sum"
        case Rank():
            return reductions.rank(program, node), "rank"
        case ScatterSum():
            return reductions.scatter_sum(program, node), "scatter_sum"
        case Dot():
            return _dot(program, node, check, above)
        case _:
            return None


def compile_probes_of(program: Program) -> None:
    """Compiles the probes of a program's products, of each the first carrier's and either way round."""
    dots = [node for node in program.nodes if isinstance(node, Dot)]
    pairs = {pair for d in dots for pair in ((d.precision_a, d.precision_b), (d.precision_b, d.precision_a))}
    routes = [(route(*pair, next(iter(Carrier))), *pair) for pair in sorted(pairs)]
    compile_probes([(found, pa, pb) for found, pa, pb in routes if found is not None])


def admitted(pa: int, pb: int) -> tuple[Route | None, str]:
    """The first carrier whose inequality admits a product and which passes its probe; why those before it do not."""
    refused = ""
    for carrier in Carrier:
        found = route(pa, pb, carrier)
        if found is None:
            break
        wrong = failure(found, pa, pb)
        if not wrong:
            return found, refused
        refused += f"; {wrong}"
    return None, refused


def _is_counted(node: Dot, parts: ProductParts) -> bool:
    """Whether kernels count the product as a matrix."""
    batch, rows, columns = (prod(node.spec.dims[d] for d in part) for part in parts)
    return is_counted(batch, rows, columns, prod(node.red))


def _dot(
    program: Program, node: Dot, check: tuple[ProductChecks, int] | None, above: tuple[Triangles, int] | None
) -> tuple[Kernel, str]:
    """By the first carrier that is admitted; else term by term in i64. The name says why others were refused."""
    parts, refused = groups(node), ""
    if parts is not None and 0 not in (*node.spec.dims, *node.red) and _is_counted(node, parts):
        found, refused = admitted(node.precision_a, node.precision_b)
        is_turned = found is not None and is_better_turned(node, parts, found)
        if is_turned:
            node, parts = turned(node, parts)
            found, refused = admitted(node.precision_a, node.precision_b)
        if found is not None:
            made = by_digits(program, node, found, parts, check=check, is_turned=is_turned, above=above)
            return made, found.name + refused
    return reductions.dot(program, node), "by element" + refused
