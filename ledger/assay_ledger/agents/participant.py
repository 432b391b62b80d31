"""The actions that every role carries out: games, seeds, outer steps, rounds, settlement.

What is decided is in `assay_ledger.agents.keeper`; here are the transactions and calculations behind it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from assay.protocol.errors import AssayError, MismatchError
from assay.protocol.program.trace import SlotTamper, Tamper, Trace
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Fate, Round, Seat, Wei
from assay_ledger.agents import keeper
from assay_ledger.agents.actions import (
    Action,
    BindChallenge,
    Challenge,
    ComputeOuter,
    Defer,
    DrawSeed,
    DrawWhistleSeed,
    EndOverdue,
    FinalizeOuter,
    OpenRound,
    Play,
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
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.chain.client import address_of
from assay_ledger.index.archive import Job
from assay_ledger.index.games import Game, ref_to_chain
from assay_ledger.index.view import Duty, OuterStep, View


class SecondThoughts(MismatchError):
    """A second calculation does not confirm what somebody was about to be accused of."""

    remedy = "This machine's arithmetic or memory is at fault: stop the actor and test the hardware."


class Member(Agent):
    """An actor that plays games and does its share of the keeper tasks."""

    _seen: View

    def refresh(self, view: View) -> None:
        """See Agent: committed challenges as the chain has them."""
        self._seen = view
        for ref, bound in sorted(self.memory.bound.items(), key=lambda item: item[0].encode()):
            commitment = challenge_commitment(ref, bound.own_root, bound.salt, self.me)
            _, block, when = self.chain.call(self.target.game.functions.boundChallenge(commitment))
            self.memory.bound[ref] = replace(bound, block=block or None, time=when)

    def is_finished(self, view: View) -> bool:
        """See Agent: the run is over, all of it is settled, and no credit is still to vest."""
        if self.leaving and self._has_left(view):
            return True
        over = len(view.state.rounds) >= view.charter.rounds or view.now > view.charter.expiry
        return over and self.deadline is None and all(record.settled for record in view.state.rounds)

    def _has_left(self, view: View) -> bool:
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
            if any(c.solver == self.me and c.fate is Fate.OPEN for c in record.commitments.values()):
                return False
        return True

    def free_stake(self, view: View) -> Wei | None:
        """This actor's stake that nothing locks; asked for while it decides about a rescue alone."""
        if not keeper.may_rescue(view):
            return None
        return Wei(int(self.chain.call(self.target.vault.functions.free(bytes(self.me)))))

    # --- lies that a dishonest actor tells; an honest one has none

    def tamper(self, round_: Round, seat: Seat, number: int, job: Job) -> Tamper | None:
        """How the run behind one's own claim on a duty is altered."""
        return None

    def slot_tamper(self, duty: Duty, job: Job) -> SlotTamper | None:
        """How the end states behind one's own claim are altered."""
        return None

    # --- games

    def together(self, due: Sequence[Action], view: View) -> Sequence[Action]:
        """See Agent: moves that wait for no execution but the first one's go out at once, as many as there are."""
        if not isinstance(due[0], Play):
            return due[:1]
        first = view.state.games[due[0].game_id].claim_id
        return [a for a in due if isinstance(a, Play) and (self._is_at_hand(a, view, first))]

    def _is_at_hand(self, action: Play, view: View, executed: Digest) -> bool:
        game = view.state.games[action.game_id]
        return game.claim_id == executed or self._player().is_ready(game.claim_id, game.turn)

    def carry_out(self, actions: Sequence[Action], view: View) -> Iterator[tuple[Action, AssayError | None]]:
        """See Agent: moves in several games are sent at once and mined as fast as blocks take them."""
        if not isinstance(actions[0], Play):
            yield from super().carry_out(actions, view)
            return
        moves = {a.game_id: a for a in actions if isinstance(a, Play)}
        games = [self.target.games.game(number) for number in moves]
        calls: dict[Action, Any] = {}
        for game, call in self._player().calls_of(games):
            if call is None or isinstance(call, AssayError):
                yield moves[game.game_id], call
            else:
                calls[moves[game.game_id]] = call
        for action, result in zip(calls, self.send_all(list(calls.values())), strict=True):
            yield action, result if isinstance(result, AssayError) else None

    def do_defer(self, action: Defer, view: View) -> None:
        """Defers a turn of this actor's; refused by the contract when the fee has fallen meanwhile."""
        self.send(self.target.game.functions.defer(action.game_id))

    def do_end_overdue(self, action: EndOverdue, view: View) -> None:
        """Ends a game that the other side lets run out."""
        call = self._player().overdue_call(self.target.games.game(action.game_id), view.now)
        if call is not None:
            self.send(call)

    def do_challenge(self, action: Challenge, view: View) -> None:
        """Opens a game as a party to the claim, after a second calculation."""
        self.confirm(action.ref, view)
        self.send(self.target.game.functions.challenge(ref_to_chain(action.ref)))

    def do_bind_challenge(self, action: BindChallenge, view: View) -> None:
        """Commits to a third-party challenge; its salt is on disk first."""
        if action.ref not in self.memory.bound:
            self.confirm(action.ref, view)
            self.recorder.bound(action.ref, action.own_root, Digest(secrets.token_bytes(32)))
        bound = self.memory.bound[action.ref]
        commitment = challenge_commitment(action.ref, bound.own_root, bound.salt, self.me)
        self.send(self.target.game.functions.commitChallenge(commitment))

    def do_reveal_challenge(self, action: RevealChallenge, view: View) -> None:
        """Opens the game of a committed challenge."""
        function = self.target.game.functions.revealChallenge
        self.send(function(ref_to_chain(action.ref), action.own_root, action.salt))
        self.recorder.unbound(action.ref)

    def confirm(self, ref: ClaimRef, view: View) -> None:
        """Recomputes a claim on another route. Raises SecondThoughts unless it is false as the first calculation said.

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
            raise SecondThoughts(
                f"A second calculation of {where} does not confirm the first.",
                first=expected,
                second=again,
                claimed=claimed,
            )

    def _disputed(self, ref: ClaimRef, view: View) -> tuple[Job, Digest | None, Digest]:
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
    def duty_of(ref: ClaimRef, view: View) -> Duty:
        """The work that an interval, update or attestation claim is about."""
        record = view.state.rounds[ref.round]
        return view.duty(record, record.commitments[ref.seat], ref.duty)

    def _player(self) -> GamePlayer:
        if not hasattr(self, "_game_player"):
            arity = self.facts.charter.clocks.arity
            self._game_player = GamePlayer(self.target.games, self.account, arity, self._trace_of)
        return self._game_player

    def _trace_of(self, game: Game) -> Trace:
        """The run behind a disputed claim, executed again; as claimed where the claim is one's own."""
        view, ref = self._seen, game.ref
        defends = game.state.defender == address_of(self.account)
        if ref.kind is ClaimKind.OUTER:
            job, _, _ = self._disputed(ref, view)
            return self.compute.trace(job.program, job.lists, job.steps)
        duty = self.duty_of(ref, view)
        job = self.archive.job(view, duty)
        tamper = self.tamper(ref.round, ref.seat, ref.duty, job) if defends else None
        slot_tamper = self.slot_tamper(duty, job) if defends else None
        return self.compute.trace(job.program, job.lists, job.steps, tamper, slot_tamper)

    # --- seeds and rounds

    def do_draw_seed(self, action: DrawSeed, view: View) -> None:
        """Draws the audit seed."""
        self.send(self.target.audit.functions.drawSeed(action.round))

    def do_draw_whistle_seed(self, action: DrawWhistleSeed, view: View) -> None:
        """Draws the whistle seed."""
        self.send(self.target.audit.functions.drawWhistleSeed(action.round))

    def do_open_round(self, action: OpenRound, view: View) -> None:
        """Opens the next round."""
        self.send(self.target.rounds.functions.openRound())

    # --- outer steps

    def do_compute_outer(self, action: ComputeOuter, view: View) -> None:
        """Computes the outer step whose inclusion is fixed."""
        mask, x = view.state.rounds[action.round].inclusions[action.base]
        self._compute_outer(view, action.round, action.base, mask, x)

    def do_post_outer(self, action: PostOuter, view: View) -> None:
        """Posts the outer step; everything it names is published first."""
        asked = self.target.outers.functions.inclusionOf(action.round, action.base)
        mask, x, _ = self.chain.call(asked)
        step = self._compute_outer(view, action.round, action.base, mask, Digest(bytes(x)))
        post = self.target.outers.functions.postOuter
        tail = self.archive.outer_manifest(step) or b""
        self.send(post(action.round, action.base, x, step.parameters, step.momentum), tail=tail)

    def _compute_outer(self, view: View, round_: Round, base: Digest, mask: int, x: Digest) -> OuterStep:
        known = self.memory.outers.get(x)
        if known is not None:
            return known
        job = self.archive.outer_job(view, round_, base, mask, x)
        step = self.archive.publish_outer(self.compute.run(job.program, job.lists, job.steps))
        self.recorder.outer(x, step)
        return step

    def do_finalize_outer(self, action: FinalizeOuter, view: View) -> None:
        """Makes an outer root final."""
        self.send(self.target.outers.functions.finalizeOuter(action.round, action.root, action.poster))

    def do_void_outer(self, action: VoidOuter, view: View) -> None:
        """Ends an outer claim without a base."""
        self.send(self.target.outers.functions.voidOuter(action.round, action.root, action.poster))

    # --- settlement

    def do_settle_work(self, action: SettleWork, view: View) -> None:
        """Settles a commitment."""
        self.send(self.target.settlement.functions.settleWork(action.round, action.seat))

    def do_settle_duties(self, action: SettleDuties, view: View) -> None:
        """Settles an attester's duties."""
        self.send(self.target.settlement.functions.settleDuties(action.round, action.attester))

    def do_settle_round(self, action: SettleRound, view: View) -> None:
        """Settles what is left of a round."""
        self.send(self.target.settlement.functions.settleRound(action.round))

    def do_release_work(self, action: ReleaseWork, view: View) -> None:
        """Turns a commitment's credit into shares."""
        workId = self.target.vesting.functions.workId(action.round, action.seat)
        self._release("work", action.round, bytes(self.chain.call(workId)))

    def do_release_duties(self, action: ReleaseDuties, view: View) -> None:
        """Turns a round's credit for duties into shares."""
        dutiesId = self.target.vesting.functions.dutiesId(action.round, self.me)
        self._release("duties", action.round, bytes(self.chain.call(dutiesId)))

    def _release(self, what: str, round_: Round, grant_id: bytes) -> None:
        grant = self.chain.call(self.target.vesting.functions.grantOf(grant_id))
        owner, *_, done = grant.values() if isinstance(grant, dict) else grant
        # Anybody may release a grant; nothing was credited where nothing was earned.
        if int(owner, 16) and not done:
            self.send(self.target.vesting.functions.release(grant_id))
        self.recorder.released(what, round_)
