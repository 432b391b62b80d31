"""What a run starts from in place of its module's own values: a safetensors file, a folder of them, or another run.

The charter binds the roots of the first parameters and the first momentum (docs/protocol/charter.md), so whatever they
are taken from, everybody gets them from the store and checks them before anything is staked. What is done here is for
the sponsor alone: that the values are those of this module, all of them, and that none is rounded on the way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.protocol.errors import ConfigError, UserError
from assay.sponsor.sponsor_words import StartWords, files_words

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

WHOLE: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
"""What a folder of a pretrained model holds: one file, or an index that says which tensor is in which file."""

MAX_INDEX: Final = 1 << 26
MOST_NAMED: Final = 5
"""Tensors of each kind that a refusal names; the rest are counted."""


@dataclass(frozen=True)
class StartValues:
    """Values by the names that their source has for them. source: for people.

    momentum: the outer momentum by the same names, empty for zeros. letters: of a preset's run, the symbols that its
    tokens stand for, in order; empty if they are not known.
    """

    tensors: Mapping[str, Tensor]
    source: str
    momentum: Mapping[str, Tensor] = field(default_factory=dict)
    letters: str = ""
    words: StartWords | None = None
    """What the run's card says of it."""


@dataclass(frozen=True)
class FittedStart:
    """The same, once it was found to be this module's: every name that the module has for a tensor names its value.

    mapped: sentences on what was called or typed otherwise.
    """

    tensors: Mapping[str, Tensor]
    momentum: Mapping[str, Tensor]
    source: str
    mapped: tuple[str, ...]


def read_start(path: Path) -> StartValues:
    """The tensors of a safetensors file, or of a folder that holds one or an index of several.

    Raises ConfigError (FileUnreadable).
    """
    whole = path if not path.is_dir() else path / WHOLE
    if whole is path or whole.exists():
        return StartValues(_tensors_of(whole), str(whole), words=files_words([whole]))
    named = _index(path / INDEX)
    found: dict[str, Tensor] = {}
    for file in sorted(set(named.values())):
        # Attack: an index of a downloaded folder that names a file elsewhere.
        if Path(file).name != file:
            raise _unreadable(path / INDEX, "it names a file outside of the folder")
        held = _tensors_of(path / file)
        if repeated := sorted(found.keys() & held.keys()):
            raise _unreadable(path / file, f"another file holds {repeated[0]} too")
        found |= held
    if found.keys() != named.keys():
        name = min(found.keys() ^ named.keys())
        raise _unreadable(path / INDEX, f"index and files do not agree on {name}")
    return StartValues(found, str(path), words=files_words(path / file for file in set(named.values())))


def load_start(module: nn.Module, start: StartValues) -> FittedStart:
    """Puts values into a module, strictly: each of its tensors has one of the same shape, and there is none beside.

    Nothing is rounded: floats of 16 bits become float32, integers another width, where every number stays what it is.
    A module of 16 bits is trained as float32 in a run, so its values keep what a file has of it; the module itself is
    given them rounded.

    Raises UserError (StartMismatch: names, shapes, tied copies; StartLossy: types; StartNotFinite).
    """
    import torch

    from assay.training.recipes.outline import kept_tensors

    places = dict(kept_tensors(module))
    names, said = _renamed(start.tensors, places)
    given = {names[name]: t for name, t in start.tensors.items()}
    groups = _tied(places)
    _check_names(places, given, groups, start.source)
    parameters, kinds = {id(p) for p in module.parameters()}, dict[tuple[str, str], int]()
    found: dict[str, Tensor] = {}
    for group in groups:
        own, held = places[group[0]], [given[name] for name in group if name in given]
        if any(not _same(held[0], other) for other in held[1:]):
            raise _mismatch(start.source, f"holds unlike values for {' and '.join(group)}, which are one tensor")
        value = _exactly(group[0], held[0], own.dtype, start.source)
        _check_finite(group[0], value, is_parameter=id(own) in parameters, source=start.source)
        if held[0].dtype is not own.dtype:
            kind = str(held[0].dtype).removeprefix("torch."), str(own.dtype).removeprefix("torch.")
            kinds[kind] = kinds.get(kind, 0) + 1
        found |= dict.fromkeys(group, value)
    with torch.no_grad():
        for name, t in places.items():
            t.copy_(found[name])
    said += [f"{count} tensors are {there} there and {here} in the module" for (there, here), count in kinds.items()]
    momentum = {names[name]: t for name, t in start.momentum.items()}
    everywhere = {name: momentum[k] for group in groups for k in group if k in momentum for name in group}
    return FittedStart(found, everywhere, start.source, tuple(said))


def check_letters(start: StartValues, letters: str) -> None:
    """Whether tokens mean in a preset's run what they meant in the one that it starts from. Raises UserError."""
    if start.letters and start.letters != letters:
        raise _mismatch(start.source, "was trained on a text of other letters, whose tokens mean something else here")


def first_lists(
    names: Sequence[str], slots: Sequence[Tensor], start: FittedStart
) -> tuple[list[Tensor], list[Tensor] | None]:
    """The first parameters, laid out as `slots`, whose names these are, and the first momentum: None for zeros.

    Raises UserError (StartMismatch): momentum that is laid out otherwise.
    """
    values = [start.tensors[n].to(s.dtype).reshape(s.shape).clone() for n, s in zip(names, slots, strict=True)]
    if not start.momentum:
        return values, None
    momentum = [start.momentum.get(name) for name in names]
    wrong = [
        name
        for name, m, s in zip(names, momentum, slots, strict=True)
        if m is None or m.shape != s.shape or m.dtype is not s.dtype
    ]
    if wrong:
        raise _mismatch(start.source, f"has no outer momentum of this run's layout for {_some(wrong)}")
    return values, [m.clone() for m in momentum if m is not None]


# --- inside


def _tensors_of(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from None


def _index(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_INDEX + 1)
        named = json.loads(data)["weight_map"] if len(data) <= MAX_INDEX else None
        if not isinstance(named, dict) or not all(isinstance(v, str) for v in named.values()):
            raise ValueError("no map from tensors to files")
    except OSError:
        raise _unreadable(path.parent, f"it holds neither {WHOLE} nor {INDEX}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unreadable(path, "it is no index of safetensors files") from None
    return named


def _renamed(tensors: Mapping[str, Tensor], places: Mapping[str, Tensor]) -> tuple[dict[str, str], list[str]]:
    """The module's name for each of the source's: the same, or all with one prefix more or less."""
    if not tensors or tensors.keys() <= places.keys():
        return {name: name for name in tensors}, []
    one = min(tensors)
    more = [p[: -len(one)] for p in places if p.endswith("." + one)]
    longer = [prefix for prefix in more if all(prefix + name in places for name in tensors)]
    if len(longer) == 1:
        return {name: longer[0] + name for name in tensors}, [f"its names lack the prefix {longer[0]!r}"]
    ends = [k + 1 for k, letter in enumerate(one) if letter == "."]
    shorter = [
        one[:end] for end in ends if all(name.startswith(one[:end]) and name[end:] in places for name in tensors)
    ]
    if len(shorter) == 1:
        cut = len(shorter[0])
        return {name: name[cut:] for name in tensors}, [f"its names have the prefix {shorter[0]!r} before the module's"]
    return {name: name for name in tensors}, []


def _tied(places: Mapping[str, Tensor]) -> list[tuple[str, ...]]:
    """The names of each tensor, the module's first one first."""
    found: dict[int, list[str]] = {}
    for name, t in places.items():
        found.setdefault(id(t), []).append(name)
    return [tuple(names) for names in found.values()]


def _check_names(
    places: Mapping[str, Tensor], given: Mapping[str, Tensor], groups: Sequence[tuple[str, ...]], source: str
) -> None:
    lacks = [group[0] for group in groups if not any(name in given for name in group)]
    extra = sorted(given.keys() - places.keys())
    other = [
        f"{name} {list(t.shape)} for {list(places[name].shape)}"
        for name, t in given.items()
        if name in places and t.shape != places[name].shape
    ]
    wrong = [
        f"{what} {_some(those)}"
        for what, those in (("lacks", lacks), ("has besides", extra), ("has in another shape", other))
        if those
    ]
    if wrong:
        raise _mismatch(source, "; ".join(wrong))


def _exactly(name: str, t: Tensor, wanted: torch.dtype, source: str) -> Tensor:
    """The value in the type that a run trains it in. Raises UserError (StartLossy)."""
    import torch

    floats = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    target = torch.float32 if wanted in floats else wanted
    fits = (t.dtype in floats) == (wanted in floats) and not t.dtype.is_complex
    made = t.to(target) if fits else t
    if not fits or not _same(made.to(t.dtype), t):
        raise UserError(
            f"{name} of {source} is {t.dtype}, which {target} does not hold as it is.",
            code="StartLossy",
            remedy="Convert the file yourself, so that you know what is rounded.",
        )
    return made


def _check_finite(name: str, t: Tensor, *, is_parameter: bool, source: str) -> None:
    """A mask may hold infinities; a parameter that does, or any NaN, trains nothing. Raises UserError."""
    import torch

    if not t.is_floating_point():
        return
    bad = int((~torch.isfinite(t) if is_parameter else torch.isnan(t)).sum())
    if bad:
        raise UserError(
            f"{bad} of {t.numel()} values of {name} in {source} are no finite numbers.",
            code="StartNotFinite",
            remedy="Start from a checkpoint before its training failed.",
        )


def _same(a: Tensor, b: Tensor) -> bool:
    """Equal in shape and values, NaN like NaN, and zeros of one sign."""
    import torch

    if a.shape != b.shape or a.dtype is not b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    return torch.equal(a.isnan(), b.isnan()) and bool(
        ((a == b) & (torch.signbit(a) == torch.signbit(b)) | a.isnan()).all()
    )


def _some(names: Sequence[str]) -> str:
    """A few of them, and how many more."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _mismatch(source: str, what: str) -> UserError:
    return UserError(
        f"{source} is not a state of this model: it {what}.",
        code="StartMismatch",
        remedy="Start from a file of this very module (module.state_dict()), or change the module.",
    )


def _unreadable(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read: {why}.",
        code="FileUnreadable",
        remedy="Name a safetensors file, or a folder with model.safetensors in it.",
    )
