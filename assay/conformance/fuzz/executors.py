"""Every executor that is here, beside the reference: what each makes of a case, compared byte for byte.

A pair is the reference and one other. Equality is transitive, so pairs with the reference are pairs with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING, Final

from assay.conformance.fuzz.programs import FuzzCase
from assay.conformance.nodes import Absent
from assay.protocol.errors import ConfigError
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.trees.tensors import tensor_root

if TYPE_CHECKING:
    from assay.engine.runtime.executor import Executor, Natives

STEPS: Final = 2
"""Steps of programs that can be repeated: what one leaves, and where it was written, is what the next one reads."""


class ReferenceRun:
    """A case by the reference: the values of all nodes in its last step, and the state after each."""

    def __init__(self, case: FuzzCase) -> None:
        self.case, self.program = case, case.program
        self.steps = STEPS if case.program.is_iterable() else 1
        reference, state = ReferenceExecutor(case.program), case.state
        self.states: list[tuple[tuple[bytes, ...], ...]] = [state]
        for _ in range(self.steps):
            self.values = reference.run(self.states[-1])
            ends = tuple(tuple(self.values[k] for k in nodes) for nodes in case.program.output_nodes)
            self.states.append(ends)

    @cached_property
    def end_elements(self) -> int:
        """The elements of Y."""
        return sum(self.program.specs[k].numel for nodes in self.program.output_nodes for k in nodes)


Compare = Callable[[ReferenceRun], tuple[int, str]]
"""How many elements were compared, and the first difference, or nothing."""


def executors(only: frozenset[str] | None = None) -> Iterator[tuple[str, Compare] | Absent]:
    """Every executor by name, in an order that is always the same; the best native one in small blocks as well.

    only: names of those that are wanted; the others are neither loaded nor given.
    """
    for name, make in _makers():
        if only is None or name in only:
            try:
                yield name, make()
            except (ConfigError, OSError) as error:
                yield Absent(name, error.message if isinstance(error, ConfigError) else str(error))


def _makers() -> Iterator[tuple[str, Callable[[], Compare]]]:
    from assay.engine.runtime.native.build import INSTRUCTION_SETS

    yield "stock", lambda: _ends(_stock)
    yield "cross-check", lambda: _ends(_cross_check)
    yield "pieces", lambda: _pieces
    yield "trace", lambda: _trace
    for instruction_set in INSTRUCTION_SETS:
        yield f"native {instruction_set}", partial(_native, instruction_set, tiles=False)
    yield "native vnni, amx", lambda: _native("vnni", tiles=True)
    yield "native, 2 threads", _in_small_blocks
    yield "triton", _triton
    yield "contract", _contract


def _ends(make: Callable[[Program], Executor], threads: int = 1) -> Compare:
    """The state after all steps, as an executor of this kind leaves it."""

    def compare(truth: ReferenceRun) -> tuple[int, str]:
        import torch

        from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs, to_lists_of_bytes

        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        tensors = from_lists_of_bytes(input_specs(truth.program), truth.case.state)
        found = to_lists_of_bytes(make(truth.program).repeat(tensors, truth.steps))
        return truth.end_elements, _first_difference(truth, found)

    return compare


def _stock(program: Program) -> Executor:
    from assay.engine.runtime.executor import Executor, KernelVariant

    return Executor(program, variant=KernelVariant.STOCK)


def _cross_check(program: Program) -> Executor:
    from assay.engine.runtime.executor import Executor

    return Executor(program, cross_check=True)


def _triton() -> Compare:
    """Triton's kernels, by its interpreter where there is no GPU. Raises OSError: there is no Triton."""
    from assay.engine.runtime.executor import Executor, KernelVariant
    from assay.engine.runtime.triton import backend

    backend.interpret_without_gpu()
    if reason := backend.absence():
        raise OSError(reason)
    return _ends(lambda program: Executor(program, variant=KernelVariant.TRITON))


def _pieces(truth: ReferenceRun) -> tuple[int, str]:
    """In two or three pieces, with any of the sums split over them."""
    import torch

    from assay.engine.runtime.parallel.pieces import PieceExecutor
    from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs, to_lists_of_bytes
    from assay.protocol.program.nodes import Dot, RowExp, Sum

    torch.set_num_threads(1)
    rng = Random(truth.case.seed)
    nodes = truth.program.nodes
    split = [(k, n) for k, n in enumerate(nodes) if isinstance(n, RowExp | Sum | Dot) and n.spec.numel and n.terms]
    sums = [k for k, n in split if n.red]
    splits = frozenset(k for k in sums if rng.random() < 0.7)
    runner = PieceExecutor(truth.program, rng.choice((2, 3)), splits=splits)
    tensors = from_lists_of_bytes(input_specs(truth.program), truth.case.state)
    return truth.end_elements, _first_difference(truth, to_lists_of_bytes(runner.repeat(tensors, truth.steps)))


def _trace(truth: ReferenceRun) -> tuple[int, str]:
    """Every state and every node's root, as a player of a game has them."""
    import torch

    from assay.engine.runtime.trace import TorchTrace

    torch.set_num_threads(1)
    trace = TorchTrace(truth.program, truth.case.state, truth.steps)
    for t in range(1, truth.steps):
        if trace.state_bytes(t) != truth.states[t]:
            return truth.end_elements, f"state {t}"
    if difference := _first_difference(truth, trace.state_bytes(truth.steps)):
        return truth.end_elements, difference
    specs = truth.program.specs
    for k, data in enumerate(truth.values):
        if trace.node_root(truth.steps, k) != tensor_root(specs[k], data):
            return truth.end_elements, f"node {k} {truth.program.nodes[k].family.name}"
    return sum(spec.numel for spec in specs), ""


def _native(instruction_set: str | None, *, tiles: bool, threads: int = 1) -> Compare:
    """The native kernels of an instruction set, or of the best one here. Raises OSError: there are none."""
    from assay.engine.runtime.native.library import allowed_instruction_sets, processor_flags

    present = allowed_instruction_sets({}, processor_flags())
    if (instruction_set or present[0]) not in present or (tiles and "amx_int8" not in processor_flags()):
        raise OSError("the processor does not have these instructions")
    natives = _natives(instruction_set or present[0], tiles=tiles)
    return _ends(lambda program: _fused(program, natives), threads)


def _in_small_blocks() -> Compare:
    """The best native kernels, with blocks of rows so small that two threads share out tensors of a few elements."""
    compare = _native(None, tiles=False, threads=2)

    def divided(truth: ReferenceRun) -> tuple[int, str]:
        from assay.engine.runtime.fused import plan

        usual = plan._BLOCK_BYTES, plan._PARALLEL_BYTES
        plan._BLOCK_BYTES, plan._PARALLEL_BYTES = 1 << 8, 1 << 8
        try:
            return compare(truth)
        finally:
            plan._BLOCK_BYTES, plan._PARALLEL_BYTES = usual

    return divided


def _natives(instruction_set: str, *, tiles: bool) -> Natives:
    from assay.engine.runtime.second_kernels import natives_of

    return natives_of(instruction_set, tiles=tiles)


def _fused(program: Program, natives: Natives) -> Executor:
    from assay.engine.runtime.executor import Executor, KernelVariant

    return Executor(program, variant=KernelVariant.FUSED, natives=natives)


def _contract() -> Compare:
    """The leaf contracts, on the reference's values. Raises ConfigError where they or an EVM are missing."""
    from assay.conformance.fuzz.leaves import Leaves

    leaves = Leaves()
    return lambda truth: leaves.differences(truth.program, truth.values, truth.case.seed)


def _first_difference(truth: ReferenceRun, found: Sequence[Sequence[bytes]]) -> str:
    for i, (ours, theirs) in enumerate(zip(found, truth.states[truth.steps], strict=True)):
        for j, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a != b:
                node = truth.program.nodes[truth.program.output_nodes[i][j]]
                at = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
                return f"slot {j} of list {i}, {node.spec.dtype.name} {list(node.spec.dims)}, at byte {at}"
    return ""
