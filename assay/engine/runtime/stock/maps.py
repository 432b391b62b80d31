"""Executors of map: the scalar program on whole tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.stock.scalar import compile_scalar
from assay.engine.runtime.values.dtypes import TORCH
from assay.engine.runtime.values.views import reader
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.program.nodes import Map
from assay.protocol.program.program import Program


def scalar_map(program: Program, node: Map) -> Kernel:
    """The scalar program of the node, on operands broadcast over its dims."""
    dims, dtype = node.spec.dims, TORCH[node.spec.dtype]
    specs = [program.specs[o.node] for o in node.operands]
    reads = [reader(o.view, dims, s, broadcast=True) for o, s in zip(node.operands, specs, strict=True)]
    sources = [o.node for o in node.operands]
    shape = torch.Size(dims)
    evaluate = compile_scalar(ScalarProgram.decode(node.code, [s.dtype for s in specs]))

    def run(values: list[Tensor]) -> Tensor:
        result = evaluate([read(values[j]) for read, j in zip(reads, sources, strict=True)], shape).to(dtype)
        if result.shape != dims:
            result = result.expand(dims).contiguous()
        return result

    return run
