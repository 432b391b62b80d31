"""What a store tells whoever counts its calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from assay.protocol.errors import AssayError
from assay_ledger.store.errors import ObjectMissing, StoreSilent

CallListener = Callable[[str, str, float], None]
"""Is told of each call: its kind (read, write, look, list, slot), what became of it (ok, missing, silent, failed) and
its seconds."""


def tell_nobody(kind: str, outcome: str, seconds: float) -> None:
    """Nobody counts."""


@contextmanager
def told(listener: CallListener, kind: str) -> Iterator[None]:
    """One call of a store, whose errors have their names."""
    began, outcome = time.monotonic(), "ok"
    try:
        yield
    except AssayError as error:
        outcome = "silent" if isinstance(error, StoreSilent) else "failed"
        outcome = "missing" if isinstance(error, ObjectMissing) else outcome
        raise
    finally:
        listener(kind, outcome, time.monotonic() - began)
