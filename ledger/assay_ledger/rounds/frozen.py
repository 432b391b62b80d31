"""The state of a run in bytes, to be kept and read again by the same code: a start need not fold all events again.

The bytes are a pickle of which nothing is called but the classes listed here, which hold values and do nothing; a
digest of our own sources names the version, so that a state made by other rules of folding is not taken for one of
ours. Source: docs/adr/0052-kept-events.md.
"""

from __future__ import annotations

import gc
import io
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, partial
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Side, Stage
from assay.protocol.rounds import duty_types, escrow, segments, terms, ticket_types, timeline
from assay.protocol.run import claims
from assay_ledger.chain.client import Head
from assay_ledger.index import records as game_records
from assay_ledger.rounds import books, facts, money_records, records, told_audits, told_generations, told_rounds
from assay_ledger.rounds.facts import RunFacts
from assay_ledger.rounds.records import RunState

_MODULES: Final = (
    *(duty_types, escrow, segments, terms, ticket_types, timeline, claims),
    *(game_records, books, facts, money_records, records, told_audits, told_generations, told_rounds),
)
_VALUES: Final[dict[tuple[str, str], type]] = {
    (kind.__module__, kind.__qualname__): kind
    for kind in (
        *(Counter, Head, Outcome, Verdict, Side, Stage),
        *(k for module in _MODULES for k in vars(module).values() if getattr(k, "__module__", "") == module.__name__),
    )
    if isinstance(kind, type)
}
"""Every class that a state may have values of."""


def _reducers() -> dict[type, Callable[[Any], tuple[Any, ...]]]:
    """How values are written: as calls of their classes. Python's own way, field by field, takes four times as long."""
    made: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
    for kind in _VALUES.values():
        if _is_its_fields(kind):
            names = [f.name for f in fields(kind)]
            get = attrgetter(*names)
            made[kind] = partial(_call, kind, get) if len(names) > 1 else partial(_call_with_one, kind, get)
    return made


def _is_its_fields(kind: type) -> bool:
    """Whether a value is made again by its class from its fields, in order; not where a subclass makes its own."""
    is_one = "__dataclass_fields__" in vars(kind) and "__post_init__" not in vars(kind)
    return is_one and all(f.init and not f.kw_only for f in fields(kind))


def _call(kind: type, get: Callable[[Any], tuple[Any, ...]], value: Any) -> tuple[Any, ...]:
    return kind, get(value)


def _call_with_one(kind: type, get: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    return kind, (get(value),)


class _Known:
    """Stands for what is known before any event, which is left out; the reader has its own."""


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: dict[str, Any]) -> None:
        super().__init__(file)
        self._known = known

    def find_class(self, module: str, name: str) -> Any:
        # Attack: a row of a database that others write to, which names a function of Python's to be called.
        if name == _Known.__name__:
            return self._known.__getitem__
        try:
            return _VALUES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a state") from None


def _known(facts: RunFacts) -> dict[str, Any]:
    return {"facts": facts, "rounds": facts.rounds, "duties": facts.duties, "tickets": facts.tickets}


def freeze(state: RunState) -> bytes | None:
    """The state in bytes; None if it holds what none is expected to hold."""
    names = {type(value): name for name, value in _known(state.books.facts).items()}
    file = io.BytesIO()
    writer = pickle.Pickler(file, 5)
    writer.dispatch_table = _reducers() | {kind: lambda v: (_Known, (names[type(v)],)) for kind in names}
    try:
        with _without_collection():
            writer.dump(state)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    return file.getvalue()


def thaw(body: bytes, facts: RunFacts) -> RunState | None:
    """The state of a run of these facts; None if the bytes are not one."""
    try:
        with _without_collection():
            found = _Reader(io.BytesIO(body), _known(facts)).load()
    except Exception:  # a pickle that was changed fails in any way
        return None
    return found if isinstance(found, RunState) else None


@contextmanager
def _without_collection() -> Iterator[None]:
    """Python's collector would walk over millions of new objects again and again, three times the work."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
def version() -> bytes:
    """A digest of all sources that a state depends on, and of this Python's version."""
    made = sha256(sys.version.encode())
    ledger, protocol = Path(facts.__file__).parent.parent, Path(terms.__file__).parent.parent
    folders = [ledger / room for room in ("rounds", "index", "bindings", "chain", "")]
    folders += [protocol / room for room in ("rounds", "run", "game", "trees", "")]
    for path in sorted(path for folder in folders for path in folder.glob("*.py")):
        made.update(path.name.encode() + sha256(path.read_bytes()).digest())
    return made.digest()
