"""What two models differ in: names, shapes, elements bit by bit, one tensor of each in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.protocol.errors import ConfigError
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest

if TYPE_CHECKING:
    from torch import Tensor

CHUNK: Final = 1 << 20
"""Elements that are compared at once, so that copies in wider types stay small."""


@dataclass(frozen=True, slots=True)
class TensorForm:
    """How a tensor lies in a file."""

    dtype: str
    shape: tuple[int, ...]

    def document(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {"dtype": self.dtype, "shape": list(self.shape)}


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """A tensor of two files; a, b: None where a file does not have it.

    differing: elements whose bits differ; None where types or shapes do. largest: the largest absolute difference
    between elements that are finite in both, as float64; None where there is none. not_finite: differing elements
    that are no finite number in one of them.
    """

    name: str
    a: TensorForm | None
    b: TensorForm | None
    differing: int | None = None
    largest: float | None = None
    not_finite: int = 0

    @property
    def equal(self) -> bool:
        """Whether both have it, bit by bit."""
        return self.differing == 0

    def document(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "name": self.name,
            "equal": self.equal,
            "a": None if self.a is None else self.a.document(),
            "b": None if self.b is None else self.b.document(),
            "differing": self.differing,
            "largest": self.largest,
            "not_finite": self.not_finite,
        }


def differences(a: Path, b: Path) -> Iterator[TensorDifference]:
    """Every tensor of two safetensors files, by name. Raises ConfigError (FileUnreadable)."""
    with ExitStack() as stack:
        left, right = (stack.enter_context(_opened(path)) for path in (a, b))
        names = [frozenset(file.keys()) for file in (left, right)]
        for name in sorted(names[0] | names[1]):
            x, y = (
                file.get_tensor(name) if name in own else None for file, own in zip((left, right), names, strict=True)
            )
            yield _compared(name, x, y)


def says_root(path: Path) -> str | None:
    """The root that a file's own metadata name: a word, until it is computed. Raises ConfigError (FileUnreadable)."""
    with _opened(path) as file:
        said = (file.metadata() or {}).get("assay_root")
    return None if said is None else "0x" + str(said)


def sha256_of(path: Path) -> str:
    """Of a whole file, in hex. Raises ConfigError (FileUnreadable)."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


def root_in_order(path: Path, names: Sequence[str], specs: Sequence[TensorSpec]) -> Digest | None:
    """The list root of a file's tensors in a run's order; None for a file without all of them, value by value.

    Raises ConfigError (FileUnreadable).
    """
    from assay.engine.runtime.native.sha256 import tensor_root
    from assay.engine.runtime.values.dtypes import TORCH, raw_bytes

    roots = []
    with _opened(path) as file:
        held = frozenset(file.keys())
        for name, spec in zip(names, specs, strict=True):
            t = file.get_tensor(name) if name in held else None
            if t is None or tuple(t.shape) != spec.dims:
                return None
            # A file holds int32 counts as int64 where the module has them so.
            try:
                cast = t.to(TORCH[spec.dtype])
                back = cast.to(t.dtype)
            except (RuntimeError, NotImplementedError):  # a type that torch reads and does not convert
                return None
            # Attack: other values that a cast wraps or rounds to those of the run, and its root beside them.
            if raw_bytes(back) != raw_bytes(t):
                return None
            roots.append(tensor_root(spec, raw_bytes(cast)))
    return list_root(roots)


# --- inside


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read ({type(error).__name__}).",
        code="FileUnreadable",
        remedy="Name a safetensors file, a folder with model.safetensors in it, or the number of a generation.",
    )


def _form(t: Tensor | None) -> TensorForm | None:
    return None if t is None else TensorForm(str(t.dtype).removeprefix("torch."), tuple(t.shape))


def _compared(name: str, x: Tensor | None, y: Tensor | None) -> TensorDifference:
    import torch

    forms = _form(x), _form(y)
    if x is None or y is None or forms[0] != forms[1]:
        return TensorDifference(name, *forms)
    differing, largest, not_finite = 0, None, 0
    for a, b in zip(torch.split(x.reshape(-1), CHUNK), torch.split(y.reshape(-1), CHUNK), strict=True):
        other = _bits_differ(a, b)
        count = int(other.sum())
        if not count:
            continue
        differing += count
        found, odd = _largest(a, b, other)
        not_finite += odd
        largest = found if largest is None else largest if found is None else max(largest, found)
    return TensorDifference(name, *forms, differing, largest, not_finite)


def _bits_differ(a: Tensor, b: Tensor) -> Tensor:
    """Which elements of two vectors of one type have other bits: NaN is NaN, and the zeros are two."""
    import torch

    size = a.element_size()
    x, y = (t.contiguous().view(torch.uint8).reshape(-1, size) for t in (a, b))
    return (x != y).any(dim=1)


def _largest(a: Tensor, b: Tensor, other: Tensor) -> tuple[float | None, int]:
    """Of the other elements: the largest difference of those that are finite in both, and how many are not."""
    import torch

    wide = torch.complex128 if a.is_complex() else torch.float64
    try:
        x, y = a[other].to(wide), b[other].to(wide)
    except (RuntimeError, NotImplementedError):  # a type that torch reads and does not convert
        return None, 0
    finite = torch.isfinite(x) & torch.isfinite(y)
    apart = (x - y).abs()[finite]
    # The difference of two finite float64 may be infinite, which JSON does not hold.
    apart = apart[torch.isfinite(apart)]
    return (float(apart.max()) if apart.numel() else None), int((~finite).sum())
