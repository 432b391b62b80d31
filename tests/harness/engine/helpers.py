"""Shared by the engine's tests: both executors on one program, and the nodes where they differ."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from assay.engine.compiler.capture import Captured, capture
from assay.engine.compiler.lowering.registry import FIXED14, Precision
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.values.dtypes import from_bytes, to_bytes
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.program.nodes import Input, Output
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.wellformed import violations


def tensors_of(program: Program, state: Sequence[Sequence[bytes]]) -> list[list[Tensor]]:
    """The slots of X as tensors."""
    return [
        [from_bytes(program.specs[k].dtype, program.specs[k].dims, data) for k, data in zip(nodes, datas, strict=True)]
        for nodes, datas in zip(program.input_nodes, state, strict=True)
    ]


def all_values(program: Program, inputs: Lists, variant: KernelVariant | None = None) -> list[bytes]:
    """The canonical bytes of every node's value by an executor; inputs as they are."""
    found: dict[int, bytes] = {}

    def see(k: int, value: Tensor) -> Tensor:
        found[k] = to_bytes(value)
        return value

    Executor(program, variant=variant).run(inputs, see)
    return [found[k] for k in range(len(program.nodes))]


def differing_nodes(program: Program, inputs: Lists, variant: KernelVariant | None = None) -> list[str]:
    """The nodes on which an executor and the reference disagree, with their families; inputs and outputs left out."""
    ours = all_values(program, inputs, variant)
    reference = ReferenceExecutor(program).run([[to_bytes(t) for t in part] for part in inputs])
    return [
        f"{k} {node.family.name} {node.spec.dims}"
        for k, node in enumerate(program.nodes)
        if not isinstance(node, Input | Output) and ours[k] != reference[k]
    ]


def captured(function, *tensors: Tensor, precision: Precision = FIXED14) -> Captured:
    """The program of a function from tensors to a tuple of tensors, one list each."""
    return capture(lambda part: [list(function(*part))], [list(tensors)], precision)


def run_captured(function, *tensors: Tensor, precision: Precision = FIXED14) -> list[Tensor]:
    """The tensors that the captured function returns."""
    return Executor(captured(function, *tensors, precision=precision).program).run([list(tensors)])[0]


def relative(a: Tensor, b: Tensor) -> float:
    """The relative L2 distance of a from b."""
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-30))


def bits_equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same canonical bytes."""
    return a.dtype == b.dtype and a.shape == b.shape and to_bytes(a) == to_bytes(b)


def same_lists(a: Lists, b: Lists) -> bool:
    """Whether two lists of lists of tensors have the same canonical bytes."""
    pairs = [(x, y) for p, q in zip(a, b, strict=True) for x, y in zip(p, q, strict=True)]
    return all(bits_equal(x, y) for x, y in pairs)


def both_executors(program: Program) -> tuple[Executor, Executor]:
    """A well-formed program on stock torch and on native kernels."""
    assert violations(program) == ()
    return Executor(program, variant=KernelVariant.STOCK), Executor(program, variant=KernelVariant.FUSED)


def check_executors(executors: Sequence[Executor], lists: Lists, eager: Lists) -> None:
    """Each executor has the bits of the reference, and numbers near those of eager sums, which round as they go."""
    for executor in executors:
        for got, near in zip(executor.run(lists), eager, strict=True):
            for a, b in zip(got, near, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        assert differing_nodes(executor.program, lists, executor.variant) == []


torch.set_num_threads(1)
