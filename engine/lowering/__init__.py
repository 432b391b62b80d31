"""Rules that turn core ATen operations into values, one file per concern; `registry.RULES` holds them all."""

from assay.engine.lowering import indexing, normalization, pointwise, products, reductions, shapes

__all__ = ["indexing", "normalization", "pointwise", "products", "reductions", "shapes"]
