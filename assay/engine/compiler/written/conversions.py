"""Modules converted in a step: `to`, `float` and their kin exchange a module's tensors even where all stay as they are.

While a step is traced PyTorch cannot exchange them; where nothing changes, nothing needs to be exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

from torch import Tensor, nn

from assay.engine.compiler.hidden.lines import here
from assay.protocol.errors import UserError

_EXCHANGING = nn.Module._apply


def _apply(module: nn.Module, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
    """As PyTorch's own, which nothing is left to where `convert` gives back each tensor itself.

    Raises:
        UserError: NotCapturable, where tensors that are traced would be exchanged.
    """
    if all(convert(t) is t for t in chain(module.parameters(recurse), module.buffers(recurse))):
        return module
    try:
        return _EXCHANGING(module, convert, recurse)
    except RuntimeError as error:
        raise UserError(
            f"A {type(module).__name__} is converted by the step itself{here()}, which exchanges its tensors.",
            code="NotCapturable",
            remedy="Convert the module before the recipe is made, or in the step the tensors that it computes.",
        ) from error


@contextmanager
def kept_as_they_are() -> Iterator[None]:
    """While active, a module that is converted to what it is already keeps its tensors."""
    nn.Module._apply = _apply  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._apply = _EXCHANGING  # type: ignore[method-assign]
