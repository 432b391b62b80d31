"""A record of everything that a function can reach beside its arguments: what changed since, and how to put it back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, TracebackType
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from assay.engine.compiler.hidden import arrays, blobs, hooks, walk
from assay.engine.compiler.hidden.code import Global, globals_of, named_globals, only_counted
from assay.engine.compiler.hidden.surroundings import surroundings
from assay.engine.compiler.hidden.walk import MISSING, Slots

Image = dict[str, object]
"""What can be reached, by path: two images are equal where all values, types and bits are."""


class Stale:
    """Lies, for one trace, where a step leaves something behind: a step that reads it before writing it fails."""


STALE: Final = Stale()


@dataclass(frozen=True, slots=True)
class ChangedAt:
    """Where something changed: `path` as a person writes it, the number of the record and the key in it."""

    path: str
    record: int
    key: object = None


@dataclass(frozen=True, slots=True)
class _Record:
    """One thing that can change. read: its slots or its contents now. write: puts back what it held."""

    path: str
    owner: object
    before: Any
    read: Callable[[], Any]
    write: Callable[[], None]
    place: tuple[int, str] | None = None
    """Of a global of an installed package: its namespace's identity and its name."""


class Watch:
    """While active, whatever `roots` (by name) reach is on record; at the end, also after an error, it is put back.

    On record besides: the random generators of Python, NumPy and PyTorch, hooks that all modules share, gradient mode
    and default element type.
    Of the globals of installed packages: `named`, and what `enter` adds.
    """

    def __init__(self, roots: Mapping[str, object], named: Sequence[Global] = ()) -> None:
        self._roots = dict(roots)
        self._named: dict[tuple[int, str], Global] = {}
        self._read: set[tuple[int, str]] = set()
        """Of the globals of installed packages that are on record: those that code which ran does more than count."""
        self._seen: dict[int, object] = {}
        self._records: list[_Record] = []
        self.iterators: list[str] = []
        """Paths of what yields its values once."""
        self.scalers: list[str] = []
        """Paths of what scales losses."""
        self._records += [_Record(name, None, held, read, put) for name, held, read, put in surroundings()]
        self._process = len(self._records)
        self._hooks_from = hooks.next_number()
        self._follow(deque((value, path) for path, value in roots.items()))
        self._add(named)
        self._read.update(self._named)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.restore()

    def enter(self, code: CodeType, table: dict[str, Any]) -> None:
        """Put on record, before this code runs, what it names of installed packages."""
        found = [place for place in globals_of(code, table) if walk.is_installed(place[0])]
        # The modes of a step that is being traced must not see the copies that a record makes.
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            self._add(found)
        for of, key, _ in found:
            if type(of.get(key)) not in (int, float) or key not in only_counted(code):
                self._read.add((id(of), key))

    @property
    def named(self) -> list[Global]:
        """What code that ran names of installed packages, and does more with than count."""
        return [place for key, place in self._named.items() if key in self._read]

    def _add(self, found: Sequence[Global]) -> None:
        for table, key, label in found:
            if (id(table), key) not in self._named:
                self._named[id(table), key] = table, key, label
                queue: deque[tuple[Any, str]] = deque()
                self._look_global(table, key, f"global {table.get('__name__')}.{key}", queue)
                self._follow(queue)

    def _follow(self, queue: deque[tuple[Any, str]]) -> None:
        while queue:
            value, path = queue.popleft()
            self._look(value, path, queue)

    def _look(self, value: Any, path: str, queue: deque[tuple[Any, str]]) -> None:
        if id(value) in self._seen or not walk.has_parts(value):
            return
        self._seen[id(value)] = value
        if walk.is_iterator(value):
            self.iterators.append(path)
            return
        if isinstance(value, torch.amp.GradScaler) and value.is_enabled():
            self.scalers.append(path)
        if isinstance(value, Tensor):
            self._records.append(_tensor_record(value, path))
        elif (blob := blobs.blob_of(value)) is not None:
            held, write = blob
            self._records.append(_Record(path, value, held, lambda: blobs.blob_of(value)[0], write))  # type: ignore[index]
        slots = None if walk.is_atom(value) else walk.slots_of(value)
        if slots:
            self._records.append(
                _Record(path, value, slots, lambda: walk.slots_of(value) or {}, lambda: walk.put_back(value, slots))
            )
            queue.extend((v, path + label) for label, v in slots.values())
        elif slots is not None:
            # Empty now, and perhaps not later.
            self._records.append(
                _Record(path, value, {}, lambda: walk.slots_of(value) or {}, lambda: walk.put_back(value, {}))
            )
        queue.extend((v, path + label) for label, v in walk.fixed_parts(value))
        if isinstance(value, FunctionType):
            for table, key, label in named_globals(value):
                # Packages number and time things of their own: theirs count where code that runs names them.
                if not walk.is_installed(table):
                    self._look_global(table, key, label, queue)

    def _look_global(self, table: dict[str, Any], key: str, label: str, queue: deque[tuple[Any, str]]) -> None:
        if (id(table), key) in self._seen:  # type: ignore[comparison-overlap]
            return
        self._seen[id(table), key] = table  # type: ignore[index]
        before: Slots = {key: (label, table.get(key, MISSING))}

        def write() -> None:
            value = before[key][1]
            if value is MISSING:
                table.pop(key, None)
            else:
                table[key] = value

        place = (id(table), key) if walk.is_installed(table) else None
        self._records.append(_Record("", table, before, lambda: {key: (label, table.get(key, MISSING))}, write, place))
        queue.append((before[key][1], label))

    def changes(self) -> list[ChangedAt]:
        """The places that hold something else than before, in the order in which they were found."""
        return [place for k in range(len(self._records)) for place in self._changes_of(k)]

    def _changes_of(self, k: int) -> list[ChangedAt]:
        record = self._records[k]
        if record.place is not None and record.place not in self._read:
            return []
        now = record.read()
        if not _is_slots(record.before):
            return [] if _same(record.before, now) else [ChangedAt(record.path, k)]
        found = []
        for key in [*record.before, *(key for key in now if key not in record.before)]:
            label, old = record.before.get(key, (None, MISSING))
            other, new = now.get(key, (None, MISSING))
            if isinstance(record.owner, nn.RNNBase) and key in ("_flat_weights", "_flat_weight_refs"):
                continue  # PyTorch's own second view of the weights, which follows whenever they are exchanged
            if not _is_same_thing(old, new):
                found.append(ChangedAt(record.path + str(other if label is None else label), k, key))
        return found

    def is_of_process(self, place: ChangedAt) -> bool:
        """Whether the place is a generator or mode of the process, not the user's own."""
        return place.record < self._process

    def is_changed(self, place: ChangedAt) -> bool:
        """Whether the place differs from before."""
        return any(p.key == place.key for p in self._changes_of(place.record))

    def restore(self) -> None:
        """Put everything back."""
        for record in self._records:
            if isinstance(record.owner, Tensor) or not _is_slots(record.before) or _is_touched(record):
                record.write()
        # What a step installs at its first call is gone now: the next run's stand under the same numbers.
        hooks.number_from(self._hooks_from)

    def spoil(self, places: list[ChangedAt]) -> None:
        """Put `STALE` into these places."""
        for place in places:
            record = self._records[place.record]
            if _is_slots(record.before):
                label = record.before.get(place.key, ("", None))[0]
                if record.path == "" and isinstance(record.owner, dict):
                    record.owner[place.key] = STALE
                else:
                    walk.put_back(record.owner, {**walk.slots_of(record.owner), place.key: (label, STALE)})  # type: ignore[dict-item]

    def path_of(self, tensor: Tensor) -> str | None:
        """How a person calls a tensor that was found."""
        return next((r.path for r in self._records if r.owner is tensor), None)

    def image(self) -> Image:
        """What can be reached now."""
        fresh = Watch(self._roots, self.named)
        found: Image = {}
        for record in fresh._records:
            if _is_slots(record.before):
                for label, value in record.before.values():
                    found[record.path + label] = _token(value)
            elif isinstance(record.owner, Tensor):
                found[record.path + " contents"] = record.before[0]
            else:
                found[record.path + " contents"] = record.before
        return found


def _is_touched(record: _Record) -> bool:
    """Whether any place holds another object than before, or another atom."""
    now = record.read()
    pairs = ((record.before.get(k, ("", MISSING))[1], now.get(k, ("", MISSING))[1]) for k in {**record.before, **now})
    return any(a is not b and not _is_same_thing(a, b, depth=0) for a, b in pairs)


def _is_same_thing(a: Any, b: Any, depth: int = 1) -> bool:
    """One object, equal atoms, or lists of one length with the same things in them (as PyTorch makes some anew)."""
    if a is b:
        return True
    if walk.is_atom(a) and walk.is_atom(b):
        return _token(a) == _token(b)
    if type(a) is not type(b) or not depth:
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_is_same_thing(x, y) for x, y in zip(a, b, strict=True))
    return False


def differences(one: Image, other: Image) -> list[str]:
    """The paths at which two images differ."""
    paths = [*one, *(p for p in other if p not in one)]
    return [p.removesuffix(" contents") for p in paths if not _same(one.get(p, MISSING), other.get(p, MISSING))]


@dataclass(frozen=True, slots=True, eq=False)
class _TensorContents:
    """The contents of a tensor: a copy, and what else PyTorch keeps of it."""

    copy: Tensor | None
    facts: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _TensorContents) or self.facts != other.facts:
            return False
        return self.copy is None or other.copy is None or torch.equal(_bits(self.copy), _bits(other.copy))


def _bits(t: Tensor) -> Tensor:
    return t.reshape(-1).view(torch.uint8)


def _held(t: Tensor) -> _TensorContents:
    facts = (type(t), t.dtype, t.shape, t.requires_grad)
    plain = t.layout is torch.strided and t.device.type == "cpu" and not t.is_quantized
    if isinstance(t, FakeTensor) or not plain or torch.nn.parameter.is_lazy(t):
        return _TensorContents(None, facts)
    with torch.no_grad():
        return _TensorContents(t.detach().clone(memory_format=torch.contiguous_format), facts)


def _tensor_record(t: Tensor, path: str) -> _Record:
    before, gradient = _held(t), t.grad if t.is_leaf else None

    def write() -> None:
        if before.copy is not None and _held(t) != before:
            with torch.no_grad():
                if t.shape != before.copy.shape or t.dtype != before.copy.dtype:
                    t.data = before.copy
                else:
                    t.detach().copy_(before.copy)
        if t.is_leaf:
            if t.requires_grad != before.facts[-1]:
                t.requires_grad_(bool(before.facts[-1]))
            if t.grad is not gradient:
                t.grad = gradient

    return _Record(path, t, (before, id(gradient)), lambda: (_held(t), id(t.grad if t.is_leaf else None)), write)


def _is_slots(before: object) -> bool:
    return isinstance(before, dict)


def _token(value: Any) -> object:
    """A value as something to compare by what it is: bits of floats, types of all."""
    if isinstance(value, float):
        return float, value.hex()
    if isinstance(value, complex):
        return complex, value.real.hex(), value.imag.hex()
    if walk.is_atom(value):
        return type(value), repr(value) if arrays.is_number(value) else value
    if isinstance(value, FunctionType):
        return FunctionType, value.__code__
    return (type(value),)


def _same(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:  # a comparison that a user wrote; what cannot be compared is not the same
        return False
