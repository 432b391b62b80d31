"""An actor's memory and its journal: what is rebuilt at the start and written before it is relied upon.

Source: docs/adr/0007-actors.md.
"""

from __future__ import annotations

from typing import Any

from assay.protocol.run.claims import AttestationLeaf, ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.agents.journal import Entry, Journal
from assay_ledger.index.view import CommittedChallenge, Leaf, Memory, OuterStep, Trained


class Recorder:
    """Keeps a memory and a journal in step: an entry is on disk before the memory shows it."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.memory = Memory()
        readers = {
            "result": self._read_result,
            "outer": self._read_outer,
            "trained": self._read_trained,
            "leaves": self._read_leaves,
            "committed": self._read_committed,
            "uncommitted": self._read_uncommitted,
            "released": self._read_released,
        }
        for kind, read in readers.items():
            for entry in journal.entries(kind):
                read(entry)

    def result(self, program: Digest, x: Digest, y: Digest) -> None:
        """A replay from X ended in Y."""
        self.journal.append("result", program=program, x=x, y=y)
        self.memory.results[program, x] = y

    def outer(self, x: Digest, step: OuterStep) -> None:
        """An outer step from X ended in these lists."""
        self.journal.append("outer", x=x, parameters=step.parameters, momentum=step.momentum)
        self.memory.outers[x] = step

    def trained(self, round_: Round, trained: Trained) -> None:
        """A round was trained from a base and published."""
        self.journal.append(
            "trained",
            round=round_,
            base=trained.base,
            roots=trained.roots,
            end_lists=trained.end_lists,
            update=trained.update,
            manifest=trained.manifest,
        )
        self.memory.trained[round_, trained.base] = trained

    def leaves(self, round_: Round, draw: Digest, leaves: tuple[Leaf, ...]) -> None:
        """The hidden leaves of a round and its draw, before their root is sent: lost salts could never be revealed."""
        fields = [
            [leaf.seat, leaf.leaf.claim_id, leaf.leaf.duty, leaf.leaf.end_root, leaf.leaf.salt] for leaf in leaves
        ]
        self.journal.append("leaves", round=round_, draw=draw, leaves=fields)
        self.memory.leaves[round_], self.memory.draws[round_] = leaves, draw

    def committed(self, ref: ClaimRef, own_root: Digest, salt: Digest) -> None:
        """A third-party challenge, before it is committed."""
        self.journal.append("committed", ref=_ref_fields(ref), own_root=own_root, salt=salt)
        self.memory.committed[ref] = CommittedChallenge(ref, own_root, salt)

    def uncommitted(self, ref: ClaimRef) -> None:
        """A committed challenge was revealed."""
        self.journal.append("uncommitted", ref=_ref_fields(ref))
        self.memory.committed.pop(ref, None)

    def released(self, what: str, round_: Round) -> None:
        """Credits of a round have become shares."""
        self.journal.append("released", what=what, round=round_)
        self.memory.released.add((what, round_))

    def _read_result(self, e: Entry) -> None:
        self.memory.results[_digest(e["program"]), _digest(e["x"])] = _digest(e["y"])

    def _read_outer(self, e: Entry) -> None:
        self.memory.outers[_digest(e["x"])] = OuterStep(_digest(e["parameters"]), _digest(e["momentum"]))

    def _read_trained(self, e: Entry) -> None:
        roots, ends = tuple(map(_digest, e["roots"])), tuple(map(_digest, e["end_lists"]))
        base = _digest(e["base"])
        manifest = None if e.get("manifest") is None else _digest(e["manifest"])
        self.memory.trained[Round(e["round"]), base] = Trained(base, roots, ends, _digest(e["update"]), manifest)

    def _read_leaves(self, e: Entry) -> None:
        self.memory.draws[Round(e["round"])] = _digest(e["draw"])
        self.memory.leaves[Round(e["round"])] = tuple(
            Leaf(Seat(seat), AttestationLeaf(_digest(claim), duty, _digest(end), _digest(salt)))
            for seat, claim, duty, end, salt in e["leaves"]
        )

    def _read_committed(self, e: Entry) -> None:
        ref = _ref(e["ref"])
        self.memory.committed[ref] = CommittedChallenge(ref, _digest(e["own_root"]), _digest(e["salt"]))

    def _read_uncommitted(self, e: Entry) -> None:
        self.memory.committed.pop(_ref(e["ref"]), None)

    def _read_released(self, e: Entry) -> None:
        self.memory.released.add((e["what"], Round(e["round"])))


def _digest(text: str) -> Digest:
    return Digest(bytes.fromhex(text))


def _ref_fields(ref: ClaimRef) -> list[Any]:
    return [int(ref.kind), ref.round, ref.seat, ref.duty, ref.party, ref.outer_root]


def _ref(fields: list[Any]) -> ClaimRef:
    kind, round_, seat, duty, party, root = fields
    return ClaimRef(ClaimKind(kind), Round(round_), Seat(seat), duty, Address(bytes.fromhex(party)), _digest(root))
