"""The right one among the objects that strangers gave one name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest
from assay_ledger.deadline import waiting_at_most
from assay_ledger.store.errors import (
    ObjectMismatch,
    ObjectMissing,
    StoreDenied,
    StoreFails,
    StorePartlySilent,
    StoreSilent,
    StoreUnreachable,
)
from assay_ledger.store.interfaces import ArtifactStore

SEARCH_S: Final = 120.0
SEARCH_BYTES_PER_S: Final = 1 << 18
"""How long one search among the objects of a name takes at most; `waiting_at_most` gives a caller less."""


def get_named(
    store: ArtifactStore,
    name: str,
    max_bytes: int,
    accept: Callable[[bytes], bool],
    cursors: dict[str, Digest] | None = None,
) -> bytes:
    """The first of the objects given a name that `accept` finds to be the right one, however many others there are.

    Anybody may give any bytes a name, so `accept` recomputes what the name promises (a root, say). A caller that runs
    out of time finds in `cursors` where it was, and goes on behind it the next time; after the last candidate come
    those up to there, the one that took too long as the last.
    Raises ObjectMissing when nothing has the name, ObjectMismatch when nothing that has it is accepted,
    StoreUnreachable when that is not known of one, and what `candidates` raises.
    """
    with waiting_at_most(SEARCH_S + max_bytes / SEARCH_BYTES_PER_S):
        return _search(store, name, max_bytes, accept, {} if cursors is None else cursors)


def _search(
    store: ArtifactStore, name: str, max_bytes: int, accept: Callable[[bytes], bool], cursors: dict[str, Digest]
) -> bytes:
    reasons: dict[str, int] = {}
    refused: UnavailableError | None = None
    unknown: StoreUnreachable | None = None
    for digest in in_turn(store, name, cursors.pop(name, None)):
        try:
            data = store.get(digest, max_bytes)
        except StoreUnreachable as error:
            # Attack: names that lead nowhere, each of which would end a search while one of several stores is silent.
            if isinstance(error, StoreSilent) and not isinstance(error, StorePartlySilent):
                cursors[name] = digest
                raise
            if not isinstance(error, StoreFails):
                unknown = error
            refused, reason = error, error.code
        except UnavailableError as error:
            # The publisher of an object may deny it to others, or break it: that must not hide those behind it.
            refused, reason = error, error.code
        else:
            if accept(data):
                return data
            refused, reason = None, "not what the name says"
        reasons[reason] = reasons.get(reason, 0) + 1
    if unknown is not None:
        # Attack: one object of junk beside the right one, whose store has a hiccup: what is not answered is not gone.
        raise unknown
    if refused is not None and isinstance(refused, StoreDenied | StoreUnreachable) and len(reasons) == 1:
        raise refused
    if not reasons:
        raise ObjectMissing(f"No object is named {name}.")
    reasons_text = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    raise ObjectMismatch(f"Of {sum(reasons.values())} objects named {name} none is the right one ({reasons_text}).")


def in_turn(store: ArtifactStore, name: str, after: Digest | None) -> Iterator[Digest]:
    """All that have a name: those after one, then those up to it.

    Bad luck: without these a search that was cut short in the last one found none the next time, and said that none
    is there: what is silent was taken for what is gone.
    """
    yield from store.candidates(name, after)
    if after is not None:
        yield from takewhile(lambda digest: digest <= after, store.candidates(name))
