"""The truth of a run of marks: what follows from X is another digest, so that truth and lies need no training."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.digests import keccak, state_digest
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Digest


def mark(label: str, *parts: bytes) -> Digest:
    """A digest that is not found by chance."""
    return Digest(keccak(label.encode() + b"".join(parts)))


@dataclass(frozen=True, slots=True)
class TrueWork:
    """What a solver commits: n+1 roots, list roots of the last, update list."""

    roots: tuple[Digest, ...]
    end_lists: tuple[Digest, Digest, Digest]
    update: Digest


def true_lists(x: Digest) -> tuple[Digest, Digest, Digest]:
    """The list roots of the true end of an interval from x."""
    return mark("parameters", x), mark("optimizer", x), mark("scalars", x)


def true_end(x: Digest, kind: ClaimKind) -> Digest:
    """The true Y of a claim of this kind from X."""
    if kind is ClaimKind.UPDATE:
        return state_digest((mark("update", x),))
    return state_digest(true_lists(x))


def do_work(start: Digest, parameters: Digest, intervals: int, lie: int | None) -> TrueWork:
    """Work from s_0, with a lie in one duty and everything after it consistent."""
    roots, lists = [start], true_lists(start)
    for j in range(intervals):
        x = roots[-1]
        lists = true_lists(mark("lie", x)) if lie == j else true_lists(x)
        roots.append(state_digest(lists))
    x = state_digest((parameters, lists[0]))
    update = mark("update", x if lie != intervals else mark("lie", x))
    return TrueWork(tuple(roots), lists, update)


def true_outer(x: Digest, mask: int, base: tuple[Digest, Digest]) -> tuple[Digest, Digest]:
    """Parameters and momentum lists after an outer step; nothing included, nothing changed."""
    return (mark("outer parameters", x), mark("outer momentum", x)) if mask else base
