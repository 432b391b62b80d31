"""Operations written out in simpler PyTorch before lowering, one file per family; `TABLE` holds them all."""

from collections.abc import Callable
from typing import Any

from assay.engine.compiler.written import bags, counting, masks, matrices, scans, segments

TABLE: dict[Any, Callable[..., Any]] = {
    **masks.TABLE,
    **scans.TABLE,
    **counting.TABLE,
    **segments.TABLE,
    **bags.TABLE,
    **matrices.TABLE,
}
"""ATen overload to a function of the same arguments."""
