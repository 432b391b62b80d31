"""What a solver must not forget, on disk before anything relies on it.

The update of finished work, by (round, base): a commitment is made once, and to what was trained from its base. Merges
that were computed, by (round, what they are over). Salts of seals need no disk: they follow from the account's key.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.journal import Entry, Journal
from assay_ledger.rounds.view import BaseLists

MergeKey = tuple[Round, Digest]
"""Round, and what its merge is over: the base, which updates count, and all that were committed with weight.

Attack: a reorganization that puts another update under the same seat; the root over the old one would be sealed.
"""


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """Work whose update is published; `manifest` names where it lies."""

    seat: Seat
    work: SeatWork
    manifest: Digest


class SolverRecorder:
    """Keeps memory and journal in step: an entry is on disk before the memory shows it."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.finished: dict[tuple[Round, Digest], FinishedWork] = {}
        self.merges: dict[MergeKey, BaseLists] = {}
        self.manifests: dict[MergeKey, Digest] = {}
        """Of merges: which name where their lists lie, once somebody publishes them."""
        self.confirmed: set[MergeKey] = set()
        """Merges that a second calculation by other kernels confirmed."""
        for entry in journal.entries("finished"):
            self._read_finished(entry)
        for entry in journal.entries("merge"):
            self._read_merged(entry)

    def finish(self, round_: Round, base: Digest, done: FinishedWork) -> None:
        """Work of a round was trained from a base, and its update is published."""
        work = done.work
        self.journal.note(
            "finished",
            round=round_,
            base=base,
            seat=done.seat,
            units=work.units,
            marks=work.marks,
            ends=work.ends,
            update=work.update,
            manifest=done.manifest,
        )
        self.finished[round_, base] = done

    def merge(self, key: MergeKey, lists: BaseLists, manifest: Digest) -> None:
        """A merge was computed."""
        round_, over = key
        made = {"parameters": lists.parameters, "momentum": lists.momentum, "manifest": manifest}
        self.journal.note("merge", round=round_, over=over, **made)
        self.merges[key], self.manifests[key] = lists, manifest

    def _read_finished(self, e: Entry) -> None:
        first, second, third = map(_digest, e["ends"])
        work = SeatWork(e["units"], _digest(e["marks"]), (first, second, third), _digest(e["update"]))
        done = FinishedWork(Seat(e["seat"]), work, _digest(e["manifest"]))
        self.finished[Round(e["round"]), _digest(e["base"])] = done

    def _read_merged(self, e: Entry) -> None:
        key = Round(e["round"]), _digest(e["over"])
        self.merges[key] = BaseLists(_digest(e["parameters"]), _digest(e["momentum"]))
        self.manifests[key] = _digest(e["manifest"])


def _digest(text: str) -> Digest:
    return Digest(bytes.fromhex(text))
