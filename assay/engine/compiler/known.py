"""Values that are known while a function is traced: masks and indices made of constants have a fixed number of places.

Tracing sees shapes only, so `x[mask]` has no size even where the mask is a constant. This mode follows what is computed
from constants alone beside the trace, exactly: integers, bools, and floats that are only moved. Where PyTorch asks for
values (places of a mask, numbers of a tensor), it answers; the graph gets the places as a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakIdKeyDictionary

from assay.engine.compiler.modes import DEVICE, QuickMode, device_of

aten = torch.ops.aten

_MOST = 1 << 20
"""Elements of the largest tensor that is followed."""

_MADE = frozenset(
    {
        aten.arange.default,
        aten.arange.start,
        aten.arange.start_step,
        aten.full.default,
        aten.zeros.default,
        aten.ones.default,
        aten.eye.default,
        aten.eye.m,
        aten.scalar_tensor.default,
    }
)
"""What makes a tensor of numbers that no machine rounds."""

_MOVED = frozenset(
    {
        *(aten.lift_fresh.default, aten.detach.default, aten.alias.default, aten.clone.default, aten.view.default),
        *(aten._unsafe_view.default, aten.slice.Tensor, aten.select.int, aten.unsqueeze.default, aten.squeeze.dim),
        *(aten.squeeze.default, aten.permute.default, aten.t.default, aten.transpose.int, aten.expand.default),
        *(aten.index.Tensor, aten.index_select.default, aten.tril.default, aten.triu.default, aten.cat.default),
        *(aten.ones_like.default, aten.zeros_like.default, aten.full_like.default),
    }
)
"""What moves elements, of floats too."""

_ASKED = frozenset(
    {
        aten.nonzero.default,
        aten.repeat_interleave.Tensor,
        aten._unique2.default,
        aten.unique_consecutive.default,
        aten.bincount.default,
        aten.tril_indices.default,
        aten.triu_indices.default,
    }
)
"""What has a size by its values, or is all values."""

_INDEXED = frozenset({aten.index.Tensor, aten.index_put.default, aten.index_put_.default})


class KnownValues(QuickMode):
    """Follows what is computed from constants, and answers for it where a trace has no values."""

    def __init__(self) -> None:
        super().__init__()
        self._values: Any = WeakIdKeyDictionary()
        self._written: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operation, or answers for it."""
        if func is DEVICE:
            return device_of(args[0])
        kwargs = kwargs or {}
        if func is aten._local_scalar_dense.default:
            found = self._known(args[0])
            return func(*args) if found is None else found.item()
        if func in _ASKED:
            found = self._computed(func, args, kwargs)
            if found is not None:
                return found
        if func is aten.masked_select.default and self._known(args[1]) is not None:
            func, args = aten.index.Tensor, self._selected(*args)
        if func in _INDEXED:
            args = self._with_places(func, args)
        result = func(*args, **kwargs)
        if func._schema.is_mutable:
            self._forget(func, args, result)
        else:
            self._learn(func, args, kwargs, result)
        return result

    def _known(self, t: Any) -> Tensor | None:
        """The value of a tensor, where it is known; a parameter's is not."""
        if not isinstance(t, Tensor) or t.requires_grad:
            return None
        found: Tensor | None = self._values.get(t) if isinstance(t, FakeTensor) else t if type(t) is Tensor else None
        # What is written to is asked last: most tensors are none that is followed.
        return None if found is None or t.numel() > _MOST or _memory(t) in self._written else found

    def _computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operation on known tensors gives; None where one of them is not known."""
        if any(self._known(a) is None for a in _tensors((args, kwargs))):
            return None
        real, named = tree_map(lambda a: self._known(a) if isinstance(a, Tensor) else a, (args, kwargs))
        with _disable_current_modes():
            return func(*real, **{n: v for n, v in named.items() if n != "device"})

    def _learn(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if not isinstance(result, FakeTensor) or result.numel() > _MOST:
            return
        is_exact = func in _MADE or func in _MOVED or not result.dtype.is_floating_point
        if not is_exact or torch.Tag.nondeterministic_seeded in func.tags:
            return
        if func not in _MADE and next(_tensors((args, kwargs)), None) is None:
            return
        found = self._computed(func, args, kwargs)
        if found is not None and found.shape == result.shape:
            self._values[result] = found

    def _forget(self, func: Any, args: Any, result: Any) -> None:
        """What an operation writes is not followed any further, nor what shares its memory."""
        changed = [
            a for a, s in zip(args, func._schema.arguments, strict=False) if s.alias_info and s.alias_info.is_write
        ]
        for t in tree_leaves((changed, result)):
            if isinstance(t, Tensor):
                self._written[_memory(t)] = t.untyped_storage()

    def _selected(self, x: Tensor, mask: Tensor) -> tuple[Any, ...]:
        shape = torch.broadcast_shapes(x.shape, mask.shape)
        value = self._known(mask)
        assert value is not None
        return x.expand(shape), list(_places(value, shape))

    def _with_places(self, func: Any, args: Any) -> Any:
        """The arguments with known masks replaced by their places; a single number is written under the mask itself."""
        x, indices, *rest = args
        masks = [index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices]
        values = [self._known(index) if is_mask else None for index, is_mask in zip(indices, masks, strict=True)]
        # Where no mask is known, what is written may have a size that depends on values, and must not be asked for it.
        if all(value is None for value in values) or (func is not aten.index.Tensor and rest[0].numel() == 1):
            return args
        places: list[Any] = []
        for index, value in zip(indices, values, strict=True):
            places += [index] if value is None else list(_places(value))
        return (x, places, *rest)


def _tensors(arguments: Any) -> Iterator[Tensor]:
    """The tensors among arguments and in their lists."""
    if isinstance(arguments, Tensor):
        yield arguments
    elif isinstance(arguments, list | tuple | dict):
        for a in arguments.values() if isinstance(arguments, dict) else arguments:
            yield from _tensors(a)


def _places(mask: Tensor, shape: torch.Size | None = None) -> tuple[Tensor, ...]:
    """Where a mask, expanded to a shape, holds: one index per dimension."""
    with _disable_current_modes():
        wide = mask if shape is None else mask.expand(shape)
        return tuple(i.contiguous() for i in wide.nonzero(as_tuple=True))


def _memory(t: Tensor) -> int:
    return int(t.untyped_storage()._cdata)
