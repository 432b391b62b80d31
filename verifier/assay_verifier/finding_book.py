"""What this auditor's replays ended in, on disk before an opening relies on it: a crash costs no pass twice."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.digests import keccak
from assay.protocol.rounds.duty_types import ReplayFinding
from assay.protocol.types import Digest
from assay_ledger.agents.journal import Journal

Ends = tuple[Digest, Digest, Digest]
"""List roots of a training state: parameters, optimizer, scalars."""


def place_of(parameters: Digest, digest: Digest) -> Digest:
    """Names a commitment together with what it starts from: a reorganization may put another base under it."""
    return keccak(parameters + digest)


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a commitment ends by this auditor's own calculation: list roots of the end, and its update's."""

    ends: Ends
    update: Digest


class FindingBook:
    """Ends by place, accumulators by place and witness key, and which of them other kernels confirmed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._ended: dict[Digest, Ended] = {}
        self._accumulators: dict[tuple[Digest, Digest], Digest] = {}
        self._passes: dict[tuple[Digest, Digest], tuple[Digest, ...]] = {}
        self._confirmed: set[tuple[Digest, Digest | None]] = set()
        for entry in journal.entries("replayed"):
            place, parameters, optimizer, scalars, update = map(
                _digest, (entry["place"], *entry["ends"], entry["update"])
            )
            found = dict(zip(map(_digest, entry["keys"]), map(_digest, entry["accumulators"]), strict=True))
            self._note(place, Ended((parameters, optimizer, scalars), update), found)
        for entry in journal.entries("confirmed"):
            key = None if entry["key"] is None else _digest(entry["key"])
            self._confirmed.add((_digest(entry["place"]), key))

    def add(self, place: Digest, ended: Ended, accumulators: dict[Digest, Digest]) -> None:
        """A pass is done: where it ended, and its accumulators by their keys."""
        keys = list(accumulators)
        self._journal.note(
            "replayed",
            place=place,
            ends=list(ended.ends),
            update=ended.update,
            keys=keys,
            accumulators=[accumulators[key] for key in keys],
        )
        self._note(place, ended, accumulators)

    def confirm(self, place: Digest, key: Digest | None) -> None:
        """Other kernels found the same: the end, or the accumulator under a key."""
        self._journal.note("confirmed", place=place, key=key)
        self._confirmed.add((place, key))

    def withdraw(self, place: Digest, keys: tuple[Digest, ...]) -> None:
        """Other kernels found something else than a pass: it is done again, and what it ends in then counts."""
        self._ended.pop(place, None)
        for key in keys:
            self._accumulators.pop((place, key), None)
            self._passes.pop((place, key), None)
        self._confirmed = {known for known in self._confirmed if known[0] != place}

    def ended(self, place: Digest) -> Ended | None:
        """Where a commitment ends; None before it was replayed."""
        return self._ended.get(place)

    def is_known(self, place: Digest, key: Digest) -> bool:
        """Whether a commitment was replayed under a key."""
        return (place, key) in self._accumulators

    def is_confirmed(self, place: Digest, key: Digest | None) -> bool:
        """Whether other kernels found the same end, or the same accumulator under a key."""
        return (place, key) in self._confirmed

    def pass_of(self, place: Digest, key: Digest | None) -> tuple[Digest, ...]:
        """The keys of the pass that holds a key, or of any pass for none; no keys where there was no pass."""
        for (at, one), keys in self._passes.items():
            if at == place and key in (None, one):
                return keys
        return ()

    def passes_of(self, place: Digest) -> list[tuple[Digest, ...]]:
        """The keys of each pass over a commitment."""
        return list(dict.fromkeys(keys for (at, _), keys in self._passes.items() if at == place))

    def finding(self, place: Digest, keys: tuple[Digest, ...]) -> ReplayFinding | None:
        """What was found under some keys; None while one of them was not run."""
        ended = self._ended.get(place)
        if ended is None or not all(self.is_known(place, key) for key in keys):
            return None
        return ReplayFinding(ended.ends, ended.update, keys, tuple(self._accumulators[place, key] for key in keys))

    def _note(self, place: Digest, ended: Ended, accumulators: dict[Digest, Digest]) -> None:
        if self._ended.get(place, ended) != ended:  # what was begun anew since
            for keys in self.passes_of(place):
                self.withdraw(place, keys)
        self._ended[place] = ended
        for key, accumulator in accumulators.items():
            self._accumulators[place, key] = accumulator
            self._passes[place, key] = tuple(accumulators)


def _digest(text: str) -> Digest:
    return Digest(bytes.fromhex(text))
