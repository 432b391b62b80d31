"""What a module keeps from one stock step to the next and a program does not: values frozen as they were captured.

What a step writes before it reads, such as the length of its last input, is not among it: such a step does the same
whatever it finds there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from assay.programs.stock_run import StockRun
from assay.training.recipes.recipe import RecipeStep

WATCHED: Final = 2
"""Stock steps that are watched: the second finds what the first left."""

_SCALARS: Final = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A value that a module keeps: under which name of which dictionary, and a copy of its elements."""

    place: dict[str, Any]
    name: str
    value: object
    copy: object

    def put_back(self) -> None:
        """The same object is kept again, with the elements that it had."""
        if isinstance(self.value, Tensor) and isinstance(self.copy, Tensor):
            with torch.no_grad():
                self.value.data = self.copy.clone()
        self.place[self.name] = self.value

    def bits(self) -> object:
        """What tells it from another value."""
        return _bits(self.copy)


def frozen_state(step: RecipeStep) -> list[str]:
    """Buffers and plain attributes of the module that stock steps change and no slot of the program's state holds.

    Empty where the steps leave the same bits in everything when all of these are put back to what they were before
    each step, as a program's constants are.
    """
    module, own = step.recipe.module, {*step.buffers, *step.names}
    begin = _kept_by(module)
    plain = _watched(step, [])
    left = plain[-1][1]
    changed = sorted(n for n, was in begin.items() if n not in own and left.get(n, was.bits()) != was.bits())
    back = [begin[n] for n in changed]
    return changed if back and _watched(step, back) != plain else []


def _watched(step: RecipeStep, back: Sequence[_Kept]) -> list[tuple[list[object], dict[str, object]]]:
    """Loss, parameters and buffers after each step, and all that the module keeps; `back` as it was before each."""
    found = []
    for kept in back:
        kept.put_back()
    for loss, parameters, buffers in StockRun(step).steps(WATCHED):
        values = [_bits(torch.tensor(loss)), *map(_bits, parameters), *map(_bits, buffers)]
        found.append((values, {n: k.bits() for n, k in _kept_by(step.recipe.module).items()}))
        for kept in back:
            kept.put_back()
    return found


def _kept_by(module: nn.Module) -> dict[str, _Kept]:
    """Buffers, and numbers, words and tensors in modules' own attributes, by path."""
    found = {}
    for path, part in module.named_modules():
        for place in (part._buffers, vars(part)):
            for name, value in place.items():
                if isinstance(value, Tensor) and _is_plain(value):
                    copy: object = value.detach().clone()
                elif isinstance(value, _SCALARS) and place is not part._buffers:
                    copy = value
                else:
                    continue
                found[f"{path}.{name}" if path else name] = _Kept(place, name, value, copy)
    return found


def _bits(value: object) -> object:
    if not isinstance(value, Tensor):
        return value
    return (
        str(value.dtype),
        tuple(value.shape),
        value.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes(),
    )


def _is_plain(t: Tensor) -> bool:
    return t.layout is torch.strided and t.device.type == "cpu"
