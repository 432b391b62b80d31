"""Rules that turn core ATen operations into values, one file per concern; `registry.RULES` holds them all."""

from assay.engine.compiler.lowering import (
    convolution,
    elementary,
    indexing,
    memory,
    normalization,
    pointwise,
    pooling,
    products,
    reductions,
    resampling,
    selection,
    shapes,
    sixteen,
    writes,
)

__all__ = [
    "convolution",
    "elementary",
    "indexing",
    "memory",
    "normalization",
    "pointwise",
    "pooling",
    "products",
    "reductions",
    "resampling",
    "selection",
    "shapes",
    "sixteen",
    "writes",
]
