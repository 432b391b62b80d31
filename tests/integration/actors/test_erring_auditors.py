"""An auditor whose machine errs once, in a later pass over a commitment that it has replayed before."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.digests import keccak
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep
from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.index.computing import RecheckMismatch
from assay_verifier.answering import ConfirmFinding, OpenCall, OwnCall, OwnDuty, Progressed, auditing, result_of
from assay_verifier.drawing import Drawn
from assay_verifier.finding_book import place_of
from assay_verifier.replaying import CommitmentReplay
from tests.harness.actors.world import COMPUTE, SharedChain, small_work
from tests.harness.auditors.audited_run import new_audited_run
from tests.harness.auditors.slow_compute import SlowCompute

pytestmark = pytest.mark.timeout(300)

LATER = 10**9


class Erring(SlowCompute):
    """Its usual kernels flip a bit of the first parameter in the next unit that they compute, once `errs` is set."""

    errs = False

    def run(
        self, program: Program, lists: ListBytes, steps: int = 1, tamper: None = None, on_step: OnStep | None = None
    ) -> ListBytes:
        """See Compute."""
        end = super().run(program, lists, steps, tamper, on_step)
        if steps == 1 or not self.errs:
            return end
        self.errs = False
        return ((bytes([end[0][0][0] ^ 1]) + end[0][0][1:], *end[0][1:]), *end[1:])


def witness_key(name: bytes) -> Digest:
    return Digest(keccak(name)[:8] + bytes(24))


@pytest.mark.parametrize("again", [False, True])
def test_a_fault_in_a_second_pass_over_true_work_comes_into_no_result(
    stage: SharedChain, tmp_path: Path, again: bool
) -> None:
    """Bad luck: two duties on one commitment, in two epochs; the machine errs in the second pass alone.

    again: the second call asks for what the first one did, too.
    """
    made = new_audited_run(stage, tmp_path, small_work(), 2)
    made.auditor("vera")
    agent = made.auditor("wilma", tickets=0)
    erring = Erring(lambda seconds: None, 1.0, 1.0)
    erring.serve(agent)
    made.settle(lambda view: len(view.books.registry.tickets) == 1 and len(view.epochs) > 3)
    made.sit(2)
    made.begin()
    made.play_round()
    view, book = made.view, agent.book
    record = view.state.works[Round(0), Seat(0)]
    place = place_of(view.base(Round(0)).parameters, record.digest)

    def answered(*keys: Digest) -> OwnDuty:
        """A duty on the commitment under each key, once all that the auditor does for them is done; the last one."""
        ranks, kind = range(len(keys)), DrawnDuty(DutyKind.WORK, 0, Seat(0))
        drawn = [Drawn(rank, kind, record.digest, 0, Seat(0), keys[rank], ()) for rank in ranks]
        owns = tuple(OwnDuty(TicketId(1), one, place, record.work) for one in drawn)
        call = OwnCall(TicketId(1), 1, Digest(bytes(32)), LATER, owns)
        for _ in range(40):
            action = next(auditing([call], book, Progressed(agent._done, agent._unchecked), 0, 0))
            if isinstance(action, OpenCall):
                assert action.ranks == tuple(ranks)
                return owns[-1]
            try:
                if isinstance(action, ConfirmFinding):
                    agent.do_confirm(action, view)
                else:
                    agent.do_replay_unit(action, view)
            except RecheckMismatch:
                pass  # the loop tries what is then due
        raise AssertionError("it comes to no end")

    first, second = witness_key(b"first"), witness_key(b"second")
    answered(first)
    erring.errs = True
    result = result_of(answered(*((first,) if again else ()), second), book)
    assert not erring.errs
    clean = CommitmentReplay(COMPUTE, agent.jobs.work(view, Round(0), Seat(0)), (second,), tmp_path / "clean")
    while not clean.is_done:
        clean.advance()
    assert (result.ends, result.update) == (record.work.ends, record.work.update)
    assert result.accumulators == clean.accumulators
