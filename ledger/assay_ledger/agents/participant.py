"""The actions that every role carries out: games, seeds, outer steps, rounds, settlement.

What is decided is in `assay_ledger.agents.keeper`; here are the transactions and calculations behind it.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from assay.protocol.errors import MismatchError
from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Round, Status, Wei
from assay_ledger.agents import keeper
from assay_ledger.agents.actions import (
    Challenge,
    CommitChallenge,
    ComputeOuter,
    DrawSeed,
    DrawWhistleSeed,
    FinalizeOuter,
    OpenRound,
    PostOuter,
    ReleaseDuties,
    ReleaseWork,
    RevealChallenge,
    SettleDuties,
    SettleRound,
    SettleWork,
    VoidOuter,
)
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.handlers import Handlers
from assay_ledger.chain.client import address_of
from assay_ledger.index.archive import Computation
from assay_ledger.index.games import Game
from assay_ledger.index.view import Duty, OuterStep, RunView


class RecheckMismatch(MismatchError):
    """A second calculation does not confirm what somebody was about to be accused of."""

    remedy = "This machine's arithmetic or memory is at fault: stop the actor and test the hardware."


class Participant(Agent):
    """An actor that plays games and does its share of the keeper tasks."""

    def refresh(self, view: RunView) -> None:
        """See Agent: committed challenges as the chain has them."""
        for ref, committed in sorted(self.memory.committed.items(), key=lambda item: item[0].encode()):
            commitment = challenge_commitment(ref, committed.own_root, committed.salt, self.me)
            _, block, when = self.chain.ask(self.target.game.committed_challenge(commitment))
            self.memory.committed[ref] = replace(committed, block=block or None, time=when)

    def is_finished(self, view: RunView) -> bool:
        """See Agent: the run is over, all of it is settled, and no credit is still to vest."""
        if self.leaving and self._has_left(view):
            return True
        over = len(view.state.rounds) >= view.charter.rounds or view.now > view.charter.expiry
        return over and self.deadline is None and all(record.settled for record in view.state.rounds)

    def _has_left(self, view: RunView) -> bool:
        """Is nothing that this actor began still open?"""
        registered = view.state.attesters.get(self.me)
        last = len(view.state.rounds) - 1
        serves = registered is not None and (registered.retires_with is None or registered.retires_with <= last)
        if serves or self.me in view.state.holders.values() or view.state.open_games_of(self.me):
            return False
        for record in view.state.rounds:
            mine = record.attendance.get(self.me)
            if mine is not None and mine.leaves and not mine.settled:
                return False
            if any(c.solver == self.me and c.status is Status.OPEN for c in record.commitments.values()):
                return False
        return True

    def free_stake(self, view: RunView) -> Wei | None:
        """This actor's stake that nothing locks; asked for while it decides about a rescue alone."""
        if not keeper.may_rescue(view):
            return None
        return self.chain.ask(self.target.vault.free(self.me))

    def handlers(self) -> Handlers[RunView]:
        """See Agent."""
        table = super().handlers()
        table.add(Challenge, self.do_challenge)
        table.add(CommitChallenge, self.do_commit_challenge).add(RevealChallenge, self.do_reveal_challenge)
        table.add(DrawSeed, self.do_draw_seed).add(DrawWhistleSeed, self.do_draw_whistle_seed)
        table.add(OpenRound, self.do_open_round)
        table.add(ComputeOuter, self.do_compute_outer).add(PostOuter, self.do_post_outer)
        table.add(FinalizeOuter, self.do_finalize_outer).add(VoidOuter, self.do_void_outer)
        table.add(SettleWork, self.do_settle_work).add(SettleDuties, self.do_settle_duties)
        table.add(SettleRound, self.do_settle_round)
        return table.add(ReleaseWork, self.do_release_work).add(ReleaseDuties, self.do_release_duties)

    # --- games

    def do_challenge(self, action: Challenge, view: RunView) -> None:
        """Opens a game as a party to the claim, after a second calculation."""
        self.confirm(action.ref, view)
        self.send(self.target.game.challenge(action.ref))

    def do_commit_challenge(self, action: CommitChallenge, view: RunView) -> None:
        """Commits to a third-party challenge; its salt is on disk first."""
        if action.ref not in self.memory.committed:
            self.confirm(action.ref, view)
            self.recorder.committed(action.ref, action.own_root, Digest(secrets.token_bytes(32)))
        committed = self.memory.committed[action.ref]
        commitment = challenge_commitment(action.ref, committed.own_root, committed.salt, self.me)
        self.send(self.target.game.commit_challenge(commitment))

    def do_reveal_challenge(self, action: RevealChallenge, view: RunView) -> None:
        """Opens the game of a committed challenge."""
        self.send(self.target.game.reveal_challenge(action.ref, action.own_root, action.salt))
        self.recorder.uncommitted(action.ref)

    def confirm(self, ref: ClaimRef, view: RunView) -> None:
        """Cross-checks a claim. Raises RecheckMismatch unless it is false as the first calculation reported.

        An accusation costs its bond if it is wrong, so a fault of this machine must not become one.
        """
        job, expected, claimed = self._disputed(ref, view)
        lists = self.compute.recheck(job.program, job.lists, job.steps)
        if ref.kind is ClaimKind.OUTER:
            again = OuterStep(*(self.archive.root_of_parameters(tensors) for tensors in lists)).root
        else:
            again = self.archive.end_root(self.duty_of(ref, view), lists)
        if again != expected or again == claimed:
            where = f"duty {ref.duty} of seat {ref.seat} in round {ref.round}"
            raise RecheckMismatch(
                f"A second calculation of {where} does not confirm the first.",
                first=expected,
                second=again,
                claimed=claimed,
            )

    def _disputed(self, ref: ClaimRef, view: RunView) -> tuple[Computation, Digest | None, Digest]:
        """A claim's job, the end that this actor computed, and the end that is claimed."""
        if ref.kind is ClaimKind.OUTER:
            base = view.state.rounds[ref.round].outers[ref.outer_root].bases[ref.party]
            mask, x = view.state.rounds[ref.round].inclusions[base]
            job = self.archive.outer_job(view, ref.round, base, mask, x)
            known = view.memory.outers.get(x)
            return job, None if known is None else known.root, ref.outer_root
        duty = self.duty_of(ref, view)
        claimed = duty.y
        if ref.kind is ClaimKind.ATTESTATION:
            claimed = view.state.rounds[ref.round].attendance[ref.party].leaves[ref.seat, ref.duty]
        expected = duty.y if duty.claimant == self.me else view.result(duty)
        return self.archive.job(view, duty), expected, claimed

    @staticmethod
    def duty_of(ref: ClaimRef, view: RunView) -> Duty:
        """The work that an interval, update or attestation claim is about."""
        record = view.state.rounds[ref.round]
        return view.duty(record, record.commitments[ref.seat], ref.duty)

    def trace_of(self, game: Game, view: RunView) -> Trace:
        """See GameActor. The run behind a disputed claim, executed again; as claimed where the claim is one's own."""
        ref = game.ref
        defends = game.state.defender == address_of(self.account)
        if ref.kind is ClaimKind.OUTER:
            job, _, _ = self._disputed(ref, view)
            return self.compute.trace(job.program, job.lists, job.steps)
        duty = self.duty_of(ref, view)
        job = self.archive.job(view, duty)
        return self.own_trace(duty, job, view) if defends else self.compute.trace(job.program, job.lists, job.steps)

    def own_trace(self, duty: Duty, job: Computation, view: RunView) -> Trace:
        """The run behind a claim of one's own, as one claimed it."""
        return self.compute.trace(job.program, job.lists, job.steps)

    # --- seeds and rounds

    def do_draw_seed(self, action: DrawSeed, view: RunView) -> None:
        """Draws the audit seed."""
        self.send(self.target.audit.draw_seed(action.round))

    def do_draw_whistle_seed(self, action: DrawWhistleSeed, view: RunView) -> None:
        """Draws the whistle seed."""
        self.send(self.target.audit.draw_whistle_seed(action.round))

    def do_open_round(self, action: OpenRound, view: RunView) -> None:
        """Opens the next round."""
        self.send(self.target.rounds.open_round())

    # --- outer steps

    def do_compute_outer(self, action: ComputeOuter, view: RunView) -> None:
        """Computes the outer step whose inclusion is fixed."""
        mask, x = view.state.rounds[action.round].inclusions[action.base]
        self._compute_outer(view, action.round, action.base, mask, x)

    def do_post_outer(self, action: PostOuter, view: RunView) -> None:
        """Posts the outer step; everything it names is published first."""
        mask, x, _ = self.chain.ask(self.target.outers.inclusion_of(action.round, action.base))
        step = self._compute_outer(view, action.round, action.base, mask, x)
        tail = self.archive.outer_manifest(step) or b""
        call = self.target.outers.post_outer(action.round, action.base, x, step.parameters, step.momentum)
        self.send(call, tail=tail)

    def _compute_outer(self, view: RunView, round_: Round, base: Digest, mask: int, x: Digest) -> OuterStep:
        known = self.memory.outers.get(x)
        if known is not None:
            return known
        job = self.archive.outer_job(view, round_, base, mask, x)
        step = self.archive.publish_outer(self.compute.run(job.program, job.lists, job.steps))
        self.recorder.outer(x, step)
        return step

    def do_finalize_outer(self, action: FinalizeOuter, view: RunView) -> None:
        """Makes an outer root final."""
        self.send(self.target.outers.finalize_outer(action.round, action.root, action.poster))

    def do_void_outer(self, action: VoidOuter, view: RunView) -> None:
        """Ends an outer claim without a base."""
        self.send(self.target.outers.void_outer(action.round, action.root, action.poster))

    # --- settlement

    def do_settle_work(self, action: SettleWork, view: RunView) -> None:
        """Settles a commitment."""
        self.send(self.target.settlement.settle_work(action.round, action.seat))

    def do_settle_duties(self, action: SettleDuties, view: RunView) -> None:
        """Settles an attester's duties."""
        self.send(self.target.settlement.settle_duties(action.round, action.attester))

    def do_settle_round(self, action: SettleRound, view: RunView) -> None:
        """Settles what is left of a round."""
        self.send(self.target.settlement.settle_round(action.round))

    def do_release_work(self, action: ReleaseWork, view: RunView) -> None:
        """Turns a commitment's credit into shares."""
        self._release("work", action.round, self.chain.ask(self.target.vesting.work_id(action.round, action.seat)))

    def do_release_duties(self, action: ReleaseDuties, view: RunView) -> None:
        """Turns a round's credit for duties into shares."""
        self._release("duties", action.round, self.chain.ask(self.target.vesting.duties_id(action.round, self.me)))

    def _release(self, what: str, round_: Round, grant_id: Digest) -> None:
        grant = self.chain.ask(self.target.vesting.grant_of(grant_id))
        # Anybody may release a grant; nothing was credited where nothing was earned.
        if any(grant.owner) and not grant.done:
            self.send(self.target.vesting.release(grant_id))
        self.recorder.released(what, round_)
