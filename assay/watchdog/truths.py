"""Disputed claims as we compute them: the true run of each, from what is published. Writes nothing."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol

from assay.protocol.errors import UnavailableError
from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.types import Digest
from assay_ledger.index.computing import Computation, Compute
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.told_generations import node_of, party_of
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import ArtifactStore
from assay_ledger.store.objects import Objects
from assay_verifier.replaying import witness_lists_of, witnessed_by

MAX_TRACES: Final = 2
"""Claims whose runs are kept; a trace holds states between steps and the values of a few nodes."""


@dataclass(frozen=True, slots=True)
class Truth:
    """A claim as we computed it: the true run, and whether it ends where it is claimed to."""

    trace: Trace
    holds: bool


class Truths:
    """The claims of one run, over its store. Reads raise UnavailableError and what checking by root raises."""

    def __init__(self, run: Run, store: ArtifactStore, compute: Compute) -> None:
        objects = Objects(store)
        self._archive = Archive(run.charter, run.facts, objects, Publications(run.chain, objects))
        self._compute = compute
        self._known: OrderedDict[ClaimRef, Truth] = OrderedDict()

    def of(self, view: RunView, ref: ClaimRef) -> Truth:
        """The truth about a claim; the one that was asked for longest ago is forgotten."""
        if ref not in self._known:
            job = self._job(view, ref)
            trace = self._compute.trace(job.program, job.lists, job.steps)
            self._known[ref] = Truth(trace, trace.state_root(job.steps) == _claimed(view, ref))
            while len(self._known) > MAX_TRACES:
                self._known.popitem(last=False)
        self._known.move_to_end(ref)
        return self._known[ref]

    def _job(self, view: RunView, ref: ClaimRef) -> Computation:
        """Program, X and steps of a claim."""
        archive = self._archive
        if ref.kind is ClaimKind.OUTER:
            return archive.node_job(view, node_of(ref), () if ref.duty else self._base(view, ref), self._compute)
        start, steps = self._start(view, ref), view.state.works[ref.round, ref.seat].work.units
        steps *= view.rules.steps_per_unit
        if ref.kind is ClaimKind.INTERVAL:
            return Computation(archive.step, start, steps)
        if ref.kind is ClaimKind.ATTESTATION:
            keys = view.state.attestations[view.books.duties.attestations.named(ref.outer_root)].finding.keys
            if ref.duty < len(keys):
                lists = (*start, *witness_lists_of(keys[ref.duty : ref.duty + 1]))
                return Computation(witnessed_by(archive.step, 1), lists, steps)
        end = self._compute.run(archive.step, start, steps)
        return archive.update_job(start[TrainingList.PARAMETERS], end[TrainingList.PARAMETERS])

    def _start(self, view: RunView, ref: ClaimRef) -> ListBytes:
        """Where a commitment starts."""
        try:
            parameters = self._archive.fetch_parameters(view, view.round_of(ref.round).parent)
        except UnavailableError:
            parameters = self._base(view, ref)[TrainingList.PARAMETERS]
        return self._archive.start(ref.round, ref.seat, parameters)

    def _base(self, view: RunView, ref: ClaimRef) -> ListBytes:
        """The generation that a claim's round starts from, merged again where nobody published it yet."""
        return self._archive.base(view, view.round_of(ref.round).parent, self._compute, publish=False)


class Judge(Protocol):
    """Says the truth about claims."""

    def of(self, view: RunView, ref: ClaimRef) -> Truth | None:
        """The truth about a claim; None while it is not known. Raises whatever computing it raises."""
        ...


class TruthsInTime:
    """The same, computed beside whoever asks, one claim after another: clocks are told while a long one is computed."""

    def __init__(self, truths: Truths) -> None:
        self._truths = truths
        self._under_way: tuple[ClaimRef, Future[Truth]] | None = None

    def of(self, view: RunView, ref: ClaimRef) -> Truth | None:
        """See Judge."""
        if self._under_way is not None:
            asked, answer = self._under_way
            if not answer.done():
                return None
            # What was found for another claim is kept by `Truths`, for when that is asked about again.
            self._under_way = None
            if asked == ref:
                return answer.result()
        answer = Future[Truth]()
        self._under_way = ref, answer
        threading.Thread(target=self._find, args=(view, ref, answer), name="assay-truth", daemon=True).start()
        return None

    def _find(self, view: RunView, ref: ClaimRef, answer: Future[Truth]) -> None:
        try:
            answer.set_result(self._truths.of(view, ref))
        except BaseException as error:  # it belongs to who asked
            answer.set_exception(error)


def _claimed(view: RunView, ref: ClaimRef) -> Digest:
    """Y of a claim."""
    books = view.books
    if ref.kind is ClaimKind.OUTER:
        return books.generations.openings[node_of(ref), party_of(ref)].root
    if ref.kind is ClaimKind.ATTESTATION:
        made = books.duties.attestations
        return made.claims[made.named(ref.outer_root), ref.duty].y
    return books.commitments.claims[ref.kind, ref.round, ref.seat][1]
