"""A program run again and again on the same first list: what follows from that list alone is computed once.

A training step changes its parameters, text from a model does not. Bits are the program's: exponents of rows are nodes
that another program computes, by the same kernels, and what a product packs of its weights is packed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant, usual_variant
from assay.engine.runtime.products.dot import NativeProduct
from assay.engine.runtime.products.packed_pool import PackedPool
from assay.engine.runtime.triton import backend
from assay.protocol.program.nodes import Const, Dot, Input, Node, Output, reads, renumbered
from assay.protocol.program.program import Program


@dataclass(frozen=True, slots=True)
class PartedProgram:
    """A program as two: `once`, from the first list to one list of values, and `each`, from first list, these values
    and the other lists to the program's Y; `once` is None where nothing follows from the first list alone.
    """

    once: Program | None
    each: Program


def parted(program: Program) -> PartedProgram:
    """The program cut at what follows from its first list (and constants) alone."""
    nodes = program.nodes
    held: set[int] = set()
    for k, node in enumerate(nodes):
        own = reads(node)
        if isinstance(node, Input):
            if node.list_index == 0:
                held.add(k)
        elif own and not isinstance(node, Output):
            known = [j in held or isinstance(nodes[j], Const) for j in own]
            if all(known) and any(j in held for j in own):
                held.add(k)
    computed = {k for k in held if not isinstance(nodes[k], Input)}
    carried = sorted({j for k, node in enumerate(nodes) if k not in held for j in reads(node)} & computed)
    if not carried:
        return PartedProgram(None, program)
    return PartedProgram(_once(program, carried), _each(program, carried))


def _once(program: Program, carried: Sequence[int]) -> Program:
    """(first list) to (the values of these nodes)."""
    first = program.inputs[0]
    body = [k for k in _needed(program, carried, set()) if not isinstance(program.nodes[k], Input)]
    numbers = {k: k for k in range(first)} | {k: first + n for n, k in enumerate(body)}
    nodes: list[Node] = [*program.nodes[:first], *(renumbered(program.nodes[k], numbers) for k in body)]
    nodes += [Output(program.specs[k], 0, n, numbers[k]) for n, k in enumerate(carried)]
    return Program(tuple(nodes), (first,), (len(carried),), program.consts)


def _each(program: Program, carried: Sequence[int]) -> Program:
    """(first list, the values of these nodes, other lists) to the program's Y."""
    first, given = program.inputs[0], sum(program.inputs)
    ends = [k for k, node in enumerate(program.nodes) if isinstance(node, Output)]
    more = len(carried)
    body = [k for k in _needed(program, ends, set(carried)) if not isinstance(program.nodes[k], Input)]
    numbers = {k: k if k < first else k + more for k in range(given)}
    numbers |= {k: first + n for n, k in enumerate(carried)} | {k: given + more + n for n, k in enumerate(body)}
    nodes: list[Node] = list(program.nodes[:first])
    nodes += [Input(program.specs[k], 1, n) for n, k in enumerate(carried)]
    nodes += [
        replace(node, list_index=node.list_index + 1) for node in program.nodes[first:given] if isinstance(node, Input)
    ]
    nodes += [renumbered(program.nodes[k], numbers) for k in body]
    return Program(tuple(nodes), (first, more, *program.inputs[1:]), program.outputs, program.consts)


def _needed(program: Program, wanted: Sequence[int], given: set[int]) -> list[int]:
    """Nodes, ascending, that the wanted ones follow from; beyond `given` nothing is looked for."""
    found: set[int] = set()
    left = list(wanted)
    while left:
        k = left.pop()
        if k in found or k in given:
            continue
        found.add(k)
        left += reads(program.nodes[k])
    return sorted(found)


def held_there(held: Sequence[Tensor], variant: KernelVariant | None = None) -> list[Tensor]:
    """A first list where its programs run: a GPU would fetch it from the processor's memory in every run.

    variant: see Executor. Raises what `usual_variant` raises.
    """
    variant = usual_variant() if variant is None else variant
    return [t.to(backend.device()) for t in held] if variant is KernelVariant.TRITON else list(held)


class HeldExecutor:
    """Runs one program on one first list, which nobody changes any more. check_every: see Executor. pool: shared with
    other programs that are run on the same list.

    Raises what `Executor` raises.
    """

    def __init__(
        self,
        program: Program,
        held: Sequence[Tensor],
        *,
        variant: KernelVariant | None = None,
        check_every: int = 1,
        pool: PackedPool | None = None,
    ) -> None:
        self._held: list[list[Tensor]] = [held_there(held, variant)]
        self.executor = Executor(program, variant=variant, check_every=check_every)
        if self.executor.variant is not KernelVariant.FUSED:
            return
        cut = parted(program)
        if cut.once is not None:
            self._held += Executor(cut.once, variant=variant).run(self._held)
            self.executor = Executor(cut.each, variant=variant, check_every=check_every)
        known = [t for part in self._held for t in part]
        for k, node in enumerate(self.executor.program.nodes):
            product = self.executor.kernels.of(k) if isinstance(node, Dot) else None
            if isinstance(product, NativeProduct):
                x, e = product.own.columns
                if max(x, e) < len(known):
                    product.own.keep_columns(known[x], known[e], PackedPool() if pool is None else pool)

    def run(self, *lists: Sequence[Tensor]) -> list[list[Tensor]]:
        """The lists of Y for the other lists of X. Raises what `Executor.run` raises."""
        return self.executor.run([*self._held, *lists])
