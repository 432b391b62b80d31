"""Executors of map: the scalar program on whole tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.engine.dtypes import TORCH
from assay.engine.reduce import Kernel
from assay.engine.scalar_torch import compile_scalar
from assay.engine.views import reader
from assay.protocol.nodes import Map
from assay.protocol.program import Program
from assay.protocol.scalar import ScalarProgram


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
