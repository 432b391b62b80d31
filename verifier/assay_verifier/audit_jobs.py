"""What an auditor computes: a commitment from its start, and its update. Fetched by root, checked.

Nothing is asked of the audited party but its marks, without which a replay works all the same.
"""

from __future__ import annotations

from assay.protocol.digests import state_digest
from assay.protocol.errors import UnavailableError
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.index.computing import Computation, Compute
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.records import WorkRecord
from assay_ledger.rounds.view import RunView
from assay_ledger.store.objects import Tensors, root_of_list
from assay_verifier.replaying import WorkToReplay


class AuditJobs:
    """Work of one run, over its archive. Reads raise UnavailableError."""

    def __init__(self, archive: Archive, compute: Compute) -> None:
        self._archive = archive
        self._compute = compute

    def work(self, view: RunView, round_: Round, seat: Seat, *, publish: bool = True) -> WorkToReplay:
        """A commitment from its start; a base that nobody published is merged again, and published if wished."""
        record, parent = view.state.works[round_, seat], view.round_of(round_).parent
        try:
            parameters = self._archive.fetch_parameters(view, parent)
        except UnavailableError:
            parameters = self._archive.base(view, parent, self._compute, publish=publish)[TrainingList.PARAMETERS]
        lists, steps = self._archive.start(round_, seat, parameters), self._archive.facts.rounds.steps_per_unit
        return WorkToReplay(self._archive.step, lists, record.work.units, steps, self._marks(record))

    def update_job(self, before: Tensors, after: Tensors) -> Computation:
        """The update of work between two lists of parameters."""
        return self._archive.update_job(before, after)

    def root_of_update(self, update: Tensors) -> Digest:
        """The list root of an update as it travels."""
        return root_of_list(self._archive.update_specs, update)

    def publish_base(self, view: RunView, round_: Round) -> None:
        """Publishes what the store lacks of the generation that a round starts from, for who joins with it alone.

        Of a large model each list is the uplink of an hour, and every auditor replays from some base: what others have
        put there is left as it is. Raises UnavailableError, StateMismatch.
        """
        with self._archive.objects.own_copies_first():
            lists = self._archive.base(view, view.round_of(round_).parent, self._compute)
        self._archive.serve_base(lists)

    def _marks(self, record: WorkRecord) -> tuple[Digest, ...]:
        """The marks of progress of a commitment; none where they are not to be had, or do not end in its end."""
        try:
            with self._archive.told_of(record):
                found = self._archive.objects.marks(record.work.marks, record.work.units)
        except UnavailableError:
            return ()
        return found if found[-1:] == (state_digest(record.work.ends),) else ()
