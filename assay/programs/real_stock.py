"""Stock PyTorch over real numbers: the operations that it calls, each on float64 beside what it is called on.

Every float tensor of 32 bits or fewer has a shadow of float64 over the same places of its storage, so that views,
writes in place, and what autograd keeps are followed as PyTorch follows them.

Numbers that stand in the code, such as log(10000), have 32 bits in both, read as `real_program.short` reads them. Those
of an optimizer, which PyTorch computes from the count of steps where a program has operations, keep all of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from assay.programs.real_program import short

_NARROW = (torch.float32, torch.bfloat16, torch.float16)
_SWEEP = 512


def _hardsigmoid(x: Tensor) -> Tensor:
    return (x + 3.0).clamp(0.0, 6.0) / 6.0


_SIXTHS: dict[Any, Any] = {
    torch.ops.aten.hardsigmoid.default: _hardsigmoid,
    torch.ops.aten.hardsigmoid_.default: lambda x: x.copy_(_hardsigmoid(x)),
    torch.ops.aten.hardsigmoid_backward.default: lambda g, x: torch.where(x.abs() < 3.0, g / 6.0, 0.0),
}
"""Where PyTorch's kernels multiply by 1/6 as binary32 has it, in float64 too."""


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The arguments that an operation writes to."""
    arguments = enumerate(func._schema.arguments)
    places = [(k, a.name) for k, a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return [args[k] if k < len(args) else kwargs.get(name) for k, name in places]


def _rounded(x: Tensor) -> Tensor:
    """Each f64 number to 49 bits (Veltkamp's splitting)."""
    high = x * 17.0
    high = high - (high - x)
    return torch.where(high.isfinite(), high, x)


class RealNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, every operation is also computed on float64; `of` gives what a tensor would hold.

    is_coarse: every result is rounded to 49 bits, which shows where float64's own rounding decides.
    """

    def __init__(self, *, is_coarse: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._is_coarse = is_coarse
        self._shadows: dict[int, tuple[StorageWeakRef, Tensor]] = {}
        self._until_sweep = _SWEEP
        self._keeps_numbers = False

    @contextmanager
    def with_whole_numbers(self) -> Iterator[None]:
        """Inside, Python's numbers have all of their bits."""
        self._keeps_numbers = True
        try:
            yield
        finally:
            self._keeps_numbers = False

    def of(self, t: Tensor) -> Tensor:
        """The tensor's shadow, f64 in its shape; of other types the tensor itself."""
        if t.dtype not in _NARROW or t.layout is not torch.strided:
            return t
        key = t.untyped_storage()._cdata
        if key not in self._shadows:
            held = t.detach()
            count = t.untyped_storage().nbytes() // t.element_size()
            alive = StorageWeakRef(t.untyped_storage())  # type: ignore[no-untyped-call]
            self._shadows[key] = alive, held.as_strided((count,), (1,), 0).double()
            self._swept()
        return self._shadows[key][1].as_strided(t.shape, t.stride(), t.storage_offset())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The operation's own result, whose float parts have shadows, and whose other parts are as the shadows say."""
        kwargs = kwargs or {}
        if func.namespace not in ("aten", "prims"):
            return func(*args, **kwargs)
        # What is no float is written to once: by the operation on float64, whose word counts.
        written = tree_leaves(_written(func, args, kwargs)) if func._schema.is_mutable else []
        copies = [(t, t.clone()) for t in written if self._is_other(t)]
        copied = {id(t): copy for t, copy in copies}
        real_args, real_kwargs = tree_map(lambda x: copied.get(id(x), x), (args, kwargs))
        real_args, real_kwargs = tree_map(self._real, (real_args, real_kwargs))
        given = tree_leaves((args, kwargs))
        known = {t.untyped_storage()._cdata for t in given if isinstance(t, Tensor)}
        found = func(*args, **kwargs)
        wide = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64)
            real = _SIXTHS.get(func, func)(*real_args, **real_kwargs)
        finally:
            torch.set_default_dtype(wide)
        for t, copy in copies:
            t.copy_(copy)
        results, reals = tree_leaves(found), tree_leaves(real)
        for a, b in zip(results, reals, strict=True):
            if isinstance(a, Tensor) and a.untyped_storage()._cdata not in known:
                self._keep(a, b)
        if self._is_coarse and not func.is_view:
            for t in (*results, *written):
                if isinstance(t, Tensor) and t.dtype in _NARROW:
                    shadow = self.of(t)
                    shadow.copy_(_rounded(shadow))
        return found if any(isinstance(a, Tensor) for a in results) or not results else real

    @staticmethod
    def _is_other(x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype not in _NARROW

    def _real(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return self.of(x)
        if type(x) is float and not self._keeps_numbers:
            return short(x)
        return torch.float64 if isinstance(x, torch.dtype) and x in _NARROW else x

    def _keep(self, a: Tensor, b: Tensor) -> None:
        if a.dtype in _NARROW:
            self._shadows.pop(a.untyped_storage()._cdata, None)
            self.of(a).copy_(b)
        elif a.numel() and not a.dtype.is_complex:
            a.copy_(b)

    def _swept(self) -> None:
        self._until_sweep -= 1
        if not self._until_sweep:
            lost = [k for k, v in self._shadows.items() if v[0].expired()]  # type: ignore[no-untyped-call]
            for k in lost:
                del self._shadows[k]
            self._until_sweep = max(_SWEEP, len(self._shadows))
