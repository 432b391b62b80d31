"""A piece of a run's history done again: a seat's work in a round, by the code by which verifiers replay it.

What stands on chain of a commitment are the roots of its end and of its update, and a digest of its marks, the state
roots after each unit. States between are published by nobody, so every replay begins where the round did; marks that
the store has only say where it parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assay.protocol.digests import state_digest
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.rounds.duty_types import ReplayFinding
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.index.computing import Compute, RecheckMismatch
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.records import WorkRecord
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import StoreDenied, StoreUnreachable
from assay_verifier.audit_jobs import AuditJobs
from assay_verifier.comparing import FalseClaim, against_work
from assay_verifier.replaying import CommitmentReplay, WorkToReplay

ONE_STATE: Final = 1
"""Room for kept states: the last is always kept, and nobody plays a game from a replay that ends with its command."""

LISTS: Final = tuple(number.name.lower() for number in TrainingList)

MOST_LOOKED_AT: Final = 64
"""Rounds, the newest first, of which it is said whether the store has what they started from."""


class HistoryGone(UnavailableError):
    """What a piece of history began from is no longer published."""


class MarksMissing(UnavailableError):
    """Where a part of a commitment ends cannot be compared: the store has no marks that end in the committed end."""

    remedy = "Leave --step out, which compares the end of the whole commitment, or name another store."


@dataclass(frozen=True, slots=True)
class ReplayedWork:
    """What came of it. `steps` were done of `of_steps`.

    differs: what is false, None while all is equal. unit: the first whose end differs, from 1; None where no marks say.
    ends, update: roots as computed; None where the replay ended before them. has_marks: the solver's marks were there.
    false_mark: the first unit whose mark is false though all of the work is true, from 1.
    """

    record: WorkRecord
    steps: int
    of_steps: int
    steps_per_unit: int
    has_marks: bool
    differs: FalseClaim | None = None
    unit: int | None = None
    ends: tuple[Digest, Digest, Digest] | None = None
    update: Digest | None = None
    false_mark: int | None = None

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is as committed."""
        return self.differs is None

    def document(self) -> dict[str, Any]:
        """As `--json` prints it."""
        work, parts = self.record.work, None
        if self.differs is not None:
            last = None if self.unit is None else self.unit * self.steps_per_unit
            first = None if last is None else last - self.steps_per_unit + 1
            parts = {"what": str(self.differs), "unit": self.unit, "first_step": first, "last_step": last}
        return {
            "round": int(self.record.round),
            "seat": int(self.record.seat),
            "commitment": _hex(self.record.digest),
            "tx": _hex(self.record.tx_hash),
            "status": self.record.status.name.lower(),
            "equal": self.equal,
            "parts": parts,
            "steps": self.steps,
            "of_steps": self.of_steps,
            "marks": self.has_marks,
            "false_mark": self.false_mark,
            "committed": _roots(work.ends, work.update),
            "computed": _roots(self.ends, self.update),
        }


def find_work(view: RunView, round_: int, seat: int) -> WorkRecord:
    """A commitment that there is. Raises RejectedError (NoSuchWork)."""
    found = view.work(Round(round_), Seat(seat))
    if found is not None:
        return found
    seats = sorted(int(s) for r, s in view.state.works if r == round_)
    opened = len(view.books.commitments.rounds)
    said = f"Of round {round_} there are those of seats {', '.join(map(str, seats))}." if seats else ""
    raise RejectedError(
        f"Seat {seat} committed to nothing in round {round_}.",
        code="NoSuchWork",
        remedy=said or f"The run has begun {opened} rounds, the first is 0; `assay run show` lists them.",
    )


def work_of(view: RunView, archive: Archive, compute: Compute, record: WorkRecord) -> WorkToReplay:
    """Where a commitment starts. Nothing is published: who looks at history needs no right to write.

    Raises HistoryGone, StoreUnreachable, StoreDenied, StateMismatch.
    """
    try:
        return AuditJobs(archive, compute).work(view, record.round, record.seat, publish=False)
    except (StoreUnreachable, StoreDenied):
        raise
    except UnavailableError as error:
        parent = view.round_of(record.round).parent
        there = rounds_to_replay(view, archive)
        more = f" Rounds that it has the start of: {', '.join(map(str, there))}." if there else ""
        raise HistoryGone(
            f"Round {record.round} started from generation {parent}, which cannot be had: its parameters, or what they "
            f"are merged from, or the data, are not in the store ({error.message})",
            remedy=f"Name another store that has them, --store again for a mirror.{more}",
        ) from error


def rounds_to_replay(view: RunView, archive: Archive) -> list[int]:
    """Of the newest rounds those whose first parameters have a name in the store; bytes are not looked at."""
    found = []
    newest = len(view.books.commitments.rounds)
    for number in range(max(0, newest - MOST_LOOKED_AT), newest):
        lists = view.lists(view.round_of(Round(number)).parent)
        name = None if lists is None else f"lists/{lists.parameters.hex()}"
        try:
            if name is not None and next(iter(archive.objects.store.candidates(name)), None) is not None:
                found.append(number)
        except UnavailableError:
            break
    return found


def replay_work(
    record: WorkRecord,
    work: WorkToReplay,
    jobs: AuditJobs,
    compute: Compute,
    folder: Path,
    until_step: int | None = None,
    done: Callable[[], None] = lambda: None,
) -> ReplayedWork:
    """Trains a commitment again and compares; it ends with the unit of `until_step` where no mark differs up to there.

    folder: for what the replay keeps while it goes on; done: is called after each unit.

    Attack: true work with a false mark, by which nobody is judged (WK-1), to have readers call it false. So a mark that
    differs says where work parts, and the end whether it does.

    What differs is computed once more by other kernels, so that a fault of this machine is nobody's fraud.

    Raises RejectedError (NoSuchStep), MarksMissing, RecheckMismatch.
    """
    has_marks = len(work.marks) == work.units
    last = work.units
    if until_step is not None:
        if not 1 <= until_step <= work.steps:
            raise RejectedError(
                f"The commitment has no step {until_step}.",
                code="NoSuchStep",
                remedy=f"Its steps are 1 to {work.steps}.",
            )
        last = -(-until_step // work.steps_per_unit)
        if last < work.units and not has_marks:
            raise MarksMissing(
                f"The marks of the work of seat {record.seat} in round {record.round} are not to be had."
            )
    replay = CommitmentReplay(compute, work, (), folder, ONE_STATE)
    while replay.done < (last if replay.differs_at is None else work.units):
        replay.advance()
        done()

    def said(differs: FalseClaim | None, update: Digest | None = None) -> ReplayedWork:
        ends = replay.ends if replay.is_done else None
        steps, parts = replay.done * work.steps_per_unit, replay.differs_at
        unit, false_mark = (parts, None) if differs is FalseClaim.END else (None, parts)
        return ReplayedWork(
            *(record, steps, work.steps, work.steps_per_unit, has_marks, differs, unit, ends, update, false_mark)
        )

    if not replay.is_done:
        return said(None)
    job = jobs.update_job(work.lists[TrainingList.PARAMETERS], replay.lists[TrainingList.PARAMETERS])
    update = jobs.root_of_update(compute.run(job.program, job.lists, job.steps)[0])
    found = against_work(ReplayFinding(replay.ends, update, (), ()), record.work)
    if found is not None:
        replay.confirm()
        if jobs.root_of_update(compute.recheck(job.program, job.lists, job.steps)[0]) != update:
            raise RecheckMismatch("Two calculations of an update differ.")
    return said(None if found is None else found.what, update)


# --- inside


def _roots(ends: tuple[Digest, Digest, Digest] | None, update: Digest | None) -> dict[str, str | None]:
    parts = None if ends is None else {"state": state_digest(ends), **dict(zip(LISTS, ends, strict=True))}
    found: dict[str, str | None] = dict.fromkeys(("state", *LISTS, "update"))
    if parts is not None:
        found |= {name: _hex(root) for name, root in parts.items()}
    return found if update is None else found | {"update": _hex(update)}


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
