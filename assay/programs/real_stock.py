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


class RealNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, every operation is also computed on float64; `of` gives what a tensor would hold."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
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
        copies = [(t, t.clone()) for t in tree_leaves((args, kwargs)) if func._schema.is_mutable and self._is_other(t)]
        copied = {id(t): copy for t, copy in copies}
        real_args, real_kwargs = tree_map(lambda x: copied.get(id(x), x), (args, kwargs))
        real_args, real_kwargs = tree_map(self._real, (real_args, real_kwargs))
        given = tree_leaves((args, kwargs))
        known = {t.untyped_storage()._cdata for t in given if isinstance(t, Tensor)}
        found = func(*args, **kwargs)
        wide = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64)
            real = func(*real_args, **real_kwargs)
        finally:
            torch.set_default_dtype(wide)
        for t, copy in copies:
            t.copy_(copy)
        results, reals = tree_leaves(found), tree_leaves(real)
        for a, b in zip(results, reals, strict=True):
            if isinstance(a, Tensor) and a.untyped_storage()._cdata not in known:
                self._keep(a, b)
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
